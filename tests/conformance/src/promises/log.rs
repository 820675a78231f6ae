//! What received log promises.

use crate::files::copy_tree;
use crate::{Harness, Linked, Random};
use jiff::{SignedDuration, Timestamp};
use offshoot_connector::{Commit, ReceivedLog};
use offshoot_types::{ErrorKind, LogPosition};

/// Consecutive commits end at ascending positions, at times that do not go back.
pub fn positions_order_as_commits(harness: &dyn Harness) {
    let mut linked = Linked::new(harness);
    linked.write(60, 4000, &mut Random::fresh());
    let end = linked.receive();
    let commits = linked.commits();
    for pair in commits.windows(2) {
        assert!(pair[0].end < pair[1].end, "{pair:?}");
        assert!(pair[0].time <= pair[1].time, "{pair:?}");
    }
    assert!(linked.copied.start <= commits[0].end && commits[59].end <= end);
    assert!(linked.log.begin().unwrap().is_some_and(|begin| begin <= linked.copied.start));
    assert_eq!(linked.log.end(), end);
}

/// Times and positions at random, before, at and after each commit; the same after the index was opened again.
pub fn questions_agree_with_the_list_of_commits(harness: &dyn Harness) {
    let mut linked = Linked::new(harness);
    let random = &mut Random::fresh();
    linked.write(40, 4000, random);
    linked.receive();
    let all = linked.commits();
    let again = linked.reopen(&linked.log_dir(), &linked.directory("index2")).unwrap();
    again.update_until(LogPosition::END).unwrap();
    for log in [&linked.log, &again] {
        assert_eq!(log.last().unwrap().as_ref(), all.last());
        for at in 0..all.len() {
            let Commit { end, time } = all[at].clone();
            for offset in [-1, 0, 1, random.below(1000) as i64] {
                let time = time + SignedDuration::from_micros(offset);
                check_time(&all, time, log.last_not_after(time).unwrap());
            }
            // The next record begins at the end of one, or after it.
            assert_eq!(log.next_after(end).unwrap().as_ref(), all.get(at + 1));
            let before = LogPosition(end.0 - 1);
            assert_eq!(log.last_at(before).unwrap(), Some(all[at].clone()));
            let label = &linked.written[at].label;
            assert_eq!(log.by_transaction(label).unwrap(), Some(all[at].clone()));
        }
        check_counts(&all, log.as_ref());
        let early = Timestamp::UNIX_EPOCH;
        assert_eq!(log.last_not_after(early).unwrap(), None);
        assert_eq!(log.next_after(LogPosition::END).unwrap(), None);
        assert_eq!(log.last_at(LogPosition::START).unwrap(), None);
        let failure = log.by_transaction("no label at all").unwrap_err();
        assert_eq!(failure.code, ErrorKind::InvalidInput);
    }
}

/// Each commit is counted in the part of the time that it lies in.
fn check_counts(all: &[Commit], log: &dyn ReceivedLog) {
    let times = || all.iter().map(|commit| commit.time);
    let (from, end) = (times().min().unwrap(), times().max().unwrap());
    let to = end + SignedDuration::from_micros(1);
    let whole = log.count_by_time(from, to, 1).unwrap()[0];
    // Commits before the list, the source's own, may lie in the same time.
    assert!(whole >= all.len() as u64, "{whole}");
    for parts in [2, 7, 1000] {
        let counts = log.count_by_time(from, to, parts).unwrap();
        assert_eq!((counts.len(), counts.iter().sum::<u64>()), (parts, whole));
        assert!(counts[0] > 0 && counts[parts - 1] > 0, "{counts:?}");
    }
    let later = to + SignedDuration::from_secs(3600);
    assert_eq!(log.count_by_time(to, later, 3).unwrap(), [0, 0, 0]);
}

/// Commits before the list are the source's own.
fn check_time(all: &[Commit], time: Timestamp, found: Option<Commit>) {
    match all.iter().rfind(|commit| commit.time <= time) {
        Some(wanted) => assert_eq!(found.as_ref(), Some(wanted), "not after {time}"),
        None => assert!(found.is_none_or(|found| found.end < all[0].end), "not after {time}"),
    }
}

/// Exactly what was announced is forgotten, and nothing that is kept is lost.
pub fn log_is_forgotten_in_whole_files(harness: &dyn Harness) {
    let mut linked = Linked::new(harness);
    let random = &mut Random::fresh();
    // More than a file of any kind's log.
    for _ in 0..12 {
        linked.write(10, 12_000, random);
        linked.production.drop_log();
    }
    linked.receive();
    let all = linked.commits();
    let log = &linked.log;
    assert_eq!(log.forget_before(LogPosition::START).unwrap(), 0);
    let mut files = std::fs::read_dir(linked.log_dir()).unwrap().count();
    for share in [1, 2, 3] {
        let position = all[all.len() - all.len() / (share + 1) - 1].end;
        let kept_from = log.kept_from(position);
        assert!(kept_from <= position);
        let (begin, holds) = (log.begin().unwrap().unwrap(), log.holds_before(position).unwrap());
        let gone = log.forget_before(position).unwrap();
        assert_eq!(gone > 0, holds, "{gone} files were forgotten");
        assert!(!log.holds_before(position).unwrap());
        let now = log.begin().unwrap().unwrap();
        assert!(now >= begin && now <= kept_from, "{begin:?} {now:?} {kept_from:?}");
        let left = std::fs::read_dir(linked.log_dir()).unwrap().count();
        assert_eq!(left, files - gone);
        files = left;
        let again = linked.reopen(&linked.log_dir(), &linked.directory(&format!("i{share}")));
        let again = again.unwrap();
        again.update_until(LogPosition::END).unwrap();
        for (commit, one) in all.iter().zip(&linked.written).filter(|(c, _)| c.end > position) {
            for log in [log, &again] {
                assert_eq!(log.by_transaction(&one.label).unwrap().as_ref(), Some(commit));
            }
        }
    }
    assert!(
        all.len() > 3 && log.begin().unwrap() > Some(linked.copied.start),
        "nothing was forgotten"
    );
}

/// A flipped bit in a commit's record: damage is reported, or the log ends there; what is found is
/// right.
pub fn damaged_log_is_named_and_never_misread(harness: &dyn Harness) {
    let mut linked = Linked::new(harness);
    let random = &mut Random::fresh();
    linked.write(30, 12_000, random);
    linked.production.drop_log();
    linked.write(30, 12_000, random);
    linked.receive();
    linked.stream.take().unwrap().stop();
    let all = linked.commits();
    let mut named = 0;
    for round in 0..24 {
        let hit = random.below(all.len() as u64) as usize;
        let at = LogPosition(all[hit].end.0 - 9 - random.below(8));
        let log = linked.path(&format!("flipped{round}"));
        copy_tree(&linked.log_dir(), &log);
        let (file, offset) = harness.log_byte(&linked.checked.state, &log, at);
        let mut bytes = std::fs::read(log.join(&file)).unwrap();
        bytes[offset as usize] ^= 1 << random.below(8);
        std::fs::write(log.join(&file), bytes).unwrap();
        let index = linked.directory(&format!("flipped-index{round}"));
        let log = linked.reopen(&log, &index).unwrap();
        match log.update_until(LogPosition::END) {
            Err(failure) => {
                assert_eq!(failure.code, ErrorKind::DataDamaged, "{failure}");
                assert!(!failure.hint.is_empty());
                named += 1;
            }
            Ok(end) => assert!(end < all[hit].end, "the damage at {at:?} was not noticed"),
        }
        for (commit, one) in all.iter().zip(&linked.written) {
            let found = log.by_transaction(&one.label).unwrap();
            assert!(found.is_none() || found.as_ref() == Some(commit), "{found:?} for {commit:?}");
        }
    }
    assert!(named > 0, "no damage was named");
}

/// Users read and write positions; nonsense is refused.
pub fn positions_are_read_as_they_are_written(harness: &dyn Harness) {
    let linked = Linked::new(harness);
    let (connector, state) = (&linked.connector, &linked.checked.state);
    let random = &mut Random::fresh();
    for _ in 0..100 {
        let position = LogPosition(random.below(1 << 48));
        let text = connector.write_position(state, position);
        assert_eq!(connector.read_position(state, &text).unwrap(), position);
    }
    for text in ["", "-1", "nonsense", "j", "/", "0/", "99999999999999999999999999"] {
        let failure = connector.read_position(state, text).unwrap_err();
        assert_eq!(failure.code, ErrorKind::InvalidInput, "{text}");
        assert!(!failure.hint.is_empty());
    }
}
