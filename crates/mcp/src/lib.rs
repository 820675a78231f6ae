//! A server of the Model Context Protocol (MCP, <https://modelcontextprotocol.io>) over stdin and stdout: coding agents look at
//! copies of production, and with `--allow-changes` get branches of their own to try on.
//!
//! It is a client of the engine's API like any other, with the rights of the token it is given.
//!
//! # Invariants
//! 1. Without [`McpOptions::allow_changes`] there is no tool that changes anything, and every query runs alone in a
//!    transaction that cannot write and is never committed. What functions do beside a transaction is not stopped: they may end
//!    another session of the VDB's user.
//! 2. With it, only VDBs that were made here are changed: they bear the label [`LABEL`], and expire.
//! 3. An agent sees the password of such a VDB, and of no other.
//! 4. Each message is answered, and SQL whose answer nobody waits for any more is ended.

mod answer;
mod changing;
mod looking;
mod query;
mod transport;

use offshoot_client::Client;
use offshoot_types::{ErrorKind, Failure};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::model::{
    CustomRequest, CustomResult, ErrorCode, ErrorData, Implementation, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, ServiceExt, tool_handler};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::RwLock;

/// The label of VDBs that an agent has made.
pub const LABEL: (&str, &str) = ("made-by", "mcp");

/// How long SQL that is ended may take for that, when the agent has gone.
const ENDING: Duration = Duration::from_secs(10);

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
        let busy = agent.busy.clone();
        let running = agent.serve(transport::Stdio::open()).await;
        let running = running.map_err(|error| ended(error.to_string()))?;
        let outcome = running.waiting().await.map(drop).map_err(|error| ended(error.to_string()));
        // SQL that is still running is being ended: servers do not notice that their client has gone.
        let _ = tokio::time::timeout(ENDING, busy.write()).await;
        outcome
    })
}

/// What answers an agent.
#[derive(Clone)]
struct Agent {
    client: Arc<Client>,
    options: McpOptions,
    tools: ToolRouter<Agent>,
    /// Read by whoever runs SQL.
    busy: Arc<RwLock<()>>,
}

impl Agent {
    fn new(client: Client, options: McpOptions) -> Agent {
        let mut tools = Agent::looking();
        if options.allow_changes {
            tools += Agent::changing();
        }
        Agent { client: Arc::new(client), options, tools, busy: Arc::default() }
    }
}

const ABOUT: &str = "Offshoot keeps a synchronised copy of production databases (dSources) and opens any moment of their \
                     history as a full-size database of its own (a VDB) within a second. Nothing done in a VDB reaches \
                     production or another VDB.";
const READ_ONLY: &str =
    "This server looks only: it lists objects and runs queries that cannot write to a database.";
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

    /// What rmcp cannot read: methods that it does not know, and those that it knows with other parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        if ["initialize", "ping", "tools/list", "tools/call"].contains(&&*method) {
            let message = format!("{method} does not take these parameters");
            return Err(ErrorData::invalid_params(message, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None))
    }
}
