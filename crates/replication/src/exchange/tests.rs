//! Two pools on simulated disks, and a network that loses, repeats, reorders, flips and cuts, seed after seed.

use super::*;
use crate::archive::tests::Side;
use crate::wire::{Frame, HEADER_LEN, Header};
use offshoot_dataset::{DatasetId, Ino, NewInode, SnapshotId, Store};
use std::sync::atomic::{AtomicBool, Ordering};

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

/// What is between the two.
#[derive(Clone, Copy)]
struct Network {
    /// It loses, repeats, reorders and flips.
    bad: bool,
    /// It is cut after so many messages.
    cut: Option<u64>,
    pace: Pace,
}

const CALM: Network = Network { bad: false, cut: None, pace: PACE };

/// Carries messages until all came; `None` if the network was cut before.
fn carry(
    dice: &mut Dice,
    giver: &Giver,
    intake: &Intake,
    network: Network,
    sent: &mut u64,
) -> Option<Result<Vec<Received>>> {
    let Network { bad, cut, pace } = network;
    let states = giver.states();
    let becomes = vec![Becomes::Snapshot; states.len()];
    let mut taker = Taker::new(intake, states, pace);
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
                && let Ok(opened) = block.open()
                && let Err(error) = taker.take(&opened)
            {
                return Some(Err(error));
            }
            if taker.is_checkpoint_due()
                && let Err(error) = intake.checkpoint()
            {
                return Some(Err(error.into()));
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
        let received = carry(&mut dice, &giver, &intake, CALM, sent).unwrap().unwrap();
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

/// What a transfer took.
struct Took {
    /// Bytes from the source, in all rounds.
    sent: u64,
    /// The same where nothing goes wrong.
    whole: u64,
    rounds: u64,
    cuts: u64,
    crashes: u64,
}

/// One transfer with whatever a seed has in store: cuts, crashes of the target, snapshots deleted meanwhile, and with
/// an odd seed a network that does all it can.
fn transfer(seed: u64, pace: Pace) -> Took {
    let mut dice = Dice(seed);
    let (source, mut target) = (Side::new(seed, None), Side::new(seed + 1000, None));
    let (id, snapshots) = long_history(&source);
    let held = giver(&source.store, &snapshots);
    let mut took = Took { sent: 0, whole: 0, rounds: 0, cuts: 0, crashes: 0 };
    let other = Side::new(1, None);
    let to_other = other.store.intake(other.store.begin_intake().unwrap()).unwrap();
    let calm = Network { bad: false, cut: None, pace };
    carry(&mut dice, &held, &to_other, calm, &mut took.whole).unwrap().unwrap();
    if seed.is_multiple_of(3) {
        snapshots.iter().for_each(|one| source.store.delete_snapshot(*one).unwrap());
        source.store.delete_dataset(id).unwrap();
    }
    let intake = target.store.begin_intake().unwrap();
    let received = loop {
        took.rounds += 1;
        assert!(took.rounds < 200, "seed {seed}: it never ends");
        let cut = (dice.roll(4) > 0).then(|| dice.roll(400));
        let crash = (dice.roll(3) == 0).then(|| 1 + dice.roll(60));
        if let Some(at) = crash {
            target.disk.crash_after(at);
        }
        let network = Network { bad: seed % 2 == 1, cut, pace };
        let opened = target.store.intake(intake).map_err(Error::from);
        let carried =
            opened.map(|intake| carry(&mut dice, &held, &intake, network, &mut took.sent));
        match carried {
            Ok(Some(Ok(received))) if crash.is_none() => break received,
            Ok(None) if crash.is_none() => took.cuts += 1,
            Ok(Some(Err(error))) if crash.is_none() => panic!("seed {seed}: {error}"),
            // Power was lost, or may have been.
            _ => {
                took.crashes += 1;
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
    let trees = received.iter().map(|one| match one {
        Received::Snapshot(id) => target.store.hold_snapshot(*id).unwrap().tree().clone(),
        Received::Dataset(_) => panic!("{one:?}"),
    });
    assert_eq!(trees.collect::<Vec<_>>(), held.states());
    assert_eq!(target.store.datasets(), []);
    drop(held);
    source.check();
    target.check();
    took
}

#[test]
fn whatever_the_network_does_all_of_it_comes() {
    let (mut cuts, mut crashes) = (0, 0);
    for seed in 0..40 {
        let took = transfer(seed, PACE);
        (cuts, crashes) = (cuts + took.cuts, crashes + took.crashes);
    }
    assert!(cuts > 20 && crashes > 20, "{cuts} cuts, {crashes} crashes");
}

#[test]
fn little_comes_twice_and_without_checkpoints_more_does() {
    let never = Pace { checkpoint_bytes: u64::MAX, ..PACE };
    let (mut with, mut without) = (0, 0);
    // The even ones lose nothing on the way.
    for seed in (0..20).step_by(2) {
        let took = transfer(seed, PACE);
        let twice = took.sent.saturating_sub(took.whole);
        // A checkpoint's bytes, a block more, and a window's, each time. One node asks for up to 128.
        let most = took.rounds * (PACE.checkpoint_bytes + (1 + 16 + 128) * 8300);
        assert!(twice <= most, "seed {seed}: {twice} came twice in {} rounds", took.rounds);
        with += twice;
        let took = transfer(seed, never);
        without += took.sent.saturating_sub(took.whole);
    }
    println!("came twice: {with} bytes; without checkpoints: {without}");
    assert!(without * 4 > with * 5, "with checkpoints {with}, without {without}");
}

#[test]
fn a_transfer_that_is_given_up_leaves_nothing() {
    let (source, target) = (Side::new(1, None), Side::new(2, None));
    let (_, snapshots) = history(&source);
    let id = target.store.begin_intake().unwrap();
    let intake = target.store.intake(id).unwrap();
    let giver = giver(&source.store, &snapshots);
    let cut = Network { cut: Some(100), ..CALM };
    assert!(carry(&mut Dice(1), &giver, &intake, cut, &mut 0).is_none());
    intake.checkpoint().unwrap();
    drop(intake);
    assert!(target.store.stats().blocks > 50);
    target.store.delete_dataset(id).unwrap();
    let report = target.check();
    assert_eq!((report.datasets, report.snapshots), (0, 0));
}

/// Flips a bit of the first compressed data block in the segments.
fn damage(side: &Side) {
    use offshoot_dataset::Codec;
    use offshoot_format::segment::{FRAME_LEN, Frame};
    use offshoot_os::disk::Disk;
    for name in side.disk.list("segments").unwrap() {
        let path = format!("segments/{name}");
        let content = side.disk.content(&path).unwrap();
        for at in (0..content.len() - FRAME_LEN as usize).step_by(8) {
            if let Ok(frame) = Frame::decode(&content[at..])
                && (frame.kind, frame.codec) == (BlockKind::Data, Codec::Zstd)
            {
                let stored = at as u64 + u64::from(FRAME_LEN);
                return side.disk.flip_bit(&path, stored + u64::from(frame.stored_len) / 2, 3);
            }
        }
    }
    panic!("nothing is compressed");
}

/// Carries all that is asked for; how much of it was not taken.
fn give_all(giver: &Giver, taker: &mut Taker<'_>) -> Result<usize> {
    let mut spoiled = 0;
    loop {
        let wants = taker.wants()?;
        if wants.is_empty() {
            return Ok(spoiled);
        }
        for want in wants {
            giver.answer(&want, &mut |block| {
                let taken = block.open().is_ok_and(|opened| taker.take(&opened).unwrap());
                spoiled += usize::from(!taken);
                Ok(())
            })?;
        }
    }
}

#[test]
fn what_is_damaged_is_not_taken_and_found_where_it_comes_from() {
    let (source, target) = (Side::new(1, None), Side::new(2, None));
    let (_, snapshots) = history(&source);
    damage(&source);
    let mut giver = giver(&source.store, &snapshots);
    let intake = target.store.intake(target.store.begin_intake().unwrap()).unwrap();
    let mut taker = Taker::new(&intake, giver.states(), PACE);
    assert_eq!(give_all(&giver, &mut taker).unwrap(), 1);
    assert!(source.store.faults().is_empty(), "nobody has looked yet");
    assert!(giver.check_content() && !giver.check_content());
    let again = taker.wants_again();
    let answered = giver.answer(&again[0], &mut |_| panic!("it is damaged"));
    assert!(matches!(answered, Err(Error::Store(_))), "{answered:?}");
    assert_eq!(source.store.faults().len(), 1);
}

#[test]
fn what_comes_while_a_checkpoint_is_made_is_of_the_next() {
    let (source, target) = (Side::new(1, None), Side::new(2, None));
    let (_, snapshots) = long_history(&source);
    let giver = giver(&source.store, &snapshots);
    let dataset = target.store.begin_intake().unwrap();
    let intake = target.store.intake(dataset).unwrap();
    let mut taker = Taker::new(&intake, giver.states(), PACE);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let checkpoints = scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                intake.checkpoint().unwrap();
            }
        });
        assert_eq!(give_all(&giver, &mut taker).unwrap(), 0);
        ended.store(true, Ordering::Relaxed);
        checkpoints.join().unwrap();
    });
    intake.checkpoint().unwrap();
    drop(taker);
    drop(intake);
    // After a crash nothing is asked for again.
    let target = target.crashed();
    let intake = target.store.intake(dataset).unwrap();
    let mut taker = Taker::new(&intake, giver.states(), PACE);
    assert_eq!(taker.wants().unwrap(), []);
    assert!(taker.is_done());
    let received = taker.finish(&vec![Becomes::Snapshot; snapshots.len()]).unwrap();
    same(&source.store, &snapshots, &target.store, &received);
    drop(intake);
    target.check();
}
