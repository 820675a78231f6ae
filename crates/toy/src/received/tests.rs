use super::*;
use crate::journal::BEGIN;
use crate::record::{Kind, Record};
use offshoot_connector::PlainDir;
use proptest::prelude::*;

/// A log of commits with such lengths and times, and where each begins and ends.
fn log(commits: &[(usize, i64)]) -> (tempfile::TempDir, Received, Vec<Entry>) {
    let dir = tempfile::tempdir().unwrap();
    let files: Arc<dyn DataDir> = Arc::new(PlainDir::new(dir.path()));
    let journal = Journal::new(files.clone(), "");
    let (mut at, mut previous, mut entries, mut all) = (BEGIN, 0, Vec::new(), Vec::new());
    for (number, (length, time_us)) in commits.iter().enumerate() {
        let number = number as u64 + 1;
        let (key, value) = ("k".to_owned(), "v".repeat(*length));
        let record = Record { number, time_us: *time_us, kind: Kind::Data, key, value };
        let bytes = record.encode(at, previous).unwrap();
        all.extend_from_slice(&bytes);
        entries.push(Entry { begin: at, end: at + bytes.len() as u64, time_us: *time_us, number });
        (previous, at) = (at, at + bytes.len() as u64);
    }
    journal.write_at(BEGIN, &all).unwrap();
    (dir, Received::new(files), entries)
}

fn found(commit: Option<Commit>) -> Option<u64> {
    commit.map(|commit| commit.end.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Clocks go back: the last commit in the order of the log counts.
    #[test]
    fn questions_are_answered_as_by_a_plain_list(
        commits in prop::collection::vec((0_usize..9000, 0_i64..40), 1..40),
        times in prop::collection::vec(-2_i64..42, 10),
        shares in prop::collection::vec(0.0..1.1_f64, 10),
        keep in 0.0..1.1_f64,
    ) {
        let (_dir, log, mut all) = log(&commits);
        let end = all.last().unwrap().end;
        let at = |share: f64| BEGIN + ((end - BEGIN) as f64 * share) as u64;
        prop_assert_eq!(log.update_until(LogPosition::END).unwrap(), LogPosition(end));
        log.forget_before(LogPosition(at(keep))).unwrap();
        let begin = log.begin().unwrap().unwrap().0;
        all.retain(|one| one.begin >= begin);
        for time_us in times {
            let wanted = all.iter().rfind(|one| one.time_us <= time_us).map(|one| one.end);
            let time = Timestamp::from_microsecond(time_us).unwrap();
            prop_assert_eq!(found(log.last_not_after(time).unwrap()), wanted);
        }
        for position in shares.into_iter().map(at) {
            let last = all.iter().rfind(|one| one.begin <= position).map(|one| one.end);
            let next = all.iter().find(|one| one.begin >= position).map(|one| one.end);
            prop_assert_eq!(found(log.last_at(LogPosition(position)).unwrap()), last);
            prop_assert_eq!(found(log.next_after(LogPosition(position)).unwrap()), next);
        }
        for number in 1..=commits.len() as u64 {
            let wanted = all.iter().find(|one| one.number == number).map(|one| one.end);
            prop_assert_eq!(found(log.by_transaction(&number.to_string()).unwrap()), wanted);
        }
    }
}

/// An index that is still behind goes on at what is kept.
#[test]
fn log_is_given_up_that_was_not_read_yet() {
    let (_dir, log, all) = log(&[(9000, 1); 40]);
    let end = all.last().unwrap().end;
    log.update_until(LogPosition(BEGIN + 1)).unwrap();
    assert!(log.forget_before(LogPosition(BEGIN + 3 * SEGMENT_BYTES)).unwrap() > 0);
    assert_eq!(log.update_until(LogPosition::END).unwrap(), LogPosition(end));
    let begin = log.begin().unwrap().unwrap();
    let first = all.iter().find(|one| one.begin >= begin.0).map(|one| one.end);
    assert_eq!(found(log.next_after(LogPosition(0)).unwrap()), first);
}
