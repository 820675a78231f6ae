//! What a staging server promises.

use crate::linked::stop_at_once;
use crate::{Harness, Image, Linked, PATIENCE, Random, until};
use offshoot_connector::{LogFeed, Role, Server, StopMode};
use offshoot_types::LogPosition;
use std::sync::Arc;

/// Bytes for buffers.
const BUFFERS: u64 = 16 << 20;

pub(super) fn start(linked: &Linked<'_>, staging: &Image) -> (Arc<dyn Server>, Box<dyn LogFeed>) {
    let spec = linked.spec(staging);
    let goes_on = linked.connector.point_maker().and_then(|maker| {
        let (log, target) = (&*linked.log, linked.target(staging));
        // Little of it: the rest is fed.
        maker.go_on(spec.clone(), log, target, LogPosition::START).unwrap()
    });
    let feed = goes_on.unwrap_or_else(|| {
        let from = linked.connector.replay_begins(&spec).unwrap();
        let feed = linked.log.feed(linked.target(staging), from);
        assert_eq!(feed.fed(), from);
        feed
    });
    (linked.connector.start(spec, Role::Staging { buffers: BUFFERS }).unwrap(), feed)
}

/// Feeds up to a position in steps, and waits until that is replayed; replay never goes back.
pub(super) fn feed(
    server: &dyn Server,
    feed: &mut dyn LogFeed,
    to: LogPosition,
    random: &mut Random,
) -> LogPosition {
    let (mut fed, mut last) = (feed.fed(), LogPosition::START);
    let mut look = || {
        let Ok(progress) = server.replayed() else { return false };
        assert!(progress.position >= last, "replay went back: {last:?} {progress:?}");
        last = progress.position;
        last >= to
    };
    while fed < to {
        fed = to.min(LogPosition(fed.0 + 1 + random.below(40_000)));
        feed.advance(fed).unwrap();
        feed.advance(fed).unwrap();
        assert_eq!(feed.fed(), fed);
        look();
    }
    until("staging has replayed what it was fed", look);
    last
}

/// Fed in steps that end anywhere, it gets as far as it is fed, and its image opens later moments.
pub fn staging_follows_in_small_steps(harness: &dyn Harness) {
    let mut linked = Linked::new(harness);
    let random = &mut Random::fresh();
    let staging = linked.clone_of(&linked.copy);
    let (server, mut log) = start(&linked, &staging);
    for round in 0..3 {
        linked.write(25, 6000, random);
        linked.receive();
        let last = linked.commits().last().unwrap().clone();
        let to = last.end.max(linked.copied.end);
        // It answers only when it is consistent, which needs log.
        let replayed = feed(&*server, &mut *log, to, random);
        server.wait_ready(PATIENCE).unwrap();
        assert!(replayed <= log.fed());
        let progress = server.replayed().unwrap();
        assert_eq!(progress.last_commit, Some(last.time), "round {round}: {progress:?}");
    }
    assert!(log.advance(LogPosition(linked.log.end().0 + (64 << 20))).is_err());
    stop_at_once(&*server);
}

/// After it was stopped or killed, it continues where it was; so do images of it.
pub fn staging_goes_on_after_any_stop(harness: &dyn Harness) {
    let mut linked = Linked::new(harness);
    let random = &mut Random::fresh();
    let staging = linked.clone_of(&linked.copy);
    let mut begins = LogPosition::START;
    for mode in [StopMode::Fast, StopMode::Immediate, StopMode::Fast] {
        let (server, mut log) = start(&linked, &staging);
        assert!(log.fed() >= begins, "what is durable went back");
        begins = log.fed();
        linked.write(25, 6000, random);
        linked.receive();
        let to = linked.commits().last().unwrap().end.max(linked.copied.end);
        feed(&*server, &mut *log, to, random);
        server.stop(mode, PATIENCE).unwrap();
    }
    let image = linked.clone_of(&staging);
    linked.write(10, 6000, random);
    linked.receive();
    let commits = linked.commits();
    let clone = linked.clone_of(&image);
    let replayed = linked.replay(&clone, commits[80].end).unwrap();
    assert_eq!(linked.content(&clone), linked.content_after(81));
    stop_at_once(&*replayed.server);
    // The image was taken; staging itself continues.
    let (server, mut log) = start(&linked, &staging);
    feed(&*server, &mut *log, commits[84].end, random);
    stop_at_once(&*server);
}
