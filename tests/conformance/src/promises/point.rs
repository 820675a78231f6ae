//! What recovery points promise.

use super::staging;
use crate::linked::stop_at_once;
use crate::{Harness, Image, Linked, PATIENCE, Random, until};
use offshoot_connector::{PointMaker, RecoveryPoint, Replay, StopMode};
use offshoot_types::{ErrorKind, Failure, LogPosition};
use std::time::Duration;

/// An image and the position that it is at.
struct Base {
    image: Image,
    position: LogPosition,
}

/// Makes a point of a clone of an image.
fn make(
    linked: &Linked<'_>,
    maker: &dyn PointMaker,
    base: &Base,
    to: LogPosition,
) -> Result<Option<(Base, RecoveryPoint)>, Failure> {
    let image = linked.clone_of(&base.image);
    let (target, mut tick) = (linked.target(&image), |_| true);
    let replay = Replay {
        log: &*linked.log,
        target: &*target,
        to,
        deadline: PATIENCE,
        flush: &|| Ok(()),
        tick: &mut tick,
    };
    let made = maker.make_point(linked.spec(&image), base.position, replay)?;
    assert!(linked.connector.adopt(linked.spec(&image)).unwrap().is_none(), "nothing runs");
    Ok(made.map(|point| (Base { image, position: point.position }, point)))
}

/// Staging that has replayed a little and was stopped.
fn stopped_staging(linked: &mut Linked<'_>, random: &mut Random) -> Base {
    let staging = linked.clone_of(&linked.copy);
    let (server, mut log) = staging::start(linked, &staging);
    linked.write(10, 5000, random);
    linked.receive();
    let to = linked.commits()[9].end.max(linked.copied.end);
    let position = staging::feed(&*server, &mut *log, to, random);
    server.wait_ready(PATIENCE).unwrap();
    stop_at_once(&*server);
    Base { image: staging, position }
}

/// A point is made from a snapshot of staging and from another point; every moment after it opens from it, and
/// it can be made ready. What was opened is no point any more.
pub fn a_recovery_point_goes_on_like_any_image(harness: &dyn Harness) {
    let mut linked = Linked::new(harness);
    let connector = linked.connector.clone();
    let Some(maker) = connector.point_maker() else {
        return println!("{} makes no recovery points", connector.kind());
    };
    let random = &mut Random::fresh();
    let mut base = stopped_staging(&mut linked, random);
    for round in 1..4 {
        linked.write(20, 5000, random);
        let end = linked.receive();
        let (next, point) = make(&linked, maker, &base, end).unwrap().expect("enough log");
        assert!(point.position <= end && point.position > base.position, "{point:?}");
        assert!(point.replay_from < point.position, "{point:?}");
        let commits = linked.commits();
        let before = commits.iter().filter(|one| one.end <= point.position).count();
        assert!(before > 10 + 20 * (round - 1), "{before} commits are before {point:?}");
        for wanted in [before, (before + commits.len()).div_ceil(2), commits.len()] {
            let clone = linked.clone_of(&next.image);
            let to = commits[wanted - 1].end.max(point.position);
            let replayed = linked.replay(&clone, to).unwrap();
            assert_eq!(linked.content(&clone), linked.content_after(wanted), "round {round}");
            assert!(replayed.server.stop(StopMode::Fast, PATIENCE).unwrap());
            let opened = Base { image: clone, position: point.position };
            let failure = linked.replay(&opened.image, end).err().expect("it was opened");
            assert_eq!(failure.code, ErrorKind::WrongState, "{failure}");
            linked.write(1, 500, random);
            let failure = make(&linked, maker, &opened, linked.receive()).err();
            assert_eq!(failure.expect("it was opened").code, ErrorKind::WrongState);
        }
        assert!(make(&linked, maker, &next, next.position).unwrap().is_none());
        base = next;
    }
}

/// Staging goes on from a recovery point, also after it was stopped or killed at once; so do images of it, and points
/// are made of them.
pub fn staging_goes_on_from_a_recovery_point(harness: &dyn Harness) {
    let mut linked = Linked::new(harness);
    let connector = linked.connector.clone();
    let Some(maker) = connector.point_maker() else {
        return println!("{} makes no recovery points", connector.kind());
    };
    let random = &mut Random::fresh();
    let base = stopped_staging(&mut linked, random);
    assert!(!maker.is_point(&linked.spec(&base.image)).unwrap());
    linked.write(20, 5000, random);
    let end = linked.receive();
    let (point, made) = make(&linked, maker, &base, end).unwrap().expect("enough log");
    let staging = linked.clone_of(&point.image);
    assert!(maker.is_point(&linked.spec(&staging)).unwrap());
    for (round, mode) in [StopMode::Immediate, StopMode::Immediate, StopMode::Fast, StopMode::Fast]
        .into_iter()
        .enumerate()
    {
        linked.write(20, 5000, random);
        let to = linked.receive();
        let (server, mut log) = staging::start(&linked, &staging);
        assert!(!maker.is_point(&linked.spec(&staging)).unwrap(), "it went on");
        // It may answer only when its source has said again which transactions run.
        until("staging answers", || {
            linked.write(1, 500, random);
            log.advance(linked.receive()).unwrap();
            std::thread::sleep(Duration::from_millis(200));
            server.replayed().is_ok()
        });
        staging::feed(&*server, &mut *log, linked.commits().last().unwrap().end, random);
        if round == 2 {
            // With a checkpoint of its source it has a restart point when it is stopped.
            linked.production.stop(false);
            linked.production.start();
            linked.write(1, 500, random);
            let end = linked.receive();
            staging::feed(&*server, &mut *log, end, random);
        }
        server.stop(mode, PATIENCE).unwrap();
        let image = linked.clone_of(&staging);
        linked.write(5, 5000, random);
        let (end, commits) = (linked.receive(), linked.commits());
        let clone = linked.clone_of(&image);
        let replayed = linked.replay(&clone, commits.last().unwrap().end).unwrap();
        assert_eq!(linked.content(&clone), linked.content_after(commits.len()), "round {round}");
        stop_at_once(&*replayed.server);
        let base = Base { image, position: to };
        let (_, next) = make(&linked, maker, &base, end).unwrap().expect("enough log");
        assert!(next.position > made.position, "{next:?}");
    }
}
