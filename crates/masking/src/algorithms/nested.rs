//! Rules inside rules: `chain`, `json` and `segments` hold others.

use super::path::Path;
use crate::algorithm::{Algorithm, Target};
use crate::facts::{ColumnFacts, TypeClass};
use crate::mask::{Mask, ValueMask};
use crate::node::Node;
use crate::parameters::{Parameters, Wrong, missing};
use std::sync::Arc;

/// Rules for parts of a document, in the order in which they are tried.
pub(super) type Paths = Vec<(Path, Arc<dyn Algorithm>)>;

/// The parameter `paths` of a rule for documents: a rule for each path, which `parse` reads.
pub(super) fn read_paths(
    parameters: &mut Parameters,
    parse: fn(&str) -> Option<Path>,
    example: &'static str,
) -> Result<Paths, Wrong> {
    let Some(Node::Map(map)) = parameters.take("paths") else {
        return Err(missing("paths", example));
    };
    let mut paths = Vec::new();
    for (text, rule) in map {
        let path = parse(&text).ok_or_else(|| {
            Wrong::new(format!("'{text}' is no path"), format!("write it as {example}"))
        })?;
        let rule = parameters
            .rule(rule)
            .map_err(|wrong| Wrong { what: format!("path '{text}': {}", wrong.what), ..wrong })?;
        paths.push((path, rule));
    }
    Ok(paths)
}

/// The mask of a rule that another one holds, for a column of the outer rule's type.
pub(super) fn bind(
    rule: &dyn Algorithm,
    target: &Target<'_>,
) -> Result<Arc<dyn ValueMask>, String> {
    match rule.bind(target)? {
        Mask::Values(mask) => Ok(mask),
        Mask::Sql(_) => Err("`sql` cannot be part of another rule".into()),
    }
}

/// The mask of a rule for a part of a value: the first type that the rule fits, of a few that parts may be seen as.
pub(super) fn bind_part(
    rule: &dyn Algorithm,
    target: &Target<'_>,
) -> Result<Arc<dyn ValueMask>, String> {
    let classes = [
        TypeClass::Text,
        TypeClass::Number { precision: None, scale: None },
        TypeClass::TimestampTz,
        TypeClass::Date,
    ];
    let class = classes.into_iter().find(|class| rule.fits(class));
    let class = class.ok_or("a rule in it fits only a column of its own")?;
    let column = ColumnFacts {
        class,
        type_name: "text".into(),
        chars_max: None,
        nullable: true,
        ..target.column.clone()
    };
    bind(rule, &Target { column: &column, ..*target })
}
