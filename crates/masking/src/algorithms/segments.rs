//! `segments`: parts of a value, each by a rule of its own.
//!
//! - Parameters: `pattern`, a regular expression that the whole value must have, with groups; `groups`, a rule for each
//!   group by its number or name; `otherwise`, the rule for values that the pattern does not fit (by default
//!   `character-mapping`). What is in no group with a rule stays.
//! - Lossy, as far as anybody can tell. Texts.
//! - The output tells what is in no group with a rule, and of each group what its rule tells.

use super::character_mapping::CharacterMapping;
use super::nested;
use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::TypeClass;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::node::Node;
use crate::parameters::{Entry, Parameters, Wrong, missing};
use regex::Regex;
use std::sync::Arc;

const EXAMPLE: &str =
    r#"{algorithm: segments, pattern: "([A-Z]+)-(\\d+)", groups: {2: character-mapping}}"#;

pub(super) const ENTRY: Entry = Entry {
    name: "segments",
    tells: "what is in no group with a rule",
    parameters: &["pattern", "groups", "otherwise"],
    read: |parameters| {
        let pattern = parameters.required("pattern", EXAMPLE)?;
        let regex = Regex::new(&format!("^(?:{pattern})$")).map_err(|error| {
            Wrong::new(format!("`pattern` cannot be read: {error}"), format!("as in {EXAMPLE}"))
        })?;
        let groups = groups(parameters, &regex)?;
        let otherwise = match parameters.take("otherwise") {
            Some(rule) => parameters.rule(rule)?,
            None => Arc::new(CharacterMapping { first: 0, last: 0 }),
        };
        Ok(Arc::new(Segments { regex, groups, otherwise }))
    },
};

/// Rules for groups by their number, in order.
type Groups = Vec<(usize, Arc<dyn Algorithm>)>;

fn groups(parameters: &mut Parameters, regex: &Regex) -> Result<Groups, Wrong> {
    let Some(Node::Map(map)) = parameters.take("groups") else {
        return Err(missing("groups", EXAMPLE));
    };
    let mut groups = Vec::new();
    for (name, rule) in map {
        let number = match name.parse() {
            Ok(number) => Some(number).filter(|number| (1..regex.captures_len()).contains(number)),
            Err(_) => regex.capture_names().position(|known| known == Some(&name)),
        };
        let number = number.ok_or_else(|| {
            let hint = format!("it has groups 1 to {}", regex.captures_len() - 1);
            Wrong::new(format!("`pattern` has no group '{name}'"), hint)
        })?;
        groups.push((number, parameters.rule(rule)?));
    }
    groups.sort_by_key(|(number, _)| *number);
    Ok(groups)
}

#[derive(Debug)]
struct Segments {
    regex: Regex,
    groups: Groups,
    otherwise: Arc<dyn Algorithm>,
}

impl Segments {
    fn rules(&self) -> impl Iterator<Item = &Arc<dyn Algorithm>> {
        self.groups.iter().map(|(_, rule)| rule).chain([&self.otherwise])
    }
}

impl Algorithm for Segments {
    fn fits(&self, class: &TypeClass) -> bool {
        *class == TypeClass::Text
    }

    fn uniqueness(&self) -> Uniqueness {
        Uniqueness::Lossy
    }

    fn length(&self) -> Length {
        match self.rules().all(|rule| rule.length() == Length::Same) {
            true => Length::Same,
            false => Length::Open,
        }
    }

    fn per(&self) -> Option<&str> {
        self.rules().find_map(|rule| rule.per())
    }

    fn gives_null(&self) -> bool {
        self.otherwise.gives_null()
    }

    fn bind(&self, target: &Target<'_>) -> Result<Mask, String> {
        let mut groups = Vec::new();
        for (number, rule) in &self.groups {
            groups.push((*number, nested::bind_part(rule.as_ref(), target)?));
        }
        let otherwise = nested::bind_part(self.otherwise.as_ref(), target)?;
        Ok(Mask::Values(Arc::new(SegmentsMask { regex: self.regex.clone(), groups, otherwise })))
    }
}

struct SegmentsMask {
    regex: Regex,
    groups: Vec<(usize, Arc<dyn ValueMask>)>,
    otherwise: Arc<dyn ValueMask>,
}

impl ValueMask for SegmentsMask {
    fn mask(&self, value: &str, row: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        let Some(found) = self.regex.captures(value) else {
            return self.otherwise.mask(value, row, out);
        };
        let mut done = 0;
        for (number, mask) in &self.groups {
            // A group inside one that is masked already has nothing left to mask.
            let Some(part) = found.get(*number).filter(|part| part.start() >= done) else {
                continue;
            };
            out.push_str(&value[done..part.start()]);
            if !part.is_empty() {
                // NULL for a part: the part is left out.
                mask.mask(part.as_str(), row, out)?;
            }
            done = part.end();
        }
        out.push_str(&value[done..]);
        Ok(Outcome::Value)
    }
}
