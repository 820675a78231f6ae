use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

fn name(number: u64) -> BlockHash {
    // Spread as a real hash is, so that the parts fill evenly.
    let mut hash = [0; 32];
    let mut z = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for chunk in hash.chunks_mut(8) {
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        chunk.copy_from_slice(&z.to_le_bytes());
    }
    BlockHash(hash)
}

fn block(len: usize) -> BlockData {
    BlockData::new(vec![1; len])
}

#[test]
fn stays_within_its_size_bookkeeping_included() {
    const SIZE: u64 = 64 << 20;
    for len in [1024, 8192, 65_536] {
        let cache = BlockCache::new(SIZE);
        for number in 0..(3 * SIZE / len as u64) {
            cache.insert(name(number), block(len));
        }
        let structures = cache.blocks.memory_used();
        // 16 for the reference counts, 16 for the allocator.
        let real = cache.blocks.len() as u64 * (len as u64 + 32)
            + (structures.entries + structures.map) as u64;
        assert!(real <= SIZE * 105 / 100, "{len}-byte blocks take {real} of {SIZE}");
        assert!(real >= SIZE * 85 / 100, "{len}-byte blocks take only {real} of {SIZE}");
        assert!(cache.stats().used <= SIZE);
    }
}

#[test]
fn a_scan_leaves_the_hot_set() {
    let cache = BlockCache::new(16 << 20);
    let read = |number| {
        cache.get_or_load::<()>(&name(number), 1, || Ok(block(8192))).unwrap();
    };
    for _ in 0..4 {
        (0..1000).for_each(read);
    }
    (1_000_000..1_020_000).for_each(read);
    let kept = (0..1000).filter(|&number| cache.contains(&name(number))).count();
    assert!(kept >= 900, "{kept} of 1000 hot blocks outlive a scan ten times the cache's size");
}

#[test]
fn what_somebody_will_read_outlives_what_is_only_written() {
    let cache = BlockCache::new(16 << 20);
    let write = |number| cache.insert(name(number), block(8192));
    (1_000_000..1_004_000).for_each(write);
    (0..300).for_each(|number| cache.insert_as_read(name(number), block(8192)));
    (300..600).for_each(write);
    (2_000_000..2_020_000).for_each(write);
    let kept =
        |range: std::ops::Range<u64>| range.filter(|&number| cache.contains(&name(number))).count();
    let (read, written) = (kept(0..300), kept(300..600));
    assert!(read >= 270 && written < 30, "{read} and {written} of 300 are left");
}

#[test]
fn hits_and_misses_are_counted_by_owner() {
    let cache = BlockCache::new(1 << 20);
    for owner in [3, 4, 11] {
        for number in 0..5 {
            cache.get_or_load::<()>(&name(number), owner, || Ok(block(10))).unwrap();
        }
    }
    assert_eq!(cache.get(&name(0), 3), Some(block(10)));
    assert_eq!(cache.get(&name(99), 3), None);
    let stats = cache.stats();
    let of = |owner, hits, misses| OwnerStats { owner, hits, misses };
    assert_eq!(stats.owners, [of(3, 1, 5), of(4, 5, 0), of(11, 5, 0)]);
    assert_eq!((stats.hits, stats.misses, stats.blocks), (11, 5, 5));
    cache.forget_owner(3);
    assert_eq!(cache.stats().owners.len(), 2);
}

#[test]
fn one_of_many_loads_and_a_failure_is_not_kept() {
    let cache = BlockCache::new(1 << 20);
    let loads = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for owner in 0..8 {
            let (cache, loads) = (&cache, &loads);
            scope.spawn(move || {
                let load = || {
                    loads.fetch_add(1, Ordering::SeqCst);
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    Ok::<_, ()>(block(10))
                };
                assert_eq!(cache.get_or_load(&name(1), owner, load), Ok(block(10)));
            });
        }
    });
    assert_eq!(loads.load(Ordering::SeqCst), 1);
    assert_eq!(cache.get_or_load(&name(2), 0, || Err("no")), Err("no"));
    assert_eq!(cache.get_or_load::<()>(&name(2), 0, || Ok(block(3))), Ok(block(3)));
    cache.remove(&name(2));
    assert!(!cache.contains(&name(2)));
}

#[test]
fn a_claim_is_given_once_and_waited_for() {
    let cache = BlockCache::new(1 << 20);
    let claim = cache.claim(&name(1)).unwrap();
    assert!(cache.claim(&name(1)).is_none(), "somebody loads it");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| cache.get_or_load::<()>(&name(1), 3, || Ok(block(20))));
        claim.fill(block(10));
        let got = waiter.join().unwrap().unwrap();
        assert_eq!(got, block(10), "the waiter loads nothing");
    });
    assert!(cache.claim(&name(1)).is_none(), "it is there");
    cache.count_miss(4);
    // If it is dropped, the next one gets it.
    drop(cache.claim(&name(2)).unwrap());
    assert!(cache.claim(&name(2)).is_some());
    let of = |owner, hits, misses| OwnerStats { owner, hits, misses };
    assert_eq!(cache.stats().owners, [of(3, 1, 0), of(4, 0, 1)]);
}
