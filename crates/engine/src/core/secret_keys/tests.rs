use super::KeyPlaces;
use crate::ground::paths::Paths;
use offshoot_catalog::{Catalog, SecretKey};
use offshoot_domain::Secret;
use offshoot_types::{ErrorKind, Failure};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A pool, and beside it a place for keys.
struct Place {
    dir: TempDir,
    paths: Paths,
}

impl Place {
    fn new() -> Place {
        let dir = TempDir::new().expect("a directory");
        let paths = Paths::prepare(&dir.path().join("pool")).expect("a pool");
        Place { dir, paths }
    }

    fn keys(&self) -> PathBuf {
        self.dir.path().join("settings/keys")
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("key")
    }

    fn by_directory(&self) -> KeyPlaces {
        KeyPlaces { directory: Some(self.keys()), ..KeyPlaces::default() }
    }

    fn by_file(&self) -> KeyPlaces {
        KeyPlaces { file: Some(self.file()), ..self.by_directory() }
    }

    fn open(&self, places: &KeyPlaces) -> Result<Catalog, Failure> {
        places.check(&self.paths)?;
        Ok(Catalog::open(&self.paths.catalog(), places.prepare(&self.paths)?)?)
    }

    fn put(&self, places: &KeyPlaces) {
        let catalog = self.open(places).expect("opens");
        catalog.put_secret("name", &Secret::new("swordfish")).expect("put");
    }

    fn check_opens(&self, places: &KeyPlaces) {
        let secret = self.open(places).expect("opens").secret("name").expect("opens");
        assert_eq!(secret.expect("there").reveal(), "swordfish");
    }

    fn refused(&self, places: &KeyPlaces) -> Failure {
        self.open(places).err().expect("refused")
    }
}

fn write(file: &Path, text: &str) {
    std::fs::write(file, text).expect("written");
    std::fs::set_permissions(file, PermissionsExt::from_mode(0o600)).expect("narrowed");
}

fn key(byte: u8) -> SecretKey {
    SecretKey::of([byte; 32])
}

fn line(byte: u8) -> String {
    format!("{}\n", *key(byte).reveal())
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("listed");
    entries.map(|one| one.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_key_is_made_once_and_only_its_owner_reads_it() {
    let place = Place::new();
    let places = place.by_directory();
    places.check(&place.paths).expect("nothing is needed yet");
    assert!(!place.keys().exists(), "a check makes nothing");
    place.put(&places);
    place.check_opens(&places);
    let [name] = &names(&place.keys())[..] else { panic!("one key") };
    let (file, mode) = (place.keys().join(name), |path: &Path| {
        path.metadata().expect("there").permissions().mode() & 0o777
    });
    assert_eq!((mode(&file), mode(&place.keys())), (0o600, 0o700));
    assert_eq!(names(place.paths.pool()).iter().filter(|one| one.contains("key")).count(), 0);
}

#[test]
fn a_missing_key_is_named_and_changes_nothing() {
    let place = Place::new();
    place.put(&place.by_directory());
    let before = std::fs::read(place.paths.catalog()).expect("read");
    let [name] = &names(&place.keys())[..] else { panic!("one key") };
    let (from, to) = (place.keys().join(name), place.dir.path().join("elsewhere"));
    std::fs::rename(&from, &to).expect("moved");

    let failure = place.refused(&place.by_directory());
    assert_eq!(failure.code, ErrorKind::HostUnprepared);
    assert!(failure.message.contains(name.as_str()), "{failure}");
    assert!(failure.message.contains("settings/keys"), "{failure}");
    assert!(failure.hint.contains("--secret-key"), "{failure}");
    // A file that is named is not made where another key is needed.
    place.refused(&place.by_file());
    assert!(!place.file().exists());
    write(&place.file(), &line(1));
    place.refused(&place.by_file());
    assert!(names(&place.keys()).is_empty(), "no key was made");
    assert_eq!(std::fs::read(place.paths.catalog()).expect("read"), before);

    // Where it is does not matter, nor how it is named there.
    write(&place.file(), &std::fs::read_to_string(&to).expect("read"));
    place.check_opens(&place.by_file());
    std::fs::rename(&to, &from).expect("moved back");
    place.check_opens(&place.by_directory());
}

#[test]
fn a_file_that_is_named_takes_over() {
    let place = Place::new();
    place.put(&place.by_directory());
    place.check_opens(&place.by_file());
    std::fs::remove_dir_all(place.keys()).expect("removed");
    place.check_opens(&place.by_file());
    // Its first key seals, whatever else is in it.
    let own = std::fs::read_to_string(place.file()).expect("read");
    write(&place.file(), &format!("# mine\n{}{own}", line(1)));
    place.check_opens(&place.by_file());
    write(&place.file(), &line(1));
    place.check_opens(&place.by_file());
}

#[test]
fn keys_are_added_and_forgotten() {
    let place = Place::new();
    let both = [place.by_directory(), place.by_file()];
    for places in &both {
        places.add(&key(1)).expect("added");
        places.add(&key(2)).expect("added");
        places.need(key(1).id()).expect("there");
        places.need(key(2).id()).expect("there");
    }
    let text = std::fs::read_to_string(place.file()).expect("read");
    let keys: Vec<_> = text.lines().filter_map(SecretKey::parse).collect();
    assert_eq!(keys.iter().map(SecretKey::id).collect::<Vec<_>>(), [key(2).id(), key(1).id()]);
    for places in &both {
        places.forget(&[key(1).id().clone()]).expect("forgotten");
        places.forget(&[key(1).id().clone()]).expect("again");
        assert!(places.need(key(1).id()).is_err());
        places.need(key(2).id()).expect("there");
    }
    assert!(std::fs::read_to_string(place.file()).expect("read").starts_with("# "), "the comment");
    assert_eq!(names(place.dir.path()).len(), 3, "pool, key, settings: nothing is left over");
}

#[test]
fn a_lost_key_is_done_without_when_that_is_asked_for() {
    let place = Place::new();
    let places = place.by_directory();
    assert_eq!(places.check_lost(&place.paths).expect_err("new").code, ErrorKind::InvalidInput);
    place.put(&places);
    let failure = places.check_lost(&place.paths).expect_err("its key is there");
    assert!(failure.message.contains("nothing to forget"), "{failure}");
    let [name] = &names(&place.keys())[..] else { panic!("one key") };
    std::fs::remove_file(place.keys().join(name)).expect("lost");
    assert!(place.refused(&places).hint.contains("--forget-secrets"));

    for places in [place.by_directory(), place.by_file()] {
        places.check_lost(&place.paths).expect("it is lost");
        let ring = places.prepare_without_lost(&place.paths).expect("another is made");
        assert_ne!(ring.first().id().as_str(), name);
        assert!(places.check(&place.paths).is_err(), "nothing is forgotten yet");
    }
    let ring = places.prepare_without_lost(&place.paths).expect("made");
    let gone = Catalog::forget_closed(&place.paths.catalog(), &ring).expect("forgotten");
    assert_eq!(gone, ["name"]);
    assert!(place.open(&place.by_file()).expect("opens").secret("name").expect("read").is_none());
    assert!(place.by_file().check_lost(&place.paths).is_err(), "once is enough");
}

#[test]
fn what_the_system_keeps_is_not_changed() {
    let place = Place::new();
    write(&place.file(), &line(1));
    // A credential has the mode that the system gives it.
    std::fs::set_permissions(place.file(), PermissionsExt::from_mode(0o444)).expect("widened");
    let places = KeyPlaces { file_is_given: true, ..place.by_file() };
    place.put(&places);
    place.check_opens(&places);
    let failure = places.add(&key(2)).expect_err("not ours");
    assert!(failure.hint.contains("above"), "{failure}");
    assert!(places.forget(&[key(1).id().clone()]).is_err());
    assert_eq!(std::fs::read_to_string(place.file()).expect("read"), line(1));
}

#[test]
fn a_file_that_is_no_place_for_a_key_is_refused() {
    let place = Place::new();
    let inside = place.paths.pool().join("key");
    let failure = place.refused(&KeyPlaces { file: Some(inside.clone()), ..KeyPlaces::default() });
    assert!(failure.message.contains("in the pool"), "{failure}");
    let link = place.dir.path().join("link");
    std::os::unix::fs::symlink(place.paths.pool(), &link).expect("linked");
    let failure = place.refused(&KeyPlaces { directory: Some(link), ..KeyPlaces::default() });
    assert!(failure.message.contains("in the pool"), "{failure}");
    assert!(!inside.exists());

    for text in ["", "# nothing\n", "swordfish\n", &format!("{}00\n", line(1).trim())] {
        write(&place.file(), text);
        let failure = place.refused(&place.by_file());
        assert!(failure.message.contains("is no key"), "{failure}");
        assert!(!failure.to_string().contains("swordfish"), "what stands there is not shown");
    }
    write(&place.file(), &line(1));
    for mode in [0o604, 0o620, 0o602] {
        std::fs::set_permissions(place.file(), PermissionsExt::from_mode(mode)).expect("widened");
        let failure = place.refused(&place.by_file());
        assert!(failure.hint.contains("chmod 600"), "{failure}");
    }
    std::fs::set_permissions(place.file(), PermissionsExt::from_mode(0o640)).expect("narrowed");
    place.put(&place.by_file());

    let failure = place.refused(&KeyPlaces::default());
    assert!(failure.message.contains("is not there;"), "{failure}");
    let other = Place::new();
    let failure = other.refused(&KeyPlaces::default());
    assert!(failure.hint.contains("--secret-key"), "{failure}");
}
