use crate::{Catalog, Error, Keyring, SecretKey};
use offshoot_domain::Secret;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const MARK: &str = "correct-horse-battery-staple";
/// A catalog of the first release, with secrets in the clear.
const PLAIN: &str = include_str!("../../tests/fixtures/version1.sql");

fn key(byte: u8) -> SecretKey {
    SecretKey::of([byte; 32])
}

fn scratch() -> (TempDir, PathBuf) {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("catalog.db");
    (dir, path)
}

fn open(path: &Path, key: SecretKey) -> Catalog {
    Catalog::open(path, Keyring::from(key)).expect("the catalog opens")
}

fn refused(path: &Path, key: SecretKey) -> Error {
    Catalog::open(path, Keyring::from(key)).err().expect("the key is another one")
}

/// Which files of a directory have these bytes.
fn holders(dir: &Path, mark: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir).expect("listed").map(|one| one.expect("an entry").path());
    let has = |file: &PathBuf| {
        let bytes = std::fs::read(file).expect("read");
        bytes.windows(mark.len()).any(|part| part == mark.as_bytes())
    };
    files.filter(has).collect()
}

/// A catalog with secrets in the clear, some of them removed or replaced, as a killed engine leaves it: with its log.
fn plain(path: &Path) {
    let db = Connection::open(path).expect("made");
    db.execute_batch(PLAIN).expect("restored");
    db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;").expect("set");
    for number in 0..300 {
        let sql = "INSERT INTO secret VALUES (?1, ?2)";
        db.execute(sql, (format!("k{number}"), format!("{MARK}{number}"))).expect("put");
    }
    db.execute_batch("PRAGMA wal_checkpoint(PASSIVE)").expect("written back");
    db.execute("DELETE FROM secret WHERE key > 'k15' AND key < 'l'", []).expect("removed");
    leave(path, db);
}

/// Ends whoever has a catalog open as if it had been killed: a process that ends like this one writes the log back.
fn leave<T>(path: &Path, open: T) {
    let files = ["", "-wal"].map(|end| with_end(path, end));
    let copies = files.each_ref().map(|file| std::fs::read(file).expect("read"));
    drop(open);
    for (file, bytes) in files.iter().zip(copies) {
        std::fs::write(file, bytes).expect("written");
    }
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

#[test]
fn a_secret_is_on_no_disk() {
    let (dir, path) = scratch();
    let catalog = open(&path, key(1));
    catalog.put_secret("vdb-1/password", &Secret::new(MARK)).expect("put");
    assert_eq!(holders(dir.path(), MARK), [] as [PathBuf; 0], "in use");
    assert!(!holders(dir.path(), "vdb-1/password").is_empty(), "the name is looked for as well");
    drop(catalog);
    assert_eq!(holders(dir.path(), MARK), [] as [PathBuf; 0], "closed");
    let kept = open(&path, key(1)).secret("vdb-1/password").expect("opens");
    assert_eq!(kept.expect("there").reveal(), MARK);
}

#[test]
fn plain_secrets_are_sealed_and_no_trace_of_them_is_left() {
    let (dir, path) = scratch();
    plain(&path);
    assert_eq!(holders(dir.path(), MARK).len(), 2, "file and log");
    assert!(Catalog::keys_needed(&path).expect("read").is_empty());

    let catalog = open(&path, key(1));
    catalog.remove_traces().expect("removed");
    for mark in [MARK, "5afeefmtwp4wzhwfvz3tt4tv7juyk7e8"] {
        assert_eq!(holders(dir.path(), mark), [] as [PathBuf; 0], "{mark}");
    }
    assert_eq!(catalog.secret("k0").expect("opens").expect("there").reveal(), format!("{MARK}0"));
    assert!(catalog.secret("k2").expect("opens").is_none(), "it had been removed");
    let old = catalog.secret("vdb-1/password").expect("opens").expect("there");
    assert_eq!(old.reveal(), "5afeefmtwp4wzhwfvz3tt4tv7juyk7e8");
}

#[test]
fn traces_that_a_crash_left_are_removed_at_the_next_start() {
    let (dir, path) = scratch();
    plain(&path);
    leave(&path, open(&path, key(1)));
    assert!(!holders(dir.path(), MARK).is_empty(), "sealed, but there are traces");
    let catalog = open(&path, key(1));
    assert_eq!(catalog.setting::<bool>(super::TRACES).expect("read"), Some(true));
    catalog.remove_traces().expect("removed");
    assert_eq!(catalog.setting::<bool>(super::TRACES).expect("read"), None);
    assert_eq!(holders(dir.path(), MARK), [] as [PathBuf; 0]);
}

#[test]
fn a_new_catalog_has_no_traces_to_remove() {
    let (_dir, path) = scratch();
    let catalog = open(&path, key(1));
    assert_eq!(catalog.setting::<bool>(super::TRACES).expect("read"), None);
}

#[test]
fn another_key_changes_nothing() {
    let (_dir, path) = scratch();
    // Even where there is no secret yet.
    drop(open(&path, key(1)));
    assert!(matches!(refused(&path, key(2)), Error::NoKey(id) if id == *key(1).id()));
    open(&path, key(1)).put_secret("name", &Secret::new(MARK)).expect("put");
    let before = std::fs::read(&path).expect("read");
    assert_eq!(Catalog::keys_needed(&path).expect("read"), [key(1).id().clone()]);
    assert!(matches!(refused(&path, key(2)), Error::NoKey(_)));
    assert_eq!(std::fs::read(&path).expect("read"), before);
    let kept = open(&path, key(1)).secret("name").expect("opens").expect("there");
    assert_eq!(kept.reveal(), MARK);
}

#[test]
fn what_a_lost_key_sealed_is_forgotten_and_nothing_else() {
    let (dir, path) = scratch();
    let catalog = open(&path, key(1));
    catalog.put_secret("lost", &Secret::new(MARK)).expect("put");
    catalog.set_setting("setting", &7).expect("set");
    drop(catalog);
    // As a crash leaves it while secrets are sealed with another key: some are, some are not yet.
    let (value, id) = (key(2).wrap("kept", MARK.as_bytes()).expect("sealed"), key(2).id().clone());
    let db = Connection::open(&path).expect("opened");
    let sql = "INSERT INTO sealed VALUES ('kept', ?1, ?2)";
    db.execute(sql, rusqlite::params![id.as_str(), value]).expect("put");
    drop(db);
    let lost = key(1).id().to_string();
    assert!(!holders(dir.path(), &lost).is_empty());

    let ring = Keyring::from(key(2));
    assert_eq!(Catalog::forget_closed(&path, &ring).expect("forgotten"), ["lost"]);
    assert_eq!(Catalog::forget_closed(&path, &ring).expect("forgotten"), [] as [&str; 0]);
    let catalog = open(&path, key(2));
    assert!(catalog.secret("lost").expect("read").is_none());
    assert_eq!(catalog.secret("kept").expect("opens").expect("there").reveal(), MARK);
    assert_eq!(catalog.setting::<u32>("setting").expect("read"), Some(7));
    catalog.empty_log().expect("emptied");
    assert_eq!(holders(dir.path(), &lost), [] as [PathBuf; 0], "nothing of it is left");
    drop(catalog);
    assert!(matches!(refused(&path, key(1)), Error::NoKey(_)), "the other key is needed now");
}

#[test]
fn all_secrets_get_another_key() {
    let (_dir, path) = scratch();
    let catalog = open(&path, key(1));
    for number in 0..20 {
        catalog.put_secret(&format!("k{number}"), &Secret::new(format!("s{number}"))).expect("put");
    }
    let damaged = catalog.seal_with(Keyring::new(key(2), vec![key(1)])).expect("sealed");
    assert!(damaged.is_empty(), "{damaged:?}");
    assert_eq!(catalog.secrets().expect("counted"), 20);
    drop(catalog);
    assert_eq!(Catalog::keys_needed(&path).expect("read"), [key(2).id().clone()]);
    assert!(matches!(refused(&path, key(1)), Error::NoKey(_)));
    let catalog = open(&path, key(2));
    for number in 0..20 {
        let kept = catalog.secret(&format!("k{number}")).expect("opens").expect("there");
        assert_eq!(kept.reveal(), format!("s{number}"));
    }
}

#[test]
fn a_start_seals_with_the_first_key() {
    let (_dir, path) = scratch();
    open(&path, key(1)).put_secret("name", &Secret::new(MARK)).expect("put");
    let both = Keyring::new(key(2), vec![key(1)]);
    drop(Catalog::open(&path, both).expect("opens"));
    let kept = open(&path, key(2)).secret("name").expect("opens").expect("there");
    assert_eq!(kept.reveal(), MARK);
}

#[test]
fn a_damaged_secret_keeps_nobody_from_the_others() {
    let (_dir, path) = scratch();
    let catalog = open(&path, key(1));
    for name in ["a", "b"] {
        catalog.put_secret(name, &Secret::new(MARK)).expect("put");
    }
    drop(catalog);
    let db = Connection::open(&path).expect("opened");
    // A value under another name, which is what its name is sealed in for.
    let swap =
        "UPDATE sealed SET value = (SELECT value FROM sealed WHERE name = 'b') WHERE name = 'a'";
    assert_eq!(db.execute(swap, []).expect("changed"), 1);
    drop(db);
    let catalog = open(&path, key(1));
    assert!(matches!(catalog.secret("a"), Err(Error::Damaged(_))));
    assert_eq!(catalog.secret("b").expect("opens").expect("there").reveal(), MARK);
    assert_eq!(catalog.seal_with(Keyring::new(key(2), vec![key(1)])).expect("sealed"), ["a"]);
    assert_eq!(catalog.secret("b").expect("opens").expect("there").reveal(), MARK);
    catalog.put_secret("a", &Secret::new("new")).expect("put");
    assert_eq!(catalog.secret("a").expect("opens").expect("there").reveal(), "new");
}

#[test]
fn who_only_looks_sees_no_secret() {
    let (_dir, path) = scratch();
    open(&path, key(1)).put_secret("name", &Secret::new(MARK)).expect("put");
    let looked = Catalog::look(&path, None).expect("opens");
    assert!(matches!(looked.secret("name"), Err(Error::Unusable(_))));
}
