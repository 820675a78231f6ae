//! Reading the log of the last run.
//!
//! A chain of records ends where the next one is missing or torn: some of its sectors are blank or hold
//! what was there before. That is no loss, as its flush cannot have succeeded. It is *damage*
//!
//! - when a sector is neither: it was written, whole as devices write sectors, and changed since;
//! - when what follows says that the record was synced: a later record in the file by its count of
//!   unsynced ones before it, or a later file by its being begun (R3);
//! - when a file has no readable header but had one.
//!
//! The chain continues after the damage, so that streams it does not affect lose nothing. One thing
//! goes unnoticed: a last record whose sectors all went back to what was there before.

mod version1;

use crate::files::{FILES_MIN, file_path, read_file, record_context};
use crate::replay::{Damage, LogFile, Record, Replay, Scan};
use crate::{Error, Result};
use offshoot_format::log::{
    FileHeaderState, LOG_HEADER_LEN, LogFileHeader, SECTOR_LEN, Sector, SectorHeader,
};
use offshoot_format::seal::{Purpose, Seals};
use offshoot_os::disk::Disk;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Reads all headers and the chain of records from the latest trim on.
pub(crate) fn scan(disk: &dyn Disk, seals: &Seals) -> Result<Scan> {
    let names = disk.list("log").map_err(|error| Error::io("list log/", &error))?;
    let mut files = Vec::new();
    let mut file_size = u64::MAX;
    for (number, name) in names.iter().filter(|name| name.ends_with(".log")).enumerate() {
        let path = file_path(number);
        if path != format!("log/{name}") {
            return Err(Error::Missing(format!("{path} is not there")));
        }
        let failed = |error: std::io::Error| Error::io(format!("read {path}"), &error);
        let handle = disk.open(&path).map_err(failed)?;
        file_size = file_size.min(handle.len().map_err(failed)?);
        let mut bytes = [0; 2 * SECTOR_LEN];
        handle.read_at(0, &mut bytes).map_err(failed)?;
        files.push(LogFile { state: LogFileHeader::decode(&bytes), handle });
    }
    if files.len() < FILES_MIN || file_size < 16 * LOG_HEADER_LEN {
        return Err(Error::Missing(format!("{} files of {file_size} bytes", files.len())));
    }
    let damaged = files.iter().filter(|file| file.state == FileHeaderState::Damaged).count();
    let is_old = files.iter().any(|file| matches!(file.state, FileHeaderState::First(_)));
    let replay = Replay { is_old, ..Replay::default() };
    let mut scan = Scan { files, file_size, replay, next_sequence: 1, generation: 0, last_file: 0 };
    let trimmed = scan.headers().map(|(_, header)| header.trimmed).max().unwrap_or(1);
    let generation = scan.headers().map(|(_, header)| header.generation).max().unwrap_or(0);
    // The one that cannot be read may have been a newer one.
    (scan.next_sequence, scan.generation) = (trimmed, generation + damaged as u64);
    if let Some(start) = scan.start_file(trimmed) {
        if is_old {
            version1::read_chain(&mut scan, start, trimmed)?
        } else {
            read_chain(&mut scan, seals, start, trimmed)?
        }
    }
    if damaged > 0 && !is_old {
        let (first, last) = (scan.next_sequence, scan.next_sequence);
        let streams = BTreeMap::new();
        scan.replay.damage.push(Damage { first, last, streams, all_known: false });
        scan.next_sequence += 1;
    }
    Ok(scan)
}

/// What is found where a record is expected.
enum Found {
    Whole {
        header: SectorHeader,
        payload: Vec<u8>,
        mended: bool,
    },
    /// Nothing, or a part.
    Torn,
    /// With the bytes it takes, where they are known.
    Damaged(Option<usize>),
}

/// The part of a file that is still to be read.
struct Chain {
    seals: Seals,
    bytes: Vec<u8>,
    offset: usize,
    expected: u64,
    generation: u32,
}

fn read_chain(
    scan: &mut Scan,
    seals: &Seals,
    start: (usize, LogFileHeader),
    trimmed: u64,
) -> Result<()> {
    let (mut current, header) = start;
    let mut chain = Chain {
        seals: seals.clone(),
        bytes: Vec::new(),
        offset: 0,
        expected: header.first_sequence,
        generation: header.generation as u32,
    };
    loop {
        scan.last_file = current;
        chain.bytes = read_file(&*scan.files[current].handle, scan.file_size)?;
        chain.offset = LOG_HEADER_LEN as usize;
        let begun = chain.expected;
        let uncertain = chain.read_records(&mut scan.replay, trimmed);
        let next = scan
            .headers()
            .filter(|(number, header)| {
                *number != current
                    && header.first_sequence >= chain.expected
                    && header.generation >= u64::from(chain.generation)
            })
            .min_by_key(|(_, header)| (header.first_sequence, !header.generation));
        // A file without a record ends the chain: continuing could only go in a circle.
        let next =
            next.filter(|(_, header)| begun < chain.expected || header.first_sequence > begun);
        let Some((number, header)) = next else {
            if uncertain {
                let missing = chain.missing(chain.expected + 1);
                chain.skip(&mut scan.replay, trimmed, missing);
            }
            scan.next_sequence = scan.next_sequence.max(chain.expected);
            return Ok(());
        };
        if header.first_sequence > chain.expected {
            // R3: everything before a file was synced before the file was begun.
            let missing = chain.missing(header.first_sequence);
            chain.skip(&mut scan.replay, trimmed, missing);
        }
        (current, chain.generation) = (number, header.generation as u32);
    }
}

impl Chain {
    /// Takes the records of a file; whether a damaged one may have followed the last.
    fn read_records(&mut self, replay: &mut Replay, trimmed: u64) -> bool {
        loop {
            let found = self.read_record();
            if let Found::Whole { header, payload, mended } = found {
                if header.sequence >= trimmed {
                    replay.mended += u64::from(mended);
                    replay.records.push(Record { sequence: header.sequence, payload });
                }
                self.generation = header.generation;
                self.expected += 1;
                self.offset += SectorHeader::stored_len(header.length as usize) as usize;
                continue;
            }
            let damaged = matches!(found, Found::Damaged(_));
            // After a torn record others of the same flush may be whole: they do not count.
            let Some(next) = self.find_later(damaged) else {
                let Found::Damaged(Some(len)) = found else { return damaged };
                // What follows it may be damaged, too.
                let missing = self.missing(self.expected + 1);
                self.skip(replay, trimmed, missing);
                self.offset += len;
                continue;
            };
            let missing = self.missing(next.1.sequence);
            self.skip(replay, trimmed, missing);
            (self.offset, self.generation) = (next.0, next.1.generation);
        }
    }

    fn read_record(&mut self) -> Found {
        let (expected, generation) = (self.expected, self.generation);
        let Some(bytes) = self.bytes.get_mut(self.offset..) else { return Found::Torn };
        let Some(sector) = bytes.get_mut(..SECTOR_LEN) else { return Found::Torn };
        let (first, mut mended, mut damaged) = match Sector::read(sector) {
            Sector::Blank => return Found::Torn,
            Sector::Damaged(None) => return Found::Damaged(None),
            Sector::Damaged(Some(header)) => (header, false, true),
            Sector::Whole { header, mended } => (header, mended, false),
        };
        if first.index != 0 || first.sequence != expected || first.generation < generation {
            return Found::Torn;
        }
        let length = first.length as usize;
        let count = SectorHeader::count(length);
        let Some(bytes) = bytes.get_mut(..count * SECTOR_LEN) else { return Found::Damaged(None) };
        let mut torn = false;
        let mut payload = Vec::with_capacity(bytes.len());
        for (index, sector) in bytes.chunks_exact_mut(SECTOR_LEN).enumerate() {
            let own =
                |header: SectorHeader| header == SectorHeader { index: index as u32, ..first };
            match Sector::read(sector) {
                Sector::Whole { header, mended: bit } if own(header) => mended |= bit,
                Sector::Damaged(Some(header)) if own(header) => damaged = true,
                Sector::Damaged(None) => damaged = true,
                Sector::Blank | Sector::Whole { .. } | Sector::Damaged(Some(_)) => torn = true,
            }
            payload.extend_from_slice(Sector::body(sector));
        }
        payload.truncate(length);
        match (damaged, torn) {
            (true, _) => Found::Damaged(Some(bytes.len())),
            (false, true) => Found::Torn,
            (false, false) => {
                let len = bytes.len();
                let context = record_context(first.generation, first.stream, first.position);
                match self.seals.open(Purpose::Log, &context, &payload) {
                    Ok(Cow::Borrowed(_)) => Found::Whole { header: first, payload, mended },
                    Ok(Cow::Owned(payload)) => Found::Whole { header: first, payload, mended },
                    // Its checksums are right: somebody changed it.
                    Err(_) => Found::Damaged(Some(len)),
                }
            }
        }
    }

    /// The first record after a missing one, if all missing records before it were synced, or if
    /// the missing one is damaged.
    fn find_later(&self, damaged: bool) -> Option<(usize, SectorHeader)> {
        let mut later = self
            .sectors()
            .filter(|(_, header)| header.index == 0 && header.sequence > self.expected);
        let first = later.next()?;
        let mut all = std::iter::once(first).chain(later);
        (damaged || all.any(|(_, header)| header.synced() > self.expected)).then_some(first)
    }

    /// Sectors of this chain from here on whose header can be read.
    fn sectors(&self) -> impl Iterator<Item = (usize, SectorHeader)> {
        let rest = self.bytes.get(self.offset..).unwrap_or_default();
        let sectors = rest.chunks_exact(SECTOR_LEN).enumerate();
        let own = |header: &SectorHeader| {
            header.sequence >= self.expected && header.generation >= self.generation
        };
        sectors.filter_map(move |(index, sector)| {
            let header = SectorHeader::peek(sector).filter(own)?;
            Some((self.offset + index * SECTOR_LEN, header))
        })
    }

    /// What is known about the records from the expected one up to `next`.
    fn missing(&self, next: u64) -> Damage {
        let (mut streams, mut known) = (BTreeMap::<u64, u64>::new(), BTreeSet::new());
        for (_, header) in self.sectors().filter(|(_, header)| header.sequence < next) {
            known.insert(header.sequence);
            let position = streams.entry(header.stream).or_default();
            *position = header.position.max(*position);
        }
        let all_known = known.len() as u64 == next - self.expected;
        Damage { first: self.expected, last: next - 1, streams, all_known }
    }

    /// Goes on behind missing records.
    fn skip(&mut self, replay: &mut Replay, trimmed: u64, missing: Damage) {
        self.expected = missing.last + 1;
        if missing.last >= trimmed {
            replay.damage.push(missing);
        }
    }
}

#[cfg(test)]
mod tests;
