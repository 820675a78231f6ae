use super::*;
use crate::archive::tests::Side;
use crate::exchange::{Giver, Pace, Taker};
use offshoot_dataset::{Becomes, DatasetId, Ino, NewInode, SnapshotId};

const PACE: Pace = Pace { window: 64, checkpoint_bytes: 1 << 20 };

/// A dataset with a file of so many pages, of which half compress well.
fn filled(side: &Side, pages: u64) -> (DatasetId, SnapshotId) {
    let id = side.dataset(3);
    let dataset = side.store.dataset(id).unwrap();
    let file = dataset.create(Ino::ROOT, b"long", &NewInode::file(0o600)).unwrap().ino;
    let mut state = 11u64;
    for page in 0..pages {
        let mut content = vec![0; 8192];
        let noise = if page % 2 == 0 { 8192 } else { 512 };
        content[..noise].fill_with(|| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        });
        dataset.write(file, page * 8192, &content).unwrap();
    }
    (id, side.store.snapshot(id).unwrap())
}

fn giver(side: &Side, snapshots: &[SnapshotId]) -> Giver {
    Giver::new(snapshots.iter().map(|id| side.store.hold_snapshot(*id).unwrap()).collect())
}

/// Carries what is asked for; bytes of blocks.
fn carry(giver: &Giver, taker: &mut Taker<'_>) -> u64 {
    let mut bytes = 0;
    loop {
        let wants = taker.wants().unwrap();
        if taker.is_done() {
            return bytes;
        }
        for want in wants {
            let mut give = |block: offshoot_dataset::PassingBlock| {
                bytes += block.stored.len() as u64;
                assert!(taker.take(&block.open().unwrap())?);
                Ok(())
            };
            giver.answer(&want, &mut give).unwrap();
        }
    }
}

/// What is estimated, what came for that, what came afterwards, and what it took.
fn transfer(giver: &Giver, target: &Side) -> (Estimate, u64, u64, u64) {
    let before = target.store.stats().live;
    let intake = target.store.intake(target.store.begin_intake().unwrap()).unwrap();
    let mut taker = Taker::estimating(&intake, giver.states(), PACE, u64::MAX);
    let looked = carry(giver, &mut taker);
    let estimate = taker.estimate();
    let mut taker = Taker::new(&intake, giver.states(), PACE);
    let rest = carry(giver, &mut taker);
    taker.finish(&vec![Becomes::Snapshot; giver.states().len()]).unwrap();
    (estimate, looked, rest, target.store.stats().live.saturating_sub(before))
}

#[test]
fn what_is_lacking_is_known_before_it_comes() {
    let (source, target) = (Side::new(1, None), Side::new(2, None));
    let (id, first) = filled(&source, 3000);
    let dataset = source.store.dataset(id).unwrap();
    let long = dataset.lookup(Ino::ROOT, b"long").unwrap().ino;
    dataset.write(long, 0, &[9; 8192]).unwrap();
    // The second one shares nearly all of the first.
    let snapshots = [first, source.store.snapshot(id).unwrap()];
    let held = giver(&source, &snapshots);
    let (estimate, looked, rest, took) = transfer(&held, &target);
    println!("{estimate:?}: looked {looked}, rest {rest}, took {took}");
    assert!(estimate.whole, "{estimate:?}");
    // The sample is of 128 to 700 of 3300 blocks.
    assert!(estimate.bytes.abs_diff(took) < took / 5, "{estimate:?} {took}");
    assert!(looked < took / 3 && rest > took / 2, "{looked} {rest} {took}");

    // Nothing came twice for it, and what is there already is not lacking.
    let other = Side::new(3, None);
    let intake = other.store.intake(other.store.begin_intake().unwrap()).unwrap();
    let whole = carry(&held, &mut Taker::new(&intake, held.states(), PACE));
    assert_eq!(looked + rest, whole);
    let (estimate, looked, rest, _) = transfer(&held, &target);
    assert_eq!(
        (estimate, looked, rest),
        (Estimate { bytes: 0, coming_bytes: 0, whole: true }, 0, 0)
    );
    assert!(!estimate.exceeds(0));

    // A page more: hardly more than that.
    dataset.write(long, 8192, &[8; 8192]).unwrap();
    let held = giver(&source, &[source.store.snapshot(id).unwrap()]);
    let (estimate, looked, rest, _) = transfer(&held, &target);
    println!("a page: {estimate:?}: looked {looked}, rest {rest}");
    assert!(estimate.bytes < 100_000 && rest == 0, "{estimate:?} {rest}");
}

#[test]
fn what_is_far_too_much_is_not_looked_through() {
    let mut lacking = Lacking::new(10 << 20);
    let name = |number: u64| BlockHash(*blake3::hash(&number.to_le_bytes()).as_bytes());
    let mut sampled = 0;
    for number in 0..200_000 {
        let name = name(number);
        if lacking.wants(&name) {
            sampled += 1;
            lacking.came(BlockKind::Data, &name, 1000);
        } else {
            // It is lacking in another place as well.
            assert!(!lacking.wants(&name), "{number}");
        }
    }
    println!("{} bytes by {sampled} blocks", lacking.bytes());
    assert!(lacking.bytes().abs_diff(200_000_000) < 10_000_000, "{}", lacking.bytes());
    assert!((500..3000).contains(&sampled), "{sampled}");
    // Only nodes say how far one has looked.
    assert!(!lacking.is_enough());
    lacking.enter(NODES_MIN as usize + 1);
    assert!(lacking.is_enough());
    let estimate = Estimate { bytes: 100, coming_bytes: 100, whole: true };
    assert!(estimate.exceeds(80) && !estimate.exceeds(95));
}
