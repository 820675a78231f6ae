//! The database as its server has it: recovered from checkpoint and journal, changed by commits.
//!
//! Invariants:
//! 1. A commit is durable in the journal before anybody is told about it.
//! 2. A commit's time is later than every clock that a receiver of the journal was told before. So a receiver
//!    that has all bytes up to a position that came with a clock has every commit up to that clock.
//! 3. The journal is kept from the last checkpoint and from every reservation on.

use crate::conf::Conf;
use crate::journal::{Journal, Reader, Step, segment_start};
use crate::record::{Kind, Record};
use crate::state::{self, JOURNAL, State, login_value};
use offshoot_connector::{DataDir, PlainDir};
use offshoot_os::{Clock, SystemClock};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// The file of reservations.
const RESERVATIONS: &str = "reservations";
/// Most bytes of journal per answer.
const PULL_BYTES_MAX: u64 = 64 << 10;
/// The setting that ties a database to another one, by its URI.
pub(crate) const REPLICA_OF: &str = "replica_of";
/// The setting that says what was cut, until it is given to its users.
const TIES_CUT: &str = "ties_cut";
/// What is said of a login that was cut begins with this.
const LOGIN_CUT: &str = "login ";

/// A commit that is durable.
pub(crate) struct Committed {
    pub(crate) number: u64,
    pub(crate) end: u64,
    pub(crate) time_us: i64,
}

/// What a receiver of the journal gets.
pub(crate) struct Pulled {
    pub(crate) bytes: Vec<u8>,
    /// The journal's end,
    pub(crate) flushed: u64,
    /// and the clock then.
    pub(crate) clock_us: i64,
}

pub(crate) struct Database {
    dir: Arc<dyn DataDir>,
    journal: Journal,
    reader: Reader,
    pub(crate) conf: Conf,
    pub(crate) state: State,
    checkpointed: u64,
    told_us: i64,
    reservations: BTreeMap<String, u64>,
}

impl Database {
    /// Opens the last checkpoint. Nothing of the journal is applied yet.
    pub(crate) fn open(data: &std::path::Path) -> io::Result<Database> {
        let dir: Arc<dyn DataDir> = Arc::new(PlainDir::new(data));
        let conf = Conf::read(&*dir).map_err(io::Error::other)?;
        let state = State::read(&*dir).map_err(io::Error::other)?;
        if !dir.exists(JOURNAL)? {
            dir.create_dir(JOURNAL, 0o700)?;
        }
        let reservations = match dir.read(RESERVATIONS) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        let journal = Journal::new(dir.clone(), JOURNAL);
        Ok(Database {
            reader: Reader::new(journal.clone()),
            journal,
            checkpointed: state.position,
            told_us: state.last_time_us.unwrap_or(i64::MIN),
            dir,
            conf,
            state,
            reservations,
        })
    }

    /// Applies at most this many records of the journal; returns whether there may be more.
    pub(crate) fn replay(&mut self, records_max: usize) -> io::Result<bool> {
        for _ in 0..records_max {
            match self.reader.next(self.state.position)? {
                Step::Record(record, end) => self.state.apply(&record, end),
                Step::End | Step::Damaged => {
                    // What follows may be only partly written so far.
                    self.reader.forget();
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Ends recovery: cuts off what was only partly written, and accepts writes from now on. A copy records durably
    /// that it has diverged.
    pub(crate) fn open_for_writes(&mut self) -> io::Result<()> {
        self.journal.cut(self.state.position)?;
        self.told_us = self.told_us.max(self.state.last_time_us.unwrap_or(i64::MIN));
        if self.conf.copy && !self.state.diverged {
            self.state.diverged = true;
            self.checkpoint()?;
        }
        Ok(())
    }

    /// The clock, never behind what it told before.
    fn clock_us(&self) -> i64 {
        let since = SystemClock.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX).max(self.told_us)
    }

    pub(crate) fn commit(&mut self, kind: Kind, key: &str, value: &str) -> io::Result<Committed> {
        let time_us = self.clock_us().saturating_add(1);
        self.told_us = time_us;
        let (key, value) = (key.to_owned(), value.to_owned());
        let record = Record { number: self.state.number + 1, time_us, kind, key, value };
        let position = self.state.position;
        let bytes = record
            .encode(position, self.state.previous)
            .ok_or_else(|| io::Error::other("the value is too long"))?;
        if let Err(error) = self.journal.write_at(position, &bytes) {
            self.journal.cut(position)?;
            return Err(error);
        }
        let end = position + bytes.len() as u64;
        self.state.apply(&record, end);
        if end - self.checkpointed >= self.conf.checkpoint_bytes() {
            self.checkpoint()?;
        }
        Ok(Committed { number: record.number, end, time_us })
    }

    /// Writes everything, and drops journal that nobody needs.
    pub(crate) fn checkpoint(&mut self) -> io::Result<()> {
        self.dir.write_atomic(state::FILE, &self.state.encode()?, 0o600)?;
        self.checkpointed = self.state.position;
        let reserved = self.reservations.values().copied().min().unwrap_or(u64::MAX);
        self.journal.remove_before(self.checkpointed.min(segment_start(reserved)), false)?;
        Ok(())
    }

    /// A staging server's: from time to time.
    pub(crate) fn checkpoint_if_far(&mut self, bytes: u64) -> io::Result<()> {
        if self.state.position - self.checkpointed >= bytes {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// A checkpoint's bytes, for a copy.
    pub(crate) fn copy(&mut self) -> io::Result<Vec<u8>> {
        State { diverged: false, ..self.state.clone() }.encode()
    }

    pub(crate) fn reservations(&self) -> &BTreeMap<String, u64> {
        &self.reservations
    }

    /// Keeps the journal from the file of the present position on; returns from where it is kept.
    pub(crate) fn reserve(&mut self, name: &str) -> io::Result<u64> {
        if let Some(position) = self.reservations.get(name) {
            return Ok(segment_start(*position));
        }
        self.set_reservation(name, Some(self.state.position))?;
        Ok(segment_start(self.state.position))
    }

    pub(crate) fn set_reservation(&mut self, name: &str, at: Option<u64>) -> io::Result<()> {
        match at {
            Some(position) => self.reservations.insert(name.to_owned(), position),
            None => self.reservations.remove(name),
        };
        let bytes = serde_json::to_vec(&self.reservations).map_err(io::Error::other)?;
        self.dir.write_atomic(RESERVATIONS, &bytes, 0o600)
    }

    /// The journal from a position on, for a receiver that has made it durable up to `confirmed`; none if it is no
    /// longer kept.
    pub(crate) fn pull(
        &mut self,
        from: u64,
        name: &str,
        confirmed: u64,
    ) -> io::Result<Option<Pulled>> {
        let known = self.reservations.get(name).copied();
        if let Some(known) = known.filter(|known| confirmed > *known) {
            if segment_start(known) == segment_start(confirmed) {
                self.reservations.insert(name.to_owned(), confirmed);
            } else {
                self.set_reservation(name, Some(confirmed))?;
            }
        }
        let begin = self.journal.range()?.map_or(self.state.position, |(begin, _)| begin);
        let flushed = self.state.position;
        if from < begin.min(segment_start(flushed)) || from > flushed {
            return Ok(None);
        }
        self.told_us = self.clock_us();
        let mut bytes = vec![0; (flushed - from).min(PULL_BYTES_MAX) as usize];
        let got = self.journal.read_at(from, &mut bytes)?;
        bytes.truncate(got);
        Ok(Some(Pulled { bytes, flushed, clock_us: self.told_us }))
    }

    /// Removes every way to another database; a line each.
    pub(crate) fn cut_ties(&mut self) -> io::Result<Vec<String>> {
        let mut cut = Vec::new();
        if let Some(uri) = self.state.settings.get(REPLICA_OF).cloned() {
            self.commit(Kind::Setting, REPLICA_OF, "")?;
            cut.push(format!("{REPLICA_OF} = {}", without_secret(&uri)));
        }
        let names: Vec<(String, String)> = (self.state.logins.iter())
            .filter_map(|(name, value)| Some((name.clone(), value.strip_prefix("on:")?.to_owned())))
            .collect();
        for (name, secret) in names {
            self.commit(Kind::Login, &name, &format!("cut:{secret}"))?;
            cut.push(format!("{LOGIN_CUT}{name}"));
        }
        if !cut.is_empty() {
            let known: Vec<String> = self.state.settings.get(TIES_CUT).map_or_else(
                || Ok(Vec::new()),
                |text| serde_json::from_str(text).map_err(io::Error::other),
            )?;
            let all = serde_json::to_string(&[known, cut.clone()].concat());
            self.commit(Kind::Setting, TIES_CUT, &all.map_err(io::Error::other)?)?;
        }
        Ok(cut)
    }

    /// Replaces the values of keys with this prefix by hashes, the same ones for the same secret; returns how
    /// many.
    pub(crate) fn mask(&mut self, secret: &str, prefix: &str) -> io::Result<u64> {
        let named: Vec<(String, String)> = (self.state.data.iter())
            .filter(|(key, _)| key.starts_with(prefix))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        for (key, value) in &named {
            let hash = blake3::hash(format!("{secret} {value}").as_bytes()).to_hex();
            self.commit(Kind::Data, key, &hash)?;
        }
        Ok(named.len() as u64)
    }

    /// Gives it to its users: one login, and those of the source if asked. Returns what else was cut, once.
    pub(crate) fn grant(
        &mut self,
        login: &str,
        secret: &str,
        restore: bool,
    ) -> io::Result<Option<Vec<String>>> {
        if restore {
            let cut: Vec<(String, String)> = (self.state.logins.iter())
                .filter_map(|(name, value)| {
                    Some((name.clone(), value.strip_prefix("cut:")?.to_owned()))
                })
                .collect();
            for (name, secret) in cut {
                self.commit(Kind::Login, &name, &format!("on:{secret}"))?;
            }
        }
        self.commit(Kind::Login, login, &login_value(secret))?;
        let Some(told) = self.state.settings.get(TIES_CUT).cloned() else { return Ok(None) };
        self.commit(Kind::Setting, TIES_CUT, "")?;
        let mut cut: Vec<String> = serde_json::from_str(&told).map_err(io::Error::other)?;
        cut.retain(|one| !(restore && one.starts_with(LOGIN_CUT)));
        Ok(Some(cut))
    }
}

fn without_secret(uri: &str) -> String {
    match url::Url::parse(uri) {
        Ok(mut uri) => {
            let _ = uri.set_password(None);
            uri.to_string()
        }
        Err(_) => "a URI that cannot be read".to_owned(),
    }
}

#[cfg(test)]
mod tests;
