//! The state that says which pages need not be read: see the front page of [`super`].

use super::outcomes::{Stopped, first_difference};
use crate::engine_role::ENGINE_ROLE;
use crate::masker::Wire;
use crate::session::quote_text;
use offshoot_connector::{Ancestor, Compared, DiffSide, Which};
use offshoot_types::Failure;

/// States that are tried.
const TRIED_MAX: usize = 24;

/// Finds the nearest state that will do; or why none does.
///
/// # Errors
/// When files cannot be read, or a server cannot be asked.
pub(super) fn find(
    compared: &mut Compared<'_>,
    left: &mut Wire,
    right: &mut Wire,
) -> Result<Result<Ancestor, &'static str>, Failure> {
    let (of_left, of_right) = (compared.left.files.clone(), compared.right.files.clone());
    let (Some(a), Some(b)) = (Stopped::read(&*of_left)?, Stopped::read(&*of_right)?) else {
        return Ok(Err("a copy was not stopped cleanly"));
    };
    if a.control.system_identifier() != b.control.system_identifier() {
        return Ok(Err("they come from different clusters"));
    }
    let first = first_difference(&a, &b, compared.differing)?;
    let begun = a.control.next_transaction().min(b.control.next_transaction());
    for _ in 0..TRIED_MAX {
        let Some(ancestor) = (compared.ancestors)()? else { break };
        let of_source = |side: &DiffSide<'_>, wire: &mut Wire, next: u64| {
            if side.of_source { settled_by(wire, next) } else { Ok(None) }
        };
        let settled = match ancestor.is {
            Some(Which::Left) => of_source(&compared.left, left, a.control.next_transaction())?,
            Some(Which::Right) => of_source(&compared.right, right, b.control.next_transaction())?,
            None => None,
        };
        let begun_there = match settled {
            Some(first) => first,
            None => match Stopped::read(&*ancestor.files)? {
                Some(stopped)
                    if stopped.control.system_identifier() == a.control.system_identifier() =>
                {
                    stopped.control.next_transaction()
                }
                _ => continue,
            },
        };
        if begun_there <= begun && first.is_none_or(|first| begun_there <= first) {
            return Ok(Ok(ancestor));
        }
    }
    Ok(Err("no state that is kept is before transactions that ended only in one of them"))
}

/// The first transaction by which the engine cut a copy's ties with its source: everything that the source wrote is by
/// earlier ones. That transaction made the engine's role ([`crate::settle`] begins with it).
fn settled_by(wire: &mut Wire, next: u64) -> Result<Option<u64>, Failure> {
    let sql = format!(
        "SELECT xmin::text FROM pg_catalog.pg_authid WHERE rolname = {}",
        quote_text(ENGINE_ROLE)
    );
    let found = wire.column(&sql).map_err(|refusal| refusal.of_reading("the server"))?;
    let number = found.first().and_then(|text| text.parse::<u32>().ok());
    Ok(number.map(|number| next.saturating_sub(u64::from((next as u32).wrapping_sub(number)))))
}
