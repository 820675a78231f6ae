//! Rules inside rules: `chain`, `json` and `segments` hold others.

use crate::algorithm::{Algorithm, Target};
use crate::facts::{ColumnFacts, TypeClass};
use crate::mask::{Mask, ValueMask};
use std::sync::Arc;

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
