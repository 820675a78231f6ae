//! Settings that clients make up, as `SET app.tenant = '7'` does. No catalog of PostgreSQL lists them: whoever wants to carry
//! them over must have seen their names.
//!
//! What is seen is `SET name.name` and `set_config('name.name'`, in texts of SQL that are not too long. Names that come as
//! parameters, in quotes or from within functions are not.

use std::collections::BTreeSet;

/// Most names, and bytes of each.
const NAMES_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 127;

/// The names seen in a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Customs {
    names: BTreeSet<String>,
    /// There were more than are remembered.
    full: bool,
}

impl Customs {
    /// Takes note of the names in a text of SQL.
    pub(crate) fn note(&mut self, sql: &[u8]) {
        for at in 0..sql.len().saturating_sub(4) {
            let begins = sql[at] | 0x20 == b's' && sql[at..at + 3].eq_ignore_ascii_case(b"set");
            if begins
                && !at.checked_sub(1).is_some_and(|before| is_word(sql[before]))
                && let Some(name) = name_after(&sql[at + 3..])
            {
                self.add(name);
            }
        }
    }

    /// The names: letters, digits, `_` and dots alone. None if there were too many.
    pub(crate) fn names(&self) -> Option<impl Iterator<Item = &str>> {
        (!self.full).then(|| self.names.iter().map(String::as_str))
    }

    fn add(&mut self, name: String) {
        if self.names.len() < NAMES_MAX {
            self.names.insert(name);
        } else if !self.names.contains(&name) {
            self.full = true;
        }
    }
}

/// The name that follows a `set`.
fn name_after(sql: &[u8]) -> Option<String> {
    let config = sql.get(..7).is_some_and(|word| word.eq_ignore_ascii_case(b"_config"));
    let name = if config {
        let quoted = sql[7..].trim_ascii_start().strip_prefix(b"(")?;
        let quoted = quoted.trim_ascii_start().strip_prefix(b"'")?;
        let name = dotted(quoted);
        quoted.get(name.len()).filter(|end| **end == b'\'')?;
        name
    } else {
        sql.first().filter(|byte| byte.is_ascii_whitespace())?;
        let name = dotted(sql.trim_ascii_start());
        if name.eq_ignore_ascii_case(b"session") || name.eq_ignore_ascii_case(b"local") {
            dotted(sql.trim_ascii_start()[name.len()..].trim_ascii_start())
        } else {
            name
        }
    };
    let whole = name.split(|byte| *byte == b'.').all(|part| !part.is_empty());
    let fits = name.contains(&b'.') && name.len() <= NAME_BYTES_MAX && whole;
    fits.then(|| String::from_utf8_lossy(name).into_owned())
}

/// The words and dots at the beginning.
fn dotted(sql: &[u8]) -> &[u8] {
    let end = sql.iter().position(|byte| !is_word(*byte) && *byte != b'.').unwrap_or(sql.len());
    &sql[..end]
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests;
