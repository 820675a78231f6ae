//! `chain`: several rules in turn, each on the result of the one before.
//!
//! - Parameter: `steps`, a list of rules. A rule may also be written as a list: `[cleansing…, phone]`.
//! - As unique as the least unique step; the types that all steps take.
//! - The output tells no more than the last step's does of its input.

use super::nested;
use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::TypeClass;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::node::Node;
use crate::parameters::{Entry, Wrong, missing};
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "chain",
    tells: "what its last step tells",
    parameters: &["steps"],
    read: |parameters| {
        let Some(Node::List(steps)) = parameters.take("steps") else {
            return Err(missing("steps", "{algorithm: chain, steps: [email, tokenize]}"));
        };
        if steps.is_empty() {
            return Err(Wrong::new("`steps` has no rule", "list one at least"));
        }
        let read = |step| parameters.rule(step);
        let steps = steps.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(Arc::new(Chain { steps }))
    },
};

#[derive(Debug)]
struct Chain {
    steps: Vec<Arc<dyn Algorithm>>,
}

impl Algorithm for Chain {
    fn fits(&self, class: &TypeClass) -> bool {
        self.steps.iter().all(|step| step.fits(class))
    }

    fn uniqueness(&self) -> Uniqueness {
        self.steps.iter().map(|step| step.uniqueness()).min().unwrap_or(Uniqueness::Lossy)
    }

    fn length(&self) -> Length {
        let mut length = Length::Same;
        for step in &self.steps {
            length = match (step.length(), length) {
                (Length::Same, before) => before,
                (after, _) => after,
            };
        }
        length
    }

    fn per(&self) -> Option<&str> {
        self.steps.iter().find_map(|step| step.per())
    }

    fn gives_null(&self) -> bool {
        self.steps.iter().any(|step| step.gives_null())
    }

    fn bind(&self, target: &Target<'_>) -> Result<Mask, String> {
        let steps = self.steps.iter().map(|step| nested::bind(step.as_ref(), target));
        Ok(Mask::Values(Arc::new(ChainMask { steps: steps.collect::<Result<_, _>>()? })))
    }
}

struct ChainMask {
    steps: Vec<Arc<dyn ValueMask>>,
}

impl ValueMask for ChainMask {
    fn mask(&self, value: &str, row: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        let mut value = value.to_owned();
        let mut next = String::new();
        for step in &self.steps {
            if value.is_empty() {
                break;
            }
            next.clear();
            if step.mask(&value, row, &mut next)? == Outcome::Null {
                return Ok(Outcome::Null);
            }
            std::mem::swap(&mut value, &mut next);
        }
        out.push_str(&value);
        Ok(Outcome::Value)
    }
}
