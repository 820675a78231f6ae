//! Encrypted pools: nothing of what they hold can be read from their files, and whatever is changed in
//! these is noticed. All that plain pools do, they do.
#![allow(clippy::unwrap_used)]

mod testpool;

use offshoot_os::SystemClock;
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use offshoot_pool::{DataKey, Error, NodeChildren, Pool, PoolOptions};
use offshoot_types::BlockHash;
use std::sync::Arc;
use testpool::*;

/// All files of a pool by their paths.
fn files(disk: &SimDisk) -> Vec<(String, Vec<u8>)> {
    let mut paths: Vec<String> = disk.list("").unwrap();
    for dir in ["segments", "table"] {
        paths.extend(disk.list(dir).unwrap().into_iter().map(|name| format!("{dir}/{name}")));
    }
    let content = |path: String| disk.content(&path).map(|content| (path, content));
    paths.into_iter().filter_map(content).collect()
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(bytes, part).is_some()
}

fn open_with_key(disk: &Arc<SimDisk>, data_key: Option<DataKey>) -> Result<Arc<Pool>, Error> {
    let options = PoolOptions { data_key, ..options() };
    Pool::open(disk.clone() as Arc<dyn Disk>, &options, Arc::new(Nodes), Arc::new(SystemClock))
}

/// The names of a tree's blocks.
fn names(pool: &Pool, root: &BlockHash) -> Vec<BlockHash> {
    let mut names = Nodes.children(&pool.read(root, 0).unwrap()).unwrap();
    names.push(*root);
    names
}

/// Whether a file has the content of a block, or the name of one.
fn is_told(disk: &SimDisk, numbers: std::ops::Range<u64>, names: &[BlockHash]) -> bool {
    let files = files(disk);
    let told = |part: &[u8]| files.iter().any(|(_, bytes)| has(bytes, part));
    numbers.into_iter().any(|number| told(&content(number)[..32]))
        || names.iter().any(|name| told(&name.0[..8]))
}

#[test]
fn the_files_tell_neither_contents_nor_names() {
    for encrypted in [true, false] {
        let disk = SimDisk::new(1);
        let pool = if encrypted { create_encrypted(&disk) } else { create(&disk) };
        let root = commit_tree(&pool, 1, &(0..20).collect::<Vec<_>>()).unwrap();
        let names = names(&pool, &root);
        reclaim(&pool);
        assert_eq!(is_told(&disk, 0..20, &names), !encrypted);
    }
}

#[test]
fn it_opens_with_its_key_alone() {
    let disk = SimDisk::new(2);
    let root = commit_tree(&create_encrypted(&disk), 1, &[1, 2, 3]).unwrap();
    let before = files(&disk);
    assert_eq!(open_with_key(&disk, None).unwrap_err(), Error::NoKey);
    // Whoever opens pools asks for the key that wraps this one: another never comes this far.
    assert!(open_with_key(&disk, Some(DataKey::of([1; 32]))).is_err());
    assert!(files(&disk) == before, "nothing was changed");
    let pool = open_with_key(&disk, Some(key())).unwrap();
    assert_eq!(read_tree(&pool, &root).unwrap(), [content(1), content(2), content(3)]);

    let plain = SimDisk::new(3);
    drop(create(&plain));
    assert_eq!(open_with_key(&plain, Some(key())).unwrap_err(), Error::NotEncrypted);
}

#[test]
fn the_table_is_rebuilt_from_sealed_frames() {
    let disk = SimDisk::new(4);
    let numbers: Vec<u64> = (0..60).collect();
    let root = commit_tree(&create_encrypted(&disk), 1, &numbers).unwrap();
    for name in disk.list("table").unwrap() {
        disk.remove(&format!("table/{name}")).unwrap();
    }
    let pool = open(&disk).unwrap();
    let expected: Vec<_> = numbers.iter().map(|number| content(*number)).collect();
    assert_eq!(read_tree(&pool, &root).unwrap(), expected);
    assert_sound(&pool, "rebuilt");
    assert_eq!(scrub(&pool).damaged, 0);
    drop(pool);
    assert_check_finds_nothing(&disk);
}

#[test]
fn blocks_are_moved_and_room_comes_back() {
    let disk = SimDisk::new(5);
    let pool = create_encrypted(&disk);
    for round in 0..12 {
        let numbers: Vec<u64> = (0..400).filter(|n| n % 12 != round).collect();
        commit_tree(&pool, round as u32, &numbers).unwrap();
        reclaim(&pool);
    }
    let root = commit_tree(&pool, 99, &[5, 105, 205, 305]).unwrap();
    reclaim(&pool);
    assert!(pool.stats().compacted > 0);
    assert!(disk.used() < 2 << 20, "{}", disk.used());
    let pool = open({
        drop(pool);
        &disk
    })
    .unwrap();
    assert_eq!(read_tree(&pool, &root).unwrap().len(), 4);
    assert_sound(&pool, "compacted");
}

/// Another disk with the same files.
fn copy_of(files: &[(String, Vec<u8>)]) -> Arc<SimDisk> {
    let disk = SimDisk::new(6);
    for dir in ["segments", "table"] {
        disk.create_dir(dir).unwrap();
    }
    for (path, bytes) in files {
        disk.create(path).unwrap().write_at(0, bytes).unwrap();
    }
    disk
}

#[test]
fn a_changed_byte_is_never_taken_for_data() {
    let numbers: Vec<u64> = (0..10).collect();
    let expected: Vec<_> = numbers.iter().map(|number| content(*number)).collect();
    let disk = SimDisk::new(6);
    let root = commit_tree(&create_encrypted(&disk), 1, &numbers).unwrap();
    let files = files(&disk);
    let (mut refused, mut older, mut faults) = (0, 0, 0);
    for (path, bytes) in &files {
        for at in (0..bytes.len()).step_by(if path.starts_with("segments") { 41 } else { 5 }) {
            let disk = copy_of(&files);
            disk.flip_bit(path, at as u64, (at % 8) as u8);
            match open_with_key(&disk, Some(key())) {
                Err(_) => refused += 1,
                Ok(pool) if pool.root().hash == root => match read_tree(&pool, &root) {
                    Ok(contents) => assert!(contents == expected, "{path} at {at}"),
                    Err(_) => faults += 1,
                },
                Ok(pool) => {
                    assert!(pool.root().hash.is_zero(), "{path} at {at}");
                    older += 1;
                }
            }
        }
    }
    assert!(refused > 0 && faults > 0, "{refused} refused, {older} older, {faults} faults");
}
