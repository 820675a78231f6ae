//! Sequences of the masked copy get the values that those of the source have.

use crate::session::quote_text;
use crate::wire::{Refusal, Wire};
use offshoot_types::Failure;
use std::collections::BTreeMap;

/// Sequences that are asked for together.
const TOGETHER: usize = 200;

const NAMES: &str = "SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind = 'S' AND c.relpersistence = 'p' ORDER BY c.oid";

/// By name: the last value, and whether it was given out.
type Values = BTreeMap<String, (String, String)>;

/// Sets all sequences of a database.
///
/// # Errors
/// When a server refuses it.
pub(super) fn set(now: &mut Wire, masked: &mut Wire, database: &str) -> Result<(), Failure> {
    let failed = |refusal: Refusal| refusal.into_failure(&format!("database {database}"));
    let names = now.column(NAMES).map_err(failed)?;
    for names in names.chunks(TOGETHER) {
        let wanted = values(now, names).map_err(failed)?;
        let present = values(masked, names).map_err(failed)?;
        let other = wanted.iter().filter(|(name, value)| present.get(*name) != Some(value));
        let set = other.map(|(name, (value, called))| {
            let name = quote_text(name);
            format!("SELECT pg_catalog.setval({name}::pg_catalog.regclass, {value}, '{called}')")
        });
        let set: Vec<String> = set.collect();
        if !set.is_empty() {
            masked.execute(&set.join("; ")).map_err(failed)?;
        }
    }
    Ok(())
}

fn values(wire: &mut Wire, names: &[String]) -> Result<Values, Refusal> {
    let of =
        |name: &String| format!("SELECT {}, last_value, is_called FROM {name}", quote_text(name));
    let sql: Vec<String> = names.iter().map(of).collect();
    let rows = wire.rows(&sql.join(" UNION ALL "))?;
    let value = |row: Vec<Option<String>>| match <[_; 3]>::try_from(row) {
        Ok([Some(name), Some(value), Some(called)]) => Some((name, (value, called))),
        _ => None,
    };
    Ok(rows.into_iter().filter_map(value).collect())
}
