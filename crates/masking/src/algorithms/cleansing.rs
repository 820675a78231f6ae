//! `cleansing`: listed values become others.
//!
//! - Parameters: `map: {GREAT BRITAIN: GB, …}`; `otherwise`, what values become that are not listed (they stay
//!   without it); `ignore-case: true`.
//! - Lossy. Every type that takes the listed values.
//! - The output tells every value that is not listed as it is, and for others which of the map's results they have.

use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::TypeClass;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::node::Node;
use crate::parameters::{Entry, Wrong, missing};
use std::collections::HashMap;
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "cleansing",
    tells: "every value that is not listed, without `otherwise`",
    parameters: &["map", "otherwise", "ignore-case"],
    read: |parameters| {
        let example = "{algorithm: cleansing, map: {Great Britain: GB}}";
        let ignore_case = parameters.flag("ignore-case")?;
        let Some(Node::Map(pairs)) = parameters.take("map") else {
            return Err(missing("map", example));
        };
        let mut map = HashMap::new();
        for (from, to) in pairs {
            let to = to.scalar().ok_or_else(|| {
                Wrong::new(
                    format!("`map` gives '{from}' no value"),
                    format!("write it as {example}"),
                )
            })?;
            map.insert(if ignore_case { from.to_lowercase() } else { from }, to);
        }
        let otherwise = parameters.text("otherwise")?;
        Ok(Arc::new(Cleansing { map: Arc::new(map), otherwise, ignore_case }))
    },
};

#[derive(Debug, Clone)]
struct Cleansing {
    map: Arc<HashMap<String, String>>,
    otherwise: Option<String>,
    ignore_case: bool,
}

impl Algorithm for Cleansing {
    fn fits(&self, class: &TypeClass) -> bool {
        self.map.values().chain(&self.otherwise).all(|value| class.takes(value))
    }

    fn uniqueness(&self) -> Uniqueness {
        Uniqueness::Lossy
    }

    fn length(&self) -> Length {
        let longest = self.map.values().chain(&self.otherwise).map(|value| value.chars().count());
        Length::AtMost(longest.max().unwrap_or(0) as u32)
    }

    fn bind(&self, _: &Target<'_>) -> Result<Mask, String> {
        Ok(Mask::Values(Arc::new(self.clone())))
    }
}

impl ValueMask for Cleansing {
    fn mask(&self, value: &str, _: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        let to = match self.ignore_case {
            true => self.map.get(&value.to_lowercase()),
            false => self.map.get(value),
        };
        out.push_str(to.or(self.otherwise.as_ref()).map_or(value, String::as_str));
        Ok(Outcome::Value)
    }
}
