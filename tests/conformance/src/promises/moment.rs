//! What a replay promises: any moment, exactly.

use crate::linked::stop_at_once;
use crate::{Harness, Linked, PATIENCE, Random, until};
use offshoot_connector::{Grant, Role, StopMode, VdbOptions};
use offshoot_domain::Secret;
use offshoot_os::process::Signal;
use offshoot_types::{ErrorKind, LogPosition};

/// A linked source with commits that were received.
fn written(harness: &dyn Harness, commits: usize) -> (Linked<'_>, Random) {
    let mut linked = Linked::new(harness);
    let mut random = Random::fresh();
    linked.write(commits, 5000, &mut random);
    linked.receive();
    (linked, random)
}

/// The end of any commit opens the state then: that one and those before, none after.
pub fn any_moment_shows_exactly_its_commits(harness: &dyn Harness) {
    let (linked, mut random) = written(harness, 60);
    let commits = linked.commits();
    let mut chosen: Vec<usize> = (0..4).map(|_| random.below(60) as usize).collect();
    chosen.extend([0, 59]);
    for at in chosen {
        let found = linked.content_at(commits[at].end);
        assert_eq!(found, linked.content_after(at + 1), "after {at} at {:?}", commits[at]);
    }
}

/// A position inside a record, or where no commit ends: everything that ends at or before it, and no
/// more.
pub fn a_moment_between_commits_shows_those_before(harness: &dyn Harness) {
    let (linked, mut random) = written(harness, 30);
    let commits = linked.commits();
    for _ in 0..3 {
        let at = 1 + random.below(28) as usize;
        let before = LogPosition(commits[at].end.0 - 1);
        assert_eq!(linked.content_at(before), linked.content_after(at), "before {at}");
        let bytes = commits[at + 1].end.0 - commits[at].end.0;
        let behind = LogPosition(commits[at].end.0 + random.below(bytes));
        assert_eq!(linked.content_at(behind), linked.content_after(at + 1), "behind {at}");
    }
}

/// The same request has the same answer, even if more log has arrived since.
pub fn a_moment_opens_the_same_each_time(harness: &dyn Harness) {
    let (mut linked, mut random) = written(harness, 20);
    let commit = linked.commits()[random.below(20) as usize].clone();
    let open = |linked: &Linked<'_>| {
        let clone = linked.clone_of(&linked.copy);
        let replayed = linked.replay(&clone, commit.end).unwrap();
        let content = linked.content(&clone);
        stop_at_once(&*replayed.server);
        (replayed.end, content)
    };
    let first = open(&linked);
    linked.write(20, 5000, &mut random);
    linked.receive();
    assert_eq!(open(&linked), first);
}

/// After the end of the log, or before its kept start; then nothing runs.
pub fn a_moment_that_is_not_kept_is_unavailable(harness: &dyn Harness) {
    let (linked, _) = written(harness, 5);
    let far = LogPosition(linked.log.end().0 + (64 << 20));
    let clone = linked.clone_of(&linked.copy);
    let failure = linked.replay(&clone, far).err().expect("the log ends before");
    assert_eq!(failure.code, ErrorKind::MomentUnavailable, "{failure}");
    assert!(!failure.hint.is_empty());
    assert!(linked.connector.adopt(linked.spec(&clone)).unwrap().is_none());
    for name in std::fs::read_dir(linked.log_dir()).unwrap() {
        std::fs::remove_file(name.unwrap().path()).unwrap();
    }
    let clone = linked.clone_of(&linked.copy);
    let failure = linked.replay(&clone, linked.copied.end).err().expect("the log is gone");
    assert_eq!(failure.code, ErrorKind::MomentUnavailable, "{failure}");
}

/// A server that accepted its own writes can no longer follow its source.
pub fn a_clone_that_was_opened_is_refused(harness: &dyn Harness) {
    let (linked, _) = written(harness, 10);
    let commits = linked.commits();
    let clone = linked.clone_of(&linked.copy);
    let server = linked.replay(&clone, commits[4].end).unwrap().server;
    assert!(server.stop(StopMode::Fast, PATIENCE).unwrap());
    let failure = linked.replay(&clone, commits[9].end).err().expect("it was opened before");
    assert_eq!(failure.code, ErrorKind::WrongState, "{failure}");
    assert!(!failure.hint.is_empty(), "{failure}");
    assert!(linked.connector.adopt(linked.spec(&clone)).unwrap().is_none());
}

/// Killed at any time: a new clone opens the moment.
pub fn a_killed_replay_is_repeated_on_a_new_clone(harness: &dyn Harness) {
    let (linked, _) = written(harness, 60);
    let commits = linked.commits();
    let (to, wanted) = (commits[55].end, linked.content_after(56));
    for pause_ms in [0, 4, 15, 40] {
        let clone = linked.clone_of(&linked.copy);
        let spec = linked.spec(&clone);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                until("a server runs", || {
                    linked.connector.adopt(spec.clone()).is_ok_and(|found| {
                        std::thread::sleep(std::time::Duration::from_millis(pause_ms));
                        found.is_some_and(|one| one.process_id().signal(Signal::Kill).is_ok())
                    })
                });
            });
            match linked.replay(&clone, to) {
                // It was killed after it had reached that point.
                Ok(replayed) => {
                    until("it is gone", || !replayed.server.running());
                    let _ = replayed.server.stop(StopMode::Immediate, PATIENCE);
                }
                Err(failure) => assert!(!failure.message.is_empty()),
            }
        });
        linked.connector.stop_leftover(&spec.runtime_dir, PATIENCE).unwrap();
        assert!(linked.connector.adopt(spec).unwrap().is_none());
        assert_eq!(linked.content_at(to), wanted);
    }
}

/// The user has given up.
pub fn a_cancelled_replay_leaves_nothing_running(harness: &dyn Harness) {
    let (linked, _) = written(harness, 60);
    let end = linked.commits()[59].end;
    let mut ticks = 0;
    let clone = linked.clone_of(&linked.copy);
    let replayed = linked.replay_watched(&clone, end, &mut |_| {
        ticks += 1;
        false
    });
    match replayed {
        Err(failure) => {
            assert_eq!(failure.code, ErrorKind::Cancelled, "{failure}");
            assert!(linked.connector.adopt(linked.spec(&clone)).unwrap().is_none());
        }
        // It was done before anybody could be asked.
        Ok(replayed) => {
            assert_eq!(ticks, 0);
            stop_at_once(&*replayed.server);
        }
    }
}

/// As the engine provisions: replayed, cut off, shut down cleanly, cloned, opened for a user, more than
/// once.
pub fn an_image_is_cloned_and_opened(harness: &dyn Harness) {
    let (linked, _) = written(harness, 10);
    let image = linked.finished(linked.commits()[7].end);
    for round in 0..2 {
        let clone = linked.clone_of(&image);
        let port = offshoot_os::unused_port();
        let spec = offshoot_connector::ServerSpec { tcp_port: port, ..linked.spec(&clone) };
        let role = || Role::Vdb(VdbOptions::default());
        let server = linked.connector.start(spec.clone(), role()).unwrap();
        let password = Secret::new(linked.connector.new_password());
        let grant = Grant {
            preferred_database: linked.connector.database_of(&linked.production.uri(None)),
            ..Grant::new(password.clone())
        };
        let database = server.grant(&grant, PATIENCE).unwrap().database;
        let uri = linked.connector.vdb_uri(port.unwrap(), &password, &database);
        let mut wanted = linked.content_after(8);
        assert_eq!(harness.content_by(&uri).unwrap(), wanted);
        let before = server.position().unwrap();
        harness.put_by(&uri, "own", &round.to_string()).unwrap();
        assert!(server.position().unwrap() > before);
        server.checkpoint(PATIENCE).unwrap();
        wanted.insert("own".to_owned(), round.to_string());
        assert!(server.stop(StopMode::Fast, PATIENCE).unwrap());
        assert!(harness.content_by(&uri).is_err());
        // Not granted again: that is in the data.
        let server = linked.connector.start(spec, role()).unwrap();
        server.wait_ready(PATIENCE).unwrap();
        assert_eq!(harness.content_by(&uri).unwrap(), wanted);
        stop_at_once(&*server);
    }
}
