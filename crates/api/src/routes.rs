//! Where each endpoint is found, with `{parameter}` as both the router and OpenAPI write it.

/// The prefix of every route.
pub const BASE: &str = "/api/v1";
/// GET: figures in the OpenMetrics text format.
pub const METRICS: &str = "/metrics";
/// GET: whether the process answers; asks for no token.
pub const HEALTHZ: &str = "/healthz";
/// GET: whether the engine answers; asks for no token.
pub const READYZ: &str = "/readyz";
/// The OpenAPI document; asks for no token.
pub const OPENAPI: &str = "/api/v1/openapi.json";
/// GET: the console's page; asks for no token.
pub const CONSOLE_PAGE: &str = "/";
/// GET: a file of that page; asks for no token.
pub const CONSOLE_FILE: &str = "/console/{file}";
/// POST: a one-time code for the console.
pub const CONSOLE_CODES: &str = "/api/v1/console/codes";
/// POST: open a session for a code, without a token; GET: who asks; DELETE: end one's session.
pub const CONSOLE_SESSION: &str = "/api/v1/console/session";
/// GET: what changes, as server-sent events.
pub const EVENTS: &str = "/api/v1/events";
/// GET: the engine at a glance.
pub const STATUS: &str = "/api/v1/status";
/// GET: all dSources; POST: link.
pub const DSOURCES: &str = "/api/v1/dsources";
/// GET: one dSource; POST: change how its source is reached; DELETE: unlink.
pub const DSOURCE: &str = "/api/v1/dsources/{name}";
/// POST: copy changes now and take a snapshot.
pub const DSOURCE_SYNC: &str = "/api/v1/dsources/{name}/sync";
/// POST: stop following the source.
pub const DSOURCE_PAUSE: &str = "/api/v1/dsources/{name}/pause";
/// POST: follow the source again.
pub const DSOURCE_RESUME: &str = "/api/v1/dsources/{name}/resume";
/// GET: snapshots (of `?object=NAME`); POST: take.
pub const SNAPSHOTS: &str = "/api/v1/snapshots";
/// GET: one snapshot; DELETE: delete.
pub const SNAPSHOT: &str = "/api/v1/snapshots/{id}";
/// GET: all VDBs; POST: provision.
pub const VDBS: &str = "/api/v1/vdbs";
/// GET: one VDB; POST: change it; DELETE: delete.
pub const VDB: &str = "/api/v1/vdbs/{name}";
/// GET: the end of its server's log.
pub const VDB_LOG: &str = "/api/v1/vdbs/{name}/log";
/// GET: its hooks, with what they run.
pub const VDB_HOOKS: &str = "/api/v1/vdbs/{name}/hooks";
/// POST: start.
pub const VDB_START: &str = "/api/v1/vdbs/{name}/start";
/// POST: stop.
pub const VDB_STOP: &str = "/api/v1/vdbs/{name}/stop";
/// Gives a VDB another password.
pub const VDB_RESET_PASSWORD: &str = "/api/v1/vdbs/{name}/reset-password";
/// POST: another parent.
pub const VDB_PARENT: &str = "/api/v1/vdbs/{name}/parent";
/// POST: refresh.
pub const VDB_REFRESH: &str = "/api/v1/vdbs/{name}/refresh";
/// POST: rewind.
pub const VDB_REWIND: &str = "/api/v1/vdbs/{name}/rewind";
/// GET: all groups; POST: make one.
pub const GROUPS: &str = "/api/v1/groups";
/// GET: one group; DELETE: delete.
pub const GROUP: &str = "/api/v1/groups/{name}";
/// GET: all VDB groups; POST: provision.
pub const VDB_GROUPS: &str = "/api/v1/vdb-groups";
/// GET: one VDB group; DELETE: delete.
pub const VDB_GROUP: &str = "/api/v1/vdb-groups/{name}";
/// POST: start.
pub const VDB_GROUP_START: &str = "/api/v1/vdb-groups/{name}/start";
/// POST: stop.
pub const VDB_GROUP_STOP: &str = "/api/v1/vdb-groups/{name}/stop";
/// POST: refresh.
pub const VDB_GROUP_REFRESH: &str = "/api/v1/vdb-groups/{name}/refresh";
/// POST: rewind.
pub const VDB_GROUP_REWIND: &str = "/api/v1/vdb-groups/{name}/rewind";
/// POST: set bookmarks.
pub const VDB_GROUP_BOOKMARK: &str = "/api/v1/vdb-groups/{name}/bookmark";
/// GET: all masked dSources; POST: make or renew one.
pub const MASKS: &str = "/api/v1/masks";
/// POST: hold rules against a dSource.
pub const MASKS_CHECK: &str = "/api/v1/masks/check";
/// POST: look for what should be masked.
pub const MASK_DISCOVERIES: &str = "/api/v1/mask-discoveries";
/// GET: what was found.
pub const MASK_DISCOVERY: &str = "/api/v1/mask-discoveries/{id}";
/// POST: mask some rows, to be looked at.
pub const MASK_PREVIEWS: &str = "/api/v1/mask-previews";
/// GET: these rows, once.
pub const MASK_PREVIEW: &str = "/api/v1/mask-previews/{id}";
/// GET: one masked dSource.
pub const MASK: &str = "/api/v1/masks/{name}";
/// POST: compare two states.
pub const DIFFS: &str = "/api/v1/diffs";
/// GET: what differs.
pub const DIFF: &str = "/api/v1/diffs/{id}";
/// GET: the signed report of one.
pub const MASK_REPORT: &str = "/api/v1/masks/{name}/report";
/// GET: the keys that masked dSources use.
pub const MASK_KEYS: &str = "/api/v1/mask-keys";
/// POST: make another key of a name.
pub const MASK_KEY_ROTATE: &str = "/api/v1/mask-keys/{name}/rotate";
/// GET: what the signatures of reports are checked with.
pub const MASK_REPORT_KEY: &str = "/api/v1/mask-report-key";
/// POST: look for the commit at which an answer changed.
pub const BISECTIONS: &str = "/api/v1/bisections";
/// GET: what was found.
pub const BISECTION: &str = "/api/v1/bisections/{id}";
/// GET: all bookmarks; POST: set one.
pub const BOOKMARKS: &str = "/api/v1/bookmarks";
/// GET: one bookmark; DELETE: delete.
pub const BOOKMARK: &str = "/api/v1/bookmarks/{name}";
/// GET: what can be opened of one dSource or VDB.
pub const TIMEFLOWS: &str = "/api/v1/timeflows/{name}";
/// GET: how many commits its source made (`?from=TIME&to=TIME&parts=N`).
pub const TIMEFLOW_COMMITS: &str = "/api/v1/timeflows/{name}/commits";
/// GET: all policies.
pub const POLICIES: &str = "/api/v1/policies";
/// GET: the policy of one dSource or VDB; POST: change it.
pub const POLICY: &str = "/api/v1/policies/{name}";
/// GET: jobs.
pub const JOBS: &str = "/api/v1/jobs";
/// GET: one job.
pub const JOB: &str = "/api/v1/jobs/{id}";
/// POST: cancel.
pub const JOB_CANCEL: &str = "/api/v1/jobs/{id}/cancel";
/// GET: all users; POST: add one.
pub const USERS: &str = "/api/v1/users";
/// DELETE: remove a user.
pub const USER: &str = "/api/v1/users/{name}";
/// GET: all tokens; POST: make one.
pub const TOKENS: &str = "/api/v1/tokens";
/// DELETE: revoke a token.
pub const TOKEN: &str = "/api/v1/tokens/{id}";
/// GET: who asked for what (`?since=TIME&user=NAME&limit=N`).
pub const AUDIT: &str = "/api/v1/audit";
/// GET: all templates that one may see; POST: create one.
pub const TEMPLATES: &str = "/api/v1/templates";
/// GET: one template; POST: change it; DELETE: remove it.
pub const TEMPLATE: &str = "/api/v1/templates/{name}";
/// GET: all webhooks; POST: add one.
pub const WEBHOOKS: &str = "/api/v1/webhooks";
/// GET: one webhook; POST: change it; DELETE: remove it.
pub const WEBHOOK: &str = "/api/v1/webhooks/{name}";
/// POST: send it a message that tells of nothing.
pub const WEBHOOK_TEST: &str = "/api/v1/webhooks/{name}/test";
/// GET: how the passwords of the pool are sealed.
pub const SECRETS: &str = "/api/v1/secrets";
/// POST: seal them with a new key.
pub const SECRETS_ROTATE: &str = "/api/v1/secrets/rotate";
/// POST: take an archive in (`?as=PREFIX`).
pub const REPLICATION_ARCHIVES: &str = "/api/v1/replication/archives";
/// GET: a dSource as an archive (`?plain=true`).
pub const REPLICATION_ARCHIVE: &str = "/api/v1/replication/archives/{name}";
/// GET: all profiles of replication; POST: make one.
pub const REPLICATIONS: &str = "/api/v1/replication/profiles";
/// GET: one profile; DELETE: delete it.
pub const REPLICATION: &str = "/api/v1/replication/profiles/{name}";
/// GET: its runs.
pub const REPLICATION_HISTORY: &str = "/api/v1/replication/profiles/{name}/history";
/// POST: run it.
pub const REPLICATION_RUN: &str = "/api/v1/replication/profiles/{name}/run";
/// POST: let it not run by itself.
pub const REPLICATION_PAUSE: &str = "/api/v1/replication/profiles/{name}/pause";
/// POST: let it run by itself.
pub const REPLICATION_RESUME: &str = "/api/v1/replication/profiles/{name}/resume";
/// POST: make the copies of another engine's dSources this engine's own.
pub const FAILOVERS: &str = "/api/v1/replication/failovers";
/// GET: all other engines; POST: add one to send to.
pub const PEERS: &str = "/api/v1/peers";
/// POST: make a code that lets another engine in.
pub const PEER_INVITATIONS: &str = "/api/v1/peer-invitations";
/// POST: make another key that this engine proves itself with to them.
pub const PEER_KEY_ROTATE: &str = "/api/v1/peer-key/rotate";
/// GET: which engines are known, and which sends to which.
pub const TOPOLOGY: &str = "/api/v1/topology";
/// GET: one of them; DELETE: forget it.
pub const PEER: &str = "/api/v1/peers/{name}";
/// GET: what the pool holds.
pub const POOL: &str = "/api/v1/pool";
/// GET: what each object holds of the pool (of `?object=NAME`; what `?delete=A,B` would free).
pub const POOL_LEDGER: &str = "/api/v1/pool/ledger";
/// POST: give space that nothing needs back to the filesystem.
pub const POOL_RECLAIM: &str = "/api/v1/pool/reclaim";

/// GET: the last scrub and the known damage; POST: read and verify everything.
pub const POOL_SCRUB: &str = "/api/v1/pool/scrub";

/// A route with its one parameter filled in, escaped so that no value can reach another route.
pub fn fill(route: &str, value: &str) -> String {
    let Some((before, rest)) = route.split_once('{') else { return route.to_owned() };
    let after = rest.split_once('}').map_or("", |(_, after)| after);
    format!("{before}{}{after}", escape(value))
}

/// Escapes a text for one segment of a path or one value of a query.
pub fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
