//! Moments that a search holds open: each a clone in a place of its own.

use super::{Input, inquirer};
use crate::core::keys::job_key;
use crate::core::kind::Kind;
use crate::history::moments::resolve_at;
use crate::images::opening::{DATASET, RECOVERY_DEADLINE, Replaying, start_private};
use crate::parts::Context;
use offshoot_connector::{Grant, Reply, Server, StopMode};
use offshoot_domain::{Answer, Dsource, Position, Secret};
use offshoot_types::{ErrorKind, Failure, LogPosition, SnapshotId, TimeflowId};
use std::sync::Arc;

/// How many moments a search holds open, at most: the two that the change is between, and those that it opens next.
pub const PLACES: usize = 2 + OPENED_AT_ONCE;
/// How many it opens at the same time. More take as long together as one after the other where there are few
/// processors.
pub const OPENED_AT_ONCE: usize = 2;

/// A moment that is open, with its answer.
#[derive(Clone)]
pub struct Opened {
    pub place: usize,
    pub at: Position,
    pub reply: Reply,
    pub server: Arc<dyn Server>,
}

/// What is the same for all moments of a search.
pub struct Opener<'a> {
    pub context: &'a Context,
    pub input: &'a Input,
    pub kind: &'a Kind,
    pub source: &'a Dsource,
    pub timeflow: Option<TimeflowId>,
}

impl Opener<'_> {
    /// Opens a position in a place whose last moment nobody needs any more, and asks there.
    pub fn open(&self, place: usize, at: Position) -> Result<Opened, Failure> {
        let parts = self.context.app();
        self.context.check_cancelled()?;
        let at_place = discard(self.context, place)?;
        let key = key(self.context, place);
        let resolved = resolve_at(parts, self.source, self.timeflow, at.log)?;
        let dataset = self.clone_image(resolved.image)?;
        at_place.set(DATASET, &dataset)?;
        parts.volumes.mount_gathering(dataset)?;
        let server = match resolved.recover_to {
            Some(to) => self.recover(&key, dataset, to)?,
            None => start_private(parts, &key, self.kind, dataset, RECOVERY_DEADLINE)?,
        };
        // The role that asks has the rights of a VDB's user, and the source's secrets go.
        let password = Secret::new(self.kind.connector.new_password());
        server.grant(&Grant::new(password), RECOVERY_DEADLINE)?;
        self.context.check_cancelled()?;
        let question = self.input.question(self.kind, self.source);
        let asked = inquirer(self.kind)?.ask(&*server, &question);
        let reply = asked.map_err(|failure| self.at_moment(failure, at))?;
        if let (Answer::Error(text), false) = (&reply.answer, self.input.errors_are_answers) {
            let refused = Failure::new(
                ErrorKind::InvalidInput,
                format!("the query is refused: {text}"),
                "correct it, or choose other ends; with --errors-are-answers a refusal is an answer like others",
            );
            return Err(self.at_moment(refused, at));
        }
        Ok(Opened { place, at, reply, server })
    }

    fn clone_image(&self, image: SnapshotId) -> Result<offshoot_types::DatasetId, Failure> {
        self.context.app().store.clone_snapshot(image).map_err(|error| error.failure())
    }

    fn recover(
        &self,
        key: &str,
        dataset: offshoot_types::DatasetId,
        to: LogPosition,
    ) -> Result<Arc<dyn Server>, Failure> {
        let log = (self.source.id, self.timeflow);
        let replaying = Replaying { key, kind: self.kind, dataset, log, to, urgent: true };
        replaying.run(self.context.app(), &mut |_| !self.context.is_cancelled())
    }

    /// Says at which moment it failed.
    fn at_moment(&self, failure: Failure, at: Position) -> Failure {
        let message = format!("at {}: {}", at.time, failure.message);
        Failure { message, ..failure }
    }
}

fn key(context: &Context, place: usize) -> String {
    format!("{}-{place}", job_key(context.job_id()))
}

/// Ends the server of a place and removes its clone. Returns where the job notes what is there.
fn discard(context: &Context, place: usize) -> Result<Context, Failure> {
    let parts = context.app();
    let at_place = context.part(&format!("place-{place}"), &())?;
    parts.servers.stop(&key(context, place), StopMode::Immediate)?;
    if let Some(dataset) = at_place.get(DATASET)? {
        parts.volumes.unmount(dataset)?;
        parts.delete_dataset(dataset)?;
    }
    Ok(at_place)
}

/// Undo: removes all.
pub fn discard_all(context: &Context) -> Result<(), Failure> {
    (0..PLACES).try_for_each(|place| discard(context, place).map(drop))
}
