//! From which transaction on a copy has a history of its own.
//!
//! A copy's ties are cut by transactions of its own, whose numbers the source gives to others. What tells them apart is
//! noted in the copy before the first of them. A VDB that begins as the copy holds the note too, which then says nothing
//! of what its users wrote; the note of a copy that a source took of one of our copies is of an earlier timeline.

use crate::files::write_file;
use crate::rounds::ControlFile;
use crate::session::Session;
use offshoot_connector::DataDir;
use offshoot_types::Failure;
use std::time::Duration;

const FILE: &str = "offshoot.settled";
const FILE_BYTES_MAX: u64 = 256;
const TIMEOUT: Duration = Duration::from_secs(60);

/// The timeline, and the first transaction that has not begun, counted from the first of all.
const NOW: &str = "SELECT timeline_id::text, \
     pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::text \
     FROM pg_catalog.pg_control_checkpoint()";

/// Notes it. To be called before the copy's first own transaction; if it is called again, the note is of a later one,
/// which says less and is true as well.
///
/// # Errors
/// When the server does not answer, or the file cannot be written.
pub(crate) fn note(session: &mut Session, files: &dyn DataDir) -> Result<(), Failure> {
    let rows = session.query(NOW, TIMEOUT)?;
    let Some([Some(timeline), Some(first)]) = rows.first().map(Vec::as_slice) else {
        return Err(Failure::internal("the server does not say which transaction is the next"));
    };
    write_file(files, FILE, &format!("{timeline} {first}\n"))
}

/// The first transaction that is a copy's own: its source wrote everything by earlier ones. None if that is not known.
pub(crate) fn first(files: &dyn DataDir, control: &ControlFile) -> Option<u64> {
    let text = files.read_up_to(FILE, FILE_BYTES_MAX).ok()?;
    let text = String::from_utf8(text).ok()?;
    let (timeline, first) = text.trim_end().split_once(' ')?;
    let (timeline, first): (u32, u64) = (timeline.parse().ok()?, first.parse().ok()?);
    (timeline == control.timeline() && first <= control.next_transaction()).then_some(first)
}
