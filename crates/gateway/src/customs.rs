//! Settings that clients make up, as `SET app.tenant = '7'` does. No catalog of PostgreSQL lists them: whoever wants to carry
//! them over must have seen their names.
//!
//! What is seen is `SET name.name` and `set_config('name.name'`, in texts of SQL that are not too long. Where a name comes as a
//! parameter or in quotes, nobody can say what the session has. What functions set inside is not seen.

use std::collections::BTreeSet;

/// Most names, and bytes of each.
const NAMES_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 127;

/// The names seen in a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Customs {
    names: BTreeSet<String>,
    /// There are others, which are not known.
    others: bool,
}

impl Customs {
    /// Takes note of the names in a text of SQL.
    pub(crate) fn note(&mut self, sql: &[u8]) {
        for at in 0..sql.len().saturating_sub(4) {
            let begins = sql[at] | 0x20 == b's' && sql[at..at + 3].eq_ignore_ascii_case(b"set");
            if begins && !at.checked_sub(1).is_some_and(|before| is_word(sql[before])) {
                match name_after(&sql[at + 3..]) {
                    Found::Name(name) => self.add(name),
                    Found::Unknown => self.others = true,
                    Found::Nothing => {}
                }
            }
        }
    }

    /// The names: letters, digits, `_` and dots alone. None if there are others.
    pub(crate) fn names(&self) -> Option<impl Iterator<Item = &str>> {
        (!self.others).then(|| self.names.iter().map(String::as_str))
    }

    fn add(&mut self, name: String) {
        if self.names.len() < NAMES_MAX {
            self.names.insert(name);
        } else if !self.names.contains(&name) {
            self.others = true;
        }
    }
}

/// What follows a `set`.
enum Found {
    Name(String),
    /// A name that the text does not tell.
    Unknown,
    /// No name, or that of a setting that is listed.
    Nothing,
}

fn name_after(sql: &[u8]) -> Found {
    if sql.get(..7).is_some_and(|word| word.eq_ignore_ascii_case(b"_config")) {
        let Some(call) = sql[7..].trim_ascii_start().strip_prefix(b"(") else {
            return Found::Nothing;
        };
        let Some(quoted) = call.trim_ascii_start().strip_prefix(b"'") else {
            return Found::Unknown;
        };
        let name = dotted(quoted);
        return match quoted.get(name.len()) {
            Some(b'\'') => listed_or(name),
            _ => Found::Unknown,
        };
    }
    if !sql.first().is_some_and(u8::is_ascii_whitespace) {
        return Found::Nothing;
    }
    let mut rest = sql.trim_ascii_start();
    let first = dotted(rest);
    if first.eq_ignore_ascii_case(b"session") || first.eq_ignore_ascii_case(b"local") {
        rest = rest[first.len()..].trim_ascii_start();
    }
    if rest.first() == Some(&b'"') { Found::Unknown } else { listed_or(dotted(rest)) }
}

/// A name without a dot is that of a setting that is listed.
fn listed_or(name: &[u8]) -> Found {
    let whole = name.split(|byte| *byte == b'.').all(|part| !part.is_empty());
    match name.contains(&b'.') && name.len() <= NAME_BYTES_MAX && whole {
        true => Found::Name(String::from_utf8_lossy(name).into_owned()),
        false => Found::Nothing,
    }
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
