use super::segment::{HEADER_BYTES, read_entries, read_summary, write};
use super::*;
use offshoot_connector::PlainDir;

const NAME: &str = "one.commits";

fn entries() -> Vec<Entry> {
    (0..10_u32)
        .map(|at| Entry {
            lsn: 1000 + u64::from(at) * 100,
            time_us: 5_000_000 - i64::from(at),
            xid: 700 + at,
            length: 48,
        })
        .collect()
}

#[test]
fn a_file_gives_back_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let files = PlainDir::new(dir.path());
    for entries in [entries(), Vec::new()] {
        let summary = Summary::of(&entries, Lsn(77));
        write(&files, NAME, &entries, &summary).unwrap();
        assert_eq!(read_summary(&files, NAME).unwrap(), Some(summary));
        assert_eq!(read_entries(&files, NAME).unwrap(), Some(entries));
    }
}

#[test]
fn every_damaged_byte_and_every_torn_tail_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let files = PlainDir::new(dir.path());
    let entries = entries();
    write(&files, NAME, &entries, &Summary::of(&entries, Lsn(77))).unwrap();
    let good = std::fs::read(&path).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        std::fs::write(&path, &bad).unwrap();
        assert_eq!(read_entries(&files, NAME).unwrap(), None, "byte {at}");
        assert!(at >= HEADER_BYTES || read_summary(&files, NAME).unwrap().is_none(), "byte {at}");
        std::fs::write(&path, &good[..at]).unwrap();
        assert_eq!(read_summary(&files, NAME).unwrap(), None, "cut at {at}");
        assert_eq!(read_entries(&files, NAME).unwrap(), None, "cut at {at}");
    }
}

#[test]
fn an_empty_archive_has_no_commits() {
    let dir = tempfile::tempdir().unwrap();
    let make = |name| {
        std::fs::create_dir(dir.path().join(name)).unwrap();
        Arc::new(PlainDir::new(dir.path().join(name)))
    };
    let archive = Archive::new(make("log"), 16 << 20).unwrap();
    let index = CommitIndex::open(archive, make("index")).unwrap();
    assert_eq!(index.update().unwrap(), Lsn(0));
    assert_eq!(index.last().unwrap(), None);
    assert_eq!(index.first_from(Lsn(0)).unwrap(), None);
    assert_eq!(index.count(), 0);
}
