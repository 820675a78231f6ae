//! What changes, as server-sent events (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).
//!
//! Everything that changes in the engine is a job, so that jobs and the engine at a glance tell a subscriber what to ask
//! for again. A subscriber has a round of its own through the guard, and so sees what its caller may see and nothing of
//! others. What bounds the cost: a round a second, and a pause of nine times what the round took; [`STREAMS_MAX`]
//! subscribers; [`JOBS_MAX`] jobs in a round, the rest in the next ones. Each round asks again who the caller is, so that
//! a token that ends, ends the stream.

use crate::access::Caller;
use crate::access::guard::Guard;
use crate::endpoints::App;
use crate::reply::{Refusal, ask};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, stream};
use offshoot_api::{ErrorBody, Job, Status, StreamEvent, routes};
use offshoot_types::{Failure, JobId};
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep};

/// Subscribers at the same time.
pub(crate) const STREAMS_MAX: usize = 32;
/// The least time between two rounds.
const ROUND: Duration = Duration::from_secs(1);
/// How often the engine at a glance is looked at.
const STATUS_EVERY: Duration = Duration::from_secs(3);
/// The most jobs that a round sends; those at work and the newest come first.
const JOBS_MAX: usize = 200;

/// Sends what changes of what the caller may see: jobs, and the engine at a glance. The first events are the present
/// state. A stream ends with its caller's token and with the engine.
#[utoipa::path(
    get,
    path = routes::EVENTS,
    tag = "engine",
    responses((status = 200, body = StreamEvent, content_type = "text/event-stream", description = "Events: the data of each is a document of this form"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn events(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let Ok(place) = app.streams.clone().try_acquire_owned() else {
        return Err(Refusal::wrong(
            StatusCode::TOO_MANY_REQUESTS,
            format!("{STREAMS_MAX} subscribers listen already"),
            "close a console, or ask from time to time: GET /api/v1/jobs",
        ));
    };
    let subscriber = Subscriber {
        app,
        caller,
        headers,
        sent: Sent::default(),
        waiting: VecDeque::new(),
        pause: Duration::ZERO,
        _place: place,
    };
    let events = stream::unfold(subscriber, Subscriber::next);
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

struct Subscriber {
    app: App,
    caller: Caller,
    headers: HeaderMap,
    sent: Sent,
    waiting: VecDeque<Event>,
    pause: Duration,
    _place: OwnedSemaphorePermit,
}

impl Subscriber {
    /// The next event, when there is one; none ends the stream.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some((Ok(event), self));
            }
            let mut ending = self.app.ending.clone();
            tokio::select! {
                _ = ending.wait_for(|ending| *ending) => return None,
                () = sleep(self.pause) => {}
            }
            let begun = Instant::now();
            self.waiting = self.round().await?;
            self.pause = ROUND.max(begun.elapsed() * 9);
        }
    }

    /// What changed since the last round. None: the caller is nobody any more, or the engine fails.
    async fn round(&mut self) -> Option<VecDeque<Event>> {
        self.caller = self.app.access.identify(*self.caller.peer(), &self.headers).await.ok()?;
        if !self.caller.is_known() {
            return None;
        }
        let App { service, accounts, .. } = self.app.clone();
        let guard = Arc::new(Guard { service, accounts, caller: self.caller.clone() });
        let with_status = self.sent.status_is_due();
        let (jobs, status) = ask(guard, move |service| {
            let status = if with_status { Some(service.status()?) } else { None };
            Ok((service.list_jobs()?, status))
        })
        .await
        .ok()?;
        let changed = self.sent.keep(jobs, status).ok()?;
        changed.iter().map(event).collect::<Option<_>>()
    }
}

fn event(event: &StreamEvent) -> Option<Event> {
    let name = match event {
        StreamEvent::Status { .. } => "status",
        StreamEvent::Job { .. } => "job",
    };
    Event::default().event(name).json_data(event).ok()
}

/// What a subscriber knows: a digest of each job and of the status.
#[derive(Default)]
struct Sent {
    jobs: HashMap<JobId, u64>,
    status: Option<u64>,
    status_at: Option<Instant>,
}

impl Sent {
    fn status_is_due(&self) -> bool {
        self.status_at.is_none_or(|at| at.elapsed() >= STATUS_EVERY)
    }

    /// Keeps what is there now, and returns what was not known.
    fn keep(
        &mut self,
        mut jobs: Vec<Job>,
        status: Option<Status>,
    ) -> Result<Vec<StreamEvent>, Failure> {
        let mut changed = Vec::new();
        if let Some(status) = status {
            self.status_at = Some(Instant::now());
            let digest = digest(&status)?;
            if self.status.replace(digest) != Some(digest) {
                changed.push(StreamEvent::Status { status: Box::new(status) });
            }
        }
        // Newest first; those at work before others, so that a long history does not hold them up.
        jobs.sort_by_key(|job| job.state.is_final());
        let mut known = HashMap::with_capacity(jobs.len());
        let mut room = JOBS_MAX;
        for job in jobs {
            let (id, digest, before) = (job.id, digest(&job)?, self.jobs.get(&job.id).copied());
            if before == Some(digest) {
                known.insert(id, digest);
            } else if room > 0 {
                room -= 1;
                known.insert(id, digest);
                changed.push(StreamEvent::Job { job: Box::new(job) });
            } else if let Some(before) = before {
                known.insert(id, before);
            }
        }
        self.jobs = known;
        Ok(changed)
    }
}

fn digest(of: &impl Serialize) -> Result<u64, Failure> {
    let text = serde_json::to_vec(of).map_err(|error| Failure::internal(error.to_string()))?;
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests;
