//! What servers read directly is what the dataset has, whatever happens to the file in between (D1 of `crates/direct`).
#![allow(clippy::unwrap_used)]

mod support;

use offshoot_dataset::{AllocateMode, Dataset, Ino, SetAttr};
use offshoot_direct::{Budget, Group, Reader, Table};
use std::sync::Arc;
use support::{Dice, TestStore, make_file, seeds, small_options};

const BLOCK: u64 = 8192;
/// Blocks of the file at most.
const BLOCKS: u64 = 96;
const STEPS: u64 = 600;

/// A dataset with a file that a client of this process reads directly.
struct Served {
    dataset: Arc<Dataset>,
    ino: Ino,
    reader: Reader,
    hits: u64,
}

impl Served {
    fn new(group: &Arc<Group>, dataset: Arc<Dataset>, ino: Ino) -> Served {
        let table = Table::create(group).unwrap();
        let reader = Reader::of(&table).unwrap();
        dataset.serve_directly(Some(table));
        assert!(dataset.read_directly(ino));
        Served { dataset, ino, reader, hits: 0 }
    }

    /// Compares all that can be read directly with what the dataset has.
    fn check(&mut self, after: &str) {
        let size = self.dataset.getattr(self.ino).unwrap().size;
        assert_eq!(self.reader.size(self.ino.0), Some(size), "the length after {after}");
        let whole = self.dataset_content();
        for block in 0..size.div_ceil(BLOCK) {
            let (from, end) =
                ((block * BLOCK) as usize, (((block + 1) * BLOCK).min(size)) as usize);
            let mut seen = vec![0; end - from];
            if self.reader.read(self.ino.0, from as u64, &mut seen) {
                assert!(seen == whole[from..end], "block {block} after {after}");
                self.hits += 1;
            }
        }
        assert!(!self.reader.read(self.ino.0, size, &mut [0]), "past the end after {after}");
    }

    /// The content, as somebody reads it who does not read directly.
    fn dataset_content(&self) -> Vec<u8> {
        let size = self.dataset.getattr(self.ino).unwrap().size;
        let mut content = Vec::new();
        // In halves of blocks, which are not put where they could be read themselves.
        for half in 0..size.div_ceil(BLOCK / 2) {
            let part = self.dataset.read(self.ino, half * BLOCK / 2, BLOCK as usize / 2).unwrap();
            content.extend_from_slice(&part);
        }
        content
    }

    fn act(&self, dice: &mut Dice) -> String {
        let (dataset, ino) = (&self.dataset, self.ino);
        let offset = dice.roll(BLOCKS * BLOCK);
        let block = offset / BLOCK * BLOCK;
        let len = dice.roll(3 * BLOCK) + 1;
        match dice.roll(12) {
            0..4 => {
                let blocks = dice.roll(8) + 1;
                dataset.read(ino, block, (blocks * BLOCK) as usize).unwrap();
                format!("reading {blocks} at {block}")
            }
            4 | 5 => {
                dataset.write(ino, block, &dice.bytes(BLOCK as usize)).unwrap();
                format!("writing the block at {block}")
            }
            6 => {
                dataset.write(ino, offset, &dice.bytes(len as usize)).unwrap();
                format!("writing {len} at {offset}")
            }
            7 => {
                let change = SetAttr { size: Some(offset), ..SetAttr::default() };
                dataset.setattr(ino, &change).unwrap();
                format!("a length of {offset}")
            }
            8 => {
                let mode = match dice.roll(3) {
                    0 => AllocateMode::Extend,
                    1 => AllocateMode::PunchHole,
                    _ => AllocateMode::ZeroRange,
                };
                dataset.allocate(ino, offset, len, mode).unwrap();
                format!("{mode:?} of {len} at {offset}")
            }
            9 => {
                let from = dice.roll(BLOCKS) * BLOCK;
                if from.abs_diff(block) >= 4 * BLOCK {
                    dataset.copy_range(dataset, ino, from, ino, block, 4 * BLOCK).unwrap();
                }
                format!("copying from {from} to {block}")
            }
            10 => {
                dataset.append(ino, &dice.bytes(len as usize)).unwrap();
                format!("appending {len}")
            }
            _ => {
                dataset.commit().unwrap();
                "a commit".to_owned()
            }
        }
    }
}

/// A dataset with a file of all blocks, and a clone of it.
fn with_clone(test: &TestStore, dice: &mut Dice) -> (Arc<Dataset>, Arc<Dataset>, Ino) {
    let original = test.store.create_dataset().unwrap();
    let dataset = test.store.dataset(original).unwrap();
    let ino = make_file(&dataset, b"table");
    dataset.write(ino, 0, &dice.bytes((BLOCKS * BLOCK) as usize)).unwrap();
    let snapshot = test.store.snapshot(original).unwrap();
    let clone = test.store.dataset(test.store.clone_snapshot(snapshot).unwrap()).unwrap();
    (dataset, clone, ino)
}

#[test]
fn what_is_read_directly_is_what_the_file_holds() {
    for seed in seeds(8) {
        let mut dice = Dice::new(seed);
        let test = TestStore::new(small_options());
        let (dataset, clone, ino) = with_clone(&test, &mut dice);
        // They share a group of 256 frames, for which both together are too large.
        let group = Group::create(&Budget::new(2 << 20)).unwrap();
        let mut both = [Served::new(&group, dataset, ino), Served::new(&group, clone, ino)];
        for step in 0..STEPS {
            let which = dice.roll(2) as usize;
            let did = format!("{} (seed {seed}, step {step})", both[which].act(&mut dice));
            both.iter_mut().for_each(|served| served.check(&did));
        }
        for served in both {
            assert!(served.hits > STEPS, "seed {seed}: {} blocks read directly", served.hits);
            served.dataset.serve_directly(None);
            assert_eq!(served.reader.size(served.ino.0), None, "nobody serves it any more");
        }
    }
}

/// How many blocks a client reads directly.
fn seen(served: &Served) -> usize {
    let mut target = [0; BLOCK as usize];
    let mut read = |block: &u64| served.reader.read(served.ino.0, block * BLOCK, &mut target);
    (0..BLOCKS).filter(&mut read).count()
}

#[test]
fn a_read_of_one_block_brings_those_near_it_that_are_in_memory() {
    let test = TestStore::new(small_options());
    let mut dice = Dice::new(1);
    let (dataset, clone, ino) = with_clone(&test, &mut dice);
    let group = Group::create(&Budget::new(2 << 20)).unwrap();
    let first = Served::new(&group, dataset.clone(), ino);
    test.store.pool().clear_cache();
    dataset.read(ino, 3 * BLOCK, BLOCK as usize).unwrap();
    let alone = seen(&first);
    assert!(alone >= 16, "{alone} blocks came with one");
    dataset.read(ino, 0, (BLOCKS * BLOCK) as usize).unwrap();
    assert_eq!(seen(&first), BLOCKS as usize);
    // What one has in frames, another is led to, but for what it has changed.
    clone.write(ino, 5 * BLOCK, &dice.bytes(BLOCK as usize)).unwrap();
    let second = Served::new(&group, clone.clone(), ino);
    clone.read(ino, 3 * BLOCK, BLOCK as usize).unwrap();
    assert_eq!(seen(&second), 63, "all of the piece that the clone has in common");
}
