#![allow(clippy::unwrap_used)]

use super::file::{place, wrapped_by};
use super::*;
use offshoot_types::ErrorKind;
use std::path::PathBuf;

struct Bed {
    dir: tempfile::TempDir,
    paths: Paths,
    keys: KeyPlaces,
}

fn bed() -> Bed {
    let dir = tempfile::tempdir().unwrap();
    let paths = Paths::prepare(&dir.path().join("pool")).unwrap();
    let keys = KeyPlaces { directory: Some(dir.path().join("keys")), ..KeyPlaces::default() };
    Bed { dir, paths, keys }
}

impl Bed {
    fn file(&self) -> PathBuf {
        place(&self.paths)
    }

    /// The label of a pool that was made.
    fn make_label(&self, encrypted: bool) {
        use offshoot_pool::Pool;
        let disk = offshoot_os::disk::LinuxDisk::new(self.paths.pool()).unwrap();
        let data_key = encrypted.then(|| DataKey::of([1; 32]));
        let options = offshoot_pool::PoolOptions { data_key, ..Default::default() };
        Pool::create(&disk, &options).unwrap();
    }
}

#[test]
fn the_key_is_made_once_and_found_again() {
    let bed = bed();
    let made = prepare(&bed.paths, &bed.keys, true).unwrap().unwrap();
    // Cut off before there was a label, it goes on with the same key.
    assert_eq!(prepare(&bed.paths, &bed.keys, true).unwrap(), Some(made.clone()));
    bed.make_label(true);
    for wanted in [true, false] {
        assert_eq!(prepare(&bed.paths, &bed.keys, wanted).unwrap(), Some(made.clone()));
    }
    let bytes = std::fs::read(bed.file()).unwrap();
    assert!(!bytes.windows(8).any(|window| made.reveal().starts_with(window)));
}

#[test]
fn a_pool_that_is_there_is_not_encrypted_afterwards() {
    let bed = bed();
    bed.make_label(false);
    let error = prepare(&bed.paths, &bed.keys, true).unwrap_err();
    assert_eq!(error.code, ErrorKind::InvalidInput, "{error}");
    assert_eq!(prepare(&bed.paths, &bed.keys, false).unwrap(), None);
    assert!(!bed.file().exists());
}

#[test]
fn what_a_cut_off_creation_left_is_removed_or_used() {
    let bed = bed();
    prepare(&bed.paths, &bed.keys, true).unwrap();
    assert!(crate::ground::pool_dir::check(bed.paths.pool()).is_ok());
    assert_eq!(prepare(&bed.paths, &bed.keys, false).unwrap(), None);
    assert!(!bed.file().exists());
}

#[test]
fn without_its_key_or_its_file_nothing_is_changed() {
    let bed = bed();
    prepare(&bed.paths, &bed.keys, true).unwrap();
    bed.make_label(true);
    let (bytes, id) =
        (std::fs::read(bed.file()).unwrap(), wrapped_by(&bed.paths).unwrap().unwrap());
    let elsewhere = bed.dir.path().join("elsewhere");
    std::fs::rename(bed.dir.path().join("keys"), &elsewhere).unwrap();
    for error in
        [prepare(&bed.paths, &bed.keys, true).unwrap_err(), bed.keys.check(&bed.paths).unwrap_err()]
    {
        assert!(error.message.contains(id.as_str()), "{error}");
        assert!(error.message.contains("encrypted"), "{error}");
    }
    assert_eq!(std::fs::read(bed.file()).unwrap(), bytes);
    std::fs::rename(&elsewhere, bed.dir.path().join("keys")).unwrap();
    std::fs::remove_file(bed.file()).unwrap();
    let error = prepare(&bed.paths, &bed.keys, false).unwrap_err();
    assert!(error.message.contains("is missing"), "{error}");
    let mut wrong = bytes.clone();
    wrong[40] ^= 1;
    std::fs::write(bed.file(), wrong).unwrap();
    let error = prepare(&bed.paths, &bed.keys, false).unwrap_err();
    assert_eq!(error.code, ErrorKind::DataDamaged, "{error}");
}

#[test]
fn another_key_wraps_the_same() {
    let bed = bed();
    let made = prepare(&bed.paths, &bed.keys, true).unwrap().unwrap();
    bed.make_label(true);
    let (old, new) = (wrapped_by(&bed.paths).unwrap().unwrap(), SecretKey::random());
    bed.keys.add(&new).unwrap();
    wrap_by(&bed.paths, &bed.keys, &new).unwrap();
    assert_eq!(wrapped_by(&bed.paths).unwrap().as_ref(), Some(new.id()));
    bed.keys.forget(&[old]).unwrap();
    assert_eq!(data_key(&bed.paths, &bed.keys).unwrap(), Some(made));
}
