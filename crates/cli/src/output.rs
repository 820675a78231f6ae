//! Results on stdout: one JSON document, or text for people.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use jiff::Timestamp;
use offshoot_api::{ErrorBody, Warning};
use offshoot_types::Failure;
use serde::Serialize;
use std::io::{self, Write};
use std::time::Duration;

pub use offshoot_domain::format_size as size;

/// Exit code of a command that failed.
pub const FAILED: u8 = 1;

/// How results are printed.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// One JSON document instead of text.
    pub json: bool,
}

impl Output {
    /// Prints a result: the document, or what `text` makes of it.
    pub fn print<T: Serialize>(self, document: &T, text: impl FnOnce(&T) -> String) {
        if self.json { self.json(document) } else { write_out(&text(document)) }
    }

    fn json(self, document: &impl Serialize) {
        // Our documents have text keys and finite numbers; anything else is shown as it is.
        let text = serde_json::to_string_pretty(document)
            .unwrap_or_else(|error| format!("{{\"unprintable\": \"{error}\"}}"));
        write_out(&text);
    }

    /// Prints why a command failed: the error document on stdout, or words on stderr.
    pub fn failure(self, failure: &Failure) {
        if self.json {
            return self.json(&ErrorBody::from(failure.clone()));
        }
        let mut text = format!("error: {}\n", failure.message);
        if !failure.hint.is_empty() {
            text.push_str(&format!("hint: {}\n", failure.hint));
        }
        // Nothing can be done about a closed stderr.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

/// Writes to stdout. A reader that has closed the pipe (`| head`) has what it wanted.
fn write_out(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.trim_end().as_bytes());
    let _ = stdout.write_all(b"\n");
    let _ = stdout.flush();
}

/// Writes a document of which every byte counts.
pub fn write_exactly(document: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(document.as_bytes());
    let _ = stdout.flush();
}

/// A list as aligned columns without lines, so that it can be cut and searched.
pub fn table(heads: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(heads.iter().map(|head| head.to_uppercase()));
    for row in rows {
        table.add_row(row.into_iter().map(|text| {
            let number = text.starts_with(|first: char| first.is_ascii_digit())
                && text.ends_with(|last: char| last.is_ascii_digit() || last == 'B');
            let cell = Cell::new(text);
            if number { cell.set_alignment(CellAlignment::Right) } else { cell }
        }));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The fields of one object, aligned.
#[derive(Debug, Default)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// Adds a field.
    pub fn add(mut self, name: &str, value: impl ToString) -> Self {
        self.0.push((name.to_owned(), value.to_string()));
        self
    }

    /// Adds a field if there is a value.
    pub fn add_some(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.add(name, value),
            None => self,
        }
    }

    /// Adds what is not wrong, but should be known.
    pub fn add_warnings(self, warnings: &[Warning]) -> Self {
        warnings
            .iter()
            .fold(self, |fields, one| fields.add("warning", &one.message).add("  hint", &one.hint))
    }

    /// All fields, one a line.
    pub fn text(&self) -> String {
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
        let line = |(name, value): &(String, String)| format!("{name:<width$}{value}\n");
        self.0.iter().map(line).collect()
    }
}

/// The word the API uses for a state or kind.
pub fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// A time in a list: to the second.
pub fn seconds(time: Timestamp) -> String {
    format!("{time:.0}")
}

/// A duration in milliseconds, for people.
pub fn duration(ms: u64) -> String {
    offshoot_domain::format_duration(Duration::from_millis(ms))
}

/// What is shown if there is no value.
pub fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}
