//! Whether an image is sound: checksums of its checkpoint and of its journal's records.

use crate::journal::{Journal, Reader, SEGMENT_BYTES, Step};
use crate::state::{FILE, JOURNAL, State};
use offshoot_connector::{
    DataDir, Differing, Findings, ImageChecker, ImageScope, Server, ServerSpec, Tick,
};
use offshoot_types::Failure;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Checks images of the toy.
pub(crate) struct Checker;

struct Scope {
    bytes: u64,
    state: bool,
    journal: bool,
}

impl ImageChecker for Checker {
    fn scope(
        &self,
        image: &ServerSpec,
        differing: &Differing<'_>,
    ) -> Result<Box<dyn ImageScope>, Failure> {
        let scope = Scope::of(&image.files, differing);
        Ok(Box::new(scope.map_err(|error| {
            Failure::internal(format!("the files of {} cannot be compared: {error}", image.name))
        })?))
    }
}

impl Scope {
    fn of(files: &Arc<dyn DataDir>, differing: &Differing<'_>) -> io::Result<Scope> {
        let differs = |path: &str| -> io::Result<bool> {
            Ok(differing(path)?.is_none_or(|ranges| ranges.iter().any(|range| !range.is_empty())))
        };
        let journal = Journal::new(files.clone(), JOURNAL);
        let mut scope = Scope { bytes: 0, state: false, journal: false };
        if !files.exists(FILE)? {
            scope.state = true;
        } else if differs(FILE)? {
            scope.state = true;
            scope.bytes += files.open(FILE)?.size()?;
        }
        for number in journal.numbers()? {
            if differs(&journal.path(number))? {
                scope.journal = true;
                scope.bytes += journal.length(number)?.unwrap_or(0);
            }
        }
        Ok(scope)
    }
}

impl ImageScope for Scope {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn check_files(
        &mut self,
        files: &Arc<dyn DataDir>,
        tick: &mut Tick<'_>,
    ) -> Result<Findings, Failure> {
        let mut findings = Findings::default();
        if self.state {
            if let Err(failure) = State::read(&**files) {
                findings.damage.push(failure.message);
            }
            tick(0)?;
        }
        if self.journal {
            let journal = Journal::new(files.clone(), JOURNAL);
            match check_journal(&journal) {
                Ok(None) => {}
                Ok(Some(damage)) => findings.damage.push(damage),
                Err(error) => findings.damage.push(format!("{JOURNAL}: {error}")),
            }
        }
        tick(self.bytes)?;
        Ok(findings)
    }

    fn check_running(
        &mut self,
        server: &dyn Server,
        deadline: Duration,
        tick: &mut Tick<'_>,
    ) -> Result<Findings, Failure> {
        server.wait_ready(deadline)?;
        server.position()?;
        tick(0)?;
        Ok(Findings::default())
    }

    fn check_rest(
        &mut self,
        _files: &Arc<dyn DataDir>,
        _tick: &mut Tick<'_>,
    ) -> Result<Findings, Failure> {
        Ok(Findings::default())
    }
}

/// The first damage; an image was shut down, so nothing in it is only partly written.
fn check_journal(journal: &Journal) -> io::Result<Option<String>> {
    let Some((begin, end)) = journal.range()? else { return Ok(None) };
    let mut reader = Reader::new(journal.clone());
    let mut at = match reader.first(begin)? {
        Ok(Some(first)) => first,
        Ok(None) => return Ok(None),
        Err(_) => return Ok(Some(format!("{JOURNAL}: no record where it begins"))),
    };
    loop {
        match reader.next(at)? {
            Step::Record(_, behind) => at = behind,
            Step::End if at == end => return Ok(None),
            Step::End | Step::Damaged => {
                let path = journal.path(at / SEGMENT_BYTES);
                return Ok(Some(format!("{path}: no record at j{at}")));
            }
        }
    }
}
