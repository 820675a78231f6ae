//! What recovery points promise.

use super::staging;
use crate::linked::stop_at_once;
use crate::{Harness, Image, Linked, PATIENCE, Random};
use offshoot_connector::{PointMaker, RecoveryPoint, Replay, StopMode};
use offshoot_types::{ErrorKind, Failure, LogPosition};

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

/// A point is made from a snapshot of staging and from another point; every moment after it opens from it, and
/// it can be made ready. What was opened is no point any more.
pub fn a_recovery_point_goes_on_like_any_image(harness: &dyn Harness) {
    let mut linked = Linked::new(harness);
    let connector = linked.connector.clone();
    let Some(maker) = connector.point_maker() else {
        return println!("{} makes no recovery points", connector.kind());
    };
    let random = &mut Random::fresh();
    let staging = linked.clone_of(&linked.copy);
    let (server, mut log) = staging::start(&linked, &staging);
    linked.write(10, 5000, random);
    linked.receive();
    let to = linked.commits()[9].end.max(linked.copied.end);
    let position = staging::feed(&*server, &mut *log, to, random);
    server.wait_ready(PATIENCE).unwrap();
    stop_at_once(&*server);
    let mut base = Base { image: staging, position };
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
