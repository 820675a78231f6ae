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
    let text = |document: &T| {
        serde_json::to_string_pretty(document)
            .map_err(|error| Failure::internal(format!("an answer cannot be written: {error}")))
    };
    match outcome.as_ref().map_err(Clone::clone).and_then(text) {
        Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Err(Failure { message, hint, .. }) => {
            let text = if hint.is_empty() { message } else { format!("{message}\nhint: {hint}") };
            CallToolResult::error(vec![ContentBlock::text(text)])
        }
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
