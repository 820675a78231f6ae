//! Checksums of pages.

use std::ops::Range;

use offshoot_types::{ErrorKind, Failure};

use super::checksum::{PAGE_LEN, is_sound};
use super::scope::{Scope, segment_of};
use super::{Findings, Tick};
use crate::control::Control;
use offshoot_connector::{DataDir, DataFile, read_full};

/// Pages read at once.
const READ_PAGES: u64 = 128;

/// Verifies the page checksums of those pages of an image that are in `scope`. The image was stopped
/// cleanly, as `control` says; a server started on it since does no harm, as it writes whole pages. `tick`
/// is told how many bytes were read and may end the check. Unreadable pages are damage, too.
///
/// # Errors
/// `WrongState` if the image was not stopped cleanly, and what `tick` returns.
pub fn check_pages(
    control: &Control,
    data: &dyn DataDir,
    scope: &Scope,
    tick: &mut Tick<'_>,
) -> Result<Findings, Failure> {
    let mut findings = Findings::default();
    if !control.is_stopped_cleanly() {
        return Err(Failure::new(
            ErrorKind::WrongState,
            "the image was not stopped cleanly",
            "start it and stop it again",
        ));
    }
    if !control.data_checksums {
        findings.unchecked.push("the source has no page checksums".to_owned());
        return Ok(findings);
    }
    for (path, ranges) in &scope.files {
        let mut check = PageCheck { path, scope, findings: &mut findings };
        match data.open(path) {
            Ok(file) => check.file(&*file, ranges, tick)?,
            Err(error) => check.damaged(&format!("cannot be opened: {error}")),
        }
    }
    Ok(findings)
}

/// The check of one file.
struct PageCheck<'a> {
    path: &'a str,
    scope: &'a Scope,
    findings: &'a mut Findings,
}

impl PageCheck<'_> {
    fn damaged(&mut self, what: &str) {
        self.findings.add_damage(format!("{}: {what}", self.path));
    }

    fn file(
        &mut self,
        file: &dyn DataFile,
        ranges: &[Range<u64>],
        tick: &mut Tick<'_>,
    ) -> Result<(), Failure> {
        match file.size() {
            Ok(size) if size.is_multiple_of(PAGE_LEN as u64) => {}
            Ok(_) => self.damaged("its last page is cut short"),
            Err(error) => self.damaged(&error.to_string()),
        }
        let mut buffer = vec![0; READ_PAGES as usize * PAGE_LEN];
        for range in ranges {
            for first in range.clone().step_by(READ_PAGES as usize) {
                let pages = READ_PAGES.min(range.end - first) as usize;
                let part = buffer.get_mut(..pages * PAGE_LEN).unwrap_or_default();
                match read_full(file, first * PAGE_LEN as u64, part) {
                    Ok(read) => self.pages(first, part.get(..read).unwrap_or_default()),
                    Err(error) => self.damaged(&format!("page {first} and on: {error}")),
                }
                tick((pages * PAGE_LEN) as u64)?;
            }
        }
        Ok(())
    }

    /// Checks whole pages, the first of them the `first`th of the file.
    fn pages(&mut self, first: u64, pages: &[u8]) {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let segment = segment_of(name).unwrap_or_default();
        let base = segment.saturating_mul(self.scope.segment_pages);
        for (number, page) in (first..).zip(pages.chunks_exact(PAGE_LEN)) {
            if !is_sound(page, base.saturating_add(number)) {
                self.damaged(&format!("page {number}: wrong checksum"));
            }
        }
    }
}
