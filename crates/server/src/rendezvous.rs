//! How a client on the same host finds the engine of a pool: two files in the pool directory.
//!
//! Anyone who can read `token` can do anything with the pool, so it is created with mode 0600, which
//! every start restores. Both files are written under another name and renamed, so that a client sees
//! a whole file or none.

use offshoot_api::rendezvous::{ADDRESS_FILE, TOKEN_FILE};
use offshoot_os::{files, random_bytes};
use offshoot_types::{ErrorKind, Failure};
use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Fewer characters than this can be guessed.
const TOKEN_CHARS_MIN: usize = 32;

/// The bearer token that clients of an engine must show.
#[derive(Clone)]
pub struct Token(String);

/// Leaves out the token.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Reads the pool's token, or makes one (file `token`, mode 0600) if there is none.
    ///
    /// # Errors
    /// `host_unprepared` if the file cannot be read or made, `data_damaged` if it holds no token.
    pub fn load_or_create(pool: &Path) -> Result<Self, Failure> {
        let file = pool.join(TOKEN_FILE);
        match fs::read_to_string(&file) {
            Ok(text) => {
                let token = text.trim();
                if token.len() < TOKEN_CHARS_MIN || !token.bytes().all(|b| b.is_ascii_graphic()) {
                    return Err(Failure::new(
                        ErrorKind::DataDamaged,
                        format!("{} holds no token", file.display()),
                        "remove the file; the engine makes a new token when it starts",
                    ));
                }
                fs::set_permissions(&file, Permissions::from_mode(0o600))
                    .map_err(|error| unusable(&file, &error))?;
                Ok(Token(token.to_owned()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let token = Token::random();
                replace(&file, &format!("{}\n", token.0), 0o600)?;
                Ok(token)
            }
            Err(error) => Err(unusable(&file, &error)),
        }
    }

    /// A token nobody can guess.
    pub fn random() -> Self {
        Token(random_bytes::<32>().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Whether a client showed this token. Takes the same time wherever the first difference is, so
    /// that the token cannot be guessed piece by piece.
    pub fn matches(&self, shown: &str) -> bool {
        let (own, shown) = (self.0.as_bytes(), shown.as_bytes());
        let difference = own.iter().zip(shown).fold(0, |all, (a, b)| all | (a ^ b));
        own.len() == shown.len() && std::hint::black_box(difference) == 0
    }

    /// The token itself, for a client in the same process.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// Tells clients where the engine of a pool answers: file `engine.address`, replaced atomically.
///
/// # Errors
/// `host_unprepared` if the file cannot be written.
pub fn publish_address(pool: &Path, address: SocketAddr) -> Result<(), Failure> {
    replace(&pool.join(ADDRESS_FILE), &format!("{address}\n"), 0o644)
}

/// Removes the address when the engine stops.
///
/// # Errors
/// `host_unprepared` if the file exists and cannot be removed.
pub fn withdraw_address(pool: &Path) -> Result<(), Failure> {
    let file = pool.join(ADDRESS_FILE);
    match fs::remove_file(&file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable(&file, &error)),
        _ => Ok(()),
    }
}

pub(crate) fn replace(file: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    files::replace(file, mode, |new| new.write_all(text.as_bytes()))
        .map_err(|error| unusable(file, &error))
}

fn unusable(file: &Path, error: &io::Error) -> Failure {
    Failure::new(
        ErrorKind::HostUnprepared,
        format!("{} cannot be used: {error}", file.display()),
        "run the engine as the user who owns the pool directory",
    )
}

#[cfg(test)]
mod tests;
