use super::control_file::{CHECKPOINT_BYTES, ControlFile};
use super::forge::{checkpoint_record, noop};
use super::*;
use crate::archive::record::{checksum_matches, u32_at};
use crate::archive::{TimelineHistory, WalFile};
use offshoot_connector::PlainDir;
use std::path::Path;
use std::sync::Arc;

const SEGMENT: u64 = 1 << 20;
const IDENTIFIER: u64 = 7_300_000_000_000_000_001;

/// Numbers that look random, from a seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// A source's log as it writes it.
struct Written {
    bytes: Vec<u8>,
    previous: u64,
    /// Where each record begins, and its length.
    records: Vec<(u64, usize)>,
}

impl Written {
    fn new() -> Written {
        Written { bytes: Vec::new(), previous: 0, records: Vec::new() }
    }

    fn at(&self) -> u64 {
        SEGMENT + self.bytes.len() as u64
    }

    /// The header of a page into which `rest` bytes of a record go on.
    fn begin_page(&mut self, rest: usize) {
        let long = self.at().is_multiple_of(SEGMENT);
        let flags = u16::from(rest > 0) | if long { 2 } else { 0 };
        let mut page = [&[0x10, 0xD1][..], &flags.to_le_bytes(), &1_u32.to_le_bytes()].concat();
        page.extend(self.at().to_le_bytes());
        page.extend((rest as u32).to_le_bytes());
        page.resize(if long { 40 } else { 24 }, 0);
        self.bytes.extend(page);
    }

    fn push(&mut self, manager: u8, info: u8, body: &[u8]) {
        if self.at().is_multiple_of(PAGE_BYTES) {
            self.begin_page(0);
        }
        let length = RECORD_HEADER_BYTES + body.len();
        let mut record = (length as u32).to_le_bytes().to_vec();
        record.extend(700_u32.to_le_bytes());
        record.extend(self.previous.to_le_bytes());
        record.extend([info, manager, 0, 0]);
        let checksum = crc32c::crc32c_append(crc32c::crc32c(body), &record);
        record.extend(checksum.to_le_bytes());
        record.extend(body);
        (self.previous, _) = (self.at(), self.records.push((self.at(), length)));
        let mut rest = &record[..];
        loop {
            let room = (PAGE_BYTES - self.at() % PAGE_BYTES) as usize;
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.bytes.extend(now);
            rest = later;
            if rest.is_empty() {
                break;
            }
            self.begin_page(rest.len());
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
    }

    /// Leaves the file before it is full, as `pg_switch_wal()` and `archive_timeout` do: pages without records follow.
    fn leave_file(&mut self) {
        self.push(0, 0x40, &[]);
        while !self.at().is_multiple_of(SEGMENT) {
            if self.at().is_multiple_of(PAGE_BYTES) {
                self.begin_page(0);
            }
            self.bytes.resize(self.bytes.len().next_multiple_of(PAGE_BYTES as usize), 0);
        }
    }

    /// Records of lengths up to some of these, from a seed.
    fn random(seed: u64, count: u32, lengths: [u64; 5]) -> Written {
        let (mut numbers, mut log) = (Numbers(seed), Written::new());
        for _ in 0..count {
            let most = lengths[numbers.below(5) as usize];
            let body: Vec<u8> = (0..numbers.below(most)).map(|_| numbers.next() as u8).collect();
            // A heap's, or the log's own: a next object id, a full page.
            let (manager, info) =
                [(10, 0), (10, 0x20), (0, 0x30), (0, 0xB0)][numbers.below(4) as usize];
            log.push(manager, info, &body);
        }
        log
    }

    /// Puts it up to a position into a directory, followed by zeros.
    fn place(&self, dir: &Path, to: u64) {
        std::fs::create_dir_all(dir).unwrap();
        let mut bytes = self.bytes[..(to - SEGMENT) as usize].to_vec();
        bytes.resize(bytes.len().next_multiple_of(SEGMENT as usize), 0);
        for (number, segment) in bytes.chunks(SEGMENT as usize).enumerate() {
            let name = format!("00000001{:08X}{:08X}", 0, number + 1);
            std::fs::write(dir.join(name), segment).unwrap();
        }
    }
}

/// A control file of a format, with a checkpoint of the clean stop.
fn control_bytes(format: u32, stopped_at: Lsn) -> Vec<u8> {
    let mut bytes = vec![0; 8192];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &IDENTIFIER.to_le_bytes());
    put(8, &format.to_le_bytes());
    put(16, &[1]);
    put(32, &stopped_at.0.to_le_bytes());
    put(40, &stopped_at.0.to_le_bytes());
    put(64, &4711_u64.to_le_bytes());
    put(172, &[1]);
    put(180, &23_u32.to_le_bytes());
    put(200, &[1]);
    put(228, &(SEGMENT as u32).to_le_bytes());
    seal(&mut bytes, if format == 1800 { 292 } else { 288 });
    bytes
}

fn seal(bytes: &mut [u8], at: usize) {
    let checksum = crc32c::crc32c(&bytes[..at]);
    bytes[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn a_noop_has_every_length() {
    for length in 0..2000 {
        let Some(record) = noop(length, Lsn(8)) else {
            assert!(length < 26, "{length}");
            continue;
        };
        assert_eq!((record.len(), u32_at(&record, 0)), (length, Some(length as u32)));
        assert!(checksum_matches(&record), "{length}");
        assert_eq!((record[16], record[17]), (0x20, 0));
        let (data, header) = match record[24] {
            255 => (usize::from(record[25]), 2),
            254 => (u32_at(&record, 25).unwrap() as usize, 5),
            other => panic!("{other} in a NOOP of {length}"),
        };
        assert_eq!(24 + header + data, length);
    }
}

#[test]
fn a_control_file_is_read_and_forged_in_both_formats() {
    for format in [1300, 1700, 1800] {
        let bytes = control_bytes(format, Lsn(0x20_0100));
        let control = ControlFile::parse(bytes.clone()).unwrap();
        assert!(control.is_shut_down() && !control.is_of_standby());
        assert!(!control.is_unfinished_backup());
        let settings = control.settings().unwrap();
        let value = |name: &str| settings[name].as_str();
        assert_eq!((value("wal_level"), value("max_connections")), ("replica", "23"));
        assert_eq!((value("track_commit_timestamp"), value("wal_log_hints")), ("on", "off"));
        let checkpoint = control.checkpoint_moved_to(Lsn(0x10_1000), 3);
        assert_eq!(u32_at(&checkpoint, 80), Some(4711));
        let forged = control.forge(Lsn(0x10_1000), &checkpoint, (Lsn(0x10_2000), 3));
        let control = ControlFile::parse(forged.clone()).unwrap();
        assert!(control.is_of_standby());
        assert_eq!(control.checkpoint_at(), Lsn(0x10_1000));
        assert_eq!(control.least_recovery_point(), Lsn(0x10_2000));
        let differs = (0..8192).filter(|at| forged[*at] != bytes[*at]).collect::<Vec<_>>();
        assert!(differs.iter().all(|at| (16..150).contains(at) || (288..296).contains(at)));

        for at in [0, 16, 40, 180, 256, 290] {
            let mut broken = bytes.clone();
            broken[at] ^= 0x10;
            assert_eq!(
                ControlFile::parse(broken).unwrap_err().code,
                ErrorKind::DataDamaged,
                "{at}"
            );
        }
    }
    let unknown = control_bytes(1900, Lsn(8));
    assert_eq!(ControlFile::parse(unknown).unwrap_err().code, ErrorKind::DataDamaged);
    let short = control_bytes(1800, Lsn(8))[..293].to_vec();
    assert_eq!(ControlFile::parse(short).unwrap_err().code, ErrorKind::DataDamaged);
}

/// What a log says from a position on: start, manager, info and predecessor of each record.
fn read_from(archive: &Archive, from: Lsn) -> Vec<Found> {
    let mut reader = LogReader::new(archive, TimelineHistory::single(1));
    let (mut position, mut all) = (from, Vec::new());
    // Zeros in a whole file are damage: the end of this log.
    while let Ok(Step::Record(found)) = reader.next_record(position) {
        position = found.end;
        all.push(found);
    }
    all
}

/// Makes a clean copy of the log a point at `end`, lets it go on to the end of the log, and compares.
fn go_on(written: &Written, end: End) {
    let scratch = tempfile::tempdir().unwrap();
    let stopped_at = Lsn(end.position.0 + 120);
    std::fs::create_dir(scratch.path().join("global")).unwrap();
    let control = scratch.path().join("global/pg_control");
    std::fs::write(&control, control_bytes(1300, stopped_at)).unwrap();
    let files: Arc<dyn DataDir> = Arc::new(PlainDir::new(scratch.path()));
    let point = Point { version: POINT_VERSION, system_identifier: IDENTIFIER, end, stopped_at };
    point.write(&*files).unwrap();
    assert_eq!(Point::read(&*files, SEGMENT).unwrap().as_ref(), Some(&point));
    written.place(&scratch.path().join("pg_wal"), written.at());
    let archive = Archive::of_server(files.clone(), SEGMENT).unwrap();
    let before = read_from(&archive, end.position);

    resume(&*files, SEGMENT, &point).unwrap();
    let after = read_from(&archive, end.replay_from());
    let [c, q, rest @ ..] = &after[..] else { panic!("{after:?}") };
    assert_eq!((c.start, c.manager, c.info, c.length), (end.replay_from(), 0, 0x10, 114));
    assert_eq!((q.start, q.manager, q.info, q.length), (end.last, 0, 0x20, end.length));
    assert_eq!((q.previous, q.end), (c.start, end.position));
    assert_eq!(rest, before);
    assert!(rest.first().is_none_or(|next| next.previous == end.last));
    let page = end.replay_from().0 / PAGE_BYTES * PAGE_BYTES;
    let header = PageHeader::bytes_at(page, SEGMENT);
    if end.replay_from().0 == page + header {
        let file = archive.files().unwrap().into_iter().find(|f| archive.end(f).0 > page).unwrap();
        let mut bytes = [0; PAGE_BYTES as usize];
        let open = archive.open(&file).unwrap().unwrap();
        open.read_at(page % SEGMENT, &mut bytes).unwrap();
        let header = PageHeader::parse(&bytes, page).unwrap();
        assert!(!header.continues() && header.remaining == 0);
    }
    // It is no point any more, but begins at one: with the source's log in it, the same is done again.
    assert_eq!(Point::read_stopped(&*files).unwrap(), None);
    assert_eq!(Point::read(&*files, SEGMENT).unwrap().as_ref(), Some(&point));
    assert_eq!(resume(&*files, SEGMENT, &point).unwrap_err().code, ErrorKind::DataDamaged);
    written.place(&scratch.path().join("pg_wal"), written.at());
    resume(&*files, SEGMENT, &point).unwrap();
    assert_eq!(read_from(&archive, end.replay_from()), after);
}

#[test]
fn a_log_goes_on_from_every_place_where_a_round_can_end() {
    let mut begins_a_page = 0;
    for seed in 1..12 {
        let written = match seed % 2 {
            0 => Written::random(seed, 300, [8, 300, 300, 3000, 40_000]),
            _ => Written::random(seed, 9000, [8, 30, 60, 90, 200]),
        };
        let scratch = tempfile::tempdir().unwrap();
        written.place(scratch.path(), written.at());
        let archive = Archive::new(Arc::new(PlainDir::new(scratch.path())), SEGMENT).unwrap();
        let mut numbers = Numbers(seed);
        for _ in 0..20 {
            let limit = Lsn(SEGMENT + 40 + numbers.below(written.at() - SEGMENT - 40));
            let Some(end) = End::before(&archive, Lsn(SEGMENT), limit).unwrap() else { continue };
            assert!(end.position <= limit && end.timeline == 1);
            assert!(written.records.contains(&(end.last.0, end.length as usize)));
            go_on(&written, end);
        }
        // Where C is the first record of a page, which may begin inside another.
        let all = read_from(&archive, Lsn(SEGMENT));
        let ends: Vec<End> = all.iter().filter_map(|one| End::after(one, 1, SEGMENT)).collect();
        let first = |end: &&End| {
            let page = end.replay_from().0 / PAGE_BYTES * PAGE_BYTES;
            end.replay_from().0 == page + PageHeader::bytes_at(page, SEGMENT)
        };
        for end in ends.iter().filter(first).take(2) {
            begins_a_page += 1;
            go_on(&written, *end);
        }
        let latest = End::before(&archive, Lsn(SEGMENT), Lsn(u64::MAX));
        // The zeros at the end of a whole file are damage.
        assert_eq!(latest.unwrap_err().code, ErrorKind::DataDamaged);
        let last = End::before(&archive, Lsn(SEGMENT), Lsn(written.at())).unwrap();
        assert_eq!(last, ends.last().copied());
    }
    assert!(begins_a_page > 3, "{begins_a_page}");
}

#[test]
fn no_round_ends_at_a_record_that_is_too_long() {
    let mut written = Written::new();
    (0..100).for_each(|_| written.push(10, 0, &[1; 100]));
    let scratch = tempfile::tempdir().unwrap();
    written.place(scratch.path(), written.at());
    let archive = Archive::new(Arc::new(PlainDir::new(scratch.path())), SEGMENT).unwrap();
    let end = End::before(&archive, Lsn(SEGMENT), Lsn(written.at())).unwrap().unwrap();
    let longest = LAST_BYTES_MAX as u32;
    let lengths = [(end.length, true), (longest, true), (longest + 1, false), (u32::MAX, false)];
    for (length, possible) in lengths {
        let position = Lsn(end.last.0 + u64::from(length).next_multiple_of(8));
        assert_eq!(End { length, position, ..end }.is_possible(SEGMENT), possible, "{length}");
    }
}

#[test]
fn a_round_ends_where_the_source_left_a_file_that_was_not_full() {
    let mut written = Written::new();
    (0..100).for_each(|_| written.push(10, 0, &[1; 100]));
    let before = Lsn(written.at());
    written.leave_file();
    let left = Lsn(written.at());
    assert!(left.0 - before.0 > 2 * LOOK_BACK_BYTES && left.0 == 2 * SEGMENT);
    (0..3).for_each(|_| written.push(10, 0, &[1; 100]));
    let scratch = tempfile::tempdir().unwrap();
    written.place(scratch.path(), written.at());
    let archive = Archive::new(Arc::new(PlainDir::new(scratch.path())), SEGMENT).unwrap();
    let last = |limit| End::before(&archive, Lsn(SEGMENT), limit).unwrap().unwrap().position();
    assert_eq!(last(left), before);
    assert_eq!(last(Lsn(left.0 - 9 * PAGE_BYTES)), before);
    assert_eq!(last(Lsn(written.at())), Lsn(written.at()));
}

#[test]
fn a_round_ends_on_the_timeline_on_which_it_began() {
    let scratch = tempfile::tempdir().unwrap();
    let mut written = Written::new();
    (0..100).for_each(|_| written.push(10, 0, &[1; 100]));
    written.place(scratch.path(), written.at());
    let archive = Archive::new(Arc::new(PlainDir::new(scratch.path())), SEGMENT).unwrap();
    let end = Lsn(written.at());
    let found = End::before(&archive, Lsn(SEGMENT), end).unwrap().unwrap();
    assert_eq!((found.timeline(), found.position()), (1, end));
    let at = written.records[50].0;
    let switch = format!("1\t{}\tx\n", Lsn(at));
    std::fs::write(scratch.path().join("00000002.history"), switch).unwrap();
    let file = |timeline| WalFile { timeline, number: 1, partial: false };
    let [one, two] = [1, 2].map(|timeline| scratch.path().join(archive.name(&file(timeline))));
    std::fs::copy(one, two).unwrap();
    assert_eq!(End::before(&archive, Lsn(SEGMENT), end).unwrap(), None);
    let found = End::before(&archive, Lsn(SEGMENT), Lsn(at)).unwrap().unwrap();
    assert_eq!((found.timeline(), found.position()), (1, Lsn(at)));
    let found = End::before(&archive, Lsn(at), end).unwrap().unwrap();
    assert_eq!((found.timeline(), found.position()), (2, end));
}

#[test]
fn a_copy_in_which_somebody_worked_is_no_point() {
    let scratch = tempfile::tempdir().unwrap();
    let files = PlainDir::new(scratch.path());
    std::fs::create_dir(scratch.path().join("global")).unwrap();
    let end = End {
        last: Lsn(SEGMENT + 800),
        length: 50,
        checksum: 7,
        position: Lsn(SEGMENT + 856),
        timeline: 1,
    };
    let stopped_at = Lsn(SEGMENT + 976);
    let good = Point { version: POINT_VERSION, system_identifier: IDENTIFIER, end, stopped_at };
    let put =
        |bytes: &[u8]| std::fs::write(scratch.path().join("global/pg_control"), bytes).unwrap();
    put(&control_bytes(1800, stopped_at));
    assert_eq!(Point::read(&files, SEGMENT).unwrap(), None);
    good.write(&files).unwrap();
    assert_eq!(Point::read(&files, SEGMENT).unwrap().as_ref(), Some(&good));
    for wrong in [
        Point { version: 2, ..good.clone() },
        Point { system_identifier: 1, ..good.clone() },
        Point { stopped_at: Lsn(8), ..good.clone() },
        Point { end: End { length: 25, ..end }, ..good.clone() },
        Point { end: End { length: 90, ..end }, ..good.clone() },
        Point { end: End { last: Lsn(SEGMENT + 159), ..end }, ..good.clone() },
        Point { end: End { last: Lsn(SEGMENT + 152), ..end }, ..good.clone() },
    ] {
        wrong.write(&files).unwrap();
        assert_eq!(Point::read(&files, SEGMENT).unwrap(), None, "{wrong:?}");
    }
    good.write(&files).unwrap();
    assert_eq!(Point::read(&files, 2 * SEGMENT).unwrap(), None);
    let mut running = control_bytes(1800, stopped_at);
    running[16] = 6;
    seal(&mut running, 292);
    put(&running);
    assert_eq!(Point::read(&files, SEGMENT).unwrap(), None);
    put(&running[..100]);
    assert_eq!(Point::read(&files, SEGMENT).unwrap_err().code, ErrorKind::DataDamaged);
    // Whoever starts a server on it takes the mark away.
    put(&control_bytes(1800, stopped_at));
    assert!(Point::read(&files, SEGMENT).unwrap().is_some());
    crate::config::remove_leftovers(&files).unwrap();
    assert_eq!(Point::read(&files, SEGMENT).unwrap(), None);
}

#[test]
fn another_log_than_the_one_that_was_replayed_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let files = PlainDir::new(scratch.path());
    std::fs::create_dir(scratch.path().join("global")).unwrap();
    let mut written = Written::new();
    (0..20).for_each(|_| written.push(10, 0, &[1; 100]));
    let placed = tempfile::tempdir().unwrap();
    written.place(placed.path(), written.at());
    let archive = Archive::new(Arc::new(PlainDir::new(placed.path())), SEGMENT).unwrap();
    let limit = Lsn(written.records[11].0);
    let end = End::before(&archive, Lsn(SEGMENT), limit).unwrap().unwrap();
    assert_eq!(end.position, limit);
    let stopped_at = Lsn(limit.0 + 120);
    let control = scratch.path().join("global/pg_control");
    std::fs::write(&control, control_bytes(1300, stopped_at)).unwrap();
    let point = Point { version: POINT_VERSION, system_identifier: IDENTIFIER, end, stopped_at };
    point.write(&files).unwrap();
    std::fs::create_dir(scratch.path().join("pg_wal")).unwrap();
    assert_eq!(resume(&files, SEGMENT, &point).unwrap_err().code, ErrorKind::DataDamaged);
    // A record of another length, and one with other bytes.
    for body in [&[1; 60][..], &[2; 100]] {
        let mut other = Written::new();
        (0..20).for_each(|_| other.push(10, 0, body));
        other.place(&scratch.path().join("pg_wal"), other.at());
        assert_eq!(resume(&files, SEGMENT, &point).unwrap_err().code, ErrorKind::DataDamaged);
    }
    written.place(&scratch.path().join("pg_wal"), written.at());
    resume(&files, SEGMENT, &point).unwrap();
}

#[test]
fn a_checkpoints_record_is_valid() {
    let record = checkpoint_record(Lsn(0x10_0100), &[7; CHECKPOINT_BYTES]);
    assert!(checksum_matches(&record) && record.len() == 114 && FORGED_BYTES == 120);
}
