//! Whom the engine tells of events, how long it waits after a failure, and how it signs what it says: as Standard Webhooks
//! has it (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>).

use crate::{ObjectName, Secret};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use offshoot_types::{ErrorKind, Failure, WebhookId};
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::time::Duration;
use std::{fmt, ops::RangeInclusive};
use url::{Host, Url};
use zeroize::Zeroizing;

/// Attempts in a row that must fail before that is a fault.
const ATTEMPTS_MAX: u32 = 4;
/// The pause after the first failure; each one after it is twice as long.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(600);
/// Events that are older are tried once more and then given up.
const GIVEN_UP_AFTER: SignedDuration = SignedDuration::from_hours(72);
/// The longest address, in bytes.
const URL_BYTES_MAX: usize = 2048;
/// The longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 100;
/// How long the key before the last one signs, too.
const OLD_KEY_FOR: SignedDuration = SignedDuration::from_hours(24);
/// How a key is written.
const KEY_PREFIX: &str = "whsec_";
/// How long a key may be.
const KEY_BYTES: RangeInclusive<usize> = 24..=64;
/// The events that are about faults.
const OF_FAULTS: [&str; 2] = ["fault.raised", "fault.cleared"];
/// How events begin and end that are about jobs; their kind stands in between.
const OF_JOBS: (&str, [&str; 3]) = ("job.", [".done", ".failed", ".cancelled"]);

/// An address that is told of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    /// The id.
    pub id: WebhookId,
    /// Unique among webhooks.
    pub name: ObjectName,
    /// Where to, as [`webhook_url`] wrote it. Whoever knows it may be able to write there: it is shown to administrators only.
    pub url: String,
    /// Of what; never empty.
    pub events: Vec<EventPattern>,
    /// Whether it may be another host's by plain HTTP.
    pub insecure: bool,
    /// When it was added. It is told of nothing before.
    pub created_at: Timestamp,
    /// The last event that it was told of, or that was not for it.
    pub cursor: u64,
    /// Events that it was not told of, as they were too old or too many; some of them may not have been for it.
    pub missed: u64,
    /// When it was last told of one.
    pub delivered_at: Option<Timestamp>,
    /// Attempts that have failed since.
    pub failures: u32,
    /// When the first of them was.
    pub failing_since: Option<Timestamp>,
    /// Why the last one failed.
    pub error: Option<String>,
    /// Until when the key of before the last rotation signs, too; none: there is none.
    #[serde(default)]
    pub old_key_until: Option<Timestamp>,
}

impl Webhook {
    /// Whether it is told of an event of this type.
    pub fn wants(&self, kind: &str) -> bool {
        self.events.iter().any(|pattern| pattern.matches(kind))
    }

    /// Remembers that an event was taken.
    pub fn delivered(&mut self, event: u64, now: Timestamp) {
        (self.cursor, self.delivered_at) = (event, Some(now));
        self.answered();
    }

    /// Remembers that it takes what it is told.
    pub fn answered(&mut self) {
        (self.failures, self.failing_since, self.error) = (0, None, None);
    }

    /// Remembers that another key signs from now on; for a day that of before does, too.
    pub fn rotated(&mut self, now: Timestamp) {
        self.old_key_until = Some(now.checked_add(OLD_KEY_FOR).unwrap_or(Timestamp::MAX));
    }

    /// Whether the key of before the last rotation has had its time.
    pub fn is_old_key_over(&self, now: Timestamp) -> bool {
        self.old_key_until.is_some_and(|until| until <= now)
    }

    /// Remembers that an event of this number and time was not taken, and why. One that is too old is given up.
    pub fn failed(&mut self, event: u64, of: Timestamp, now: Timestamp, why: &str) {
        self.failures = self.failures.saturating_add(1);
        self.failing_since.get_or_insert(now);
        self.error = Some(why.to_owned());
        if now.duration_since(of) > GIVEN_UP_AFTER {
            self.miss(1, event);
        }
    }

    /// Remembers that so many events up to one were not told.
    pub fn miss(&mut self, count: u64, up_to: u64) {
        self.missed = self.missed.saturating_add(count);
        self.cursor = up_to;
    }

    /// Whether it fails so steadily that somebody should know.
    pub fn is_failing(&self) -> bool {
        self.failures >= ATTEMPTS_MAX
    }

    /// How long to wait before the next attempt.
    pub fn pause(&self) -> Duration {
        match self.failures {
            0 => Duration::ZERO,
            failures => PAUSE_MIN.saturating_mul(1 << (failures - 1).min(20)).min(PAUSE_MAX),
        }
    }
}

/// Types of events: text in which `*` stands for any text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EventPattern(String);

impl EventPattern {
    /// Everything.
    pub fn all() -> EventPattern {
        EventPattern("*".to_owned())
    }

    /// Whether an event of this type is meant.
    pub fn matches(&self, kind: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = kind.strip_prefix(first) else { return false };
        let mut parts: Vec<&str> = parts.collect();
        let Some(last) = parts.pop() else { return rest.is_empty() };
        for part in parts {
            let Some((_, after)) = rest.split_once(part) else { return false };
            rest = after;
        }
        rest.ends_with(last)
    }

    /// Whether there can be an event that is meant.
    fn is_of_some(&self) -> bool {
        let (begin, ends) = OF_JOBS;
        let first = self.0.split('*').next().unwrap_or_default();
        let last = self.0.rsplit('*').next().unwrap_or_default();
        let begins = first.starts_with(begin) || self.0.contains('*') && begin.starts_with(first);
        let of_jobs = begins && ends.iter().any(|end| last.ends_with(end) || end.ends_with(last));
        of_jobs || OF_FAULTS.iter().any(|kind| self.matches(kind))
    }
}

impl FromStr for EventPattern {
    type Err = Failure;

    fn from_str(text: &str) -> Result<EventPattern, Failure> {
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._*".contains(&b);
        let pattern = EventPattern(text.to_owned());
        let fits = text.len() <= PATTERN_BYTES_MAX && text.bytes().all(allowed);
        if fits && pattern.is_of_some() {
            return Ok(pattern);
        }
        let shown: String = text.chars().take(80).collect();
        Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("no event is called '{shown}'"),
            "events are fault.raised, fault.cleared and job.KIND.STATE, as job.vdb_provision.failed: the kinds of \
             offshoot job list, and done, failed or cancelled; * stands for any text",
        ))
    }
}

impl TryFrom<String> for EventPattern {
    type Error = Failure;

    fn try_from(text: String) -> Result<EventPattern, Failure> {
        text.parse()
    }
}

impl From<EventPattern> for String {
    fn from(pattern: EventPattern) -> String {
        pattern.0
    }
}

impl fmt::Display for EventPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Checks an address that is to be told of events, and writes it in the one way that all programs read alike.
///
/// # Errors
/// `InvalidInput` for what is no address, has a password in it, or is another host's by plain HTTP and not `insecure`.
pub fn webhook_url(text: &str, insecure: bool) -> Result<String, Failure> {
    // It is not shown: whoever reads the message may not know it.
    let refuse = |why: &str, hint: &str| {
        Failure::new(ErrorKind::InvalidInput, format!("the URL cannot be used: {why}"), hint)
    };
    let form = "write it as https://HOST/PATH";
    if text.len() > URL_BYTES_MAX {
        return Err(refuse(&format!("it is longer than {URL_BYTES_MAX} bytes"), form));
    }
    let url = Url::parse(text).map_err(|error| refuse(&error.to_string(), form))?;
    let by_tls = match url.scheme() {
        "https" => true,
        "http" => false,
        _ => return Err(refuse("it is neither https nor http", form)),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse("there is a user or a password in it", "leave them out"));
    }
    if url.fragment().is_some() {
        return Err(refuse("a part of it after # would not be sent", "leave that out"));
    }
    let on_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => return Err(refuse("it names no host", form)),
    };
    if !by_tls && !on_loopback && !insecure {
        return Err(refuse(
            "by plain http anybody on the way reads what is said, and nobody knows who hears it",
            "use https; or allow it with --insecure",
        ));
    }
    Ok(url.into())
}

/// What a webhook's messages are signed with.
pub struct WebhookKey(Zeroizing<Vec<u8>>);

impl WebhookKey {
    /// A new one of these random bytes, as it is kept and shown once.
    pub fn written(random: &[u8; 32]) -> Secret {
        Secret::new(format!("{KEY_PREFIX}{}", STANDARD.encode(random)))
    }

    /// Of its text: `whsec_` and 24 to 64 bytes in base64.
    ///
    /// # Errors
    /// `InvalidInput` for another text.
    pub fn parse(secret: &Secret) -> Result<WebhookKey, Failure> {
        let digits = secret.reveal().strip_prefix(KEY_PREFIX);
        let bytes = digits.and_then(|digits| STANDARD.decode(digits).ok()).map(Zeroizing::new);
        bytes.filter(|bytes| KEY_BYTES.contains(&bytes.len())).map(WebhookKey).ok_or_else(|| {
            Failure::new(
                ErrorKind::InvalidInput,
                "the secret is not whsec_ and 24 to 64 bytes in base64",
                "leave it out, and one is made; or make it with: echo whsec_$(openssl rand -base64 32)",
            )
        })
    }

    /// The value of `webhook-signature` for a message.
    pub fn sign(&self, message: &str, seconds: i64, body: &[u8]) -> String {
        let key = hmac::Key::new(HMAC_SHA256, &self.0);
        let mut context = hmac::Context::with_key(&key);
        context.update(format!("{message}.{seconds}.").as_bytes());
        context.update(body);
        format!("v1,{}", STANDARD.encode(context.sign()))
    }
}

#[cfg(test)]
mod tests;
