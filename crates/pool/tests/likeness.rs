//! Nodes that replace others: only what differs is counted, and every count is right.
#![allow(clippy::unwrap_used)]

mod testpool;

use offshoot_os::disk::sim::SimDisk;
use offshoot_pool::Transaction;
use offshoot_types::BlockHash;
use testpool::*;

const SALT: u32 = 7;
const CHILDREN: usize = 8;
const LEAVES: usize = 5;

/// A node and the blocks below it; 0 is a hole.
#[derive(Clone)]
struct Leaf {
    hash: BlockHash,
    numbers: Vec<u64>,
}

fn write_leaf(transaction: &Transaction, like: &BlockHash, numbers: Vec<u64>) -> Leaf {
    let child = |number: &u64| match number {
        0 => BlockHash::ZERO,
        number => transaction.write_data(&content(*number)).unwrap(),
    };
    let children: Vec<BlockHash> = numbers.iter().map(child).collect();
    let hash = transaction.write_node_like(like, &node(SALT, &children)).unwrap();
    Leaf { hash, numbers }
}

/// Takes some leaf, changes up to three of its blocks, and puts it instead of that one or another, so
/// an old node may stay, and two new ones may replace the same one.
fn change_leaf(transaction: &Transaction, dice: &mut Random, leaves: &mut [Leaf]) {
    let (from, to) = (dice.below(LEAVES as u64) as usize, dice.below(LEAVES as u64) as usize);
    let to = if dice.below(2) == 0 { from } else { to };
    let mut numbers = leaves[from].numbers.clone();
    for _ in 0..dice.below(4) {
        numbers[dice.below(CHILDREN as u64) as usize] = dice.below(24);
    }
    numbers[0] = 1;
    leaves[to] = write_leaf(transaction, &leaves[from].hash, numbers);
}

#[test]
fn whatever_takes_the_place_of_what_the_counts_add_up() {
    for seed in seeds(20) {
        let disk = SimDisk::new(seed);
        let mut pool = create(&disk);
        let mut dice = Random(seed);
        let empty = Leaf { hash: BlockHash::ZERO, numbers: vec![0; CHILDREN] };
        let mut leaves = vec![empty; LEAVES];
        for round in 0..40u32 {
            let context = format!("seed {seed}, round {round}");
            let transaction = pool.begin();
            let before = leaves.clone();
            for _ in 0..=dice.below(4) {
                change_leaf(&transaction, &mut dice, &mut leaves);
            }
            let pin = (dice.below(4) == 0 && !before[0].hash.is_zero())
                .then(|| pool.pin(&before[0].hash).unwrap());
            let hashes: Vec<BlockHash> = leaves.iter().map(|leaf| leaf.hash).collect();
            let root = transaction.write_node(&node(round, &hashes)).unwrap();
            if dice.below(6) == 0 {
                drop(transaction);
                leaves = before;
                assert_sound(&pool, &context);
                continue;
            }
            pool.commit(transaction, root, b"").unwrap();
            assert_sound(&pool, &context);
            drop(pin);
            match dice.below(4) {
                0 => reclaim(&pool),
                1 => {
                    drop(pool);
                    pool = open(&disk).unwrap();
                }
                _ => {}
            }
            let present =
                leaves.iter().flat_map(|leaf| &leaf.numbers).filter(|number| **number != 0);
            assert_eq!(
                blocks_of(&pool, &hashes),
                present.copied().map(content).collect::<Vec<_>>()
            );
        }
        pool.commit(pool.begin(), BlockHash::ZERO, b"").unwrap();
        reclaim(&pool);
        assert_eq!(
            (pool.stats().blocks, pool.stats().segments),
            (0, 0),
            "seed {seed}: all is given back"
        );
    }
}

/// The contents of all blocks below these nodes, in order.
fn blocks_of(pool: &offshoot_pool::Pool, leaves: &[BlockHash]) -> Vec<Vec<u8>> {
    use offshoot_pool::NodeChildren;
    let mut contents = Vec::new();
    for leaf in leaves.iter().filter(|leaf| !leaf.is_zero()) {
        let mut children = Nodes.children(&pool.read(leaf, 0).unwrap()).unwrap();
        children.retain(|child| !child.is_zero());
        contents.extend(children.iter().map(|child| pool.read(child, 0).unwrap().to_vec()));
    }
    contents
}
