use super::places_in;
use offshoot_engine::KeyPlaces;
use std::ffi::OsString;
use std::path::PathBuf;

fn home(name: &str) -> Option<OsString> {
    (name == "HOME").then(|| "/home/anna".into())
}

fn in_directory(path: &str) -> KeyPlaces {
    KeyPlaces { directory: Some(path.into()), ..KeyPlaces::default() }
}

#[test]
fn keys_are_with_the_settings_of_the_user() {
    assert_eq!(places_in(None, true, home), in_directory("/etc/offshoot/keys"));
    assert_eq!(places_in(None, false, home), in_directory("/home/anna/.config/offshoot/keys"));
    let settings = |name: &str| match name {
        "XDG_CONFIG_HOME" => Some("/settings".into()),
        name => home(name),
    };
    assert_eq!(places_in(None, false, settings), in_directory("/settings/offshoot/keys"));
    let relative = |name: &str| (name == "HOME").then(|| "home".into());
    assert_eq!(places_in(None, false, relative), KeyPlaces::default(), "nowhere");
}

#[test]
fn a_credential_of_the_system_is_used_unless_a_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().as_os_str().to_owned();
    let system = |name: &str| match name {
        "CREDENTIALS_DIRECTORY" => Some(path.clone()),
        name => home(name),
    };
    let none = places_in(None, false, system);
    assert_eq!(none.file, None, "the service has credentials, but not this one");
    let file = dir.path().join("offshoot-secret-key");
    std::fs::write(&file, "").unwrap();
    let given = places_in(None, false, system);
    assert_eq!((given.file, given.file_is_given), (Some(file), true));
    let named = places_in(Some(PathBuf::from("/keys/one")), false, system);
    assert_eq!((named.file, named.file_is_given), (Some(PathBuf::from("/keys/one")), false));
}
