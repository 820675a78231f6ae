//! Tools that look.

use crate::Agent;
use crate::answer::{compact, without_password};
use crate::query::{self, Limits};
use offshoot_client::Client;
use offshoot_types::{ErrorKind, Failure};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolResult;
use rmcp::schemars::{self, JsonSchema};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, tool, tool_router};
use serde::Deserialize;
use std::time::Duration;

/// Rows of an answer, unless another number is asked for, and at most.
const ROWS: usize = 100;
const ROWS_MAX: usize = 1000;
/// How long SQL may take, in the same way.
const SECONDS: u64 = 30;
const SECONDS_MAX: u64 = 3600;
/// The end of a log that is asked for.
const LOG_BYTES: u64 = 16 << 10;

/// A tool that is about one object.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Named {
    /// Its name.
    pub name: String,
}

/// SQL for a VDB.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Sql {
    /// The name of the VDB.
    pub vdb: String,
    /// The SQL.
    pub sql: String,
    /// The most rows to return; 100 by default, 1000 at most.
    pub rows: Option<usize>,
    /// After how many seconds it is ended; 30 by default, 3600 at most.
    #[schemars(range(min = 1, max = 3600))]
    pub seconds: Option<u64>,
}

impl Sql {
    pub(crate) fn limits(&self) -> Result<Limits, Failure> {
        let seconds = self.seconds.unwrap_or(SECONDS);
        if !(1..=SECONDS_MAX).contains(&seconds) {
            let message = format!("SQL is given 1 to {SECONDS_MAX} s, not {seconds}");
            return Err(Failure::new(ErrorKind::InvalidInput, message, "give other `seconds`"));
        }
        Ok(Limits {
            rows: self.rows.unwrap_or(ROWS).min(ROWS_MAX),
            time: Duration::from_secs(seconds),
        })
    }
}

#[tool_router(router = looking, vis = "pub(crate)")]
impl Agent {
    #[tool(
        description = "The engine's state: how many dSources and VDBs there are, room in the pool, and faults with what fixes them.",
        annotations(read_only_hint = true)
    )]
    async fn status(&self) -> CallToolResult {
        self.ask(Client::status).await
    }

    #[tool(
        description = "All dSources: synchronised copies of production databases, with their state, size, how far behind they are, and their snapshots.",
        annotations(read_only_hint = true)
    )]
    async fn list_dsources(&self) -> CallToolResult {
        self.ask(Client::list_dsources).await
    }

    #[tool(
        description = "Which moments of a dSource or VDB can be opened: ranges of time, gaps, and how long opening takes.",
        annotations(read_only_hint = true)
    )]
    async fn show_history(&self, Parameters(of): Parameters<Named>) -> CallToolResult {
        self.ask(move |client| client.show_timeflows(&of.name)).await
    }

    #[tool(
        description = "All VDBs: databases that were made from moments of dSources or other VDBs.",
        annotations(read_only_hint = true)
    )]
    async fn list_vdbs(&self) -> CallToolResult {
        self.ask(|client| {
            let all = client.list_vdbs()?;
            all.vdbs.iter().map(without_password).collect::<Result<Vec<_>, _>>()
        })
        .await
    }

    #[tool(
        description = "The end of the log of a VDB's server: why a statement failed, or why it does not start.",
        annotations(read_only_hint = true)
    )]
    async fn vdb_log(&self, Parameters(of): Parameters<Named>) -> CallToolResult {
        self.ask(move |client| client.vdb_log(&of.name, None, LOG_BYTES)).await
    }

    #[tool(
        description = "Run one SQL statement in a VDB, in a transaction that cannot write: SELECT, WITH, SHOW, EXPLAIN. Values come as text; cut says that there is more. It is ended after 30 s, or `seconds`. A function that ends sessions does so here too.",
        annotations(read_only_hint = true)
    )]
    async fn query(
        &self,
        Parameters(sql): Parameters<Sql>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let _busy = self.busy.read().await;
        let asked = async {
            let limits = sql.limits()?;
            let vdb = self.vdb(&sql.vdb).await?;
            query::read(&vdb, &sql.sql, limits, context.ct.cancelled()).await
        };
        compact(asked.await)
    }
}

impl Agent {
    /// A VDB, with its password if it is the caller's.
    pub(crate) async fn vdb(&self, name: &str) -> Result<offshoot_api::Vdb, Failure> {
        let name = name.to_owned();
        self.request(move |client| client.show_vdb(&name)).await
    }
}
