//! Tools that make VDBs, and change those that were made here.

use crate::answer::compact;
use crate::looking::{Named, Sql};
use crate::query;
use crate::{Agent, LABEL};
use offshoot_api::{Moment, ProvisionVdb, RefreshVdb, RewindTo, RewindVdb, Vdb};
use offshoot_client::Client;
use offshoot_domain::ParsedTime;
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, Failure, JobId, SnapshotId};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolResult;
use rmcp::schemars::{self, JsonSchema};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, tool, tool_router};
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

/// A VDB to make.
#[derive(Debug, Deserialize, JsonSchema)]
struct Provision {
    /// The name to give it: 1 to 63 of a-z, 0-9, _ and -, starting with a letter.
    name: String,
    /// The dSource or VDB to make it from.
    from: String,
    /// The moment to open, as '2026-11-21 14:03:27+00', '-1h' or 'yesterday 14:03'; the latest if absent.
    at: Option<String>,
    /// The bookmark to open, instead of `at`.
    bookmark: Option<String>,
    /// In how many hours it is deleted, if earlier than usual; 1 at least.
    #[schemars(range(min = 1))]
    expires_in_hours: Option<u32>,
    /// What it is for, in one line.
    description: Option<String>,
}

/// A VDB, and a moment of its parent.
#[derive(Debug, Deserialize, JsonSchema)]
struct Refresh {
    /// The name of the VDB.
    name: String,
    /// The moment to open, as '2026-11-21 14:03:27+00', '-1h' or 'yesterday 14:03'; the latest if absent.
    at: Option<String>,
}

/// A VDB, and an earlier state of it.
#[derive(Debug, Deserialize, JsonSchema)]
struct Rewind {
    /// The name of the VDB.
    name: String,
    /// A snapshot of it, from `take_snapshot`; without one, the state before the last refresh or rewind.
    snapshot: Option<String>,
}

#[tool_router(router = changing, vis = "pub(crate)")]
impl Agent {
    #[tool(
        description = "Make a VDB: a full-size, writable database as the dSource or VDB was at a moment. Takes about a second. Returns how to connect to it. It is deleted by itself when it expires."
    )]
    async fn provision_vdb(&self, Parameters(wanted): Parameters<Provision>) -> CallToolResult {
        let longest = self.options.expires;
        self.ask(move |client| {
            if wanted.expires_in_hours == Some(0) {
                return Err(no_time());
            }
            let hours = wanted.expires_in_hours.map(|hours| Duration::from_secs(3600) * hours);
            let expires = hours.map_or(longest, |asked| asked.min(longest));
            let moment = match (wanted.bookmark, &wanted.at) {
                (Some(name), None) => Moment::Bookmark { name },
                (None, at) => moment(at.as_deref())?,
                (Some(_), Some(_)) => return Err(two_moments()),
            };
            let request = ProvisionVdb {
                name: wanted.name.clone(),
                from: wanted.from,
                moment,
                description: wanted.description,
                labels: [(LABEL.0.to_owned(), LABEL.1.to_owned())].into(),
                expires_in_ms: Some(expires.as_millis() as u64),
                ..ProvisionVdb::default()
            };
            let job = client.provision_vdb(&request)?;
            changed(client, &wanted.name, job)
        })
        .await
    }

    #[tool(
        description = "Run SQL in a VDB that was made by this server, several statements too; row_count is of the last one. Writes stay in that VDB. It is ended after 30 s, or `seconds`. Values come as text.",
        annotations(destructive_hint = true)
    )]
    async fn execute(
        &self,
        Parameters(sql): Parameters<Sql>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let _busy = self.busy.read().await;
        let done = async {
            let limits = sql.limits()?;
            let vdb = self.vdb(&sql.vdb).await?;
            check_made_here(&vdb)?;
            query::write(&vdb, &sql.sql, limits, context.ct.cancelled()).await
        };
        compact(done.await)
    }

    #[tool(
        description = "Take a snapshot of a VDB that was made by this server, to go back to with rewind_vdb."
    )]
    async fn take_snapshot(&self, Parameters(of): Parameters<Named>) -> CallToolResult {
        self.ask(move |client| {
            made_here(client, &of.name)?;
            let job = client.take_snapshot(&of.name)?;
            client.wait_job(job, |_| ())?;
            client.list_snapshots(Some(&of.name))
        })
        .await
    }

    #[tool(
        description = "Put a VDB that was made by this server back to one of its snapshots, or undo its last refresh or rewind.",
        annotations(destructive_hint = true)
    )]
    async fn rewind_vdb(&self, Parameters(of): Parameters<Rewind>) -> CallToolResult {
        self.ask(move |client| {
            made_here(client, &of.name)?;
            let to = match &of.snapshot {
                Some(id) => RewindTo::Snapshot { id: snapshot(id)? },
                None => RewindTo::Undo,
            };
            let job = client.rewind_vdb(&of.name, &RewindVdb { to })?;
            changed(client, &of.name, job)
        })
        .await
    }

    #[tool(
        description = "Open another moment of its parent in a VDB that was made by this server, under the same name, port and password. What was written in it is lost, but rewind_vdb undoes that.",
        annotations(destructive_hint = true)
    )]
    async fn refresh_vdb(&self, Parameters(of): Parameters<Refresh>) -> CallToolResult {
        self.ask(move |client| {
            made_here(client, &of.name)?;
            let request = RefreshVdb { moment: moment(of.at.as_deref())? };
            let job = client.refresh_vdb(&of.name, &request)?;
            changed(client, &of.name, job)
        })
        .await
    }

    #[tool(
        description = "Delete a VDB that was made by this server.",
        annotations(destructive_hint = true)
    )]
    async fn delete_vdb(&self, Parameters(of): Parameters<Named>) -> CallToolResult {
        self.ask(move |client| {
            made_here(client, &of.name)?;
            let job = client.delete_vdb(&of.name)?;
            client.wait_job(job, |_| ())?;
            Ok(json!({"name": of.name, "deleted": true}))
        })
        .await
    }
}

/// Waits for the job, and shows the VDB with how to connect to it.
fn changed(client: &Client, name: &str, job: JobId) -> Result<Vdb, Failure> {
    client.wait_job(job, |_| ())?;
    client.show_vdb(name)
}

fn made_here(client: &Client, name: &str) -> Result<(), Failure> {
    check_made_here(&client.show_vdb(name)?)
}

fn check_made_here(vdb: &Vdb) -> Result<(), Failure> {
    if vdb.labels.get(LABEL.0).is_some_and(|value| value == LABEL.1) {
        return Ok(());
    }
    let message = format!("'{}' was not made by this server, which leaves it as it is", vdb.name);
    let hint = "provision a VDB of your own from it: provision_vdb";
    Err(Failure::new(ErrorKind::Forbidden, message, hint))
}

fn snapshot(id: &str) -> Result<SnapshotId, Failure> {
    id.parse().map_err(|_| {
        let message = format!("'{id}' is no snapshot");
        Failure::new(
            ErrorKind::InvalidInput,
            message,
            "write it as snapshot-7, as take_snapshot shows it",
        )
    })
}

fn moment(at: Option<&str>) -> Result<Moment, Failure> {
    let Some(text) = at else { return Ok(Moment::Latest) };
    let ParsedTime { time, .. } = offshoot_domain::parse_time_near(text, now())?;
    Ok(Moment::At { time })
}

fn now() -> jiff::Timestamp {
    jiff::Timestamp::try_from(SystemClock.now()).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

fn no_time() -> Failure {
    let message = "a VDB is kept for an hour at least";
    let hint = "give `expires_in_hours` as 1 or more, or leave it out";
    Failure::new(ErrorKind::InvalidInput, message, hint)
}

fn two_moments() -> Failure {
    Failure::new(ErrorKind::InvalidInput, "a VDB shows one moment", "give `at` or `bookmark`")
}
