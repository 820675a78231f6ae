use super::*;
use crate::record::Kind;
use offshoot_connector::PlainDir;
use proptest::prelude::*;

struct Written {
    dir: tempfile::TempDir,
    journal: Journal,
    /// Begin and end of each record.
    records: Vec<(u64, u64)>,
}

fn write(lengths: &[usize]) -> Written {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(Arc::new(PlainDir::new(dir.path())), "");
    let (mut at, mut previous, mut records, mut all) = (BEGIN, 0, Vec::new(), Vec::new());
    for (number, length) in lengths.iter().enumerate() {
        let (number, value) = (number as u64 + 1, "v".repeat(*length));
        let record = Record { number, time_us: 1, kind: Kind::Data, key: "k".to_owned(), value };
        let bytes = record.encode(at, previous).unwrap();
        all.extend_from_slice(&bytes);
        records.push((at, at + bytes.len() as u64));
        (previous, at) = (at, at + bytes.len() as u64);
    }
    journal.write_at(BEGIN, &all).unwrap();
    Written { dir, journal, records }
}

fn read(journal: &Journal, from: u64) -> (Vec<u64>, Step) {
    let (mut reader, mut at, mut found) = (Reader::new(journal.clone()), from, Vec::new());
    loop {
        match reader.next(at).unwrap() {
            Step::Record(record, end) => {
                found.push(record.number);
                at = end;
            }
            other => return (found, other),
        }
    }
}

#[test]
fn a_hole_between_files_is_damage_and_the_end_is_not() {
    let written = write(&[30_000; 8]);
    assert_eq!(read(&written.journal, BEGIN), ((1..=8).collect(), Step::End));
    std::fs::remove_file(written.dir.path().join(segment_name(2))).unwrap();
    assert_eq!(read(&written.journal, BEGIN), (vec![1, 2], Step::Damaged));
}

#[test]
fn the_first_record_of_a_later_file_is_found() {
    let written = write(&[30_000; 8]);
    for start in [BEGIN, BEGIN + SEGMENT_BYTES, BEGIN + 2 * SEGMENT_BYTES] {
        let first = Reader::new(written.journal.clone()).first(start).unwrap().unwrap();
        let wanted = written.records.iter().map(|record| record.0).find(|begin| *begin >= start);
        assert_eq!(first, wanted);
    }
}

#[test]
fn a_damaged_first_record_is_not_skipped() {
    let written = write(&[1000; 100]);
    let path = written.dir.path().join(segment_name(1));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[3] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(Reader::new(written.journal.clone()).first(BEGIN).unwrap(), Err(Damaged));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_cut_leaves_exactly_the_records_before_it(
        lengths in prop::collection::vec(0_usize..30_000, 1..12),
        share in 0.0..1.0_f64,
    ) {
        let written = write(&lengths);
        let end = written.records.last().unwrap().1;
        let cut = BEGIN + ((end - BEGIN) as f64 * share) as u64;
        written.journal.cut(cut).unwrap();
        let kept = written.records.iter().filter(|record| record.1 <= cut).count() as u64;
        prop_assert_eq!(read(&written.journal, BEGIN), ((1..=kept).collect(), Step::End));
        prop_assert!(written.journal.range().unwrap().is_none_or(|range| range.1 <= cut));
    }
}
