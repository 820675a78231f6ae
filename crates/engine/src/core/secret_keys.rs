//! Where the keys are kept that the catalog's secrets are sealed with: never in the pool.
//!
//! Keys that the engine makes are files of a directory of its user, each named by its key's id. Whoever wants to say
//! where they are names one file with all of them: the first seals, all open. A key is durable before anything is sealed
//! with it, and it is removed after nothing is sealed with it any more.

use crate::core::encryption::file as encryption_file;
use crate::ground::paths::Paths;
use offshoot_catalog::{Catalog, KeyId, Keyring, SecretKey};
use offshoot_os::files;
use offshoot_types::{ErrorKind, Failure};
use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, ErrorKind as Io, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// No file of keys is longer, in bytes.
const FILE_MAX: u64 = 64 << 10;
const HEAD: &str = "# A key of Offshoot: without it the secrets of its pool are lost. Keep a copy, not with the pool.\n";

/// What needs a key.
const SECRETS: &str = "the secrets of this pool are sealed";
const POOL: &str = "this pool is encrypted";

/// Where keys are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyPlaces {
    /// The file that the user names; made where missing.
    pub file: Option<PathBuf>,
    /// Whether the file is the system's to change, and to keep from others.
    pub file_is_given: bool,
    /// The directory of keys that engines of this user make.
    pub directory: Option<PathBuf>,
}

/// The keys that were found. If there is none that seals, one has to be made.
struct Found {
    first: Option<SecretKey>,
    others: Vec<SecretKey>,
}

impl KeyPlaces {
    /// Whether the keys that a pool's secrets need are there. Changes nothing.
    ///
    /// # Errors
    /// `HostUnprepared` naming the key that is missing and where it was looked for, or the file that cannot be used.
    pub fn check(&self, paths: &Paths) -> Result<(), Failure> {
        self.find(paths).map(drop)
    }

    /// Whether keys of a pool's secrets are lost, and nothing else needs them. Changes nothing.
    ///
    /// # Errors
    /// `InvalidInput` if none is lost; `HostUnprepared` if the pool is encrypted with a key that is, or the file cannot be
    /// used.
    pub fn check_lost(&self, paths: &Paths) -> Result<(), Failure> {
        if self.find_present(paths)?.1.is_some() {
            return Ok(());
        }
        Err(Failure::new(
            ErrorKind::InvalidInput,
            "no key of this pool's secrets is missing: there is nothing to forget",
            "start the engine without --forget-secrets",
        ))
    }

    /// The keys of a pool that are there; one is made where there is none that seals.
    ///
    /// # Errors
    /// As [`KeyPlaces::prepare`], but for secrets whose key is missing.
    pub fn prepare_without_lost(&self, paths: &Paths) -> Result<Keyring, Failure> {
        self.complete(self.find_present(paths)?.0)
    }

    /// The keys of a pool; the first one is made where there is none.
    ///
    /// # Errors
    /// As [`KeyPlaces::check`]; `HostUnprepared` if the key cannot be kept.
    pub fn prepare(&self, paths: &Paths) -> Result<Keyring, Failure> {
        self.complete(self.find(paths)?)
    }

    fn complete(&self, found: Found) -> Result<Keyring, Failure> {
        let Found { first, others } = found;
        if let Some(first) = first {
            return Ok(Keyring::new(first, others));
        }
        let key = SecretKey::random();
        self.add(&key)?;
        tracing::info!(key = %key.id(), place = %self.place(), "a key for secrets was made: keep a copy of it");
        Ok(Keyring::new(key, others))
    }

    /// Keeps another key, durably; in a file it becomes the first.
    ///
    /// # Errors
    /// `InvalidInput` where the system keeps the keys; `HostUnprepared` if it cannot be kept.
    pub fn add(&self, key: &SecretKey) -> Result<(), Failure> {
        self.check_changeable()?;
        let line = Zeroizing::new(format!("{}\n", *key.reveal()));
        let Some(file) = &self.file else {
            let directory = self.directory()?;
            make_private(directory).map_err(|error| unusable(directory, &error))?;
            let file = directory.join(key.id().as_str());
            return replace(&file, &Zeroizing::new(format!("{HEAD}{}", *line)));
        };
        let before = match read(file) {
            Ok(text) => text,
            Err(error) if error.kind() == Io::NotFound => Zeroizing::new(HEAD.to_owned()),
            Err(error) => return Err(unusable(file, &error)),
        };
        let at = before.split_inclusive('\n').take_while(|line| is_comment(line)).map(str::len);
        let (head, rest) = before.split_at(at.sum());
        let new = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        replace(file, &Zeroizing::new(format!("{head}{new}{}{rest}", *line)))
    }

    /// Removes keys for good.
    ///
    /// # Errors
    /// As [`KeyPlaces::add`].
    pub fn forget(&self, gone: &[KeyId]) -> Result<(), Failure> {
        self.check_changeable()?;
        if let Some(file) = &self.file {
            let text = read(file).map_err(|error| unusable(file, &error))?;
            let is_kept = |line: &&str| {
                SecretKey::parse(line.trim()).is_none_or(|key| !gone.contains(key.id()))
            };
            let kept = text.split_inclusive('\n').filter(is_kept).collect::<String>();
            replace(file, &Zeroizing::new(kept))?;
        }
        // Also keys from before a file was named.
        let Some(directory) = &self.directory else { return Ok(()) };
        for id in gone {
            let file = directory.join(id.as_str());
            match std::fs::remove_file(&file) {
                Err(error) if error.kind() != Io::NotFound => return Err(unusable(&file, &error)),
                _ => {}
            }
        }
        match sync_directory(directory) {
            Err(error) if error.kind() != Io::NotFound => Err(unusable(directory, &error)),
            _ => Ok(()),
        }
    }

    /// The key of an id, wherever it is.
    ///
    /// # Errors
    /// `HostUnprepared` if it is nowhere.
    pub fn need(&self, id: &KeyId) -> Result<SecretKey, Failure> {
        self.need_for(SECRETS, id)
    }

    /// As [`KeyPlaces::need`], for the key of an encrypted pool.
    ///
    /// # Errors
    /// As there.
    pub fn need_for_pool(&self, id: &KeyId) -> Result<SecretKey, Failure> {
        self.need_for(POOL, id)
    }

    fn need_for(&self, what: &str, id: &KeyId) -> Result<SecretKey, Failure> {
        let in_file = self.keys_of_file()?;
        let found = match in_file.into_iter().find(|key| key.id() == id) {
            Some(key) => Some(key),
            None => self.find_in_directory(id)?,
        };
        found.ok_or_else(|| self.missing(what, id))
    }

    /// Where the key that seals is, for users.
    pub fn place(&self) -> String {
        let place = self.file.as_ref().or(self.directory.as_ref());
        place.map_or_else(String::new, |place| place.display().to_string())
    }

    /// Whether the engine can change the keys.
    pub fn is_changeable(&self) -> bool {
        !self.file_is_given
    }

    fn find(&self, paths: &Paths) -> Result<Found, Failure> {
        match self.find_present(paths)? {
            (found, None) => Ok(found),
            (_, Some(id)) => Err(self.missing(SECRETS, &id)),
        }
    }

    /// The keys that are there, and the first one of the secrets' that is not.
    ///
    /// # Errors
    /// `HostUnprepared` if it is the pool's own that is not.
    fn find_present(&self, paths: &Paths) -> Result<(Found, Option<KeyId>), Failure> {
        for place in self.file.iter().chain(&self.directory) {
            check_outside(place, paths.pool())?;
        }
        let mut needed = Catalog::keys_needed(&paths.catalog())?;
        let wraps = encryption_file::wrapped_by(paths)?;
        needed.extend(wraps.clone().filter(|id| !needed.contains(id)));
        let mut keys = self.keys_of_file()?;
        let in_file = keys.len();
        let mut lost = None;
        for id in &needed {
            if keys.iter().any(|key| key.id() == id) {
                continue;
            }
            match self.find_in_directory(id)? {
                Some(found) => keys.push(found),
                None if wraps.as_ref() == Some(id) => return Err(self.missing(POOL, id)),
                None => lost = lost.or_else(|| Some(id.clone())),
            }
        }
        // Without a file of keys, the first one needed seals: that of the catalog's check.
        let named = self.file.is_some();
        if keys.is_empty() || (named && in_file == 0) {
            return Ok((Found { first: None, others: keys }, lost));
        }
        let first = if named { 0 } else { index_of(&keys, needed.first()) };
        Ok((Found { first: Some(keys.remove(first)), others: keys }, lost))
    }

    /// The keys of the named file, if it is there.
    fn keys_of_file(&self) -> Result<Vec<SecretKey>, Failure> {
        let Some(file) = &self.file else { return Ok(Vec::new()) };
        let text = match read(file) {
            Ok(text) => text,
            Err(error) if error.kind() == Io::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unusable(file, &error)),
        };
        if !self.file_is_given {
            check_private(file)?;
        }
        let lines = text.lines().enumerate().filter(|(_, line)| !is_comment(line));
        let keys = lines.map(|(index, line)| {
            SecretKey::parse(line.trim()).ok_or_else(|| no_key(file, index + 1))
        });
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() { Err(no_key(file, 1)) } else { Ok(keys) }
    }

    fn find_in_directory(&self, id: &KeyId) -> Result<Option<SecretKey>, Failure> {
        // What stands in a catalog is no path before it is known to be an id.
        let is_id = id.as_str().bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(directory) = self.directory.as_ref().filter(|_| is_id) else { return Ok(None) };
        let file = directory.join(id.as_str());
        let text = match read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == Io::NotFound => return Ok(None),
            Err(error) => return Err(unusable(&file, &error)),
        };
        check_private(&file)?;
        let key = text.lines().find(|line| !is_comment(line));
        match key.and_then(|line| SecretKey::parse(line.trim())) {
            Some(key) if key.id() == id => Ok(Some(key)),
            _ => Err(no_key(&file, 1)),
        }
    }

    fn directory(&self) -> Result<&Path, Failure> {
        self.directory.as_deref().ok_or_else(|| {
            Failure::new(
                ErrorKind::HostUnprepared,
                "there is no directory for the key of the secrets: this user has no home",
                "name a file for it with --secret-key",
            )
        })
    }

    /// Whether the engine can change the keys.
    ///
    /// # Errors
    /// `InvalidInput` with what to do instead.
    pub fn check_changeable(&self) -> Result<(), Failure> {
        if self.is_changeable() {
            return Ok(());
        }
        Err(Failure::new(
            ErrorKind::InvalidInput,
            format!(
                "{} is a credential of the system, which the engine cannot change",
                self.place()
            ),
            "put a new key (openssl rand -hex 32) into the credential, above the line of the old one, and restart the \
             engine: it seals all secrets with the first key",
        ))
    }

    fn missing(&self, what: &str, id: &KeyId) -> Failure {
        let places = self.file.iter().chain(&self.directory);
        let places: Vec<_> = places.map(|place| format!(" in {}", place.display())).collect();
        let way = "bring the key back from where its copy is kept, or name the file that has it with --secret-key";
        let hint = match what {
            SECRETS => format!(
                "{way}; if it is lost for good, start once with --forget-secrets: passwords then have to be given again"
            ),
            _ => way.to_owned(),
        };
        Failure::new(
            ErrorKind::HostUnprepared,
            format!(
                "{what} with the key {id}, which is not there{}; nothing was changed",
                places.join(" or ")
            ),
            hint,
        )
    }
}

fn index_of(keys: &[SecretKey], id: Option<&KeyId>) -> usize {
    keys.iter().position(|key| Some(key.id()) == id).unwrap_or(0)
}

fn is_comment(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

/// A key in the pool would be in each copy of it.
fn check_outside(place: &Path, pool: &Path) -> Result<(), Failure> {
    let existing = place.ancestors().find_map(|part| part.canonicalize().ok());
    if existing.is_none_or(|place| !place.starts_with(pool)) {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::InvalidInput,
        format!("{} is in the pool: whoever has the pool would have the key", place.display()),
        "name a file elsewhere with --secret-key",
    ))
}

fn check_private(file: &Path) -> Result<(), Failure> {
    let found = std::fs::metadata(file).map_err(|error| unusable(file, &error))?;
    if found.permissions().mode() & 0o027 == 0 {
        return Ok(());
    }
    let file = file.display();
    Err(Failure::new(
        ErrorKind::HostUnprepared,
        format!("the key file {file} can be read by everybody, or changed by others"),
        format!("chmod 600 {file}"),
    ))
}

fn no_key(file: &Path, line: usize) -> Failure {
    Failure::new(
        ErrorKind::HostUnprepared,
        format!("{} line {line} is no key", file.display()),
        "a key is a line of 64 hexadecimal digits, as from: openssl rand -hex 32",
    )
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(
        ErrorKind::HostUnprepared,
        format!("the place of the key of the secrets, {}, cannot be used: {error}", path.display()),
        "name a file that this user can read and write with --secret-key",
    )
}

fn read(file: &Path) -> io::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    File::open(file)?.take(FILE_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Makes a directory that only its owner can use, and those above it, durably. One that is there stays as it is.
fn make_private(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let Some(parent) = directory.parent() else { return Ok(()) };
    make_private(parent)?;
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == Io::AlreadyExists => {}
        made => made?,
    }
    sync_directory(parent)
}

/// Puts a file in the place of another one, or of none; durable when this returns, and there is always one of them.
fn replace(file: &Path, text: &str) -> Result<(), Failure> {
    replace_file(file, text).map_err(|error| unusable(file, &error))
}

fn replace_file(file: &Path, text: &str) -> io::Result<()> {
    // A link stays a link.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    files::replace(&file, 0o600, |new| {
        if let Ok(before) = std::fs::metadata(&file) {
            let mode = before.permissions().mode() & 0o640;
            new.set_permissions(Permissions::from_mode(mode | 0o600))?;
        }
        new.write_all(text.as_bytes())
    })
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests;
