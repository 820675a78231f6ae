//! Files, names and space on a real disk.
#![allow(clippy::unwrap_used)]

mod support;

use offshoot_dataset::{
    AllocateMode, Error, FileKind, Ino, NewInode, RenameMode, SeekTarget, SetAttr, XattrMode,
};
use support::{Dice, TestStore, make_file, small_options};

const BLOCK: u64 = 8192;

#[test]
fn what_is_written_is_there_before_and_after_a_commit_and_a_reopening() {
    let mut test = TestStore::new(small_options());
    let id = test.store.create_dataset().unwrap();
    let mut dice = Dice::new(1);
    let content = dice.bytes(300_000);
    {
        let dataset = test.store.dataset(id).unwrap();
        let ino = make_file(&dataset, b"file");
        dataset.write(ino, 0, &content[..100_000]).unwrap();
        assert_eq!(dataset.read(ino, 0, 1 << 20).unwrap(), content[..100_000]);
        dataset.commit().unwrap();
        assert_eq!(dataset.read(ino, 0, 1 << 20).unwrap(), content[..100_000]);
        dataset.write(ino, 100_000, &content[100_000..]).unwrap();
        assert_eq!(dataset.read(ino, 0, 1 << 20).unwrap(), content);
        assert_eq!(dataset.read(ino, 99_990, 20).unwrap(), content[99_990..100_010]);
        dataset.sync().unwrap();
    }
    for close in [false, true, false] {
        test = test.reopen(close);
        let dataset = test.store.dataset(id).unwrap();
        let attr = dataset.lookup(Ino::ROOT, b"file").unwrap();
        assert_eq!((attr.kind, attr.size), (FileKind::File, 300_000));
        assert_eq!(dataset.read(attr.ino, 0, 1 << 20).unwrap(), content);
    }
}

#[test]
fn truncation_and_holes_read_as_zeros() {
    let test = TestStore::new(small_options());
    let id = test.store.create_dataset().unwrap();
    let dataset = test.store.dataset(id).unwrap();
    let ino = make_file(&dataset, b"file");
    let size = |size| SetAttr { size: Some(size), ..SetAttr::default() };
    for commit in [false, true] {
        dataset.write(ino, 0, &[7; 50_000]).unwrap();
        if commit {
            dataset.commit().unwrap();
        }
        dataset.setattr(ino, &size(10_000)).unwrap();
        dataset.setattr(ino, &size(60_000)).unwrap();
        let read = dataset.read(ino, 0, 100_000).unwrap();
        assert_eq!(read.len(), 60_000);
        assert!(read[..10_000].iter().all(|byte| *byte == 7));
        assert!(read[10_000..].iter().all(|byte| *byte == 0));
        dataset.allocate(ino, 5, 9000, AllocateMode::PunchHole).unwrap();
        let read = dataset.read(ino, 0, 100_000).unwrap();
        assert_eq!(read.len(), 60_000);
        assert_eq!(read.iter().filter(|byte| **byte == 7).count(), 5 + 10_000 - 9005);
        dataset.allocate(ino, 55_000, 9000, AllocateMode::ZeroRange).unwrap();
        assert_eq!(dataset.getattr(ino).unwrap().size, 64_000);
        dataset.setattr(ino, &size(0)).unwrap();
    }
}

#[test]
fn a_sparse_file_of_16_tib_takes_no_space() {
    let test = TestStore::new(small_options());
    let id = test.store.create_dataset().unwrap();
    let dataset = test.store.dataset(id).unwrap();
    let ino = make_file(&dataset, b"file");
    let end = 1 << 44;
    dataset.write(ino, end - 10, &[1; 10]).unwrap();
    dataset.write(ino, 5 << 40, b"middle").unwrap();
    assert_eq!(dataset.write(ino, end - 5, &[1; 10]), Err(Error::FileTooBig));
    for _ in 0..2 {
        assert_eq!(dataset.getattr(ino).unwrap().size, end);
        assert!(dataset.getattr(ino).unwrap().allocated <= 2 * BLOCK);
        assert_eq!(dataset.read(ino, end - 10, 100).unwrap(), [1; 10][..]);
        assert_eq!(dataset.read(ino, 5 << 40, 6).unwrap(), b"middle"[..]);
        assert_eq!(dataset.read(ino, 3 << 40, 6).unwrap(), [0; 6][..]);
        assert_eq!(dataset.seek(ino, 0, SeekTarget::Data).unwrap(), 5 << 40);
        assert_eq!(dataset.seek(ino, 5 << 40, SeekTarget::Hole).unwrap(), (5 << 40) + BLOCK);
        let last = end - BLOCK;
        assert_eq!(dataset.seek(ino, (5 << 40) + BLOCK, SeekTarget::Data).unwrap(), last);
        assert_eq!(dataset.seek(ino, last, SeekTarget::Hole).unwrap(), end);
        assert_eq!(dataset.seek(ino, end, SeekTarget::Data), Err(Error::NoSuchRange));
        dataset.commit().unwrap();
    }
    dataset.allocate(ino, 1 << 40, end - (1 << 40), AllocateMode::PunchHole).unwrap();
    assert_eq!(dataset.seek(ino, 0, SeekTarget::Data), Err(Error::NoSuchRange));
    dataset.commit().unwrap();
    assert_eq!(dataset.getattr(ino).unwrap().allocated, 0);
    assert_eq!(dataset.seek(ino, 0, SeekTarget::Data), Err(Error::NoSuchRange));
}

#[test]
fn a_directory_of_100_000_names_is_listed_once_each_while_it_changes() {
    let test = TestStore::new(small_options());
    let id = test.store.create_dataset().unwrap();
    let dataset = test.store.dataset(id).unwrap();
    let dir = dataset.create(Ino::ROOT, b"dir", &NewInode::directory(0o755)).unwrap().ino;
    let count = 100_000;
    for number in 0..count {
        let name = format!("name-{number}");
        dataset.create(dir, name.as_bytes(), &NewInode::file(0o644)).unwrap();
        if number == count / 2 {
            dataset.commit().unwrap();
        }
    }
    for pass in 0..2 {
        let mut seen = std::collections::BTreeSet::new();
        let mut cookie = 0;
        let mut step = 0;
        loop {
            let entries = dataset.readdir(dir, cookie, 1000).unwrap();
            let Some(last) = entries.last() else { break };
            cookie = last.cookie;
            assert!(entries[0].cookie >= 16 && cookie < 1 << 63);
            for entry in entries {
                assert!(seen.insert(entry.name), "listed twice");
            }
            // Others come and go meanwhile.
            let name = format!("other-{pass}-{step}");
            dataset.create(dir, name.as_bytes(), &NewInode::file(0o644)).unwrap();
            if step % 3 == 0 {
                dataset.unlink(dir, name.as_bytes()).unwrap();
            }
            step += 1;
        }
        for number in 0..count {
            assert!(seen.contains(format!("name-{number}").as_bytes()), "{number} is missing");
        }
        dataset.commit().unwrap();
    }
    assert_eq!(dataset.rmdir(Ino::ROOT, b"dir"), Err(Error::NotEmpty));
    loop {
        let entries = dataset.readdir(dir, 0, 1000).unwrap();
        if entries.is_empty() {
            break;
        }
        for entry in entries {
            dataset.unlink(dir, &entry.name).unwrap();
        }
        dataset.commit().unwrap();
    }
    dataset.rmdir(Ino::ROOT, b"dir").unwrap();
    assert_eq!(dataset.getattr(dir), Err(Error::NotFound));
    assert_eq!(dataset.space().unwrap().inodes, 1);
}

#[test]
fn renames_follow_posix() {
    let test = TestStore::new(small_options());
    let id = test.store.create_dataset().unwrap();
    let dataset = test.store.dataset(id).unwrap();
    let root = Ino::ROOT;
    let replace = RenameMode::Replace;
    let mkdir = |parent, name: &[u8]| {
        dataset.create(parent, name, &NewInode::directory(0o755)).unwrap().ino
    };
    let (a, b) = (mkdir(root, b"a"), mkdir(root, b"b"));
    let c = mkdir(a, b"c");
    let f = make_file(&dataset, b"f");
    let g = make_file(&dataset, b"g");
    assert!(matches!(dataset.rename(root, b"a", c, b"x", replace), Err(Error::Invalid(_))));
    assert!(matches!(dataset.rename(root, b"a", a, b"x", replace), Err(Error::Invalid(_))));
    assert_eq!(dataset.rename(root, b"f", root, b"a", replace), Err(Error::IsDirectory));
    assert_eq!(dataset.rename(root, b"b", root, b"f", replace), Err(Error::NotDirectory));
    assert_eq!(dataset.rename(root, b"b", root, b"a", replace), Err(Error::NotEmpty));
    assert_eq!(dataset.rename(root, b"x", root, b"a", replace), Err(Error::NotFound));
    let mode = RenameMode::NoReplace;
    assert_eq!(dataset.rename(root, b"f", root, b"g", mode), Err(Error::Exists));
    dataset.rename(root, b"f", root, b"g", replace).unwrap();
    assert_eq!(dataset.lookup(root, b"g").unwrap().ino, f);
    assert_eq!(dataset.getattr(g), Err(Error::NotFound));
    dataset.rename(a, b"c", b, b"c", replace).unwrap();
    let nlink = |ino| dataset.getattr(ino).unwrap().nlink;
    assert_eq!((nlink(root), nlink(a), nlink(b)), (4, 2, 3));
    assert_eq!(dataset.parent(c).unwrap(), b);
    dataset.rename(root, b"b", root, b"a", replace).unwrap();
    assert_eq!((nlink(root), dataset.lookup(root, b"a").unwrap().ino), (3, b));
    assert_eq!(dataset.getattr(a), Err(Error::NotFound));
    dataset.rename(root, b"a", root, b"g", RenameMode::Exchange).unwrap();
    assert_eq!(dataset.lookup(root, b"a").unwrap().ino, f);
    assert_eq!(dataset.lookup(root, b"g").unwrap().ino, b);
    dataset.link(f, c, b"hard").unwrap();
    assert_eq!(nlink(f), 2);
    dataset.rename(c, b"hard", root, b"a", replace).unwrap();
    assert_eq!(dataset.lookup(c, b"hard").unwrap().ino, f, "two names of one file stay");
    assert!(matches!(dataset.link(b, root, b"x"), Err(Error::Invalid(_))));
    assert_eq!(dataset.lookup(root, &[b'x'; 256]), Err(Error::NameTooLong));
}

#[test]
fn an_open_file_outlives_its_name_until_it_is_closed_or_the_store_reopened() {
    let test = TestStore::new(small_options());
    let id = test.store.create_dataset().unwrap();
    let (kept, lost);
    {
        let dataset = test.store.dataset(id).unwrap();
        (kept, lost) = (make_file(&dataset, b"kept"), make_file(&dataset, b"lost"));
        for ino in [kept, lost] {
            dataset.write(ino, 0, &[1; 20_000]).unwrap();
            dataset.open(ino).unwrap();
        }
        dataset.commit().unwrap();
        dataset.unlink(Ino::ROOT, b"kept").unwrap();
        dataset.unlink(Ino::ROOT, b"lost").unwrap();
        assert_eq!(dataset.lookup(Ino::ROOT, b"kept"), Err(Error::NotFound));
        dataset.write(lost, 0, &[2; 20_000]).unwrap();
        dataset.commit().unwrap();
        assert_eq!(dataset.read(lost, 0, 20_000).unwrap(), [2; 20_000][..]);
        assert_eq!(dataset.getattr(lost).unwrap().nlink, 0);
        dataset.close(kept);
        assert_eq!(dataset.getattr(kept), Err(Error::NotFound));
        dataset.write(lost, 0, &[3; 20_000]).unwrap();
        dataset.sync().unwrap();
    }
    let test = test.reopen(false);
    let dataset = test.store.dataset(id).unwrap();
    assert_eq!(dataset.getattr(lost), Err(Error::NotFound));
    dataset.commit().unwrap();
    let space = dataset.space().unwrap();
    assert_eq!((space.inodes, space.logical), (1, 0));
}

#[test]
fn extended_attributes_of_all_lengths_come_back() {
    let mut test = TestStore::new(small_options());
    let id = test.store.create_dataset().unwrap();
    let mut dice = Dice::new(3);
    let values: Vec<Vec<u8>> = [0, 1, 512, 513, 65_536]
        .iter()
        .map(|len| dice.bytes(*len))
        .chain([vec![0; 5000]])
        .collect();
    for round in 0..3 {
        let dataset = test.store.dataset(id).unwrap();
        for (number, value) in values.iter().enumerate() {
            let name = format!("user.{number}");
            if round == 0 {
                let mode = XattrMode::Create;
                dataset.set_xattr(Ino::ROOT, name.as_bytes(), value, mode).unwrap();
            }
            let mode = XattrMode::Create;
            let again = dataset.set_xattr(Ino::ROOT, name.as_bytes(), value, mode);
            assert_eq!(again, Err(Error::Exists));
            assert_eq!(&dataset.get_xattr(Ino::ROOT, name.as_bytes()).unwrap(), value);
        }
        assert_eq!(dataset.list_xattrs(Ino::ROOT).unwrap().len(), values.len());
        assert_eq!(dataset.get_xattr(Ino::ROOT, b"user.x"), Err(Error::NoAttribute));
        assert_eq!(dataset.remove_xattr(Ino::ROOT, b"user.x"), Err(Error::NoAttribute));
        dataset.sync().unwrap();
        drop(dataset);
        test = test.reopen(round == 1);
    }
    let dataset = test.store.dataset(id).unwrap();
    dataset.remove_xattr(Ino::ROOT, b"user.4").unwrap();
    assert_eq!(dataset.list_xattrs(Ino::ROOT).unwrap().len(), values.len() - 1);
    dataset.commit().unwrap();
    assert_eq!(dataset.list_xattrs(Ino::ROOT).unwrap().len(), values.len() - 1);
    assert_eq!(dataset.get_xattr(Ino::ROOT, b"user.4"), Err(Error::NoAttribute));
}

#[test]
fn copies_share_blocks_whether_committed_or_not() {
    let test = TestStore::new(small_options());
    let (one, two) = (test.store.create_dataset().unwrap(), test.store.create_dataset().unwrap());
    let (one, two) = (test.store.dataset(one).unwrap(), test.store.dataset(two).unwrap());
    let mut dice = Dice::new(9);
    let mut content = dice.bytes(200_123);
    let ino = make_file(&one, b"source");
    one.write(ino, 0, &content).unwrap();
    one.commit().unwrap();
    let fresh = dice.bytes(20_000);
    one.write(ino, 70_000, &fresh).unwrap();
    content[70_000..90_000].copy_from_slice(&fresh);
    let used = test.store.stats().live;
    for dataset in [&one, &two] {
        let copy = make_file(dataset, b"copy");
        assert_eq!(dataset.copy_range(&one, ino, 0, copy, 0, u64::MAX >> 2).unwrap(), 200_123);
        assert_eq!(dataset.read(copy, 0, 1 << 20).unwrap(), content);
        let odd = make_file(dataset, b"odd");
        assert_eq!(dataset.copy_range(&one, ino, 777, odd, 3, 100_000).unwrap(), 100_000);
        assert_eq!(dataset.read(odd, 3, 1 << 20).unwrap(), content[777..100_777]);
        let part = make_file(dataset, b"part");
        dataset.write(part, 0, &[9; 40_000]).unwrap();
        assert_eq!(dataset.copy_range(&one, ino, 8192 + 5, part, 5, 20_000).unwrap(), 20_000);
        let read = dataset.read(part, 0, 1 << 20).unwrap();
        assert_eq!(read[5..20_005], content[8197..28_197]);
        assert!(read[20_005..].iter().all(|byte| *byte == 9) && read.len() == 40_000);
        dataset.unlink(Ino::ROOT, b"odd").unwrap();
        dataset.unlink(Ino::ROOT, b"part").unwrap();
    }
    // The source goes before the copies are committed.
    one.unlink(Ino::ROOT, b"source").unwrap();
    one.commit().unwrap();
    while test.store.pool().reclaim_step().unwrap() {}
    two.sync().unwrap();
    for dataset in [&one, &two] {
        let copy = dataset.lookup(Ino::ROOT, b"copy").unwrap().ino;
        assert_eq!(dataset.read(copy, 0, 1 << 20).unwrap(), content);
    }
    assert!(test.store.stats().live < used + 60_000, "the copies share their blocks");
}
