//! Whom the engine tells of events, as an administrator says it.

use crate::core::keys::{old_webhook_key, webhook_key};
use crate::core::topic::Topic;
use crate::core::webhooks::{self, is_about};
use crate::parts::Parts;
use offshoot_catalog::{Error, Event, Subject};
use offshoot_domain::{EventPattern, ObjectName, Secret, Webhook, WebhookKey, webhook_url};
use offshoot_os::random_bytes;
use offshoot_types::{ErrorKind, Failure};
use std::sync::Arc;
use std::time::Duration;

/// Webhooks that there may be.
const WEBHOOKS_MAX: usize = 32;
/// Patterns that one may have.
const PATTERNS_MAX: usize = 32;

/// Who is told of what.
#[derive(Debug, Clone)]
pub struct AddWebhookRequest {
    /// The name it gets.
    pub name: String,
    /// Where to.
    pub url: String,
    /// Patterns of types of events; everything if there is none.
    pub events: Vec<String>,
    /// What its messages are signed with.
    pub secret: NewSecret,
    /// Whether it may be another host's by plain HTTP.
    pub insecure: bool,
}

/// What is to be different of a webhook; what is absent stays.
#[derive(Debug, Clone, Default)]
pub struct SetWebhookRequest {
    /// Another name.
    pub name: Option<String>,
    /// Where to.
    pub url: Option<String>,
    /// Patterns of types of events, in place of those before; everything if there is none.
    pub events: Option<Vec<String>>,
    /// What its messages are signed with.
    pub secret: Option<NewSecret>,
    /// Whether it may be another host's by plain HTTP.
    pub insecure: Option<bool>,
}

/// Where a secret comes from.
#[derive(Debug, Clone)]
pub enum NewSecret {
    /// It is made here.
    Made,
    /// Somebody gave it.
    Given(Secret),
}

impl NewSecret {
    /// The secret; and once more where it was made here, to be shown.
    fn settled(self) -> Result<(Secret, Option<Secret>), Failure> {
        let (secret, made) = match self {
            NewSecret::Given(secret) => (secret, None),
            NewSecret::Made => {
                let made = WebhookKey::written(&random_bytes());
                (made.clone(), Some(made))
            }
        };
        WebhookKey::parse(&secret)?;
        Ok((secret, made))
    }
}

/// A webhook, and how far it is.
#[derive(Debug, Clone)]
pub struct WebhookView {
    /// The record.
    pub webhook: Webhook,
    /// Events that it is still to be told of.
    pub waiting: u64,
}

/// What became of a test.
#[derive(Debug, Clone)]
pub struct WebhookTest {
    /// What the message is known by.
    pub id: String,
    /// The status it was answered with.
    pub status: Option<u16>,
    /// Why it was not taken; none if it was.
    pub error: Option<String>,
    /// How long that took.
    pub took: Duration,
}

/// Webhooks, as an administrator works with them.
pub struct Webhooks<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

impl Webhooks<'_> {
    /// Adds one. It is told of what happens from now on. With it comes its secret, if that was made here: it is shown to nobody
    /// again.
    ///
    /// # Errors
    /// `InvalidInput` for what cannot be used, `AlreadyExists` for the name, `WrongState` where there are many.
    pub fn add(
        &self,
        request: AddWebhookRequest,
    ) -> Result<(WebhookView, Option<Secret>), Failure> {
        let AddWebhookRequest { name, url, events, secret, insecure } = request;
        let name: ObjectName = name.parse()?;
        let url = webhook_url(&url, insecure)?;
        let events = patterns(&events)?;
        let (secret, made) = secret.settled()?;
        let webhook = Webhook {
            id: self.parts.catalog.allocate::<Webhook>()?,
            name,
            url,
            events,
            insecure,
            created_at: self.parts.now(),
            cursor: 0,
            missed: 0,
            delivered_at: None,
            failures: 0,
            failing_since: None,
            error: None,
            old_key_until: None,
        };
        let added = self.parts.catalog.transaction(|tx| -> Result<Option<Webhook>, Error> {
            if tx.list::<Webhook>()?.len() >= WEBHOOKS_MAX {
                return Ok(None);
            }
            let webhook = Webhook { cursor: tx.last_event()?, ..webhook };
            tx.put(&webhook)?;
            tx.put_secret(&webhook_key(webhook.id), &secret)?;
            Ok(Some(webhook))
        })?;
        let webhook = added.ok_or_else(|| {
            Failure::new(
                ErrorKind::WrongState,
                format!("there are {WEBHOOKS_MAX} webhooks already"),
                "remove one: offshoot webhook remove NAME; or let one receiver tell the others",
            )
        })?;
        tracing::info!(webhook = %webhook.name, "is told of events");
        Ok((self.view(webhook)?, made))
    }

    /// Changes one. With it comes its new secret, if that was made here. Another address or secret is tried at once. What
    /// waits is told as it is now; of events that were not for it before, it is told of those to come.
    ///
    /// # Errors
    /// `NotFound`, `InvalidInput` for what cannot be used, `AlreadyExists` for the name.
    pub fn set(
        &self,
        name: &str,
        request: SetWebhookRequest,
    ) -> Result<(WebhookView, Option<Secret>), Failure> {
        let SetWebhookRequest { name: new_name, url, events, secret, insecure } = request;
        let seen = webhooks::find(self.parts, name)?;
        let is_tried = url.is_some() || secret.is_some();
        let new_name = new_name.map(|name| name.parse::<ObjectName>()).transpose()?;
        let is_renamed = new_name.is_some();
        let insecure = insecure.unwrap_or(seen.insecure);
        let url = webhook_url(url.as_deref().unwrap_or(&seen.url), insecure)?;
        let events = events.map(|texts| patterns(&texts)).transpose()?;
        let told = events.is_some().then(|| self.told(&seen)).transpose()?;
        let (secret, made) = secret.map(NewSecret::settled).transpose()?.unzip();
        let now = self.parts.now();
        let webhook = self.parts.catalog.transaction(|tx| -> Result<Webhook, Error> {
            let mut webhook = tx.get::<Webhook>(seen.id)?;
            (webhook.url, webhook.insecure) = (url, insecure);
            webhook.name = new_name.unwrap_or(webhook.name);
            if let Some(events) = events {
                webhook.events = events;
                webhook.cursor = webhook.cursor.max(told.unwrap_or_default());
            }
            if let Some(secret) = &secret {
                let (key, old_key) = (webhook_key(webhook.id), old_webhook_key(webhook.id));
                if let Some(old) = tx.secret(&key)? {
                    tx.put_secret(&old_key, &old)?;
                    webhook.rotated(now);
                }
                tx.put_secret(&key, secret)?;
            }
            if is_tried {
                webhook.answered();
            }
            tx.put(&webhook)?;
            Ok(webhook)
        })?;
        // A fault has the name; one that lasts is raised again, by the new one.
        if is_tried || is_renamed {
            self.parts.clear(Subject::Engine, Topic::Webhook(name));
        }
        tracing::info!(webhook = name, "was changed");
        Ok((self.view(webhook)?, made.flatten()))
    }

    /// The last event that one was told of, or that was not for it.
    fn told(&self, webhook: &Webhook) -> Result<u64, Failure> {
        let events = self.parts.catalog.events_after(webhook.cursor, u32::MAX)?;
        let passed = events.iter().take_while(|event| !is_for(webhook, event));
        Ok(passed.last().map_or(webhook.cursor, |event| event.id))
    }

    /// All webhooks, by name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn list(&self) -> Result<Vec<WebhookView>, Failure> {
        let mut all: Vec<Webhook> = self.parts.catalog.list()?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all.into_iter().map(|one| self.view(one)).collect()
    }

    /// One webhook.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn show(&self, name: &str) -> Result<WebhookView, Failure> {
        self.view(webhooks::find(self.parts, name)?)
    }

    /// Sends a message that tells of nothing, once, and waits for the answer. Where it is taken, what waits is told now.
    ///
    /// # Errors
    /// `NotFound`; that nobody has taken it is none.
    pub fn test(&self, name: &str) -> Result<WebhookTest, Failure> {
        let webhook = webhooks::find(self.parts, name)?;
        let message = webhooks::of_test(self.parts, &webhook);
        let id = message.id.clone();
        let posting = webhooks::signed(self.parts, &webhook, message)?;
        let begun = self.parts.clock.elapsed();
        let answer = webhooks::post(&*self.parts.poster, &posting);
        let took = self.parts.clock.elapsed().saturating_sub(begun);
        let (status, error) = match answer {
            Ok(status) => {
                match self.parts.catalog.update::<Webhook>(webhook.id, Webhook::answered) {
                    // It was removed meanwhile.
                    Err(Error::NotFound(_)) => {}
                    updated => drop(updated?),
                }
                self.parts.clear(Subject::Engine, Topic::Webhook(&webhook.name));
                (Some(status), None)
            }
            Err((status, why)) => (status, Some(why)),
        };
        Ok(WebhookTest { id, status, error, took })
    }

    /// Removes one, with its secret and its fault. A message that is on its way may still arrive.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn remove(&self, name: &str) -> Result<WebhookView, Failure> {
        let view = self.show(name)?;
        let id = view.webhook.id;
        self.parts.catalog.transaction(|tx| -> Result<(), Error> {
            tx.delete::<Webhook>(id)?;
            tx.delete_secret(&old_webhook_key(id))?;
            tx.delete_secret(&webhook_key(id))
        })?;
        self.parts.clear(Subject::Engine, Topic::Webhook(name));
        tracing::info!(webhook = name, "is told of nothing more");
        Ok(view)
    }

    fn view(&self, webhook: Webhook) -> Result<WebhookView, Failure> {
        let events = self.parts.catalog.events_after(webhook.cursor, u32::MAX)?;
        let waiting = events.iter().filter(|event| is_for(&webhook, event)).count() as u64;
        Ok(WebhookView { webhook, waiting })
    }
}

fn is_for(webhook: &Webhook, event: &Event) -> bool {
    webhook.wants(&event.what.kind()) && !is_about(webhook, event)
}

fn patterns(texts: &[String]) -> Result<Vec<EventPattern>, Failure> {
    if texts.len() > PATTERNS_MAX {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("{} patterns are too many", texts.len()),
            format!("give up to {PATTERNS_MAX}; * stands for any text, as in job.*.failed"),
        ));
    }
    match texts {
        [] => Ok(vec![EventPattern::all()]),
        texts => texts.iter().map(|text| text.parse()).collect(),
    }
}
