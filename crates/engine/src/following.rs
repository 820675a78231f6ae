//! dSources kept in step with their sources.

pub mod follower;
pub mod reservations;
mod standby_share;
pub mod working_copy;

use crate::serving::Serving;
use crate::space::losses;
use follower::Follower;
use offshoot_domain::{Dsource, DsourceState, Timeflow};
use offshoot_os::spawn_or_run;
use offshoot_types::{DsourceId, ErrorKind, Failure, LogPosition, TimeflowId};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// How long the log of a replica may be away that is being renewed.
const RENEWAL: Duration = Duration::from_secs(5);
/// Between two looks.
const RENEWAL_LOOK: Duration = Duration::from_millis(10);

/// The followers of all dSources, on top of what they use.
pub struct Following {
    serving: Arc<Serving>,
    followers: Mutex<HashMap<DsourceId, Arc<Follower>>>,
    /// The logs of ended timeflows, opened when they are first needed.
    ended: Mutex<HashMap<TimeflowId, Arc<Follower>>>,
}

impl Following {
    /// Nothing is followed yet.
    pub fn new(serving: Arc<Serving>) -> Following {
        Following { serving, followers: Mutex::default(), ended: Mutex::default() }
    }

    /// The follower of a dSource.
    pub fn follower(&self, id: DsourceId) -> Option<Arc<Follower>> {
        self.followers.lock().get(&id).cloned()
    }

    /// The follower of a dSource that must have one. That of a replica is away for a moment while it is renewed; nobody
    /// who has the replica for himself meets that.
    pub fn need_follower(&self, dsource: &Dsource) -> Result<Arc<Follower>, Failure> {
        let renewed = dsource.state == DsourceState::Replica && dsource.log_dataset.is_some();
        let deadline = self.clock.elapsed() + if renewed { RENEWAL } else { Duration::ZERO };
        while self.follower(dsource.id).is_none() && self.clock.elapsed() < deadline {
            self.clock.sleep(RENEWAL_LOOK);
        }
        self.follower(dsource.id).ok_or_else(|| {
            Failure::new(
                ErrorKind::WrongState,
                format!("'{}' is not being followed", dsource.name),
                format!("see why: offshoot dsource show {}", dsource.name),
            )
        })
    }

    /// The log of a timeflow of a dSource: the one that is followed, or what is kept of an ended one.
    pub fn log_of(
        &self,
        dsource: &Dsource,
        timeflow: TimeflowId,
    ) -> Result<Arc<Follower>, Failure> {
        if dsource.timeflow == Some(timeflow) {
            return self.need_follower(dsource);
        }
        let mut ended = self.ended.lock();
        if let Some(follower) = ended.get(&timeflow) {
            return Ok(follower.clone());
        }
        let Timeflow { log_dataset, log, .. } = self.catalog.get(timeflow)?;
        let then = Dsource {
            log_dataset,
            synced_to: log.last().map(|range| range.to),
            timeflow: Some(timeflow),
            ..dsource.clone()
        };
        let follower = Follower::open(&self.serving, &then)?;
        // Without this, the commits of its last file are unknown, and times among them would open what was before.
        follower.log().update_until(LogPosition::END)?;
        ended.insert(timeflow, follower.clone());
        Ok(follower)
    }

    /// Closes the log of an ended timeflow, which is about to be deleted.
    pub fn close_log(&self, timeflow: TimeflowId) {
        self.ended.lock().remove(&timeflow);
    }

    /// Opens the log of a dSource without following its source yet.
    pub fn open(&self, dsource: &Dsource) -> Result<Arc<Follower>, Failure> {
        let follower = Follower::open(&self.serving, dsource)?;
        self.followers.lock().insert(dsource.id, follower.clone());
        Ok(follower)
    }

    /// Opens and starts everything of a dSource that is to be followed; without its source (paused), only
    /// its log is opened.
    pub fn start(&self, dsource: &Dsource, follow: bool) -> Result<(), Failure> {
        let dsource = &losses::accept_of_dsource(self, dsource)?;
        let follower = Follower::open(&self.serving, dsource)?;
        // A damaged log must not stop the rounds from reporting it.
        if let Err(failure) = follower.find_end() {
            tracing::warn!(dsource = %dsource.name, %failure, "the end of its log is not known");
        }
        self.followers.lock().insert(dsource.id, follower.clone());
        if !follow {
            return Ok(());
        }
        follower.start_stream(dsource)?;
        follower.start_staging(dsource)
    }

    /// Stops following a dSource and drops its follower; it is no error if there is none.
    pub fn stop(&self, id: DsourceId) -> Result<(), Failure> {
        let follower = self.followers.lock().remove(&id);
        follower.map_or(Ok(()), |follower| follower.stop())
    }

    /// Stops following all sources cleanly; problems are logged.
    pub fn stop_all(&self) {
        let followers: Vec<_> = self.followers.lock().drain().map(|(_, one)| one).collect();
        std::thread::scope(|scope| {
            for follower in &followers {
                spawn_or_run(scope, || {
                    if let Err(failure) = follower.stop() {
                        tracing::error!(%failure, "a follower did not stop cleanly");
                    }
                });
            }
        });
    }
}

impl Deref for Following {
    type Target = Serving;

    fn deref(&self) -> &Serving {
        &self.serving
    }
}
