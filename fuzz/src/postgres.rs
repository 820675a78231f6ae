//! What comes from a source: log, index of commits, histories, configuration, backups.

use crate::directory::MemoryDir;
use crate::target::{Target, sealed};
use offshoot_connector::DataDir;
use offshoot_postgres::Lsn;
use offshoot_postgres::archive::{Archive, TimelineHistory};
use offshoot_postgres::commit_index::CommitIndex;
use offshoot_postgres::rounds::{self, End, Point};
use offshoot_postgres::source::Source;
use offshoot_postgres::{base_backup, config, control};
use sha2::{Digest, Sha256};
use std::sync::Arc;

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "wal", run: wal, seeds: wal_seeds },
    Target { name: "commit-index", run: commit_index, seeds: commit_index_seeds },
    Target { name: "history", run: history, seeds: history_seeds },
    Target { name: "pg-controldata", run: controldata, seeds: controldata_seeds },
    Target { name: "round", run: round, seeds: round_seeds },
    Target { name: "backup", run: backup, seeds: backup_seeds },
    Target { name: "backup-archive", run: backup_archive, seeds: backup_archive_seeds },
    Target { name: "configuration", run: configuration, seeds: configuration_seeds },
    Target { name: "source-uri", run: source_uri, seeds: source_uri_seeds },
];

const SEGMENT: u64 = 1 << 20;
const PAGE: usize = 8192;
const FIRST: &str = "000000010000000000000001";

fn index(log: &Arc<MemoryDir>, dir: &Arc<MemoryDir>) -> Option<CommitIndex> {
    let archive = Archive::new(log.clone(), SEGMENT).expect("a size that there is");
    CommitIndex::open(archive, dir.clone()).ok()
}

/// Asks everything; the order of commits is that of the log.
fn ask(index: &CommitIndex) {
    let _ = index.update();
    let count = index.count();
    let last = index.last();
    if let Ok(Some(last)) = last {
        assert!(count > 0, "a commit that is not counted");
        let _ = index.last_not_after(last.time);
        let _ = index.by_xid(last.xid);
        if let Ok(Some(found)) = index.last_at_lsn(last.lsn) {
            assert!(found.lsn <= last.lsn);
        }
        if let Ok(Some(found)) = index.first_from(last.lsn) {
            assert!(found.lsn >= last.lsn);
        }
    }
    let _ = index.first_from(Lsn(0));
    let _ = index.remove_before(Lsn(2 * SEGMENT));
}

/// The first byte: whether the file is whole, and whether addresses and checksums are put right.
/// The rest: the beginning of the log's first file.
fn wal(bytes: &[u8]) {
    let Some((flags, bytes)) = bytes.split_first() else { return };
    let (whole, right) = (flags & 1 != 0, flags & 2 != 0);
    let mut file = if right { valid_pages(bytes) } else { bytes.to_vec() };
    let name = if whole { FIRST.to_owned() } else { format!("{FIRST}.partial") };
    file.resize(if whole { SEGMENT as usize } else { file.len().next_multiple_of(PAGE) }, 0);
    let log = MemoryDir::with(&[(&name, &file)]);
    let archive = Archive::new(log.clone(), SEGMENT).expect("a size that there is");
    let _ = archive.valid_end(Lsn(SEGMENT));
    let limit = Lsn(SEGMENT + bytes.len() as u64);
    if let Ok(Some(end)) = End::before(&archive, Lsn(SEGMENT), limit) {
        assert!(end.position() <= limit && end.replay_from() < end.position());
    }
    let dir = MemoryDir::with(&[]);
    for _ in 0..2 {
        if let Some(index) = index(&log, &dir) {
            ask(&index);
        }
    }
}

/// Pages with the header and the checksums of a log that begins at [`SEGMENT`].
fn valid_pages(bytes: &[u8]) -> Vec<u8> {
    let page = |(number, page): (usize, &[u8])| {
        let mut page = page.to_vec();
        page.resize(PAGE, 0);
        page[1] = 0xD1;
        let address = SEGMENT + (number * PAGE) as u64;
        page[8..16].copy_from_slice(&address.to_le_bytes());
        let word = |page: &[u8], at: usize| {
            page.get(at..at + 4).and_then(|word| Some(u32::from_le_bytes(word.try_into().ok()?)))
        };
        let (continues, long) = (page[2] & 1 != 0, page[2] & 2 != 0);
        let rest = if continues { word(&page, 16).unwrap_or(0) as usize } else { 0 };
        let mut at = (if long { 40 } else { 24 } + rest).next_multiple_of(8);
        while let Some(len) = word(&page, at).map(|len| len as usize) {
            let Some(record) = page.get_mut(at..at + len).filter(|record| record.len() >= 24)
            else {
                break;
            };
            let (head, body) = record.split_at(24);
            let checksum = crc32c::crc32c_append(crc32c::crc32c(body), &head[..20]);
            record[20..24].copy_from_slice(&checksum.to_le_bytes());
            at = (at + len).next_multiple_of(8);
        }
        page
    };
    bytes.chunks(PAGE).enumerate().flat_map(page).collect()
}

/// A record: length, transaction, previous, info, resource manager, padding, checksum, data.
fn record(info: u8, manager: u8, data: &[u8]) -> Vec<u8> {
    let mut record = ((24 + data.len()) as u32).to_le_bytes().to_vec();
    record.extend_from_slice(&700u32.to_le_bytes());
    record.extend_from_slice(&[0; 8]);
    record.extend_from_slice(&[info, manager, 0, 0, 0, 0, 0, 0]);
    record.extend_from_slice(data);
    record.resize(record.len().next_multiple_of(8), 0);
    record
}

fn wal_seeds() -> Vec<Vec<u8>> {
    let time = 800_000_000_000_000_u64.to_le_bytes();
    let commit = [&[255, 8][..], &time].concat();
    let prepared = [&time[..], &16u32.to_le_bytes(), &701u32.to_le_bytes()].concat();
    let prepared = [&[255, prepared.len() as u8][..], &prepared].concat();
    let mut page = vec![0x16, 0xD1, 2, 0, 1, 0, 0, 0];
    page.resize(40, 0);
    page.extend(record(0x00, 1, &commit));
    page.extend(record(0x30 | 0x80, 1, &prepared));
    page.extend(record(0x10, 10, &[255, 4, 1, 2, 3, 4]));
    let switch = [page.clone(), record(0x40, 0, &[])].concat();
    vec![[&[2][..], &page].concat(), [&[3][..], &switch].concat()]
}

/// The input is a file of the index; checksums are put right.
fn commit_index(bytes: &[u8]) {
    for bytes in [bytes.to_vec(), sealed(&sealed(bytes, 72..bytes.len().max(72), 64), 0..68, 68)] {
        let name = format!("{FIRST}.commits");
        let dir = MemoryDir::with(&[(&name, &bytes)]);
        for files in [&[][..], &[("000000010000000000000002.partial", &[0; PAGE][..])]] {
            if let Some(index) = index(&MemoryDir::with(files), &dir) {
                ask(&index);
            }
        }
    }
}

fn commit_index_seeds() -> Vec<Vec<u8>> {
    let number = |number: u64| number.to_le_bytes();
    let times = [number(1_600_000_000_000_000), number(1_600_000_000_000_001)];
    let entry = |lsn: u64, time: [u8; 8], xid: u32| {
        [&number(lsn)[..], &time, &xid.to_le_bytes(), &48u32.to_le_bytes()].concat()
    };
    let header = [number(2 * SEGMENT), number(2), number(SEGMENT + 40), number(SEGMENT + 88)];
    let header = [&b"OFFCMT01"[..], &header.concat(), &times.concat()].concat();
    let xids = [700u32.to_le_bytes(), 701u32.to_le_bytes(), [0; 4], [0; 4]].concat();
    let entries = [entry(SEGMENT + 40, times[0], 700), entry(SEGMENT + 88, times[1], 701)];
    vec![[header, xids, entries.concat()].concat()]
}

fn history(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(history) = TimelineHistory::parse(4, &text) {
        assert_eq!(history.at(Lsn(u64::MAX)).id, 4);
        assert!(history.timelines().all(|one| history.find(one.id) == Some(one)));
    }
    let name = "000000040000000000000001.partial";
    let log = MemoryDir::with(&[("00000004.history", bytes), (name, &[0; PAGE])]);
    if let Some(index) = index(&log, &MemoryDir::with(&[])) {
        ask(&index);
    }
}

fn history_seeds() -> Vec<Vec<u8>> {
    vec![b"1\t0/3000000\tno recovery target specified\n\n# x\n3\t1/5000000\tbefore\n".to_vec()]
}

fn controldata(bytes: &[u8]) {
    let _ = control::parse(&String::from_utf8_lossy(bytes));
}

fn controldata_seeds() -> Vec<Vec<u8>> {
    let text = "\
Database system identifier:           7300000000000000001
Database cluster state:               in archive recovery
Latest checkpoint location:           0/2000060
Latest checkpoint's REDO location:    0/2000028
Latest checkpoint's TimeLineID:       3
Minimum recovery ending location:     1/2000100
End-of-backup record required:        yes
max_connections setting:              100
max_worker_processes setting:         8
max_wal_senders setting:              10
max_prepared_xacts setting:           5
max_locks_per_xact setting:           64
Blocks per segment of large relation:  131072
Bytes per WAL segment:                16777216
Data page checksum version:           1
";
    vec![text.as_bytes().to_vec()]
}

/// The input is a control file, whose checksum is put right, then a line that says of which round the copy is, then the
/// beginning of the log's first file.
fn round(bytes: &[u8]) {
    let (control, rest) = bytes.split_at(bytes.len().min(CONTROL_BYTES));
    let mut control = control.to_vec();
    control.resize(8192, 0);
    let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let (mark, log) = rest.split_at(length);
    let mut log = log.get(1..).unwrap_or_default().to_vec();
    log.resize(log.len().next_multiple_of(PAGE), 0);
    for control in [control.clone(), sealed(&control, 0..288, 288), sealed(&control, 0..292, 292)] {
        let log_file = format!("pg_wal/{FIRST}");
        let files =
            [("global/pg_control", &control[..]), ("offshoot.round", mark), (&log_file, &log)];
        let files = MemoryDir::with(&files);
        let Ok(Some(point)) = Point::read(&*files, SEGMENT) else { continue };
        if rounds::resume(&*files, SEGMENT, &point).is_ok() {
            let begins = Point::read(&*files, SEGMENT).ok().flatten();
            assert_eq!(begins.as_ref(), Some(&point), "it says where it went on");
        }
    }
}

/// What a control file uses of its 8 KiB.
const CONTROL_BYTES: usize = 300;

fn round_seeds() -> Vec<Vec<u8>> {
    let control = |format: u32| {
        let mut control = vec![0; CONTROL_BYTES];
        let mut put =
            |at: usize, value: &[u8]| control[at..at + value.len()].copy_from_slice(value);
        put(0, &7u64.to_le_bytes());
        put(8, &format.to_le_bytes());
        put(16, &[1]);
        put(32, &(SEGMENT + 500).to_le_bytes());
        put(228, &(SEGMENT as u32).to_le_bytes());
        control
    };
    let mark = format!(
        "{{\"version\":1,\"system_identifier\":7,\"end\":{{\"last\":\"{}\",\"length\":30,\"checksum\":9,\
         \"position\":\"{}\",\"timeline\":1}},\"stopped_at\":\"{}\"}}\n",
        Lsn(SEGMENT + 160),
        Lsn(SEGMENT + 192),
        Lsn(SEGMENT + 500)
    );
    let mut page = vec![0x16, 0xD1, 2, 0, 1, 0, 0, 0];
    page.resize(160, 0);
    page.extend(30u32.to_le_bytes());
    page.extend([0; 16]);
    page.extend(9u32.to_le_bytes());
    [1300, 1800].map(|format| [&control(format)[..], mark.as_bytes(), &page].concat()).to_vec()
}

/// The input is a label up to the first `{`, then a manifest, whose own checksum is put right.
fn backup(bytes: &[u8]) {
    let begin = bytes.iter().position(|byte| *byte == b'{').unwrap_or(bytes.len());
    let (label, manifest) = bytes.split_at(begin);
    for manifest in [manifest.to_vec(), manifest_put_right(manifest)] {
        let files = MemoryDir::with(&[("backup_label", label), ("backup_manifest", &manifest)]);
        let received = [("PG_VERSION".to_owned(), (3, 7))].into();
        let _ = base_backup::log_needed(&*files, Some(&received));
    }
}

fn manifest_put_right(manifest: &[u8]) -> Vec<u8> {
    const OWN_SUM: &[u8] = b"\"Manifest-Checksum\": \"";
    let mut manifest = manifest.to_vec();
    let Some(at) = manifest.windows(OWN_SUM.len()).rposition(|window| window == OWN_SUM) else {
        return manifest;
    };
    let sum: String =
        Sha256::digest(&manifest[..at]).iter().map(|byte| format!("{byte:02x}")).collect();
    if let Some(place) = manifest.get_mut(at + OWN_SUM.len()..).and_then(|rest| rest.get_mut(..64))
    {
        place.copy_from_slice(sum.as_bytes());
    }
    manifest
}

fn backup_seeds() -> Vec<Vec<u8>> {
    let label =
        "START WAL LOCATION: 0/2000028 (file 000000010000000000000002)\nSTART TIMELINE: 1\n";
    let manifest = "{ \"PostgreSQL-Backup-Manifest-Version\": 1,\n\"Files\": [\n{ \"Path\": \"PG_VERSION\", \
                    \"Size\": 3, \"Last-Modified\": \"2026-11-21 12:00:00 GMT\", \"Checksum-Algorithm\": \
                    \"CRC32C\", \"Checksum\": \"07000000\" }\n],\n\"WAL-Ranges\": [\n{ \"Timeline\": 1, \
                    \"Start-LSN\": \"0/2000028\", \"End-LSN\": \"0/2000100\" }\n],\n\
                    \"Manifest-Checksum\": \"";
    vec![[label, manifest, &"0".repeat(64), "\"}\n"].concat().into_bytes()]
}

/// The input is an archive; the checksums of its headers are put right.
fn backup_archive(bytes: &[u8]) {
    let mut archive = bytes.to_vec();
    let mut at = 0;
    while let Some(header) = archive.get_mut(at..at + 512) {
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let size = std::str::from_utf8(&header[124..135]).ok();
        let size = size.and_then(|text| usize::from_str_radix(text, 8).ok()).unwrap_or(0);
        at = at.saturating_add(512).saturating_add(size.next_multiple_of(512));
    }
    for archive in [bytes, &archive] {
        let files = MemoryDir::with(&[]);
        if let Ok(received) = base_backup::unpack(archive, &*files) {
            let made = files.list("").expect("it can be listed");
            assert!(made.iter().all(|name| !name.contains("..") || received.contains_key(name)));
            let _ = base_backup::log_needed(&*files, Some(&received));
        }
    }
}

fn backup_archive_seeds() -> Vec<Vec<u8>> {
    let entry = |name: &[u8], kind: u8, content: &[u8]| {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name);
        header[100..108].copy_from_slice(b"0000600\0");
        header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        header[156] = kind;
        header[257..265].copy_from_slice(b"ustar\x0000");
        let mut entry = [&header[..], content].concat();
        entry.resize(entry.len().next_multiple_of(512), 0);
        entry
    };
    let files = [entry(b"base", b'5', b""), entry(b"base/1", b'0', b"some"), vec![0; 1024]];
    vec![files.concat(), entry(b"pg_tblspc/1", b'2', b"")]
}

/// The input is `postgresql.conf`, a file that it may include, and our own.
fn configuration(bytes: &[u8]) {
    let dir = MemoryDir::with(&[
        ("postgresql.conf", bytes),
        ("conf.d/a.conf", bytes),
        ("offshoot.inherited.conf", bytes),
    ]);
    let _ = config::source_settings(&*dir);
    let text = String::from_utf8_lossy(&controldata_seeds()[0]).into_owned();
    let control = control::parse(&text).expect("a valid text");
    let _ = config::write_vdb(&*dir, &control, &config::VdbOptions::default());
    let _ = config::write_private(&*dir, &control);
}

fn configuration_seeds() -> Vec<Vec<u8>> {
    let text = "# a comment\nwork_mem = 4MB # another\nSearch_Path 'a, ''b'' \\n'\n\
                include_dir 'conf.d'\ninclude_if_exists = 'conf.d/a.conf'\nmax_connections=100\n";
    vec![text.as_bytes().to_vec(), b"include 'postgresql.conf'\n".to_vec()]
}

fn source_uri(bytes: &[u8]) {
    let _ = Source::parse(&String::from_utf8_lossy(bytes), None);
}

fn source_uri_seeds() -> Vec<Vec<u8>> {
    [
        "postgresql://user:p%40ss@host.example:5433/db?sslmode=require",
        "postgres://u@[::1]:5432/",
        "postgresql:///d?host=/var/run&port=5432&user=u",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}
