//! What the HTTP layer asks about those who are told of events.

use offshoot_api::{AddWebhook, AddedWebhook, SetWebhook, Webhook, WebhookTest};
use offshoot_types::Failure;

/// One method for each endpoint that is about webhooks; methods may block.
pub trait Notifier: Send + Sync {
    /// Adds a webhook; what it returns may hold its secret.
    fn add_webhook(&self, request: AddWebhook) -> Result<AddedWebhook, Failure>;
    /// All webhooks, by name.
    fn list_webhooks(&self) -> Result<Vec<Webhook>, Failure>;
    /// One webhook.
    fn show_webhook(&self, name: &str) -> Result<Webhook, Failure>;
    /// Changes it; what it returns may hold its new secret.
    fn set_webhook(&self, name: &str, request: SetWebhook) -> Result<AddedWebhook, Failure>;
    /// Sends it a message that tells of nothing; that nobody takes it is no failure.
    fn test_webhook(&self, name: &str) -> Result<WebhookTest, Failure>;
    /// Removes it; returns what it was.
    fn remove_webhook(&self, name: &str) -> Result<Webhook, Failure>;
}
