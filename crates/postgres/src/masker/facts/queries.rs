//! What is asked of the catalog.

/// The first object id that is not the system's own.
macro_rules! users {
    ($oid:literal) => {
        concat!($oid, " >= 16384")
    };
}

/// Tables: see [`super::Facts`].
pub(super) const RELATIONS: &str = concat!(
    "SELECT c.oid, n.nspname, c.relname, c.relkind, c.relispartition, c.relpersistence, \
       COALESCE(am.amname, 'heap'), ts.spcname, pg_catalog.pg_get_userbyid(c.relowner), \
       GREATEST(c.reltuples, 0)::pg_catalog.int8, \
       (SELECT pg_catalog.string_agg(option_name || '=' || option_value, ', ') \
         FROM pg_catalog.pg_options_to_table(c.reloptions) \
         WHERE option_name IN ('fillfactor', 'toast_tuple_target')), \
       pg_catalog.pg_get_expr(c.relpartbound, c.oid), pg_catalog.pg_get_partkeydef(c.oid), \
       p.partattrs, p.partexprs IS NOT NULL \
     FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
       LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam \
       LEFT JOIN pg_catalog.pg_tablespace ts ON ts.oid = c.reltablespace \
       LEFT JOIN pg_catalog.pg_partitioned_table p ON p.partrelid = c.oid \
     WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND ",
    users!("c.oid"),
    " ORDER BY c.oid"
);

/// Their columns.
pub(super) const COLUMNS: &str = concat!(
    "WITH RECURSIVE base AS ( \
       SELECT oid AS type, oid AS base, -1 AS typmod, false AS filled \
       FROM pg_catalog.pg_type WHERE typtype <> 'd' \
       UNION ALL SELECT d.oid, b.base, GREATEST(d.typtypmod, b.typmod), d.typnotnull OR b.filled \
       FROM pg_catalog.pg_type d JOIN base b ON b.type = d.typbasetype WHERE d.typtype = 'd') \
     SELECT a.attrelid, a.attnum, a.attname, a.attisdropped, \
       pg_catalog.format_type(a.atttypid, a.atttypmod), \
       CASE WHEN a.attcollation <> t.typcollation THEN \
         pg_catalog.format('%I.%I', cn.nspname, co.collname) END, \
       b.typname, b.typcategory, GREATEST(a.atttypmod, base.typmod), \
       a.attnotnull OR COALESCE(base.filled, false), \
       CASE WHEN a.attstorage <> t.typstorage THEN a.attstorage END, a.attgenerated, \
       CASE WHEN a.attgenerated <> '' THEN pg_catalog.pg_get_expr(d.adbin, d.adrelid) END, \
       pg_catalog.to_jsonb(a) ->> 'attcompression' \
     FROM pg_catalog.pg_attribute a \
       JOIN pg_catalog.pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p') AND ",
    users!("c.oid"),
    "  LEFT JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
       LEFT JOIN base ON base.type = a.atttypid \
       LEFT JOIN pg_catalog.pg_type b ON b.oid = base.base \
       LEFT JOIN pg_catalog.pg_collation co ON co.oid = a.attcollation \
       LEFT JOIN pg_catalog.pg_namespace cn ON cn.oid = co.collnamespace \
       LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
     WHERE a.attnum > 0 ORDER BY a.attrelid, a.attnum"
);

/// Which table is below which.
pub(super) const PARENTS: &str =
    "SELECT inhrelid, inhparent FROM pg_catalog.pg_inherits ORDER BY inhparent, inhrelid, inhseqno";

/// Unique indexes of columns alone.
pub(super) const UNIQUE: &str = concat!(
    "SELECT indrelid, indkey, indnkeyatts, indisprimary FROM pg_catalog.pg_index \
     WHERE indisunique AND indexprs IS NULL AND ",
    users!("indrelid")
);

/// Foreign keys; those that partitions have by their parents are left out.
pub(super) const FOREIGN_KEYS: &str = "SELECT k.conname, k.conrelid, k.confrelid, \
       pg_catalog.array_to_string(k.conkey, ' '), pg_catalog.array_to_string(k.confkey, ' '), \
       (SELECT pg_catalog.string_agg(pg_catalog.format('OPERATOR(%I.%s)', n.nspname, o.oprname), \
           pg_catalog.chr(10) ORDER BY u.at) \
         FROM pg_catalog.unnest(k.conpfeqop) WITH ORDINALITY u(operator, at) \
         JOIN pg_catalog.pg_operator o ON o.oid = u.operator \
         JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace), \
       k.confmatchtype, k.convalidated, pg_catalog.to_jsonb(k) ->> 'conperiod' = 'true' \
     FROM pg_catalog.pg_constraint k WHERE k.contype = 'f' AND k.conparentid = 0 \
     ORDER BY k.conrelid, k.conname";
