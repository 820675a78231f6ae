//! Webhooks, as the API shows them.

use super::LocalEngine;
use crate::service::notifier::Notifier;
use offshoot_api as api;
use offshoot_domain::{EventPattern, Secret};
use offshoot_engine::{AddWebhookRequest, NewSecret, SetWebhookRequest, WebhookTest, WebhookView};
use offshoot_types::{ErrorKind, Failure};

impl Notifier for LocalEngine {
    fn add_webhook(&self, request: api::AddWebhook) -> Result<api::AddedWebhook, Failure> {
        let api::AddWebhook { name, url, events, secret, insecure } = request;
        let secret = secret.map_or(NewSecret::Made, given);
        let request = AddWebhookRequest { name, url, events, secret, insecure };
        self.engine().webhooks().add(request).map(with_secret)
    }

    fn set_webhook(
        &self,
        name: &str,
        request: api::SetWebhook,
    ) -> Result<api::AddedWebhook, Failure> {
        let api::SetWebhook { name: new_name, url, events, secret, rotate_secret, insecure } =
            request;
        let secret = match (secret, rotate_secret) {
            (Some(_), true) => {
                let message = "a secret is given, and another one is to be made";
                return Err(Failure::new(ErrorKind::InvalidInput, message, "ask for one of them"));
            }
            (secret, false) => secret.map(given),
            (None, true) => Some(NewSecret::Made),
        };
        let request = SetWebhookRequest { name: new_name, url, events, secret, insecure };
        self.engine().webhooks().set(name, request).map(with_secret)
    }

    fn list_webhooks(&self) -> Result<Vec<api::Webhook>, Failure> {
        Ok(self.engine().webhooks().list()?.into_iter().map(webhook).collect())
    }

    fn show_webhook(&self, name: &str) -> Result<api::Webhook, Failure> {
        self.engine().webhooks().show(name).map(webhook)
    }

    fn test_webhook(&self, name: &str) -> Result<api::WebhookTest, Failure> {
        let WebhookTest { id, status, error, took } = self.engine().webhooks().test(name)?;
        Ok(api::WebhookTest {
            name: name.to_owned(),
            delivered: error.is_none(),
            message: id,
            status,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            error,
        })
    }

    fn remove_webhook(&self, name: &str) -> Result<api::Webhook, Failure> {
        self.engine().webhooks().remove(name).map(webhook)
    }
}

fn given(secret: api::Secret) -> NewSecret {
    NewSecret::Given(Secret::new(secret.reveal()))
}

fn with_secret((view, made): (WebhookView, Option<Secret>)) -> api::AddedWebhook {
    let api::Webhook { id, name, url, events, .. } = webhook(view);
    let secret = made.map(|secret| api::Secret::new(secret.reveal()));
    api::AddedWebhook { id, name, url, events, secret }
}

fn webhook(view: WebhookView) -> api::Webhook {
    let WebhookView { webhook, waiting } = view;
    api::Webhook {
        id: webhook.id,
        name: webhook.name.to_string(),
        url: webhook.url,
        events: webhook.events.iter().map(EventPattern::to_string).collect(),
        insecure: webhook.insecure,
        state: match webhook.failures {
            0 => api::WebhookState::Active,
            _ => api::WebhookState::Failing,
        },
        waiting,
        missed: webhook.missed,
        created_at: webhook.created_at,
        delivered_at: webhook.delivered_at,
        failing_since: webhook.failing_since,
        failures: webhook.failures,
        error: webhook.error,
        old_secret_until: webhook.old_key_until,
    }
}
