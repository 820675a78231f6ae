//! One webhook of the stand-in.

use super::{StandIn, missing, time};
use offshoot_api::{
    AddWebhook, AddedWebhook, Secret, SetWebhook, Webhook, WebhookState, WebhookTest,
};
use offshoot_server::Notifier;
use offshoot_types::{Failure, WebhookId};

const NAME: &str = "ci";

fn webhook(name: &str) -> Result<Webhook, Failure> {
    if name != NAME {
        return Err(missing("webhook", name));
    }
    Ok(Webhook {
        id: WebhookId(1),
        name: NAME.to_owned(),
        url: "https://ci.example/hook".to_owned(),
        events: vec!["*".to_owned()],
        insecure: false,
        state: WebhookState::Failing,
        waiting: 3,
        missed: 0,
        created_at: time(),
        delivered_at: None,
        failing_since: Some(time()),
        failures: 2,
        error: Some("nothing listens there".to_owned()),
        old_secret_until: Some(time()),
    })
}

impl Notifier for StandIn {
    fn add_webhook(&self, request: AddWebhook) -> Result<AddedWebhook, Failure> {
        let AddWebhook { name, url, events, secret, insecure: _ } = request;
        Ok(AddedWebhook { id: WebhookId(1), name, url, events, secret })
    }

    fn list_webhooks(&self) -> Result<Vec<Webhook>, Failure> {
        Ok(vec![webhook(NAME)?])
    }

    fn show_webhook(&self, name: &str) -> Result<Webhook, Failure> {
        webhook(name)
    }

    fn set_webhook(&self, name: &str, request: SetWebhook) -> Result<AddedWebhook, Failure> {
        let Webhook { id, name, url, events, .. } = webhook(name)?;
        let url = request.url.unwrap_or(url);
        let events = request.events.unwrap_or(events);
        let secret = request.rotate_secret.then(|| Secret::new("whsec_y"));
        Ok(AddedWebhook { id, name, url, events, secret })
    }

    fn test_webhook(&self, name: &str) -> Result<WebhookTest, Failure> {
        Ok(WebhookTest {
            name: webhook(name)?.name,
            delivered: false,
            message: "msg_1".to_owned(),
            status: Some(404),
            took_ms: 12,
            error: Some("it was answered with status 404".to_owned()),
        })
    }

    fn remove_webhook(&self, name: &str) -> Result<Webhook, Failure> {
        webhook(name)
    }
}
