//! `json`: parts of a JSON document, each by a rule of its own.
//!
//! - Parameter: `paths`, a rule for each path: `$.customer.email`, `$.items[*].name`, `$.items[0]`, `$..phone` (at any
//!   depth), `$.*`. A path that leads to an object or a list has every value inside masked; of several paths to a value
//!   the first one counts. `"$..*"` masks everything. Objects keep their order, numbers what they are: a number whose mask
//!   is no number becomes a text. `null`, `true` and `false` stay unless their rule is `null` or `constant`.
//! - Lossy. JSON and texts that hold JSON.
//! - The output tells everything that no path leads to, all names and the structure.

use super::nested;
use super::path::Path;
use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::TypeClass;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::parameters::Entry;
use std::sync::Arc;

mod scanner;

const EXAMPLE: &str = "{algorithm: json, paths: {$.email: email, \"$.items[*].name\": full-name}}";

pub(super) const ENTRY: Entry = Entry {
    name: "json",
    tells: "what no path leads to",
    parameters: &["paths"],
    read: |parameters| {
        let paths = nested::read_paths(parameters, Path::parse, EXAMPLE)?;
        Ok(Arc::new(Json { paths }))
    },
};

#[derive(Debug)]
struct Json {
    paths: nested::Paths,
}

impl Algorithm for Json {
    fn fits(&self, class: &TypeClass) -> bool {
        matches!(class, TypeClass::Json | TypeClass::Text)
    }

    fn uniqueness(&self) -> Uniqueness {
        Uniqueness::Lossy
    }

    fn length(&self) -> Length {
        Length::Open
    }

    fn per(&self) -> Option<&str> {
        self.paths.iter().find_map(|(_, rule)| rule.per())
    }

    fn bind(&self, target: &Target<'_>) -> Result<Mask, String> {
        let mut paths = Vec::new();
        for (path, rule) in &self.paths {
            let mask = nested::bind_part(rule.as_ref(), target)?;
            paths.push(Ruled { path: path.clone(), mask, whatever: rule.gives_null() });
        }
        Ok(Mask::Values(Arc::new(JsonMask { paths })))
    }
}

/// A path and what is done there.
struct Ruled {
    path: Path,
    mask: Arc<dyn ValueMask>,
    /// Whether it gives NULL, and so replaces also what is no text and no number.
    whatever: bool,
}

struct JsonMask {
    paths: Vec<Ruled>,
}

impl ValueMask for JsonMask {
    fn mask(&self, value: &str, row: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        let mut steps = Vec::new();
        let mut scanner = scanner::Scanner { text: value, at: 0, row, rules: self, out };
        scanner.document(&mut steps)?;
        Ok(Outcome::Value)
    }
}

#[cfg(test)]
mod tests;
