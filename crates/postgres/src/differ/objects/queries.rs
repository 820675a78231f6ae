//! What is asked of the catalogs: for each object its name, the schema and the name of the table that it belongs to, and
//! its definition.

/// How objects of a kind are read.
pub(super) struct Query {
    /// What they are.
    pub(super) kind: &'static str,
    pub(super) sql: &'static str,
}

/// Not the system's own schemas.
macro_rules! of_users {
    ($schema:literal) => {
        concat!($schema, " !~ '^pg_' AND ", $schema, " <> 'information_schema'")
    };
}

/// Not what an extension has made.
macro_rules! own {
    ($class:literal, $oid:literal) => {
        concat!(
            "NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = '",
            $class,
            "'::regclass \
               AND e.objid = ",
            $oid,
            " AND e.deptype = 'e')"
        )
    };
}

const fn query(kind: &'static str, sql: &'static str) -> Query {
    Query { kind, sql }
}

/// Of the cluster.
pub(super) const OF_CLUSTER: &[Query] = &[
    query(
        "database",
        "SELECT datname, NULL, NULL, concat_ws('; ', pg_encoding_to_char(encoding), datcollate, \
           'owner ' || pg_get_userbyid(datdba), 'privileges ' || datacl::text) \
         FROM pg_database WHERE NOT datistemplate",
    ),
    query(
        "role",
        "SELECT rolname, NULL, NULL, concat_ws(', ', CASE WHEN rolsuper THEN 'superuser' END, \
           CASE WHEN rolcreaterole THEN 'createrole' END, CASE WHEN rolcreatedb THEN 'createdb' END, \
           CASE WHEN rolreplication THEN 'replication' END, CASE WHEN rolbypassrls THEN 'bypassrls' END, \
           CASE WHEN NOT rolinherit THEN 'noinherit' END, 'member of ' || \
             (SELECT string_agg(g.rolname, ' ' ORDER BY g.rolname) FROM pg_auth_members m \
               JOIN pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid)) \
         FROM pg_roles r WHERE rolname !~ '^(pg|offshoot)_' AND rolname <> 'offshoot'",
    ),
];

/// Of a database.
pub(super) const OF_DATABASE: &[Query] = &[
    query("extension", "SELECT extname, NULL, NULL, 'version ' || extversion FROM pg_extension"),
    query(
        "schema",
        concat!(
            "SELECT nspname, NULL, NULL, 'owner ' || pg_get_userbyid(nspowner) FROM pg_namespace n WHERE ",
            of_users!("nspname"),
            " AND ",
            own!("pg_namespace", "n.oid")
        ),
    ),
    query(
        "type",
        concat!(
            "SELECT n.nspname || '.' || t.typname, NULL, NULL, CASE t.typtype \
               WHEN 'e' THEN 'enum (' || (SELECT string_agg(quote_literal(enumlabel), ', ' ORDER BY enumsortorder) \
                 FROM pg_enum WHERE enumtypid = t.oid) || ')' \
               WHEN 'd' THEN concat_ws(' ', 'domain', format_type(t.typbasetype, t.typtypmod), \
                 CASE WHEN t.typnotnull THEN 'NOT NULL' END, 'DEFAULT ' || t.typdefault, \
                 (SELECT string_agg(pg_get_constraintdef(oid), ' ' ORDER BY conname) FROM pg_constraint \
                   WHERE contypid = t.oid AND contype = 'c')) \
               WHEN 'c' THEN 'row (' || (SELECT string_agg(quote_ident(attname) || ' ' || \
                   format_type(atttypid, atttypmod), ', ' ORDER BY attnum) FROM pg_attribute \
                 WHERE attrelid = t.typrelid AND attnum > 0 AND NOT attisdropped) || ')' \
               WHEN 'r' THEN 'range of ' || (SELECT format_type(rngsubtype, NULL) FROM pg_range \
                 WHERE rngtypid = t.oid) ELSE 'type' END \
             FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace \
               LEFT JOIN pg_class c ON c.oid = t.typrelid \
             WHERE (t.typtype IN ('e', 'd', 'r') OR t.typtype = 'c' AND c.relkind = 'c') AND ",
            of_users!("n.nspname"),
            " AND ",
            own!("pg_type", "t.oid")
        ),
    ),
    query(
        "table",
        concat!(
            "SELECT n.nspname || '.' || c.relname, n.nspname, c.relname, concat_ws(' ', \
               CASE c.relpersistence WHEN 'u' THEN 'unlogged' END, \
               CASE c.relkind WHEN 'f' THEN 'foreign table' ELSE 'table' END, \
               'partitioned by ' || pg_get_partkeydef(c.oid), pg_get_expr(c.relpartbound, c.oid), \
               (SELECT 'of ' || string_agg(inhparent::regclass::text, ', ' ORDER BY inhseqno) FROM pg_inherits \
                 WHERE inhrelid = c.oid), 'with (' || array_to_string(c.reloptions, ', ') || ')', \
               CASE WHEN c.relrowsecurity THEN 'row security' END, \
               CASE WHEN c.relforcerowsecurity THEN 'forced' END) \
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind IN ('r', 'p', 'f') AND c.relpersistence <> 't' AND ",
            of_users!("n.nspname"),
            " AND ",
            own!("pg_class", "c.oid")
        ),
    ),
    query(
        "column",
        concat!(
            "SELECT n.nspname || '.' || c.relname || '.' || a.attname, n.nspname, c.relname, \
               concat_ws(' ', format_type(a.atttypid, a.atttypmod), \
                 CASE WHEN a.attcollation <> t.typcollation THEN 'COLLATE ' || a.attcollation::regcollation END, \
                 CASE WHEN a.attnotnull THEN 'NOT NULL' END, \
                 CASE WHEN a.attgenerated <> '' THEN 'GENERATED ALWAYS AS (' || pg_get_expr(d.adbin, d.adrelid) || ')' \
                   ELSE 'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid) END, \
                 CASE a.attidentity WHEN 'a' THEN 'GENERATED ALWAYS AS IDENTITY' \
                   WHEN 'd' THEN 'GENERATED BY DEFAULT AS IDENTITY' END) \
             FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
               JOIN pg_type t ON t.oid = a.atttypid \
               LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
             WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'f') \
               AND c.relpersistence <> 't' AND ",
            of_users!("n.nspname"),
            " AND ",
            own!("pg_class", "c.oid")
        ),
    ),
    query(
        "constraint",
        concat!(
            "SELECT n.nspname || '.' || c.relname || '.' || k.conname, n.nspname, c.relname, \
               pg_get_constraintdef(k.oid) \
             FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE k.contype IN ('p', 'u', 'f', 'c', 'x') AND ",
            of_users!("n.nspname"),
            " AND ",
            own!("pg_class", "c.oid")
        ),
    ),
    query(
        "index",
        concat!(
            "SELECT n.nspname || '.' || i.relname, n.nspname, c.relname, pg_get_indexdef(i.oid) || \
               CASE WHEN x.indisvalid THEN '' ELSE ' (not valid)' END \
             FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class c ON c.oid = x.indrelid \
               JOIN pg_namespace n ON n.oid = i.relnamespace \
             WHERE NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.oid AND k.contype IN ('p', 'u', 'x')) AND ",
            of_users!("n.nspname"),
            " AND ",
            own!("pg_class", "c.oid")
        ),
    ),
    query(
        "view",
        concat!(
            "SELECT n.nspname || '.' || c.relname, NULL, NULL, \
               CASE c.relkind WHEN 'm' THEN 'materialized: ' ELSE '' END || pg_get_viewdef(c.oid) \
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('v', 'm') AND ",
            of_users!("n.nspname"),
            " AND ",
            own!("pg_class", "c.oid")
        ),
    ),
    query(
        "function",
        concat!(
            "SELECT n.nspname || '.' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', NULL, NULL, \
               CASE p.prokind WHEN 'a' THEN 'aggregate of ' || pg_get_function_result(p.oid) \
                 ELSE pg_get_functiondef(p.oid) END \
             FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE ",
            of_users!("n.nspname"),
            " AND ",
            own!("pg_proc", "p.oid")
        ),
    ),
    query(
        "trigger",
        concat!(
            "SELECT n.nspname || '.' || c.relname || '.' || t.tgname, n.nspname, c.relname, \
               pg_get_triggerdef(t.oid) || CASE t.tgenabled WHEN 'O' THEN '' ELSE ' (' || t.tgenabled::text || ')' END \
             FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE NOT t.tgisinternal AND ",
            of_users!("n.nspname")
        ),
    ),
    query(
        "rule",
        concat!(
            "SELECT n.nspname || '.' || c.relname || '.' || r.rulename, n.nspname, c.relname, pg_get_ruledef(r.oid) \
             FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE r.rulename <> '_RETURN' AND ",
            of_users!("n.nspname")
        ),
    ),
    query(
        "policy",
        concat!(
            "SELECT n.nspname || '.' || c.relname || '.' || p.polname, n.nspname, c.relname, concat_ws(' ', \
               CASE WHEN p.polpermissive THEN 'permissive' ELSE 'restrictive' END, p.polcmd::text, \
               'to ' || array_to_string(ARRAY(SELECT CASE WHEN o = 0 THEN 'public' ELSE pg_get_userbyid(o) END \
                 FROM unnest(p.polroles) o), ', '), 'using (' || pg_get_expr(p.polqual, p.polrelid) || ')', \
               'check (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')') \
             FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ",
            of_users!("n.nspname")
        ),
    ),
    query(
        "sequence",
        concat!(
            "SELECT n.nspname || '.' || c.relname, NULL, NULL, format('%s from %s by %s, %s to %s%s', \
               format_type(s.seqtypid, NULL), s.seqstart, s.seqincrement, s.seqmin, s.seqmax, \
               CASE WHEN s.seqcycle THEN ', cycles' ELSE '' END) \
             FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ",
            of_users!("n.nspname"),
            " AND ",
            own!("pg_class", "c.oid")
        ),
    ),
    query(
        "sequence value",
        concat!(
            "SELECT schemaname || '.' || sequencename, NULL, NULL, COALESCE(last_value::text, 'not used') \
             FROM pg_sequences WHERE ",
            of_users!("schemaname")
        ),
    ),
    query(
        "privileges",
        concat!(
            "SELECT 'table ' || n.nspname || '.' || c.relname, \
               CASE WHEN c.relkind IN ('r', 'p', 'f') THEN n.nspname END, \
               CASE WHEN c.relkind IN ('r', 'p', 'f') THEN c.relname END, \
               concat_ws('; ', 'owner ' || pg_get_userbyid(c.relowner), c.relacl::text) \
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S') AND c.relpersistence <> 't' AND ",
            of_users!("n.nspname"),
            " AND ",
            own!("pg_class", "c.oid"),
            " UNION ALL SELECT 'function ' || n.nspname || '.' || p.proname || '(' || \
               pg_get_function_identity_arguments(p.oid) || ')', NULL, NULL, \
               concat_ws('; ', 'owner ' || pg_get_userbyid(p.proowner), p.proacl::text) \
             FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE ",
            of_users!("n.nspname"),
            " AND ",
            own!("pg_proc", "p.oid"),
            " UNION ALL SELECT 'schema ' || nspname, NULL, NULL, nspacl::text FROM pg_namespace n WHERE ",
            of_users!("nspname"),
            " AND ",
            own!("pg_namespace", "n.oid")
        ),
    ),
];
