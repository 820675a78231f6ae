//! Where the keys of secrets are, by what the user and the environment say.

use offshoot_engine::KeyPlaces;
use offshoot_os::process::User;
use std::ffi::OsString;
use std::path::PathBuf;

/// The name of the credential that systemd hands over.
const CREDENTIAL: &str = "offshoot-secret-key";
/// Below the directory of settings.
const KEYS: &str = "offshoot/keys";

/// The file that was named, otherwise the credential of the service if it has one, otherwise the directory of keys of
/// this user. The keys in the directory open in any case.
pub fn places(named: Option<PathBuf>) -> KeyPlaces {
    places_in(named, User::own_uid() == 0, |name| {
        std::env::var_os(name).filter(|value| !value.is_empty())
    })
}

fn places_in(
    named: Option<PathBuf>,
    root: bool,
    variable: impl Fn(&str) -> Option<OsString>,
) -> KeyPlaces {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let settings = match root {
        true => Some(PathBuf::from("/etc")),
        false => absolute("XDG_CONFIG_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".config"))),
    };
    let directory = settings.map(|settings| settings.join(KEYS));
    let credential = absolute("CREDENTIALS_DIRECTORY").map(|dir| dir.join(CREDENTIAL));
    let credential = credential.filter(|file| named.is_none() && file.exists());
    let file_is_given = credential.is_some();
    let file = named.map(|file| std::path::absolute(&file).unwrap_or(file)).or(credential);
    KeyPlaces { file, file_is_given, directory }
}

#[cfg(test)]
mod tests;
