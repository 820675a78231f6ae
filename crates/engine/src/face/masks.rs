//! What can be asked of masked dSources.

pub mod keys;
pub mod report;

use crate::core::job_kind::JobKind;
use crate::jobs::mask::looking::{self, DISCOVERED, Place, Search, Show};
use crate::jobs::mask::{self, Input, TABLES};
use crate::parts::Parts;
use jiff::Timestamp;
use offshoot_catalog::Job;
use offshoot_connector::Preview;
use offshoot_domain::{Discovered, Dsource, MaskedRows, Masking, Moment, ObjectName};
use offshoot_types::{ErrorKind, Failure, JobId, SnapshotId};
use std::sync::Arc;

/// Jobs that are looked through for the last one of a masked dSource.
const JOBS_LOOKED_AT: u32 = 1000;

/// What is masked, and how.
#[derive(Debug, Clone, Default)]
pub struct MaskRequest {
    /// The name of the dSource to mask.
    pub from: String,
    /// The name of the masked dSource; by default that of the dSource with `-masked`.
    pub name: Option<String>,
    /// The snapshot to begin with; by default the latest moment.
    pub snapshot: Option<SnapshotId>,
    /// The rules, as the kind of database reads them.
    pub rules: String,
    /// How often to renew it.
    pub every_ms: Option<u64>,
    /// Who asks for it.
    pub by: String,
    /// Mask everything, whatever has changed since the last run.
    pub full: bool,
}

/// What to show of masked rows.
#[derive(Debug, Clone)]
pub struct PreviewRequest {
    /// The name of the dSource.
    pub from: String,
    /// The rules, as the kind of database reads them.
    pub rules: String,
    /// The table.
    pub table: String,
    /// How many rows.
    pub rows: u32,
    /// Whether the values are shown as they are, too.
    pub originals: bool,
}

/// How a masked dSource stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaskState {
    /// Being made, or renewed.
    Masking,
    /// Its last run gave an image.
    Masked,
    /// Its last run failed; an image of an earlier one is still there if [`MaskView::masking`] is.
    Failed,
}

/// A masked dSource, or one that is being made for the first time.
#[derive(Debug, Clone)]
pub struct MaskView {
    /// Its name.
    pub name: String,
    /// What it is masked from.
    pub source: String,
    /// How it stands.
    pub state: MaskState,
    /// Why the last run failed.
    pub problem: Option<Failure>,
    /// Its record; none before its first image.
    pub masking: Option<Masking>,
    /// The tables of the run under way, or of the last one.
    pub tables: Vec<MaskedRows>,
    /// How long the run has taken so far, or took, in milliseconds.
    pub took_ms: u64,
}

/// Masking, as a user works with it.
pub struct Masks<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

impl Masks<'_> {
    /// Makes or renews a masked dSource.
    ///
    /// # Errors
    /// `InvalidInput` for rules that are not understood, `NotFound`, `AlreadyExists`, `MomentUnavailable`.
    pub fn apply(&self, request: MaskRequest) -> Result<JobId, Failure> {
        mask::submit_apply(self.parts, &self.input(request)?)
    }

    /// Holds rules against a dSource: the job's notes say what was found, and it fails if they cannot be applied.
    ///
    /// # Errors
    /// As [`Masks::apply`].
    pub fn check(&self, request: MaskRequest) -> Result<JobId, Failure> {
        mask::submit_check(self.parts, &self.input(request)?)
    }

    /// Looks through the latest moment of a dSource for what should be masked, at about `sample` values of each column.
    ///
    /// # Errors
    /// `NotFound`, `MomentUnavailable`, `InvalidInput` where databases of its kind cannot be masked.
    pub fn discover(&self, from: &str, sample: u32) -> Result<JobId, Failure> {
        looking::submit_discovery(self.parts, &Search { place: self.place(from)?, sample })
    }

    /// What such a job found.
    ///
    /// # Errors
    /// `NotFound` if it is none, or not done.
    pub fn discovery(&self, job: JobId) -> Result<Discovered, Failure> {
        let done = self.parts.runner()?.job(job)?;
        DISCOVERED.find(&done.bag).ok_or_else(|| {
            let message = format!("{job} has found nothing to mask so far, or looks for nothing");
            Failure::new(ErrorKind::NotFound, message, "run: offshoot mask discover DSOURCE")
        })
    }

    /// Masks some rows of a table, to be looked at; nothing of it is kept.
    ///
    /// # Errors
    /// As [`Masks::apply`].
    pub fn preview(&self, request: PreviewRequest) -> Result<JobId, Failure> {
        let PreviewRequest { from, rules, table, rows, originals } = request;
        let place = self.place(&from)?;
        looking::submit_preview(self.parts, &Show { place, rules, table, rows, originals })
    }

    /// What such a job shows, once.
    ///
    /// # Errors
    /// `NotFound` if it shows nothing (any more).
    pub fn previewed(&self, job: JobId) -> Result<Preview, Failure> {
        self.parts.previews.take(job).ok_or_else(|| {
            let message = format!("{job} shows nothing, or somebody has seen it");
            Failure::new(ErrorKind::NotFound, message, "run: offshoot mask preview RULES")
        })
    }

    fn place(&self, from: &str) -> Result<Place, Failure> {
        Ok(Place { source: self.parts.dsource(from)?.id, moment: Moment::Latest })
    }

    fn input(&self, request: MaskRequest) -> Result<Input, Failure> {
        let MaskRequest { from, name, snapshot, rules, every_ms, by, full } = request;
        let name: ObjectName = name.unwrap_or_else(|| format!("{from}-masked")).parse()?;
        Ok(Input {
            new: self.parts.catalog.allocate::<Dsource>()?,
            name,
            source: self.parts.dsource(&from)?.id,
            moment: snapshot.map_or(Moment::Latest, Moment::Snapshot),
            rules,
            every_ms,
            by,
            full,
        })
    }

    /// All masked dSources, and those that are being made, by name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn list(&self) -> Result<Vec<MaskView>, Failure> {
        let mut last_jobs: Vec<Job> = Vec::new();
        for job in self.parts.runner()?.jobs(JOBS_LOOKED_AT)? {
            let seen = |one: &Job| one.object == job.object;
            if JobKind::MaskApply.is_of(&job) && !last_jobs.iter().any(seen) {
                last_jobs.push(job);
            }
        }
        let (now, mut views) = (self.parts.now(), Vec::new());
        for masking in self.parts.catalog.list::<Masking>()? {
            let name = self.parts.catalog.get::<Dsource>(masking.id)?.name;
            let at = last_jobs.iter().position(|job| named(job).is_some_and(|one| one == name));
            let job = at.map(|at| last_jobs.swap_remove(at));
            views.push(view(now, name.to_string(), Some(masking), job.as_ref()));
        }
        for job in last_jobs {
            // One that was done and has no record any more was unlinked.
            let input: Input = serde_json::from_value(job.input.clone())
                .map_err(|error| Failure::internal(format!("the input of {}: {error}", job.id)))?;
            if job.error.is_none() && job.state.is_final() {
                continue;
            }
            let source = self.parts.catalog.find::<Dsource>(input.source)?;
            let mut view = view(now, input.name.to_string(), None, Some(&job));
            view.source = source.map(|one| one.name.to_string()).unwrap_or_default();
            views.push(view);
        }
        views.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(views)
    }

    /// One of them.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn show(&self, name: &str) -> Result<MaskView, Failure> {
        self.list()?.into_iter().find(|one| one.name == name).ok_or_else(|| {
            let hint = "list them: offshoot mask status; make one: offshoot mask apply RULES --from DSOURCE";
            Failure::new(ErrorKind::NotFound, format!("there is no masked dSource '{name}'"), hint)
        })
    }
}

fn named(job: &Job) -> Option<ObjectName> {
    serde_json::from_value::<Input>(job.input.clone()).ok().map(|input| input.name)
}

fn view(now: Timestamp, name: String, masking: Option<Masking>, job: Option<&Job>) -> MaskView {
    let running = job.filter(|job| !job.state.is_final());
    let failed = job.filter(|job| job.state.is_final()).and_then(|job| job.error.clone());
    let last = masking.as_ref().map(|masking| &masking.last);
    let (tables, took_ms) = match running {
        Some(job) => {
            let taken = now.duration_since(job.started_at).as_millis();
            (TABLES.find(&job.bag).unwrap_or_default(), u64::try_from(taken).unwrap_or_default())
        }
        None => last.map_or_else(Default::default, |last| (last.tables.clone(), last.took_ms)),
    };
    MaskView {
        name,
        source: masking.as_ref().map(|one| one.source_name.to_string()).unwrap_or_default(),
        state: match (running, &failed) {
            (Some(_), _) => MaskState::Masking,
            (None, Some(_)) => MaskState::Failed,
            (None, None) => MaskState::Masked,
        },
        problem: failed,
        masking,
        tables,
        took_ms,
    }
}
