//! What a stream promises.

use crate::files::copy_tree;
use crate::{Harness, Linked, PATIENCE, Random, until};
use offshoot_connector::{LogStream, StreamState};
use offshoot_types::{ErrorKind, LogPosition};
use std::collections::BTreeSet;
use std::time::Duration;

/// Every commit arrives, and the status shows the progress.
pub fn the_stream_receives_everything(harness: &dyn Harness) {
    let mut linked = Linked::new(harness);
    let random = &mut Random::fresh();
    for _ in 0..3 {
        linked.write(20, 3000, random);
        let end = linked.receive();
        let commits = linked.commits();
        assert!(commits.last().unwrap().end <= end);
        assert_eq!(linked.log.last().unwrap().as_ref(), commits.last());
        let status = linked.stream.as_ref().unwrap().status();
        assert_eq!(status.state, StreamState::Streaming);
        assert!(status.received >= Some(end), "{status:?}");
        assert!(status.synced_to.is_some_and(|synced| synced.log >= end), "{status:?}");
        assert!(status.lag_bytes.is_some() && status.lag.is_some(), "{status:?}");
    }
    let mut ticks = 0;
    let stream = linked.stream.clone().unwrap();
    stream
        .receive_all(PATIENCE, &mut |_| {
            ticks += 1;
            Ok(())
        })
        .unwrap();
    assert!(ticks > 0);
    let cancelled = || offshoot_types::Failure::new(ErrorKind::Cancelled, "enough", "");
    let ended = stream.receive_all(PATIENCE, &mut |_| Err(cancelled()));
    assert_eq!(ended.unwrap_err().code, ErrorKind::Cancelled);
    stream.stop();
    assert_eq!(stream.status().state, StreamState::Idle);
}

/// While the source is written to: no commit with a time up to a claimed one comes later.
pub fn a_proof_has_every_commit_up_to_its_time(harness: &dyn Harness) {
    let mut linked = Linked::new(harness);
    let random = &mut Random::fresh();
    let mut proofs = Vec::new();
    let stream = linked.stream.clone().unwrap();
    for round in 0..60 {
        linked.write(1 + random.below(4) as usize, 500, random);
        proofs.extend(stream.status().synced_to);
        if round % 10 == 9 {
            proofs.push(stream.ask_now(PATIENCE).unwrap());
        }
    }
    let last = linked.receive();
    proofs.retain(|proof| proof.log <= last);
    assert!(proofs.len() > 5, "too few proofs");
    for commit in linked.commits() {
        for proof in &proofs {
            let in_time = commit.time <= proof.time;
            assert!(!in_time || commit.end <= proof.log, "{commit:?} came after {proof:?}");
        }
    }
}

/// At any time, what the stream reports as durable can be read from its directory as it is.
pub fn what_was_received_is_there_after_a_crash(harness: &dyn Harness) {
    let mut linked = Linked::new(harness);
    let random = &mut Random::fresh();
    let mut states = Vec::new();
    for round in 0..5 {
        linked.write(15, 6000, random);
        let received = linked.stream.as_ref().unwrap().status().received;
        let log = linked.path(&format!("crash{round}"));
        copy_tree(&linked.log_dir(), &log);
        states.push((received, log));
        if round % 2 == 1 {
            // What is in progress is abandoned, and the next one resumes it.
            linked.stream.take().unwrap().stop();
            linked.stream();
        }
    }
    linked.receive();
    let all = linked.commits();
    for (round, (received, log)) in states.into_iter().enumerate() {
        let index = linked.directory(&format!("crash-index{round}"));
        let log = linked.reopen(&log, &index).unwrap();
        log.update_until(LogPosition::END).unwrap();
        for (commit, one) in all.iter().zip(&linked.written) {
            if Some(commit.end) <= received {
                assert_eq!(log.by_transaction(&one.label).unwrap().as_ref(), Some(commit));
            }
        }
    }
    let distinct: BTreeSet<LogPosition> = all.iter().map(|commit| commit.end).collect();
    assert_eq!(distinct.len(), all.len());
}

/// A source that is restarted, cleanly or not, loses no commit on the way.
pub fn a_stream_goes_on_when_its_source_does(harness: &dyn Harness) {
    let mut linked = Linked::new(harness);
    let random = &mut Random::fresh();
    for crash in [true, false] {
        linked.write(10, 2000, random);
        linked.production.stop(crash);
        let stream = linked.stream.clone().unwrap();
        until("the stream notices", || matches!(stream.status().state, StreamState::Retrying(_)));
        let failure = stream.ask_now(Duration::from_millis(300)).unwrap_err();
        assert!(!failure.message.is_empty());
        linked.production.start();
        stream.wait_streaming(PATIENCE).unwrap();
        linked.write(10, 2000, random);
        linked.receive();
        assert_eq!(linked.commits().len(), linked.written.len());
    }
}

/// Another database at the same address: nothing of it is received.
pub fn log_of_another_database_is_not_received(harness: &dyn Harness) {
    let (linked, mut other) = (Linked::new(harness), Linked::new(harness));
    let directory = linked.directory("foreign");
    let request = offshoot_connector::StreamRequest {
        log: crate::files::plain(&directory),
        directory: directory.clone(),
        ..linked.stream_request()
    };
    other.production.commit("foreign", "commit");
    let stream = other.source().stream(request).unwrap();
    let failure = stream.wait_streaming(Duration::from_secs(4)).unwrap_err();
    assert_eq!(failure.code, ErrorKind::SourceRefused, "{failure}");
    stream.stop();
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
}

/// The source has given up log that was not received: only a new copy helps, and the error says so.
pub fn a_gap_is_named(harness: &dyn Harness) {
    let mut linked = Linked::new(harness);
    let random = &mut Random::fresh();
    linked.write(3, 100, random);
    linked.receive();
    linked.stream.take().unwrap().stop();
    if let Some(name) = linked.reservation.clone() {
        linked.source().release_log(&name).unwrap();
    }
    // By far more than a file of any kind's log, whatever the lengths are.
    linked.write(32, 30_000, random);
    linked.production.drop_log();
    linked.write(1, 100, random);
    let stream = linked.source().stream(linked.stream_request()).unwrap();
    let gap = |stream: &dyn LogStream| matches!(stream.status().state, StreamState::Gap(_));
    until("the gap is found", || gap(&*stream));
    assert_eq!(stream.wait_streaming(PATIENCE).unwrap_err().code, ErrorKind::SourceRefused);
    assert!(stream.ask_now(PATIENCE).is_err());
    stream.stop();
}
