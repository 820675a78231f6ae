//! Whom the engine tells of events.

use crate::endpoints::Service;
use crate::extract::{Body, Name};
use crate::reply::{Answer, answer};
use offshoot_api::{
    AddWebhook, AddedWebhook, ErrorBody, SetWebhook, Webhook, WebhookList, WebhookTest, routes,
};

/// Adds a webhook: an address that is told of events from now on. Messages are signed as Standard Webhooks has it; the secret is
/// shown this once, if it was made here.
#[utoipa::path(
    post,
    path = routes::WEBHOOKS,
    tag = "webhooks",
    request_body = AddWebhook,
    responses((status = 200, body = AddedWebhook, description = "The webhook, with its secret"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn add_webhook(
    Service(service): Service,
    Body(request): Body<AddWebhook>,
) -> Answer<AddedWebhook> {
    answer(service, move |service| service.notifier().add_webhook(request)).await
}

/// All webhooks, by name.
#[utoipa::path(
    get,
    path = routes::WEBHOOKS,
    tag = "webhooks",
    responses((status = 200, body = WebhookList, description = "All webhooks"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn list_webhooks(Service(service): Service) -> Answer<WebhookList> {
    let listed = answer(service, |service| {
        service.notifier().list_webhooks().map(|webhooks| WebhookList { webhooks })
    });
    listed.await
}

/// One webhook.
#[utoipa::path(
    get,
    path = routes::WEBHOOK,
    tag = "webhooks",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Webhook, description = "The webhook"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_webhook(Service(service): Service, Name(name): Name) -> Answer<Webhook> {
    answer(service, move |service| service.notifier().show_webhook(&name)).await
}

/// Changes a webhook. Another secret signs from now on, and that of before for 24 hours more, beside it; the new one is shown this
/// once, if it was made here.
#[utoipa::path(
    post,
    path = routes::WEBHOOK,
    tag = "webhooks",
    params(("name" = String, Path, description = "Its name")),
    request_body = SetWebhook,
    responses((status = 200, body = AddedWebhook, description = "The webhook, with a new secret"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn set_webhook(
    Service(service): Service,
    Name(name): Name,
    Body(request): Body<SetWebhook>,
) -> Answer<AddedWebhook> {
    answer(service, move |service| service.notifier().set_webhook(&name, request)).await
}

/// Sends a webhook a message that tells of nothing, once, and says what it was answered.
#[utoipa::path(
    post,
    path = routes::WEBHOOK_TEST,
    tag = "webhooks",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = WebhookTest, description = "What became of it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn test_webhook(
    Service(service): Service,
    Name(name): Name,
) -> Answer<WebhookTest> {
    answer(service, move |service| service.notifier().test_webhook(&name)).await
}

/// Removes a webhook, with its secret. It is told of nothing more.
#[utoipa::path(
    delete,
    path = routes::WEBHOOK,
    tag = "webhooks",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Webhook, description = "What it was"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn remove_webhook(Service(service): Service, Name(name): Name) -> Answer<Webhook> {
    answer(service, move |service| service.notifier().remove_webhook(&name)).await
}
