//! Sessions of the console. Who is known asks for a code; whoever brings the code first, within ten minutes, gets the
//! token of a session, which stands for the one who asked, for eight hours.
//!
//! Both live in memory, by their hashes, and end with the engine. A user's session is known by the user's token that
//! stood behind it: where that is revoked or expires, or the user is removed, the session ends. A session gives no
//! codes, so that none outlives its time.

use crate::Token;
use jiff::Timestamp;
use offshoot_api::digest::sha256_hex;
use offshoot_os::{Clock, SystemClock};
use offshoot_types::Failure;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a code opens a session.
const CODE_LIFE: Duration = Duration::from_secs(600);
/// How long a session lasts.
const SESSION_LIFE: Duration = Duration::from_secs(8 * 3600);
/// Codes and sessions that are remembered; a further one takes the place of the oldest.
const CODES_MAX: usize = 64;
const SESSIONS_MAX: usize = 256;

/// Whom a code or session stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bearer {
    /// Whoever has the pool.
    Owner,
    /// The user of the token with this hash.
    User { token_hash: String },
}

#[derive(Debug, Clone)]
struct Entry {
    bearer: Bearer,
    until: Instant,
    expires_at: Timestamp,
}

/// What was made: the secret, shown this once, and when it ends.
pub(crate) struct Made {
    pub(crate) secret: Token,
    pub(crate) expires_at: Timestamp,
}

/// Codes and sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    codes: Entries,
    open: Entries,
}

impl Sessions {
    /// A code for somebody.
    pub(crate) fn code(&self, bearer: Bearer) -> Result<Made, Failure> {
        self.codes.add(bearer, CODE_LIFE, CODES_MAX, Instant::now())
    }

    /// A session for a code, which opens no other. None: it is no code, was used, or came too late.
    pub(crate) fn open(&self, code: &str) -> Result<Option<Made>, Failure> {
        self.open_at(code, Instant::now())
    }

    fn open_at(&self, code: &str, now: Instant) -> Result<Option<Made>, Failure> {
        let Some(entry) = self.codes.take(code, now) else { return Ok(None) };
        self.open.add(entry.bearer, SESSION_LIFE, SESSIONS_MAX, now).map(Some)
    }

    /// Whom the token of a session stands for, and until when.
    pub(crate) fn find(&self, token: &str) -> Option<(Bearer, Timestamp)> {
        self.open.find(token, Instant::now()).map(|entry| (entry.bearer, entry.expires_at))
    }

    /// Ends a session.
    pub(crate) fn end(&self, token: &str) {
        self.open.take(token, Instant::now());
    }
}

/// Entries by the hash of their secret. What has ended is never found.
#[derive(Debug, Default)]
struct Entries(Mutex<HashMap<String, Entry>>);

impl Entries {
    fn add(
        &self,
        bearer: Bearer,
        life: Duration,
        most: usize,
        now: Instant,
    ) -> Result<Made, Failure> {
        let secret = Token::random();
        let wall = Timestamp::try_from(SystemClock.now() + life);
        let expires_at = wall.map_err(|error| Failure::internal(error.to_string()))?;
        let entry = Entry { bearer, until: now + life, expires_at };
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|_, one| one.until > now);
        if entries.len() >= most {
            let oldest =
                entries.iter().min_by_key(|(_, one)| one.until).map(|(key, _)| key.clone());
            oldest.and_then(|key| entries.remove(&key));
        }
        entries.insert(sha256_hex(secret.reveal().as_bytes()), entry);
        Ok(Made { secret, expires_at })
    }

    fn find(&self, secret: &str, now: Instant) -> Option<Entry> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.get(&sha256_hex(secret.as_bytes())).filter(|one| one.until > now).cloned()
    }

    fn take(&self, secret: &str, now: Instant) -> Option<Entry> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.remove(&sha256_hex(secret.as_bytes())).filter(|one| one.until > now)
    }
}

#[cfg(test)]
mod tests;
