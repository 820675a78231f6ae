//! What a webhook is told: the bodies of messages, and their signatures.

use crate::core::keys::{old_webhook_key, webhook_key};
use crate::core::topic::Topic;
use crate::core::{Core, missing, peers};
use crate::ground::poster::{Poster, Posting};
use offshoot_catalog::{Error, Event, Happening};
use offshoot_domain::{Webhook, WebhookKey};
use offshoot_os::random_bytes;
use offshoot_types::{ErrorKind, Failure};
use serde_json::{Value, json};

/// What the engine says to one receiver, which stays the same however often it is said.
pub struct Message {
    /// Who receives it twice knows it by this.
    pub id: String,
    /// JSON.
    pub body: Vec<u8>,
}

/// A webhook by its name.
pub fn find(core: &Core, name: &str) -> Result<Webhook, Failure> {
    let found = core.catalog.find_named(name)?;
    found.ok_or_else(|| missing("webhook", name, "list them: offshoot webhook list"))
}

/// Whether an event is that a webhook fails itself: who cannot be reached is not told so.
pub fn is_about(webhook: &Webhook, event: &Event) -> bool {
    let own = Topic::Webhook(&webhook.name).to_string();
    match &event.what {
        Happening::FaultRaised { topic, .. } | Happening::FaultCleared { topic, .. } => {
            *topic == own
        }
        Happening::JobEnded { .. } => false,
    }
}

/// What is said of an event.
pub fn of_event(core: &Core, event: &Event) -> Message {
    let engine = peers::own_engine(core);
    let id = format!("msg_{engine}_{}", event.id);
    let more = match &event.what {
        Happening::FaultRaised { topic, hint } => json!({"topic": topic, "hint": hint}),
        Happening::FaultCleared { topic, since } => json!({"topic": topic, "since": since}),
        Happening::JobEnded { job, kind, state, started_at, code } => json!({
            "job": job,
            "kind": kind,
            "state": state.as_str(),
            "started_at": started_at,
            "code": code.map(|code| code.code()),
            "hint": format!("offshoot job show {job}"),
        }),
    };
    let mut data = json!({
        "engine": engine,
        "number": event.id,
        "object": event.object,
        "message": event.message,
    });
    if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
        data.extend(more);
    }
    let body = json!({"type": event.what.kind(), "timestamp": event.time, "data": data});
    Message { id, body: body.to_string().into_bytes() }
}

/// What is said to see whether anybody listens.
pub fn of_test(core: &Core, webhook: &Webhook) -> Message {
    let engine = peers::own_engine(core);
    let number = u64::from_le_bytes(random_bytes());
    let id = format!("msg_{engine}_test{number:016x}");
    let data = json!({
        "engine": engine,
        "object": webhook.name,
        "message": format!("this is a test of the webhook '{}'", webhook.name),
    });
    let body = json!({"type": "webhook.test", "timestamp": core.now(), "data": data});
    Message { id, body: body.to_string().into_bytes() }
}

/// Signs a message as of now; for a while after a rotation with the key of before, too, so that a receiver that knows either
/// takes it.
///
/// # Errors
/// If the key that signs is gone.
pub fn signed(core: &Core, webhook: &Webhook, message: Message) -> Result<Posting, Failure> {
    let secret = core.catalog.secret(&webhook_key(webhook.id))?.ok_or_else(|| {
        let name = &webhook.name;
        Failure::new(
            ErrorKind::WrongState,
            format!("the secret of the webhook '{name}' went with a lost key"),
            format!("give it another one: offshoot webhook set {name} --rotate-secret"),
        )
    })?;
    let seconds = core.now().as_second();
    let old = match webhook.old_key_until {
        Some(_) if !webhook.is_old_key_over(core.now()) => {
            core.catalog.secret(&old_webhook_key(webhook.id))?
        }
        _ => None,
    };
    let sign = |key| Ok(WebhookKey::parse(key)?.sign(&message.id, seconds, &message.body));
    let signatures: Vec<String> = [Some(&secret), old.as_ref()]
        .into_iter()
        .flatten()
        .map(sign)
        .collect::<Result<_, Failure>>()?;
    let headers = vec![
        ("webhook-id", message.id),
        ("webhook-timestamp", seconds.to_string()),
        ("webhook-signature", signatures.join(" ")),
    ];
    Ok(Posting { url: webhook.url.clone(), headers, body: message.body })
}

/// Forgets the key of before the last rotation once its time is over.
///
/// # Errors
/// The catalog's; that the webhook was removed meanwhile is none.
pub fn forget_old_key(core: &Core, webhook: &Webhook) -> Result<(), Failure> {
    let now = core.now();
    if !webhook.is_old_key_over(now) {
        return Ok(());
    }
    let forgotten = core.catalog.transaction(|tx| {
        // It may have been rotated once more.
        let Some(mut webhook) =
            tx.find::<Webhook>(webhook.id)?.filter(|one| one.is_old_key_over(now))
        else {
            return Ok(());
        };
        webhook.old_key_until = None;
        tx.put(&webhook)?;
        tx.delete_secret(&old_webhook_key(webhook.id))
    });
    forgotten.map_err(|error: Error| error.into())
}

/// Sends a message, and returns the status it was answered with where that says that it was taken.
///
/// # Errors
/// Why it was not taken, with the status if there was an answer.
pub fn post(poster: &dyn Poster, posting: &Posting) -> Result<u16, (Option<u16>, String)> {
    match poster.post(posting) {
        Ok(status @ 200..=299) => Ok(status),
        Ok(status @ 300..=399) => {
            let why = format!("it was answered with status {status}; redirects are not followed");
            Err((Some(status), why))
        }
        Ok(status) => Err((Some(status), format!("it was answered with status {status}"))),
        Err(why) => Err((None, why)),
    }
}
