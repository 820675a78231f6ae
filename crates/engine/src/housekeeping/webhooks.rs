//! Tells webhooks of events.
//!
//! Events are rows of the catalog, numbered without gaps; each webhook has a cursor there, the last event that is done
//! with for it. One thread looks for the next event of each webhook, and sends it by a thread of its own, one at a time: who
//! is slow or away holds up nobody else, and is told in the order in which things happened. The cursor moves when the
//! receiver has taken an event, so that after a crash the last one may be told again, and none is left out. The queue is the
//! catalog's events, of which the newest 10,000 are kept: what a webhook lacks of them is counted as missed.
//!
//! An attempt that fails is repeated after a pause, longer each time; a new engine tries at once, and so does this one after a
//! test that was taken. A webhook that keeps failing is
//! a fault. It is told of no fault of its own, so that none causes the next.
//!
//! A thread that sends has nothing of the engine: an engine that ends waits for it for a moment, then leaves it to its time
//! limit, and the next engine tells the event again.

use crate::core::topic::Topic;
use crate::core::webhooks;
use crate::ground::stopping::Stopping;
use crate::parts::Parts;
use crate::space::room;
use jiff::Timestamp;
use offshoot_catalog::{Error, Event, Fault, Subject};
use offshoot_domain::Webhook;
use offshoot_types::{ErrorKind, Failure, WebhookId};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Pause between two looks for events.
const ROUND: Duration = Duration::from_millis(250);
/// The longest rest while a message is on its way.
const ROUND_AT_WORK: Duration = Duration::from_millis(100);
/// Pause after a failure that is none of the receiver's.
const TROUBLED: Duration = Duration::from_secs(10);
/// How long an engine that ends waits for answers.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// Events that are looked at in one go.
const BATCH: u32 = 200;
/// How far a cursor may be behind in the catalog while nothing is for its webhook.
const UNSAVED_MAX: u64 = 1000;
/// Whether webhooks were told that the pool is full; a setting of the catalog.
const TOLD_OF_ROOM: &str = "webhooks/told-of-room";

/// Runs until told to stop.
pub fn run(parts: &Parts, stopping: &Stopping) {
    let mut desk = Desk::new();
    while !stopping.is_told() {
        if let Err(failure) = desk.round(parts) {
            tracing::warn!(%failure, "telling webhooks");
        }
        desk.rest(parts, stopping);
    }
    desk.close(parts);
}

/// What became of an attempt.
struct Answer {
    webhook: WebhookId,
    outcome: Result<(), String>,
}

/// The state of one webhook's messages.
struct Line {
    /// The last event that is done with, or is not for it.
    position: u64,
    /// No attempt begins before, unless it has answered somebody else since.
    next_at: Duration,
    /// Attempts that had failed then.
    failures: u32,
    at_work: Option<Attempt>,
}

struct Attempt {
    event: u64,
    time: Timestamp,
    thread: JoinHandle<()>,
}

struct Desk {
    lines: HashMap<WebhookId, Line>,
    answers: Receiver<Answer>,
    answer: Sender<Answer>,
    /// The fault of a full pool that webhooks were told of; unknown at first.
    room: Option<Option<Fault>>,
}

impl Desk {
    fn new() -> Desk {
        let (answer, answers) = channel();
        Desk { lines: HashMap::new(), answers, answer, room: None }
    }

    fn round(&mut self, parts: &Parts) -> Result<(), Failure> {
        let all = parts.catalog.all::<Webhook>()?;
        if !all.is_empty() {
            self.look_at_room(parts)?;
        }
        self.lines.retain(|id, line| line.at_work.is_some() || all.iter().any(|one| one.id == *id));
        for webhook in all.iter() {
            if let Err(failure) = self.tell(parts, webhook) {
                tracing::warn!(webhook = %webhook.name, %failure, "it cannot be told of events");
                if let Some(line) = self.lines.get_mut(&webhook.id) {
                    line.next_at = parts.clock.elapsed() + TROUBLED;
                }
            }
        }
        Ok(())
    }

    /// A full pool is a fault that the catalog does not keep: it may have no room for it. That it came and went is an event
    /// as soon as there is room for that.
    fn look_at_room(&mut self, parts: &Parts) -> Result<(), Failure> {
        let told = match &self.room {
            Some(told) => told.clone(),
            None => parts.catalog.setting::<Option<Fault>>(TOLD_OF_ROOM)?.flatten(),
        };
        let now = room::fault(parts);
        // Its text changes with every block.
        if told.is_some() != now.is_some() {
            match (&told, &now) {
                (None, Some(fault)) => parts.catalog.add_raised(fault)?,
                (Some(fault), _) => parts.catalog.add_cleared(fault, parts.now())?,
                (None, None) => {}
            }
            parts.catalog.set_setting(TOLD_OF_ROOM, &now)?;
        }
        self.room = Some(now);
        Ok(())
    }

    /// Begins to tell a webhook of the next event, if there is one and it is time.
    fn tell(&mut self, parts: &Parts, webhook: &Webhook) -> Result<(), Failure> {
        webhooks::forget_old_key(parts, webhook)?;
        let line = self.lines.entry(webhook.id).or_insert_with(|| Line {
            position: webhook.cursor,
            next_at: Duration::ZERO,
            failures: 0,
            at_work: None,
        });
        // Who is told of other events now has them from then on.
        line.position = line.position.max(webhook.cursor);
        let is_early = parts.clock.elapsed() < line.next_at && webhook.failures >= line.failures;
        if line.at_work.is_some() || is_early {
            return Ok(());
        }
        let Some(event) = line.next(parts, webhook)? else { return Ok(()) };
        match webhooks::signed(parts, webhook, webhooks::of_event(parts, &event)) {
            Ok(posting) => {
                let (poster, answer, id) = (parts.poster.clone(), self.answer.clone(), webhook.id);
                let work = move || {
                    let sent = AssertUnwindSafe(|| webhooks::post(&*poster, &posting));
                    let outcome = match catch_unwind(sent) {
                        Ok(sent) => sent.map(drop).map_err(|(_, why)| why),
                        Err(_) => Err("sending it panicked".to_owned()),
                    };
                    // Nobody listens where the engine has ended.
                    let _ = answer.send(Answer { webhook: id, outcome });
                };
                let thread = std::thread::Builder::new().name("webhook".to_owned()).spawn(work);
                let thread = thread.map_err(|error| {
                    Failure::internal(format!("no thread for a webhook: {error}"))
                })?;
                line.at_work = Some(Attempt { event: event.id, time: event.time, thread });
            }
            Err(failure) => self.failed(parts, webhook.id, &event, &failure.message),
        }
        Ok(())
    }

    /// Rests until the next round, or until there is an answer.
    fn rest(&mut self, parts: &Parts, stopping: &Stopping) {
        if self.lines.values().all(|line| line.at_work.is_none()) {
            stopping.rest(ROUND);
        } else if let Ok(answer) = self.answers.recv_timeout(ROUND_AT_WORK) {
            self.take(parts, answer);
        }
    }

    fn take(&mut self, parts: &Parts, Answer { webhook, outcome }: Answer) {
        let Some(line) = self.lines.get_mut(&webhook) else { return };
        let Some(attempt) = line.at_work.take() else { return };
        // It has said its last word.
        let _ = attempt.thread.join();
        match outcome {
            Ok(()) => {
                (line.position, line.next_at, line.failures) = (attempt.event, Duration::ZERO, 0);
                delivered(parts, webhook, attempt.event);
            }
            Err(why) => self.failed_of(parts, webhook, attempt.event, attempt.time, &why),
        }
    }

    fn failed(&mut self, parts: &Parts, webhook: WebhookId, event: &Event, why: &str) {
        self.failed_of(parts, webhook, event.id, event.time, why);
    }

    fn failed_of(&mut self, parts: &Parts, id: WebhookId, event: u64, time: Timestamp, why: &str) {
        let now = parts.now();
        let Some(line) = self.lines.get_mut(&id) else { return };
        match parts.catalog.update::<Webhook>(id, |one| one.failed(event, time, now, why)) {
            Ok(webhook) => {
                tracing::debug!(webhook = %webhook.name, event, why, "a webhook was not told");
                line.position = line.position.max(webhook.cursor);
                line.next_at = parts.clock.elapsed() + webhook.pause();
                line.failures = webhook.failures;
                if webhook.is_failing() {
                    raise(parts, &webhook, why);
                }
            }
            Err(error) => {
                line.next_at = parts.clock.elapsed() + TROUBLED;
                unrecorded(id, &error);
            }
        }
    }

    /// Takes the answers that come soon. What is not answered is told again by the next engine.
    fn close(&mut self, parts: &Parts) {
        let until = parts.clock.elapsed() + LAST_ANSWERS;
        while self.lines.values().any(|line| line.at_work.is_some()) {
            let left = until.saturating_sub(parts.clock.elapsed());
            match self.answers.recv_timeout(left) {
                Ok(answer) => self.take(parts, answer),
                Err(_) => return,
            }
        }
    }
}

impl Line {
    /// The next event that is for a webhook.
    fn next(&mut self, parts: &Parts, webhook: &Webhook) -> Result<Option<Event>, Failure> {
        loop {
            let events = parts.catalog.events_after(self.position, BATCH)?;
            let whole = events.len() == BATCH as usize;
            self.skip_lost(parts, webhook, events.first())?;
            for event in events {
                if webhook.wants(&event.what.kind()) && !webhooks::is_about(webhook, &event) {
                    return Ok(Some(event));
                }
                self.position = event.id;
            }
            if !whole {
                break;
            }
        }
        if self.position >= webhook.cursor + UNSAVED_MAX {
            let position = self.position;
            parts.catalog.update::<Webhook>(webhook.id, |one| one.cursor = position)?;
        }
        Ok(None)
    }

    /// Counts what is gone before the first event that is still kept.
    fn skip_lost(
        &mut self,
        parts: &Parts,
        webhook: &Webhook,
        first: Option<&Event>,
    ) -> Result<(), Failure> {
        if let Some(gone) = first.map(|event| event.id - self.position - 1)
            && gone > 0
        {
            let up_to = self.position + gone;
            parts.catalog.update::<Webhook>(webhook.id, |one| one.miss(gone, up_to))?;
            tracing::warn!(webhook = %webhook.name, gone, "events were too many to be kept");
            self.position = up_to;
        }
        Ok(())
    }
}

fn delivered(parts: &Parts, id: WebhookId, event: u64) {
    let now = parts.now();
    match parts.catalog.update::<Webhook>(id, |one| one.delivered(event, now)) {
        Ok(webhook) => parts.clear(Subject::Engine, Topic::Webhook(&webhook.name)),
        Err(error) => unrecorded(id, &error),
    }
}

fn raise(parts: &Parts, webhook: &Webhook, why: &str) {
    let name = &webhook.name;
    let message = format!("the webhook '{name}' cannot be told of events: {why}");
    let hint = format!(
        "see to its receiver, then: offshoot webhook test {name}; nothing is lost while the newest 10,000 events have what \
         it lacks; or give it up: offshoot webhook remove {name}"
    );
    let failure = Failure::new(ErrorKind::EngineUnreachable, message, hint);
    parts.raise(Subject::Engine, Topic::Webhook(name), &failure);
    // Whoever removes or renames it clears its fault after that, and may have done so just before.
    let is_called_so = |one: Option<Webhook>| one.is_some_and(|one| one.name == *name);
    if parts.catalog.find(webhook.id).is_ok_and(|found| !is_called_so(found)) {
        parts.clear(Subject::Engine, Topic::Webhook(name));
    }
}

fn unrecorded(webhook: WebhookId, error: &Error) {
    // It was removed meanwhile.
    if !matches!(error, Error::NotFound(_)) {
        tracing::warn!(%webhook, %error, "what became of an event is not recorded");
    }
}
