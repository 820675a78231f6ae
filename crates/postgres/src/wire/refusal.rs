//! What a server refused, without what could be a value of a row.
//!
//! A server's messages quote values (`invalid input syntax for type integer: "…"`), and its details quote rows. So
//! of errors about data only their kind is told, in our words, with the names that the server gives.

use offshoot_types::{ErrorKind, Failure};
use std::io;

/// Why a statement did not do what it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The server's code; empty if it said nothing.
    code: String,
    /// Its words, which hold values if the code says so.
    words: String,
    /// The line of a `COPY`, from 1.
    pub(crate) line: Option<u64>,
    /// The column of a `COPY`, as the server wrote it with what follows, which may be the value.
    column: String,
    constraint: Option<String>,
    /// The server ends the session with it.
    pub(crate) fatal: bool,
}

impl Refusal {
    /// What an `ErrorResponse` says: fields, each a letter and a text that ends with a zero, up to a zero.
    pub(crate) fn of(mut body: &[u8]) -> Refusal {
        let mut refusal = Refusal::words(String::new());
        while let [field, rest @ ..] = body
            && let Some(end) = rest.iter().position(|byte| *byte == 0)
        {
            let (value, after) = rest.split_at(end);
            let text = String::from_utf8_lossy(value).into_owned();
            match field {
                b'V' => refusal.fatal = text == "FATAL" || text == "PANIC",
                b'C' => refusal.code = text,
                b'M' => refusal.words = text,
                b'n' => refusal.constraint = Some(text),
                b'W' => (refusal.line, refusal.column) = place(&text),
                _ => {}
            }
            body = after.get(1..).unwrap_or_default();
        }
        refusal
    }

    fn words(words: String) -> Refusal {
        let (code, column) = (String::new(), String::new());
        Refusal { code, words, line: None, column, constraint: None, fatal: false }
    }

    pub(crate) fn unexpected() -> Refusal {
        Refusal::words("its answer is not what was asked for".to_owned())
    }

    /// Whether it is about values of rows.
    fn is_of_data(&self) -> bool {
        matches!(
            self.code.get(..2),
            Some("21" | "22" | "23" | "2F" | "38" | "39" | "44" | "54" | "P0" | "HV")
        )
    }

    /// Whether a row breaks a unique or an exclusion constraint.
    pub(crate) fn is_of_uniqueness(&self) -> bool {
        matches!(self.code.as_str(), "23505" | "23P01")
    }

    /// The one of these columns that a `COPY` was at.
    pub(crate) fn column_of<'a>(&self, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        let rest = |name: &str| {
            self.column
                .strip_prefix(name)
                .map(|rest| rest.is_empty() || rest.starts_with([':', ' ', ',']))
        };
        names.filter(|name| rest(name) == Some(true)).max_by_key(|name| name.len())
    }

    /// What is wrong.
    pub(crate) fn said(&self) -> String {
        let named = self.constraint.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        match self.code.as_str() {
            "22001" => "the mask is too long for the column".to_owned(),
            "22003" => "the mask is out of the type's range".to_owned(),
            "22007" | "22008" | "22P02" | "22P03" | "22023" | "22021" => {
                "the mask is no value of the column's type".to_owned()
            }
            "22P05" => "the mask has a character that the database's encoding has not".to_owned(),
            "23502" => "the mask is NULL where none may be".to_owned(),
            "23505" => format!("masks are equal under the unique constraint{named}"),
            "23P01" => format!("masks exclude each other under the constraint{named}"),
            "23514" if self.constraint.is_none() => "no partition takes the masked row".to_owned(),
            "23514" => format!("the mask breaks the constraint{named}"),
            "54000" => "a value is too large for an index".to_owned(),
            code if self.is_of_data() => format!("the database refused a value (error {code})"),
            "" => self.words.clone(),
            code => format!("{} (error {code})", self.words),
        }
    }

    /// As it is told to users: `place` says where.
    pub(crate) fn into_failure(self, place: &str) -> Failure {
        let message = format!("{place}: {}", self.said());
        match self.code.as_str() {
            "53100" => Failure::pool_full(message),
            "57P01" => Failure::new(ErrorKind::Cancelled, message, ""),
            _ if self.is_of_data() => Failure::new(
                ErrorKind::InvalidInput,
                message,
                "choose another algorithm for this column, or give its parameters",
            ),
            code if code.starts_with("42") => Failure::new(
                ErrorKind::InvalidInput,
                message,
                "write expressions with the table's columns; name functions with their schema",
            ),
            _ => Failure::internal(message),
        }
    }
}

impl Refusal {
    /// As it is told to users who asked for what was read.
    pub(crate) fn of_reading(self, place: &str) -> Failure {
        match self.code.as_str() {
            "53100" | "57P01" => self.into_failure(place),
            code if self.is_of_data() => {
                Failure::internal(format!("{place}: the database refused a value (error {code})"))
            }
            _ => Failure::internal(format!("{place}: {}", self.said())),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal::words(format!("the connection to the server is lost: {error}"))
    }
}

/// The line and the column in what a `COPY` says of itself: `COPY t1, line 3, column name: "…"`.
fn place(context: &str) -> (Option<u64>, String) {
    let copy = context.lines().find(|line| line.starts_with("COPY ")).unwrap_or_default();
    let after = copy.split_once(", line ").map(|(_, rest)| rest).unwrap_or_default();
    let digits = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
    let column = after.split_once(", column ").map(|(_, rest)| rest).unwrap_or_default();
    (after.get(..digits).and_then(|digits| digits.parse().ok()), column.to_owned())
}

#[cfg(test)]
mod tests;
