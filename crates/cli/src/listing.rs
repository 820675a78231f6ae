//! Lists: which entries, in which order, with which columns. One way for all nouns.

use crate::args::ListArgs;
use crate::output::{Output, table};
use jiff::Timestamp;
use offshoot_types::{ErrorKind, Failure};
use serde::Serialize;

/// What a column is ordered by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// There is nothing.
    Nothing,
    /// A size, a duration or a number.
    Number(u64),
    /// A time.
    Time(Timestamp),
    /// Anything else.
    Text(String),
}

impl Key {
    /// By a text.
    pub fn text(text: impl Into<String>) -> Key {
        Key::Text(text.into())
    }

    /// By a time, if there is one.
    pub fn time(time: Option<Timestamp>) -> Key {
        time.map_or(Key::Nothing, Key::Time)
    }

    /// By a number, if there is one.
    pub fn number(number: Option<u64>) -> Key {
        number.map_or(Key::Nothing, Key::Number)
    }
}

/// A column of a list.
pub struct Column<T> {
    /// What `--columns` and `--sort` call it.
    pub name: &'static str,
    /// Whether it is shown where no columns are named.
    pub usual: bool,
    /// What is shown.
    pub text: fn(&T) -> String,
    /// What it is ordered by.
    pub key: fn(&T) -> Key,
}

/// A column that is shown.
pub const fn usual<T>(name: &'static str, text: fn(&T) -> String, key: fn(&T) -> Key) -> Column<T> {
    Column { name, usual: true, text, key }
}

/// A column that is shown to those who ask for it.
pub const fn more<T>(name: &'static str, text: fn(&T) -> String, key: fn(&T) -> Key) -> Column<T> {
    Column { name, usual: false, text, key }
}

/// Orders and cuts what is left of a list.
///
/// # Errors
/// `InvalidInput` for a column that there is not.
pub fn arrange<T>(all: &mut Vec<T>, args: &ListArgs, columns: &[Column<T>]) -> Result<(), Failure> {
    for name in &args.columns {
        column(columns, name)?;
    }
    if let Some(sort) = &args.sort {
        let (name, falling) = match sort.strip_prefix('-') {
            Some(name) => (name, true),
            None => (sort.as_str(), false),
        };
        let key = column(columns, name)?.key;
        all.sort_by_cached_key(key);
        if falling {
            all.reverse();
        }
    }
    all.truncate(args.limit.unwrap_or(usize::MAX));
    Ok(())
}

/// Prints a list that was answered: of its entries what `choose` keeps, arranged.
///
/// # Errors
/// As [`arrange`].
pub fn print<T, L: Serialize>(
    output: Output,
    mut list: L,
    entries: fn(&mut L) -> &mut Vec<T>,
    (args, columns): (&ListArgs, &[Column<T>]),
    choose: impl FnOnce(&mut Vec<T>),
    empty: &str,
) -> Result<(), Failure> {
    let all = entries(&mut list);
    let of = all.len();
    choose(all);
    arrange(all, args, columns)?;
    let words = text(all, of, args, columns, empty);
    output.print(&list, |_| words);
    Ok(())
}

/// What was kept of a list of so many as a table; `empty` where there was nothing to begin with.
pub fn text<T>(
    shown: &[T],
    of: usize,
    args: &ListArgs,
    columns: &[Column<T>],
    empty: &str,
) -> String {
    if shown.is_empty() {
        return match of {
            0 => empty.to_owned(),
            _ => format!("none of {of} is like that"),
        };
    }
    let columns: Vec<&Column<T>> = match args.columns.is_empty() {
        true => columns.iter().filter(|column| column.usual).collect(),
        false => args.columns.iter().filter_map(|name| column(columns, name).ok()).collect(),
    };
    let heads: Vec<String> = columns.iter().map(|column| column.name.replace('-', " ")).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let row = |one: &T| columns.iter().map(|column| (column.text)(one)).collect();
    table(&heads, shown.iter().map(row).collect())
}

fn column<'a, T>(columns: &'a [Column<T>], name: &str) -> Result<&'a Column<T>, Failure> {
    let alike =
        |column: &&Column<T>| column.name.eq_ignore_ascii_case(&name.replace(['_', ' '], "-"));
    columns.iter().find(alike).ok_or_else(|| {
        let known: Vec<&str> = columns.iter().map(|column| column.name).collect();
        let message = format!("there is no column '{name}'");
        Failure::new(ErrorKind::InvalidInput, message, format!("use one of {}", known.join(", ")))
    })
}

/// Keeps what has one of these words, if any is named.
pub fn retain_in<T>(all: &mut Vec<T>, words: &[String], word: impl Fn(&T) -> String) {
    if !words.is_empty() {
        all.retain(|one| words.contains(&word(one)));
    }
}

#[cfg(test)]
mod tests;
