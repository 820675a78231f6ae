use super::*;
use crate::Watcher;
use crate::tests::Pool;
use parking_lot::Mutex;

const OWNED: NewFile = NewFile { mode: 0o640, uid: 7, gid: 8 };
const DIRECTORY: NewFile = NewFile { mode: 0o750, uid: 7, gid: 8 };

fn names(fs: &FileSystem, path: &str) -> Vec<String> {
    fs.list(path).unwrap().into_iter().map(|e| e.name.into_string().unwrap()).collect()
}

#[test]
fn writes_reads_replaces_and_lists() {
    let pool = Pool::new();
    let fs = pool.fs();
    assert!(!fs.exists("a/b/file").unwrap());
    fs.create_dirs("a/b", DIRECTORY).unwrap();
    fs.create_dirs("/a/b/", NewFile { mode: 0o777, ..DIRECTORY }).unwrap();
    fs.write_file("a/b/file", b"first", OWNED).unwrap();
    let first = fs.stat("a/b/file").unwrap();
    assert_eq!((first.mode, first.uid, first.gid, first.size), (0o640, 7, 8, 5));
    assert_eq!(fs.stat("/a/b").unwrap().mode, 0o750);
    fs.write_file("a/b/file", b"the second", OWNED).unwrap();
    assert_eq!(fs.read_file("a/b/file", 1 << 20).unwrap(), b"the second");
    assert_ne!(fs.stat("a/b/file").unwrap().ino, first.ino);
    assert_eq!(names(&fs, "a/b"), ["file"], "nothing temporary is left");
    assert!(fs.exists("a/b/file").unwrap() && !fs.exists("a/b/file/below").unwrap());
}

#[test]
fn errors_name_the_path_and_keep_the_cause() {
    let pool = Pool::new();
    let fs = pool.fs();
    fs.write_file("file", b"x", OWNED).unwrap();
    let error = fs.read_file("missing/file", 1 << 20).unwrap_err();
    assert!(error.is_not_found() && error.errno() == libc::ENOENT);
    assert_eq!(error.to_string(), "cannot read 'missing/file': no such file or directory");
    assert_eq!(fs.read_file("", 1 << 20).unwrap_err().source, Error::IsDirectory);
    assert_eq!(fs.create_dirs("file/dir", DIRECTORY).unwrap_err().source, Error::NotDirectory);
    assert_eq!(fs.create_file("file", OWNED).err().unwrap().source, Error::Exists);
    assert!(matches!(fs.stat("a/../file").unwrap_err().source, Error::Invalid(_)));
    let failure = offshoot_types::Failure::from(error);
    assert_eq!(failure.code, offshoot_types::ErrorKind::NotFound);
    assert!(failure.message.contains("missing/file"));
}

#[test]
fn follows_relative_links_on_the_way_only() {
    let pool = Pool::new();
    let fs = pool.fs();
    fs.create_dirs("real/deep", DIRECTORY).unwrap();
    fs.write_file("real/deep/file", b"x", OWNED).unwrap();
    fs.create_symlink("link", "real/./deep", OWNED).unwrap();
    fs.create_symlink("real/up", "../real/deep", OWNED).unwrap();
    fs.create_symlink("out", "/etc", OWNED).unwrap();
    fs.create_symlink("round", "round", OWNED).unwrap();
    assert_eq!(fs.read_file("link/file", 1 << 20).unwrap(), b"x");
    assert_eq!(fs.read_file("real/up/file", 1 << 20).unwrap(), b"x");
    assert_eq!(fs.stat("link").unwrap().kind, FileKind::Symlink);
    assert_eq!(fs.read_symlink("link").unwrap(), Path::new("real/./deep"));
    assert!(matches!(fs.stat("out/passwd").unwrap_err().source, Error::Invalid(_)));
    assert!(matches!(fs.stat("round/x").unwrap_err().source, Error::Invalid(_)));
}

#[test]
fn removes_deep_and_wide_trees() {
    let pool = Pool::new();
    let fs = pool.fs();
    let deep = "d/".repeat(300);
    fs.create_dirs(&deep, DIRECTORY).unwrap();
    fs.create_dirs("d/wide", DIRECTORY).unwrap();
    for number in 0..2500 {
        fs.create_file(format!("d/wide/{number}"), OWNED).unwrap();
    }
    fs.write_file("keep", b"x", OWNED).unwrap();
    fs.remove_tree("d").unwrap();
    fs.remove_tree("d").unwrap();
    assert_eq!(names(&fs, ""), ["keep"]);
    fs.create_dirs("e/f", DIRECTORY).unwrap();
    fs.remove_tree("").unwrap();
    assert!(names(&fs, "").is_empty());
}

#[test]
fn sets_owners_of_a_tree() {
    let pool = Pool::new();
    let fs = pool.fs();
    fs.create_dirs("top/sub", DIRECTORY).unwrap();
    fs.write_file("top/sub/file", b"x", OWNED).unwrap();
    fs.create_symlink("top/link", "sub", OWNED).unwrap();
    fs.write_file("other", b"x", OWNED).unwrap();
    fs.set_owner("top", 100, 200).unwrap();
    for path in ["top", "top/sub", "top/sub/file", "top/link"] {
        let attr = fs.stat(path).unwrap();
        assert_eq!((attr.uid, attr.gid), (100, 200), "{path}");
    }
    assert_eq!(fs.stat("other").unwrap().uid, 7);
    fs.set_mode("other", 0o400).unwrap();
    assert_eq!(fs.stat("other").unwrap().mode, 0o400);
}

#[test]
fn shares_files_between_datasets() {
    let pool = Pool::new();
    let (from, to) = (pool.fs(), pool.fs());
    let content: Vec<u8> = (0..1_000_003_u32).map(|at| (at / 3) as u8).collect();
    from.write_file("segment", &content, OWNED).unwrap();
    to.write_file("place", b"taken", NewFile { mode: 0o777, uid: 0, gid: 0 }).unwrap();
    assert_eq!(to.share_file(&from, "segment", "place").unwrap(), content.len() as u64);
    let (source, target) = (from.stat("segment").unwrap(), to.stat("place").unwrap());
    assert_eq!((target.mode, target.uid, target.mtime), (0o640, 7, source.mtime));
    from.remove_tree("segment").unwrap();
    assert!(to.read_file("place", 1 << 20).unwrap() == content);
    let error = to.share_file(&from, "segment", "other").unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(names(&to, ""), ["place"]);

    let sparse = from.create_file("sparse", OWNED).unwrap();
    sparse.write_at(0, b"x").unwrap();
    sparse.set_len(1 << 30).unwrap();
    assert_eq!(to.share_file(&from, "sparse", "sparse").unwrap(), 1 << 30);
    let attr = to.stat("sparse").unwrap();
    assert!(attr.size == 1 << 30 && attr.allocated < 1 << 20, "{attr:?}");
}

#[test]
fn open_files_outlive_their_names() {
    let pool = Pool::new();
    let fs = pool.fs();
    let file = fs.create_file("file", OWNED).unwrap();
    assert!(file.is_empty().unwrap());
    assert_eq!(file.append(b"one").unwrap(), 0);
    assert_eq!(file.append(b"two").unwrap(), 3);
    fs.remove_tree("file").unwrap();
    file.write_at(6, b"three").unwrap();
    let mut buffer = [0; 20];
    assert_eq!(file.read_at(1, &mut buffer).unwrap(), 10);
    assert_eq!(&buffer[..10], b"netwothree");
    file.set_len(2).unwrap();
    assert_eq!(file.len().unwrap(), 2);
    let ino = file.ino();
    drop(file);
    assert!(fs.dataset().getattr(ino).is_err(), "gone with its last user");
}

#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Watcher for Heard {
    fn entry_changed(&self, parent: Ino, name: &[u8]) {
        let name = String::from_utf8_lossy(name).into_owned();
        self.0.lock().push(format!("{}/{name}", parent.0));
    }

    fn inode_changed(&self, ino: Ino) {
        self.0.lock().push(format!("inode {}", ino.0));
    }
}

#[test]
fn watchers_hear_of_changes_until_they_leave() {
    let pool = Pool::new();
    let fs = pool.fs();
    let heard = Arc::new(Heard::default());
    let watch = fs.watch(heard.clone());
    fs.write_file("file", b"x", OWNED).unwrap();
    let ino = fs.stat("file").unwrap().ino.0;
    fs.open_file("file").unwrap().append(b"y").unwrap();
    fs.rename("file", "moved").unwrap();
    fs.set_owner("moved", 1, 1).unwrap();
    fs.remove_tree("moved").unwrap();
    let inode = format!("inode {ino}");
    let expected = ["1/file", &inode, "1/file", "1/moved", &inode, "1/moved"];
    assert_eq!(*heard.0.lock(), expected);
    drop(watch);
    fs.write_file("unheard", b"x", OWNED).unwrap();
    assert_eq!(heard.0.lock().len(), 6);
}

#[test]
fn files_of_two_datasets_are_compared_by_path() {
    let pool = Pool::new();
    let (one, other) = (pool.fs(), pool.fs());
    for fs in [&one, &other] {
        fs.create_dirs("a", DIRECTORY).unwrap();
        fs.write_file("a/same", &[7; 30_000], OWNED).unwrap();
        fs.dataset().commit().unwrap();
    }
    one.write_file("a/new", &[7; 30_000], OWNED).unwrap();
    assert_eq!(one.differing_blocks("a/same", &other).unwrap(), Some(vec![]));
    assert_eq!(one.differing_blocks("a/new", &other).unwrap(), None);
    assert!(other.differing_blocks("a/new", &one).is_err(), "it must be here");
    assert!(one.differing_blocks("a", &other).is_err(), "a directory has no blocks");
}

#[test]
fn nothing_is_read_of_a_file_that_is_larger_than_it_should_be() {
    let pool = Pool::new();
    let fs = pool.fs();
    let sparse = fs.create_file("sparse", NewFile::private(0, 0)).unwrap();
    sparse.set_len(500 << 30).unwrap();
    assert_eq!(fs.read_file("sparse", 16 << 20).unwrap_err().source, Error::FileTooBig);
    sparse.set_len(5).unwrap();
    assert_eq!(fs.read_file("sparse", 4).unwrap_err().source, Error::FileTooBig);
    assert_eq!(fs.read_file("sparse", 5).unwrap(), [0; 5]);
}
