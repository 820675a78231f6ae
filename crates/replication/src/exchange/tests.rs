//! Two pools on simulated disks, and a network that loses, repeats, reorders, flips and cuts, seed after seed.

use super::*;
use crate::archive::tests::Side;
use crate::wire::{Frame, HEADER_LEN, Header};
use offshoot_dataset::{DatasetId, Ino, NewInode, SnapshotId, Store};

const PACE: Pace = Pace { window: 16, checkpoint_bytes: 20_000 };

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % sides
    }
}

fn decode(bytes: &[u8]) -> Option<Frame> {
    let (header, payload) = bytes.split_first_chunk::<HEADER_LEN>()?;
    Header::decode(header).ok()?.frame(header, payload.to_vec()).ok()
}

/// What a network does to the messages of one direction.
struct Way {
    messages: Vec<Vec<u8>>,
    sent: u64,
}

impl Way {
    fn new() -> Way {
        Way { messages: Vec::new(), sent: 0 }
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.sent += bytes.len() as u64;
        self.messages.push(bytes);
    }

    /// The next message, if any comes.
    fn next(&mut self, dice: &mut Dice, bad: bool) -> Option<Vec<u8>> {
        if self.messages.is_empty() {
            return None;
        }
        let first = if bad { dice.roll(self.messages.len().min(8) as u64) as usize } else { 0 };
        let mut message = self.messages.remove(first);
        if bad {
            match dice.roll(40) {
                0 => return Some(Vec::new()),
                1 => self.messages.push(message.clone()),
                2 => {
                    let at = dice.roll(message.len() as u64) as usize;
                    message[at] ^= 1 << dice.roll(8);
                }
                _ => {}
            }
        }
        Some(message)
    }
}

fn giver(store: &Store, snapshots: &[SnapshotId]) -> Giver {
    Giver::new(snapshots.iter().map(|id| store.hold_snapshot(*id).unwrap()).collect())
}

/// Carries messages until all came; `None` if the network or the target was cut before, after `cut` messages.
fn carry(
    dice: &mut Dice,
    giver: &Giver,
    intake: &Intake,
    bad: bool,
    cut: Option<u64>,
    sent: &mut u64,
) -> Option<Result<Vec<Received>>> {
    let states = giver.states();
    let becomes = vec![Becomes::Snapshot; states.len()];
    let mut taker = Taker::new(intake, states, PACE);
    let (mut there, mut back) = (Way::new(), Way::new());
    let mut carried = 0;
    while !taker.is_done() {
        let mut wants = match taker.wants() {
            Ok(wants) => wants,
            Err(error) => return Some(Err(error)),
        };
        if wants.is_empty() && there.messages.is_empty() && back.messages.is_empty() {
            wants = taker.wants_again();
        }
        wants.into_iter().for_each(|want| back.send(Frame::Want(want).encode()));
        while let Some(message) = back.next(dice, bad) {
            if let Some(Frame::Want(want)) = decode(&message) {
                let answered = giver.answer(&want, &mut |block| {
                    there.send(Frame::Block(block).encode());
                    Ok(())
                });
                answered.unwrap();
            }
        }
        while let Some(message) = there.next(dice, bad) {
            carried += 1;
            if cut.is_some_and(|cut| carried > cut) {
                *sent += there.sent;
                return None;
            }
            if let Some(Frame::Block(block)) = decode(&message)
                && let Err(error) = taker.take(&block)
            {
                return Some(Err(error));
            }
        }
    }
    *sent += there.sent;
    Some(taker.finish(&becomes))
}

fn same(one: &Store, snapshots: &[SnapshotId], other: &Store, received: &[Received]) {
    for (snapshot, received) in snapshots.iter().zip(received) {
        let Received::Snapshot(received) = received else { panic!("{received:?}") };
        let of = |store: &Store, id| store.hold_snapshot(id).unwrap().tree().clone();
        assert_eq!(of(one, *snapshot), of(other, *received));
    }
}

fn history(side: &Side) -> (DatasetId, Vec<SnapshotId>) {
    let id = side.dataset(5);
    let first = side.store.snapshot(id).unwrap();
    change(side, id, 17);
    (id, vec![first, side.store.snapshot(id).unwrap()])
}

/// The same with 4 MB that do not compress.
fn long_history(side: &Side) -> (DatasetId, Vec<SnapshotId>) {
    let (id, mut snapshots) = history(side);
    let dataset = side.store.dataset(id).unwrap();
    let long = dataset.create(Ino::ROOT, b"long", &NewInode::file(0o600)).unwrap().ino;
    let mut dice = Dice(77);
    for page in 0..512 {
        let content: Vec<u8> = (0..8192).map(|_| dice.roll(256) as u8).collect();
        dataset.write(long, page * 8192, &content).unwrap();
    }
    snapshots.push(side.store.snapshot(id).unwrap());
    (id, snapshots)
}

fn change(side: &Side, id: DatasetId, page: u64) {
    let dataset = side.store.dataset(id).unwrap();
    let big = dataset.lookup(Ino::ROOT, b"big").unwrap().ino;
    dataset.write(big, 8192 * page, &[page as u8; 8192]).unwrap();
}

#[test]
fn a_second_transfer_sends_what_changed() {
    let (source, target) = (Side::new(1, None), Side::new(2, None));
    let (id, mut snapshots) = history(&source);
    let mut sent = [0; 3];
    let mut dice = Dice(1);
    for (round, sent) in sent.iter_mut().enumerate() {
        let intake = target.store.begin_intake().unwrap();
        let intake = target.store.intake(intake).unwrap();
        let giver = giver(&source.store, &snapshots);
        let received = carry(&mut dice, &giver, &intake, false, None, sent).unwrap().unwrap();
        same(&source.store, &snapshots, &target.store, &received);
        if round == 0 {
            change(&source, id, 200);
            snapshots.push(source.store.snapshot(id).unwrap());
        }
    }
    let [first, second, third] = sent;
    assert!(first > 60_000, "{sent:?}");
    // A page, and the nodes above it.
    assert!(second < 12_000, "{sent:?}");
    assert_eq!(third, 0, "nothing changed");
    assert_eq!(target.store.datasets(), []);
    source.check();
    target.check();
}

#[test]
fn what_was_not_offered_is_not_given() {
    let source = Side::new(1, None);
    let (_, snapshots) = history(&source);
    let giver = giver(&source.store, &snapshots[..1]);
    let ask = |state, path: &[u16], children: &[u16]| {
        let want = Want { state, path: path.to_vec(), children: children.to_vec() };
        let mut given = 0;
        let answered = giver.answer(&want, &mut |_| {
            given += 1;
            Ok(())
        });
        answered.map(|()| given)
    };
    assert_eq!(ask(0, &[], &[]).unwrap(), 1);
    assert_eq!(ask(0, &[], &[0, 1]).unwrap(), 2);
    for (state, path, children) in [
        (1, vec![], vec![]),
        (0, vec![9999], vec![]),
        (0, vec![], vec![9999]),
        (0, vec![0; 24], vec![]),
    ] {
        let refused = ask(state, &path, &children);
        assert!(matches!(refused, Err(Error::NotOffered)), "{path:?} {children:?}: {refused:?}");
    }
}

#[test]
fn whatever_the_network_does_all_of_it_comes_and_little_comes_twice() {
    let mut cuts = 0;
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let (source, mut target) = (Side::new(seed, None), Side::new(seed + 1000, None));
        let (id, snapshots) = long_history(&source);
        let whole = {
            let other = Side::new(1, None);
            let intake = other.store.intake(other.store.begin_intake().unwrap()).unwrap();
            let mut sent = 0;
            let giver = giver(&source.store, &snapshots);
            carry(&mut dice, &giver, &intake, false, None, &mut sent).unwrap().unwrap();
            sent
        };
        let intake = target.store.begin_intake().unwrap();
        // The sender's snapshots are deleted while they are sent.
        let held = giver(&source.store, &snapshots);
        let trees = held.states();
        if seed % 3 == 0 {
            snapshots.iter().for_each(|one| source.store.delete_snapshot(*one).unwrap());
            source.store.delete_dataset(id).unwrap();
        }
        let (mut sent, mut rounds, bad) = (0, 0, seed % 2 == 1);
        let received = loop {
            rounds += 1;
            assert!(rounds < 200, "seed {seed}: it never ends");
            let cut = (dice.roll(4) > 0).then(|| dice.roll(400));
            let crash = (dice.roll(3) == 0).then(|| 1 + dice.roll(60));
            if let Some(at) = crash {
                target.disk.crash_after(at);
            }
            let carried = target
                .store
                .intake(intake)
                .map_err(Error::from)
                .map(|intake| carry(&mut dice, &held, &intake, bad, cut, &mut sent));
            match carried {
                Ok(Some(Ok(received))) if crash.is_none() => break received,
                Ok(None) if crash.is_none() => cuts += 1,
                Ok(Some(Err(error))) if crash.is_none() => panic!("seed {seed}: {error}"),
                // Power was lost, or may have been.
                _ => {
                    target = target.crashed();
                    if !target.store.datasets().iter().any(|one| one.id == intake) {
                        // It was shown just before.
                        let shown = target.store.snapshots();
                        break shown.iter().map(|one| Received::Snapshot(one.id)).collect();
                    }
                    assert_eq!(target.store.snapshots(), [], "seed {seed}: half of it is visible");
                }
            }
        };
        assert_eq!(received.len(), trees.len());
        for (tree, received) in trees.iter().zip(&received) {
            let Received::Snapshot(id) = received else { panic!("{received:?}") };
            assert_eq!(target.store.hold_snapshot(*id).unwrap().tree(), tree);
        }
        if !bad {
            // A checkpoint's bytes, a block more, and a window's, each time. One node asks for up to 128.
            let twice = sent.saturating_sub(whole);
            let most = rounds * (PACE.checkpoint_bytes + (1 + 16 + 128) * 8300);
            assert!(twice <= most, "seed {seed}: {twice} bytes came twice in {rounds} rounds");
        }
        assert_eq!(target.store.datasets(), []);
        drop(held);
        source.check();
        target.check();
    }
    assert!(cuts > 20, "{cuts} cuts");
}

#[test]
fn a_transfer_that_is_given_up_leaves_nothing() {
    let (source, target) = (Side::new(1, None), Side::new(2, None));
    let (_, snapshots) = history(&source);
    let id = target.store.begin_intake().unwrap();
    let intake = target.store.intake(id).unwrap();
    let giver = giver(&source.store, &snapshots);
    assert!(carry(&mut Dice(1), &giver, &intake, false, Some(100), &mut 0).is_none());
    intake.checkpoint().unwrap();
    drop(intake);
    assert!(target.store.stats().blocks > 50);
    target.store.delete_dataset(id).unwrap();
    let report = target.check();
    assert_eq!((report.datasets, report.snapshots), (0, 0));
}
