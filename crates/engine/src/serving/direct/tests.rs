#![allow(clippy::unwrap_used)]

use super::{Direct, Left};
use offshoot_direct::{File, Reader, Table};
use offshoot_types::DatasetId;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

const BLOCK: usize = 8192;
const SIZE: u64 = 4 << 20;

/// A server of an engine that is killed: what it has mapped, and what the keeper holds.
fn server(direct: &Direct, number: u64) -> (Reader, Left) {
    let table = direct.table("group").unwrap().unwrap();
    let reader = Reader::of(&table).unwrap();
    let file = table.file(1, BLOCK as u64).unwrap();
    file.publish(0, None, &[number as u8; BLOCK]);
    let held = |fd: &dyn AsFd| fd.as_fd().try_clone_to_owned().unwrap();
    let (memory, frames) = (held(&table.as_fd()), held(&table.group().as_fd()));
    std::mem::forget(file);
    let group = Some("group".to_owned());
    (reader, Left { dataset: DatasetId(number), group, table: memory, frames })
}

fn reads(reader: &Reader) -> Option<u8> {
    let mut block = [0; BLOCK];
    reader.read(1, 0, &mut block).then_some(block[0])
}

fn use_frames(table: &Arc<Table>) -> File {
    let file = table.file(2, SIZE).unwrap();
    (0..SIZE / BLOCK as u64).for_each(|block| file.publish(block, None, &[99; BLOCK]));
    file
}

#[test]
fn no_frame_is_used_again_while_a_server_reads_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let killed = Direct::new(SIZE, dir.path());
    let (readers, left): (Vec<_>, Vec<_>) = (1..=3).map(|number| server(&killed, number)).unzip();
    assert_eq!(readers.iter().map(reads).collect::<Vec<_>>(), [Some(1), Some(2), Some(3)]);
    let next = Direct::new(SIZE, dir.path());
    let tables = next.adopt(left);
    assert_eq!(tables.len(), 3);
    let table = tables[&DatasetId(2)].as_ref().unwrap();
    let _used = use_frames(table);
    assert_eq!(readers.iter().map(reads).collect::<Vec<_>>(), [None; 3]);
    // A server that starts now is one of them.
    let new = next.table("group").unwrap().unwrap();
    assert!(Arc::ptr_eq(new.group(), table.group()));
}

#[test]
fn where_one_table_cannot_be_emptied_no_frames_are_used_again() {
    let dir = tempfile::tempdir().unwrap();
    let killed = Direct::new(SIZE, dir.path());
    let (one, first) = server(&killed, 1);
    let (_, mut second) = server(&killed, 2);
    second.table =
        OwnedFd::from(std::fs::File::open(dir.path().join("liboffshoot_direct.so")).unwrap());
    let next = Direct::new(SIZE, dir.path());
    let tables = next.adopt(vec![first, second]);
    assert!(tables[&DatasetId(2)].is_err());
    assert!(!tables.contains_key(&DatasetId(1)), "its server asks for all");
    assert_eq!(reads(&one), None);
}
