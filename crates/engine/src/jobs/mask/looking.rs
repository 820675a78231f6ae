//! Looking at a moment of a dSource in a private server, before anything is masked: what should be, and what rules make
//! of some rows.

use super::keys::key;
use super::{discard_clone, masker, open, rules};
use crate::core::job_kind::JobKind;
use crate::core::kind::Kind;
use crate::history::moments::check;
use crate::jobs::provision::resolve_from;
use crate::parts::{Context, Parts};
use offshoot_domain::{Discovered, Dsource, Moment};
use offshoot_types::{DsourceId, Failure, JobId};
use offshoot_workflow::{Key, Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Key under which a job stores what it found.
pub const DISCOVERED: Key<Discovered> = Key::new("discovered");

/// Where to look.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Place {
    /// The dSource.
    pub source: DsourceId,
    /// Its moment.
    pub moment: Moment,
}

/// What to look for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Search {
    /// Where.
    pub place: Place,
    /// How many values of a column to look at.
    pub sample: u32,
}

/// What to show.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Show {
    /// Of which moment.
    pub place: Place,
    /// The rules to mask by.
    pub rules: String,
    /// The table.
    pub table: String,
    /// How many rows.
    pub rows: u32,
    /// Whether the values are shown as they are, too.
    pub originals: bool,
}

/// The workflows.
pub fn workflows() -> [Workflow<Parts>; 2] {
    [
        Workflow::new(JobKind::MaskDiscover)
            .step_without_undo("resolve", |context| resolve(context, &search(context)?.place))
            .step("discover", discover, discard_clone),
        Workflow::new(JobKind::MaskPreview)
            .step_without_undo("resolve", |context| resolve(context, &show(context)?.place))
            .step("preview", preview, discard_clone),
    ]
}

/// Starts a job that looks for what should be masked.
pub fn submit_discovery(parts: &Arc<Parts>, search: &Search) -> Result<JobId, Failure> {
    masker(&Kind::of(parts, search.place.source.into())?)?;
    submit(parts, JobKind::MaskDiscover, &search.place, search)
}

/// Starts a job that masks some rows and keeps nothing.
pub fn submit_preview(parts: &Arc<Parts>, show: &Show) -> Result<JobId, Failure> {
    rules(parts, show.place.source, &show.rules)?;
    submit(parts, JobKind::MaskPreview, &show.place, show)
}

fn submit(
    parts: &Arc<Parts>,
    kind: JobKind,
    place: &Place,
    input: &impl Serialize,
) -> Result<JobId, Failure> {
    check(parts, place.source.into(), &place.moment)?;
    let source: Dsource = parts.catalog.get(place.source)?;
    parts.submit(Submission::new(kind, &source.name, input).shared(place.source))
}

fn search(context: &Context) -> Result<Search, Failure> {
    context.input()
}

fn show(context: &Context) -> Result<Show, Failure> {
    context.input()
}

fn resolve(context: &Context, place: &Place) -> Result<(), Failure> {
    resolve_from(context, place.source.into(), &place.moment)
}

fn discover(context: &Context) -> Result<(), Failure> {
    let search = search(context)?;
    let kind = Kind::of(context.app(), search.place.source.into())?;
    let server = open(context, &kind)?;
    let found = masker(&kind)?.discover(&*server, search.sample, &mut |done, total| {
        context.progress(done, total, "tables");
        context.check_cancelled()
    });
    drop(server);
    discard_clone(context)?;
    context.set(DISCOVERED, &found?)
}

/// What it shows is held in memory for whoever asked, and nowhere else.
fn preview(context: &Context) -> Result<(), Failure> {
    let (parts, show) = (context.app(), show(context)?);
    let kind = Kind::of(parts, show.place.source.into())?;
    let rules = rules(parts, show.place.source, &show.rules)?;
    let server = open(context, &kind)?;
    let secret = key(parts, rules.key_name())?.secret;
    let shown = rules.preview(&*server, &secret, &show.table, show.rows);
    drop(server);
    discard_clone(context)?;
    let mut shown = shown?;
    for value in shown.rows.iter_mut().flatten() {
        if !show.originals {
            value.before = None;
            // What no rule masks is as it was.
            value.after = value.after.take().filter(|_| value.masked);
        }
    }
    parts.previews.put(context.job_id(), shown);
    Ok(())
}
