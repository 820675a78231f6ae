use super::*;
use crate::block_map::BlockMap;
use crate::blocks::PoolReader;
use crate::tests::{create, open};
use crate::tree;
use crate::{NewInode, Store};
use offshoot_format::inode::inode_key;
use offshoot_format::segment::{FRAME_LEN, Frame};
use offshoot_os::disk::Disk;
use std::sync::Arc;

struct Made {
    _dir: tempfile::TempDir,
    disk: Arc<dyn Disk>,
    store: Arc<Store>,
    /// Has `below/file` of 300 blocks and `twin`, whose block 2 is as block 7 of that.
    dataset: DatasetId,
    file: Ino,
}

fn content(block: u64) -> Vec<u8> {
    let mut content: Vec<u8> = (0..8192u64).map(|at| (at * block + at / 7) as u8 | 1).collect();
    content[..8].copy_from_slice(&(block + 1).to_le_bytes());
    content
}

fn made() -> Made {
    let (dir, disk) = create();
    let store = open(&disk);
    let id = store.create_dataset().unwrap();
    let dataset = store.dataset(id).unwrap();
    let below = dataset.create(Ino::ROOT, b"below", &NewInode::directory(0o755)).unwrap().ino;
    let file = dataset.create(below, b"file", &NewInode::file(0o644)).unwrap().ino;
    let twin = dataset.create(Ino::ROOT, b"twin", &NewInode::file(0o644)).unwrap().ino;
    for block in 0..300 {
        dataset.write(file, block * 8192, &content(block)).unwrap();
    }
    dataset.write(twin, 2 * 8192, &content(7)).unwrap();
    dataset.commit().unwrap();
    Made { _dir: dir, disk, store, dataset: id, file }
}

impl Made {
    fn reader(&self) -> PoolReader {
        PoolReader { pool: self.store.pool().clone(), owner: 0 }
    }

    fn root(&self) -> BlockHash {
        self.store.directory_record(self.dataset).tree.root
    }

    fn map(&self) -> BlockMap {
        let value = tree::get(&self.reader(), self.root(), &inode_key(self.file)).unwrap().unwrap();
        let record = InodeRecord::decode(&value).unwrap();
        BlockMap { height: record.height, root: record.root }
    }

    fn block(&self, index: u64) -> BlockHash {
        let mut found = [BlockHash::ZERO];
        self.map().lookup(&self.reader(), index, &mut found).unwrap();
        found[0]
    }

    fn holders(&self, hash: BlockHash) -> Holders {
        self.store.holders(&[hash]).remove(&hash).unwrap()
    }
}

fn held(state: StateId, path: &str, offset: u64, len: u64) -> Holder {
    Holder { state, file: Some(HeldFile { path: path.to_owned(), offset, len }) }
}

#[test]
fn files_of_all_states_that_hold_a_block_are_named() {
    let made = made();
    let snapshot = made.store.snapshot(made.dataset).unwrap();
    let clone = made.store.clone_snapshot(snapshot).unwrap();
    let dataset = made.store.dataset(made.dataset).unwrap();
    let bad = made.block(7);
    dataset.write(made.file, 7 * 8192, b"changed").unwrap();
    dataset.commit().unwrap();
    let (now, snapshot) = (StateId::Dataset(made.dataset), StateId::Snapshot(snapshot));
    let both = |state| [held(state, "below/file", 57_344, 8192), held(state, "twin", 16_384, 8192)];
    let mut expected = vec![held(now, "twin", 16_384, 8192)];
    expected.extend(both(StateId::Dataset(clone)));
    expected.extend(both(snapshot));
    assert_eq!(made.holders(bad), Holders { named: expected, more: 0 });
    assert_eq!(made.holders(BlockHash([9; 32])), Holders::default());
}

#[test]
fn nodes_have_holders_too() {
    let made = made();
    let state = StateId::Dataset(made.dataset);
    let children = map_children(&made.reader(), &made.map().root).unwrap();
    assert_eq!(
        made.holders(children[2]).named,
        [held(state, "below/file", 256 * 8192, 44 * 8192)],
        "the last 44 blocks"
    );
    assert_eq!(made.holders(made.root()).named, [Holder { state, file: None }]);
    let directory = Holder { state: StateId::Directory, file: None };
    assert_eq!(made.holders(made.store.version()).named, [directory]);
}

#[test]
fn many_holders_are_counted() {
    let made = made();
    let bad = made.block(8);
    for _ in 0..20 {
        made.store.snapshot(made.dataset).unwrap();
    }
    let holders = made.holders(bad);
    assert_eq!((holders.named.len(), holders.more), (16, 5));
    assert_eq!(holders.named[0], held(StateId::Dataset(made.dataset), "below/file", 65_536, 8192));
}

#[test]
fn damage_elsewhere_hides_only_what_is_below_it() {
    let made = made();
    let children = map_children(&made.reader(), &made.map().root).unwrap();
    let (lost, there, below) = (children[0], made.block(140), made.block(20));
    let Made { _dir, disk, store, dataset, .. } = made;
    store.close().unwrap();
    drop(store);
    let path = format!("segments/{}", disk.list("segments").unwrap()[0]);
    let file = disk.open(&path).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    let of_lost = |frame: &[u8]| Frame::decode(frame).is_ok_and(|frame| frame.hash == lost);
    let at = bytes.windows(FRAME_LEN as usize).position(of_lost).unwrap() + 100;
    file.write_at(at as u64, &[bytes[at] ^ 4]).unwrap();
    let store = open(&disk);
    let found = store.holders(&[there, below]);
    let state = StateId::Dataset(dataset);
    assert_eq!(found[&below], Holders::default());
    assert_eq!(found[&there].named, [held(state, "below/file", 140 * 8192, 8192)]);
    // What could not be read is now known.
    assert_eq!(store.faults().iter().map(|fault| fault.hash).collect::<Vec<_>>(), [lost]);
    let found = store.holders(&[lost]);
    assert_eq!(found[&lost].named, [held(state, "below/file", 0, 128 * 8192)]);
}
