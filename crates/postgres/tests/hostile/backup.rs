//! Base backups of sources that send what no PostgreSQL sends.

use super::fake::{Fake, Peer};
use super::memory::assert_bounded;
use crate::server::{PATIENCE, scratch, tools};
use offshoot_connector::PlainDir;
use offshoot_postgres::base_backup::{BaseBackupRequest, SILENCE, take_base_backup};
use offshoot_postgres::source::{SourceFacts, SourceTablespace};
use offshoot_types::{ErrorKind, Failure};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The smallest size of what is sent at once.
const PIECE: usize = 60_000;

/// One entry of an archive, with nothing checked.
#[derive(Clone)]
struct Entry {
    path: String,
    kind: u8,
    link: String,
    size: u64,
    content: Vec<u8>,
}

fn entry(path: impl Into<String>, kind: u8, link: impl Into<String>) -> Entry {
    Entry { path: path.into(), kind, link: link.into(), size: 0, content: Vec::new() }
}

fn file(path: impl Into<String>, content: &[u8]) -> Entry {
    Entry { size: content.len() as u64, content: content.to_vec(), ..entry(path, b'0', "") }
}

impl Entry {
    fn bytes(&self) -> Vec<u8> {
        let mut head = [0_u8; 512];
        let mut put =
            |at: usize, text: &str| head[at..at + text.len()].copy_from_slice(text.as_bytes());
        put(0, &self.path);
        put(100, "0000600\0");
        put(108, "0000000\0");
        put(116, "0000000\0");
        put(136, "00000000000\0");
        put(157, &self.link);
        put(257, "ustar\x0000");
        put(329, "0000001\0");
        put(337, "0000003\0");
        if self.size < 1 << 33 {
            put(124, &format!("{:011o}\0", self.size));
        } else {
            head[124] = 0x80;
            head[128..136].copy_from_slice(&self.size.to_be_bytes());
        }
        head[156] = self.kind;
        head[148..156].fill(b' ');
        let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
        head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let mut bytes = head.to_vec();
        bytes.extend_from_slice(&self.content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        bytes
    }
}

/// Answers `pg_basebackup` up to the first byte of the archive.
fn begin(peer: &mut Peer, tablespaces: &[SourceTablespace]) -> io::Result<()> {
    peer.admit()?;
    loop {
        let query = peer.query()?;
        if query.starts_with("BASE_BACKUP") {
            break;
        }
        match query.as_str() {
            "SHOW wal_segment_size" => peer.answer(&[Some(b"1MB")])?,
            "SHOW data_directory_mode" => peer.answer(&[Some(b"0700")])?,
            "IDENTIFY_SYSTEM" => {
                peer.answer(&[Some(b"7"), Some(b"1"), Some(b"0/3000000"), None])?;
            }
            // Whatever else a version asks for first.
            _ => peer.answer(&[Some(b"")])?,
        }
    }
    peer.one_row(&[Some(b"0/2000028"), Some(b"1")])?;
    peer.columns(3)?;
    for tablespace in tablespaces {
        let oid = tablespace.oid.to_string();
        peer.row(&[Some(oid.as_bytes()), Some(tablespace.location.as_bytes()), Some(b"1")])?;
    }
    peer.row(&[None, None, Some(b"1000")])?;
    peer.send(b'C', b"SELECT\0")?;
    peer.send(b'H', &[0; 3])?;
    peer.send(b'd', b"nbase.tar\0\0")
}

fn data(peer: &mut Peer, bytes: &[u8]) -> io::Result<()> {
    bytes.chunks(PIECE).try_for_each(|piece| peer.send(b'd', &[b"d", piece].concat()))
}

fn finish(peer: &mut Peer) -> io::Result<()> {
    data(peer, &[0; 1024])?;
    peer.send(b'd', b"m")?;
    data(peer, b"{}")?;
    peer.send(b'c', b"")?;
    peer.one_row(&[Some(b"0/2000100"), Some(b"1")])?;
    peer.send(b'C', b"BASE_BACKUP\0")?;
    peer.ready()
}

fn facts(tablespaces: &[SourceTablespace]) -> SourceFacts {
    let major = tools().installation.major;
    assert!(major >= 15, "the fake server speaks the protocol of backups from 15 on");
    SourceFacts {
        system_identifier: 7,
        major,
        version: format!("{major}.0"),
        size_bytes: 1,
        tablespaces: tablespaces.to_vec(),
        data_checksums: true,
        wal_segment_bytes: 1 << 20,
        archiving: false,
        in_recovery: false,
        timeline: 1,
        flushed: "0/2000000".parse().unwrap(),
        clock: jiff::Timestamp::UNIX_EPOCH,
    }
}

/// A directory for the copy, and what is around it.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let dir = scratch();
        tools().own_directory(&dir.path().join("copy")).unwrap();
        std::fs::write(dir.path().join("another"), "untouched").unwrap();
        std::fs::write(dir.path().join("precious"), "untouched").unwrap();
        Place { dir }
    }

    fn target(&self) -> std::path::PathBuf {
        self.dir.path().join("copy")
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn copy(&self, fake: &Fake, facts: &SourceFacts, silence: Duration) -> Failure {
        let (tools, target, source) = (tools(), self.target(), fake.source());
        let request = BaseBackupRequest {
            tools: &tools,
            source: &source,
            facts,
            target: &target,
            files: &PlainDir::new(&target),
            silence,
        };
        let failure = take_base_backup(&request, &|_| {}, &|| false).unwrap_err();
        assert!(!failure.message.contains(char::is_control), "{failure}");
        failure
    }

    fn assert_untouched(&self) {
        let precious = std::fs::read_to_string(self.dir.path().join("precious")).unwrap();
        assert_eq!(precious, "untouched");
        let mut names: Vec<_> =
            std::fs::read_dir(self.dir.path()).unwrap().flatten().map(|e| e.file_name()).collect();
        names.sort();
        assert_eq!(names, ["another", "copy", "precious"]);
        assert_eq!(std::fs::read_dir(self.target()).unwrap().count(), 0, "something is left");
        assert!(!Path::new("/offshoot-evil").exists());
    }
}

/// What a source may try, given the place of the copy.
fn tricks(place: &Place) -> Vec<(&'static str, Vec<Entry>)> {
    let outside = place.path("precious");
    let sparse = Entry { size: 1 << 60, ..entry("base/1", b'S', "") };
    let endless = Entry { size: 1 << 60, content: vec![0; 3000], ..entry("base/1", b'0', "") };
    let padded = Entry { size: 1 << 60, ..entry("pax", b'x', "") };
    let long = Entry { size: 1 << 60, ..entry("././@LongLink", b'L', "") };
    vec![
        ("a name that leads up", vec![file("../precious", b"evil")]),
        (
            "a name that leads up from below",
            vec![entry("base", b'5', ""), file("base/../../precious", b"evil")],
        ),
        ("an absolute name", vec![file(outside.clone(), b"evil")]),
        ("an absolute name of the root", vec![file("/offshoot-evil", b"evil")]),
        ("a directory outside", vec![entry("../evil", b'5', "")]),
        (
            "a link to a file outside",
            vec![entry("base", b'2', outside.clone()), file("base", b"evil")],
        ),
        (
            "a link to a directory outside",
            vec![
                entry("base", b'2', place.dir.path().display().to_string()),
                file("base/precious", b"evil"),
            ],
        ),
        (
            "a link in the place of the log",
            vec![entry("pg_wal", b'2', place.dir.path().display().to_string())],
        ),
        (
            "a link in the place of the label",
            vec![entry("pg_wal", b'5', ""), entry("backup_label", b'2', outside.clone())],
        ),
        ("a hard link", vec![entry("base", b'1', outside), file("base", b"evil")]),
        ("a device", vec![entry("null", b'3', ""), file("null", b"evil")]),
        ("a block device", vec![entry("disk", b'4', "")]),
        ("a pipe", vec![entry("pipe", b'6', "")]),
        ("a giant sparse file", vec![entry("base", b'5', ""), sparse]),
        ("a giant file", vec![entry("base", b'5', ""), endless]),
        ("a giant extension", vec![padded]),
        ("a giant name", vec![long]),
        ("a name with commands of a terminal", vec![file("\u{1b}[2J/../x", b"")]),
    ]
}

/// Tries each trick with a copy of these tablespaces.
fn try_all(tablespaces: &[SourceTablespace]) {
    for (what, entries) in tricks(&Place::new()) {
        let place = Place::new();
        // The names depend on the place.
        let entries =
            tricks(&place).into_iter().find(|(name, _)| *name == what).map_or(entries, |(_, e)| e);
        let tablespaces: Arc<[SourceTablespace]> = tablespaces.into();
        let facts = facts(&tablespaces);
        let fake = Fake::start(move |peer| {
            begin(peer, &tablespaces)?;
            for entry in &entries {
                data(peer, &entry.bytes())?;
            }
            finish(peer)
        });
        let began = Instant::now();
        let failure = place.copy(&fake, &facts, SILENCE);
        assert!(began.elapsed() < PATIENCE, "{what}: {:?}", began.elapsed());
        assert_ne!(failure.code, ErrorKind::Internal, "{what}: {failure}");
        println!("{what}: {failure}");
        place.assert_untouched();
    }
    assert_bounded();
}

#[test]
fn an_archive_stays_in_its_directory() {
    try_all(&[]);
}

#[test]
fn an_archive_with_tablespaces_stays_in_its_directory() {
    let location = "/nonexistent/tablespace".to_owned();
    try_all(&[SourceTablespace { oid: 16400, name: "fast".to_owned(), location }]);
}

#[test]
fn a_copy_that_stops_is_given_up() {
    let place = Place::new();
    let fake = Fake::start(|peer| {
        begin(peer, &[])?;
        let big = Entry { size: 1 << 40, ..entry("base/1", b'0', "") };
        data(peer, &entry("base", b'5', "").bytes())?;
        data(peer, &big.bytes())?;
        loop {
            data(peer, b"x")?;
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    let began = Instant::now();
    let failure = place.copy(&fake, &facts(&[]), Duration::from_secs(3));
    assert_eq!(failure.code, ErrorKind::SourceUnreachable, "{failure}");
    assert!(failure.message.contains("no data"), "{failure}");
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    place.assert_untouched();
}

#[test]
fn a_tool_that_is_sent_an_endless_answer_ends() {
    for greeting in [true, false] {
        let place = Place::new();
        let fake = Fake::start(move |peer| {
            if !greeting {
                peer.admit()?;
                peer.query()?;
                peer.columns(1)?;
            } else {
                peer.send(b'R', &[0; 4])?;
            }
            loop {
                match greeting {
                    true => peer.error(b'N', &"\u{1b}[2Jwelcome".repeat(1000), "")?,
                    false => peer.row(&[Some(&[b'x'; 60_000])])?,
                }
            }
        });
        // Such a flood is dropped by the tool: only its time is bounded.
        let failure = place.copy(&fake, &facts(&[]), Duration::from_secs(5));
        println!("{failure}");
        place.assert_untouched();
    }
    assert_bounded();
}

mod needs_postgres_18 {
    use super::*;
    use crate::hostile::fake::PASSWORD;

    /// Older programs do not know `PGREQUIREAUTH`.
    #[test]
    #[ignore = "needs PostgreSQL 18 in OFFSHOOT_TEST_PG_BINS"]
    fn its_programs_tell_no_password_in_the_clear() {
        assert!(tools().installation.major >= 18, "it is the newest");
        for method in [&[0, 0, 0, 3][..], &[0, 0, 0, 5, 1, 2, 3, 4]] {
            let place = Place::new();
            let fake = Fake::start(move |peer| {
                peer.send(b'R', method)?;
                peer.next().map(drop)
            });
            let failure = place.copy(&fake, &facts(&[]), SILENCE);
            assert_eq!(failure.code, ErrorKind::SourceRefused, "{failure}");
            assert!(failure.message.contains("in the clear"), "{failure}");
            assert!(!fake.heard(PASSWORD.as_bytes()) && !fake.heard(b"p\0\0\0"));
            place.assert_untouched();
        }
    }
}
