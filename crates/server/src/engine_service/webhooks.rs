//! Webhooks, as the API shows them.

use super::LocalEngine;
use crate::service::notifier::Notifier;
use offshoot_api as api;
use offshoot_domain::{EventPattern, Secret};
use offshoot_engine::{AddWebhookRequest, WebhookTest, WebhookView};
use offshoot_types::Failure;

impl Notifier for LocalEngine {
    fn add_webhook(&self, request: api::AddWebhook) -> Result<api::AddedWebhook, Failure> {
        let api::AddWebhook { name, url, events, secret, insecure } = request;
        let secret = secret.map(|one| Secret::new(one.reveal()));
        let request = AddWebhookRequest { name, url, events, secret, insecure };
        let (view, made) = self.engine().webhooks().add(request)?;
        let api::Webhook { id, name, url, events, .. } = webhook(view);
        let secret = made.map(|secret| api::Secret::new(secret.reveal()));
        Ok(api::AddedWebhook { id, name, url, events, secret })
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
    }
}
