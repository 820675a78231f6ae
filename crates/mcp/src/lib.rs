//! A server of the Model Context Protocol (MCP, <https://modelcontextprotocol.io>) over stdin and stdout: coding agents look at
//! copies of production, and with `--allow-changes` get branches of their own to try on.
//!
//! It is a client of the engine's API like any other, with the rights of the token it is given.
//!
//! # Invariants
//! 1. Without [`McpOptions::allow_changes`] there is no tool that changes anything, and every query runs alone in a
//!    transaction that cannot write.
//! 2. With it, only VDBs that were made here are changed: they bear the label [`LABEL`], and expire.
//! 3. An agent sees the password of such a VDB, and of no other.

mod answer;
mod changing;
mod looking;
mod query;

use offshoot_client::Client;
use offshoot_types::{ErrorKind, Failure};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, ServiceExt, tool_handler};
use std::sync::Arc;
use std::time::Duration;

/// The label of VDBs that an agent has made.
pub const LABEL: (&str, &str) = ("made-by", "mcp");

/// What an agent may do.
#[derive(Debug, Clone, Copy)]
pub struct McpOptions {
    /// Whether it may make VDBs, and change those.
    pub allow_changes: bool,
    /// How long a VDB that it makes is kept, unless it asks for less.
    pub expires: Duration,
}

/// Answers on stdin and stdout until the agent closes them.
///
/// # Errors
/// `HostUnprepared` if the program cannot be set up, `InvalidInput` if the other side speaks another protocol.
pub fn serve(client: Client, options: McpOptions) -> Result<(), Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| {
        let message = format!("threads cannot be started: {error}");
        Failure::new(ErrorKind::HostUnprepared, message, "raise the limit of processes")
    })?;
    let agent = Agent::new(client, options);
    runtime.block_on(async {
        let ended = |error: String| {
            let message = format!("the other side does not speak MCP: {error}");
            let hint = "this command is started by an agent's program: see docs/mcp.md";
            Failure::new(ErrorKind::InvalidInput, message, hint)
        };
        let running = agent.serve(rmcp::transport::stdio()).await;
        let running = running.map_err(|error| ended(error.to_string()))?;
        running.waiting().await.map(drop).map_err(|error| ended(error.to_string()))
    })
}

/// What answers an agent.
#[derive(Clone)]
struct Agent {
    client: Arc<Client>,
    options: McpOptions,
    tools: ToolRouter<Agent>,
}

impl Agent {
    fn new(client: Client, options: McpOptions) -> Agent {
        let mut tools = Agent::looking();
        if options.allow_changes {
            tools += Agent::changing();
        }
        Agent { client: Arc::new(client), options, tools }
    }
}

const ABOUT: &str = "Offshoot keeps a synchronised copy of production databases (dSources) and opens any moment of their \
                     history as a full-size database of its own (a VDB) within a second. Nothing done in a VDB reaches \
                     production or another VDB.";
const READ_ONLY: &str =
    "This server looks only: it lists objects and runs queries that cannot write.";
const CHANGES: &str = "Provision a VDB to try something on, write in it as you like with `execute`, go back with \
                       `rewind_vdb`, and delete it when done. VDBs that were not made by this server are only looked at.";

#[tool_handler(router = self.tools)]
impl ServerHandler for Agent {
    fn get_info(&self) -> ServerConfig {
        let more = if self.options.allow_changes { CHANGES } else { READ_ONLY };
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("offshoot", env!("CARGO_PKG_VERSION")))
            .with_instructions(format!("{ABOUT} {more}"))
    }
}
