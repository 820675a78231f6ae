//! Whom the engine tells of events.

use crate::Secret;
use jiff::Timestamp;
use offshoot_types::WebhookId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether a webhook takes what it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookState {
    /// It does, or was told nothing yet.
    Active,
    /// The last attempt failed; there will be another one.
    Failing,
}

/// An address that is told of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Webhook {
    /// Its id.
    #[schema(value_type = String, example = "webhook-1")]
    pub id: WebhookId,
    /// Its name.
    pub name: String,
    /// Where to.
    #[schema(example = "https://ci.example/offshoot")]
    pub url: String,
    /// Of which events, by patterns of their types.
    #[schema(example = json!(["fault.*", "job.*.failed"]))]
    pub events: Vec<String>,
    /// Whether it may be another host's by plain HTTP.
    pub insecure: bool,
    /// Whether it takes what it is told.
    pub state: WebhookState,
    /// Events that it is still to be told of.
    pub waiting: u64,
    /// Events that it was not told of, as there were too many or they were too old; some of them may not have been for it.
    pub missed: u64,
    /// When it was added; it is told of nothing before.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it last took one.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub delivered_at: Option<Timestamp>,
    /// Since when attempts fail.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub failing_since: Option<Timestamp>,
    /// How many have failed since.
    pub failures: u32,
    /// Why the last one failed.
    #[schema(required)]
    pub error: Option<String>,
    /// Until when messages are signed with the secret of before, too, as it was changed.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub old_secret_until: Option<Timestamp>,
}

/// All webhooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookList {
    /// By name.
    pub webhooks: Vec<Webhook>,
}

/// Adds a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddWebhook {
    /// The name to give it: 1–63 of `a-z 0-9 _ -`, starting with a letter.
    pub name: String,
    /// Where to: `https`, or `http` on loopback.
    pub url: String,
    /// Of which events: patterns of their types, in which `*` stands for any text; of all where absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// What messages are signed with: `whsec_` and 24 to 64 bytes in base64; made where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
    /// Whether it may be another host's by plain HTTP.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
}

/// Changes a webhook; absent fields stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetWebhook {
    /// Another name: 1–63 of `a-z 0-9 _ -`, starting with a letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Another address: `https`, or `http` on loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Of which events, in place of those before; of all where it is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    /// Another secret: `whsec_` and 24 to 64 bytes in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
    /// Whether another secret is made. For 24 hours after a change messages are signed with the secret of before, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rotate_secret: bool,
    /// Whether it may be another host's by plain HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insecure: Option<bool>,
}

/// A webhook that was added or changed. This is the only time that a secret that was made is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddedWebhook {
    /// Its id.
    #[schema(value_type = String, example = "webhook-1")]
    pub id: WebhookId,
    /// Its name.
    pub name: String,
    /// Where to.
    pub url: String,
    /// Of which events.
    pub events: Vec<String>,
    /// What its messages are signed with; null if that was given, or stays.
    #[schema(required)]
    pub secret: Option<Secret>,
}

/// What became of a message that tells of nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookTest {
    /// The webhook.
    pub name: String,
    /// Whether it was taken.
    pub delivered: bool,
    /// What the message is known by: its `webhook-id`.
    pub message: String,
    /// The status of HTTP that it was answered with; null: there was no answer.
    #[schema(required)]
    pub status: Option<u16>,
    /// How long that took.
    pub took_ms: u64,
    /// Why it was not taken.
    #[schema(required)]
    pub error: Option<String>,
}
