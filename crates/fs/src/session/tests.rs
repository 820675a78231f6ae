use super::*;
use crate::NewFile;
use crate::tests::Pool;

fn inode(kind: NewKind, mode: u32, (uid, gid): (u32, u32)) -> NewInode {
    NewInode { kind, mode, uid, gid, rdev: 0 }
}

#[test]
fn what_a_client_left_open_is_closed() {
    let pool = Pool::new();
    let fs = pool.fs();
    fs.write_file("file", b"x", NewFile::private(7, 8)).unwrap();
    let ino = fs.stat("file").unwrap().ino;
    let open = Session::new(&fs);
    assert!(!open.open(ino, false).unwrap());
    assert!(open.open(ino, true).unwrap());
    open.close(ino);
    assert!(open.open(ino, false).unwrap(), "until all have closed it");
    open.close(ino);
    open.close(Ino(999_999));
    assert_eq!(open.open.len(), 1);
    fs.remove_tree("file").unwrap();
    assert!(fs.dataset().getattr(ino).is_ok());
    drop(open);
    assert!(fs.dataset().getattr(ino).is_err());
}

#[test]
fn privileges_are_dropped_as_posix_wants() {
    let pool = Pool::new();
    let fs = pool.fs();
    let session = Session::new(&fs);
    let (root, user) = (0, 5);
    let new = inode(NewKind::File, 0o6711, (5, 6));
    let attr = session.create(&Asked::Once, Ino::ROOT, b"file", new).unwrap();
    assert_eq!((attr.mode, attr.uid, attr.gid), (0o6711, 5, 6));
    let mode = |mode| SetAttr { mode: Some(mode), ..SetAttr::default() };
    let mode_now = || session.attributes(attr.ino).unwrap().mode;

    session.write(attr.ino, 0, b"x", false).unwrap();
    assert_eq!(mode_now(), 0o6711);
    session.write(attr.ino, 0, b"x", true).unwrap();
    assert_eq!(mode_now(), 0o711);

    // Set-gid without the execute bit is not a privilege.
    session.set_attributes(root, attr.ino, &mode(0o6600)).unwrap();
    let owner = SetAttr { uid: Some(9), ..SetAttr::default() };
    assert_eq!(session.set_attributes(root, attr.ino, &owner).unwrap().mode, 0o2600);

    let cut = SetAttr { size: Some(0), ..SetAttr::default() };
    session.set_attributes(root, attr.ino, &mode(0o4755)).unwrap();
    assert_eq!(session.set_attributes(root, attr.ino, &cut).unwrap().mode, 0o4755);
    assert_eq!(session.set_attributes(user, attr.ino, &cut).unwrap().mode, 0o755);
}

#[test]
fn directories_list_dots_and_hand_down_their_group() {
    let pool = Pool::new();
    let fs = pool.fs();
    let session = Session::new(&fs);
    let create =
        |parent, name: &[u8], new| session.create(&Asked::Once, parent, name, new).unwrap();
    let dir = create(Ino::ROOT, b"dir", inode(NewKind::Directory, 0o2770, (5, 6)));
    assert_eq!(dir.mode & 0o2000, 0o2000);
    let sub = create(dir.ino, b"sub", inode(NewKind::Directory, 0o700, (1, 2)));
    assert_eq!((sub.uid, sub.gid, sub.mode), (1, 6, 0o2700));
    for number in 0..10 {
        let name = format!("file-{number}");
        let file = create(sub.ino, name.as_bytes(), inode(NewKind::File, 0o600, (1, 2)));
        assert_eq!((file.gid, file.mode), (6, 0o600));
    }
    for max in [1, 2, 3, 100] {
        let (mut seen, mut cookie) = (Vec::new(), 0);
        loop {
            let batch = session.read_directory(sub.ino, cookie, max).unwrap();
            let Some(last) = batch.last() else { break };
            cookie = last.cookie;
            seen.extend(batch.into_iter().map(|entry| (entry.name, entry.ino)));
        }
        assert_eq!(seen.len(), 12, "by {max}");
        assert_eq!(seen[..2], [(b".".to_vec(), sub.ino), (b"..".to_vec(), dir.ino)]);
    }
    assert_eq!(session.lookup(sub.ino, b"..").unwrap().ino, dir.ino);
    assert_eq!(session.lookup(Ino::ROOT, b"..").unwrap().ino, Ino::ROOT);
}

/// As a killed engine leaves it to the next: the same memory, no clean end.
#[test]
fn what_an_earlier_engine_did_is_answered_and_not_done_again() {
    let pool = Pool::new();
    let dataset = pool.dataset();
    let fs = FileSystem::new(dataset.clone());
    let volatile = Arc::new(VolatileLog::create().unwrap());
    let session = Session::new(&fs);
    session.survive(volatile.clone());
    let id = |number| RequestId::new(number).unwrap();
    let new = || inode(NewKind::File, 0o600, (1, 2));
    let asked = session.ask(id(7), false);
    let made = session.create(&asked, Ino::ROOT, b"made", new()).unwrap();
    let asked_too = session.ask(id(9), false);
    session
        .rename(&asked_too, (Ino::ROOT, b"made"), (Ino::ROOT, b"moved"), RenameMode::Replace)
        .unwrap();

    let next = Session::taken_over(&fs);
    // The same number, but not sent again: another request.
    assert!(matches!(next.ask(id(7), false), Asked::New(_)));
    assert!(matches!(next.ask(id(8), true), Asked::New(_)));
    let again = next.ask(id(7), true);
    let answer = next.create(&again, Ino::ROOT, b"made", new()).unwrap();
    assert_eq!(answer.ino, made.ino);
    let again = next.ask(id(9), true);
    next.rename(&again, (Ino::ROOT, b"made"), (Ino::ROOT, b"moved"), RenameMode::Replace).unwrap();
    let names = next.read_directory(Ino::ROOT, 2, 10).unwrap();
    assert_eq!(names.iter().map(|entry| &entry.name[..]).collect::<Vec<_>>(), [b"moved"]);
}
