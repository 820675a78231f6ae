//! Bounds the logs of servers: the users of a VDB decide what is written into its log.

use crate::core::keys::{gateway_key, staging_key, vdb_key};
use crate::ground::stopping::Stopping;
use crate::parts::Parts;
use offshoot_catalog::JobState;
use offshoot_domain::{Dsource, Vdb};
use offshoot_os::bounded_log;
use offshoot_types::{Failure, JobId};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A log that has grown to this is cut; as much is kept beside it.
const LOG_BYTES_MAX: u64 = 8 << 20;
/// Pause between two looks.
const ROUND: Duration = Duration::from_millis(200);
/// The same after a log was cut: its server may write as fast as it can.
const BUSY_ROUND: Duration = Duration::from_millis(20);
/// Pause between two searches for logs that nobody needs.
const SEARCH_PAUSE: Duration = Duration::from_secs(600);
/// How long a log is kept whose server is no more.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// The same of a job that has done its work: nobody asks why.
const KEPT_OF_DONE: Duration = Duration::from_secs(600);

/// Runs until told to stop.
pub fn run(parts: &Parts, stopping: &Stopping) {
    let dir = parts.paths.logs();
    let (mut pause, mut search_at) = (ROUND, Duration::ZERO);
    while !stopping.rest(pause) {
        pause = if cut_all(&dir) { BUSY_ROUND } else { ROUND };
        if parts.clock.elapsed() < search_at {
            continue;
        }
        search_at = parts.clock.elapsed() + SEARCH_PAUSE;
        match needed(parts) {
            Ok(needed) => {
                let kept = |key: &str| kept(parts, &needed, key);
                remove_old(&dir, &kept, SystemTime::from(parts.now()));
            }
            Err(failure) => tracing::warn!(%failure, "looking for logs that nobody needs"),
        }
    }
}

/// Cuts each log that is too large; whether there was any.
fn cut_all(dir: &Path) -> bool {
    let mut any = false;
    for log in logs(dir) {
        match bounded_log::cut(&log, LOG_BYTES_MAX) {
            Ok(cut) => any |= cut,
            Err(error) => tracing::warn!(log = %log.display(), %error, "a log cannot be cut"),
        }
    }
    any
}

fn logs(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "log"))
}

/// The keys of servers that run, or may run again.
fn needed(parts: &Parts) -> Result<HashSet<String>, Failure> {
    let mut keys: HashSet<String> = parts.servers.keys().into_iter().collect();
    let of_vdb = |vdb: &Vdb| [vdb_key(vdb.id), gateway_key(vdb.id)];
    keys.extend(parts.catalog.list::<Vdb>()?.iter().flat_map(of_vdb));
    keys.extend(parts.catalog.list::<Dsource>()?.iter().map(|dsource| staging_key(dsource.id)));
    keys.insert("keeper".to_owned());
    Ok(keys)
}

/// How long the log of the server with a key is kept; none: as long as it is needed.
fn kept(parts: &Parts, needed: &HashSet<String>, key: &str) -> Option<Duration> {
    if needed.contains(key) {
        return None;
    }
    // Several servers of a job have its key with more behind it.
    let mut words = key.splitn(3, '-');
    let job = words.next().zip(words.next()).map(|(kind, number)| format!("{kind}-{number}"));
    let job = job.and_then(|key| key.parse::<JobId>().ok()).map(|id| parts.catalog.job(id));
    let done = job.is_some_and(|job| job.is_ok_and(|job| job.state == JobState::Done));
    Some(if done { KEPT_OF_DONE } else { KEPT })
}

fn remove_old(dir: &Path, kept: &dyn Fn(&str) -> Option<Duration>, now: SystemTime) {
    for log in logs(dir) {
        let key = log.file_stem().unwrap_or_default().to_string_lossy();
        let written = log.metadata().and_then(|file| file.modified());
        let age = written.ok().and_then(|at| now.duration_since(at).ok());
        if kept(&key).zip(age).is_some_and(|(kept, age)| age > kept)
            && let Err(error) = bounded_log::remove(&log)
        {
            tracing::warn!(log = %log.display(), %error, "a log cannot be removed");
        }
    }
}

#[cfg(test)]
mod tests;
