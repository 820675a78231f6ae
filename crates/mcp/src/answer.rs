//! What a tool returns: a document, or why there is none, in words that an agent can act on.

use crate::Agent;
use offshoot_api::Vdb;
use offshoot_client::Client;
use offshoot_types::Failure;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::Value;

impl Agent {
    /// Asks the engine, beside what else the agent asks for.
    pub(crate) async fn ask<T, F>(&self, ask: F) -> CallToolResult
    where
        T: Serialize + Send + 'static,
        F: FnOnce(&Client) -> Result<T, Failure> + Send + 'static,
    {
        result(self.request(ask).await)
    }

    /// What the engine answers.
    pub(crate) async fn request<T, F>(&self, ask: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: FnOnce(&Client) -> Result<T, Failure> + Send + 'static,
    {
        let client = self.client.clone();
        let asked = tokio::task::spawn_blocking(move || ask(&client)).await;
        asked.unwrap_or_else(|error| Err(Failure::internal(error.to_string())))
    }
}

/// A document as text, as all agents read it.
pub(crate) fn result<T: Serialize>(outcome: Result<T, Failure>) -> CallToolResult {
    told(outcome.and_then(|document| serde_json::to_string_pretty(&document).map_err(unwritable)))
}

/// The same without the blanks that an answer of a thousand rows would mostly be.
pub(crate) fn compact<T: Serialize>(outcome: Result<T, Failure>) -> CallToolResult {
    told(outcome.and_then(|document| serde_json::to_string(&document).map_err(unwritable)))
}

fn unwritable(error: serde_json::Error) -> Failure {
    Failure::internal(format!("an answer cannot be written: {error}"))
}

fn told(outcome: Result<String, Failure>) -> CallToolResult {
    match outcome {
        Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Err(Failure { message, hint, .. }) => {
            CallToolResult::error(vec![ContentBlock::text(with_hint(message, &hint))])
        }
    }
}

/// A hint of the engine may be about its command line, whose options are not those of tools.
fn with_hint(message: String, hint: &str) -> String {
    let commands = hint.starts_with("offshoot ") || hint.contains(" offshoot ");
    match hint {
        "" => message,
        _ if commands || hint.contains("--") => {
            format!("{message}\nhint for the command line: {hint}")
        }
        _ => format!("{message}\nhint: {hint}"),
    }
}

/// A VDB as an agent sees it, without its password.
pub(crate) fn without_password(vdb: &Vdb) -> Result<Value, Failure> {
    let document = serde_json::to_value(vdb);
    let mut document =
        document.map_err(|error| Failure::internal(format!("a VDB cannot be shown: {error}")))?;
    if let Some(fields) = document.as_object_mut() {
        fields.remove("uri");
    }
    Ok(document)
}
