//! Who may ask for what: one row for each endpoint. What is not in the table is allowed to nobody.
//!
//! The table says which roles; whose objects a developer reaches is [`Guard`](super::guard::Guard)'s to say.

use axum::http::Method;
use offshoot_api::routes;
use offshoot_domain::Role;

/// What an endpoint takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    /// Nothing: it tells nothing of this engine.
    Anybody,
    /// Looks at what one may see.
    Look,
    /// Looks at what is everybody's at once.
    Survey,
    /// Makes and changes VDBs and what belongs to them.
    Use,
    /// Runs what VDBs are made from.
    Operate,
    /// Decides where data comes from and who gets it.
    Administer,
    /// Looks at who did what.
    Audit,
}

impl Right {
    /// Whether a role has it.
    pub(crate) fn is_of(self, role: Role) -> bool {
        matches!(
            (role, self),
            (Role::Admin, _)
                | (_, Right::Anybody | Right::Look)
                | (Role::Operator, Right::Survey | Right::Use | Right::Operate)
                | (Role::Developer, Right::Use)
                | (Role::Auditor, Right::Survey | Right::Audit)
        )
    }
}

/// A row: method, route, right, and what the audit calls it.
type Row = (Method, &'static str, Right, &'static str);

const TABLE: &[Row] = &[
    (Method::GET, routes::METRICS, Right::Look, "metrics"),
    (Method::GET, routes::HEALTHZ, Right::Anybody, "healthz"),
    (Method::GET, routes::READYZ, Right::Anybody, "readyz"),
    (Method::GET, routes::OPENAPI, Right::Anybody, "openapi show"),
    (Method::GET, routes::CONSOLE_PAGE, Right::Anybody, "console"),
    (Method::GET, routes::CONSOLE_FILE, Right::Anybody, "console file"),
    (Method::POST, routes::CONSOLE_CODES, Right::Look, "console"),
    (Method::POST, routes::CONSOLE_SESSION, Right::Anybody, "console sign-in"),
    (Method::GET, routes::CONSOLE_SESSION, Right::Look, "console session"),
    (Method::DELETE, routes::CONSOLE_SESSION, Right::Look, "console sign-out"),
    (Method::GET, routes::EVENTS, Right::Look, "events"),
    (Method::GET, routes::STATUS, Right::Look, "status"),
    (Method::GET, routes::DSOURCES, Right::Look, "dsource list"),
    (Method::POST, routes::DSOURCES, Right::Administer, "dsource link"),
    (Method::GET, routes::DSOURCE, Right::Look, "dsource show"),
    (Method::POST, routes::DSOURCE, Right::Administer, "dsource set"),
    (Method::DELETE, routes::DSOURCE, Right::Administer, "dsource unlink"),
    (Method::POST, routes::DSOURCE_SYNC, Right::Operate, "dsource sync"),
    (Method::POST, routes::DSOURCE_PAUSE, Right::Operate, "dsource pause"),
    (Method::POST, routes::DSOURCE_RESUME, Right::Operate, "dsource resume"),
    (Method::GET, routes::SNAPSHOTS, Right::Look, "snapshot list"),
    (Method::POST, routes::SNAPSHOTS, Right::Use, "snapshot take"),
    (Method::GET, routes::SNAPSHOT, Right::Look, "snapshot show"),
    (Method::DELETE, routes::SNAPSHOT, Right::Use, "snapshot delete"),
    (Method::GET, routes::VDBS, Right::Look, "vdb list"),
    (Method::POST, routes::VDBS, Right::Use, "vdb provision"),
    (Method::GET, routes::VDB, Right::Look, "vdb show"),
    (Method::POST, routes::VDB, Right::Use, "vdb set"),
    (Method::GET, routes::VDB_LOG, Right::Use, "vdb logs"),
    (Method::GET, routes::VDB_HOOKS, Right::Use, "vdb hooks"),
    (Method::DELETE, routes::VDB, Right::Use, "vdb delete"),
    (Method::POST, routes::VDB_START, Right::Use, "vdb start"),
    (Method::POST, routes::VDB_STOP, Right::Use, "vdb stop"),
    (Method::POST, routes::VDB_RESET_PASSWORD, Right::Use, "vdb reset-password"),
    (Method::POST, routes::VDB_PARENT, Right::Operate, "vdb reparent"),
    (Method::POST, routes::VDB_REFRESH, Right::Use, "vdb refresh"),
    (Method::POST, routes::VDB_REWIND, Right::Use, "vdb rewind"),
    (Method::GET, routes::GROUPS, Right::Look, "group list"),
    (Method::POST, routes::GROUPS, Right::Operate, "group create"),
    (Method::GET, routes::GROUP, Right::Look, "group show"),
    (Method::DELETE, routes::GROUP, Right::Operate, "group delete"),
    (Method::GET, routes::VDB_GROUPS, Right::Look, "vdb-group list"),
    (Method::POST, routes::VDB_GROUPS, Right::Use, "group provision"),
    (Method::GET, routes::VDB_GROUP, Right::Look, "vdb-group show"),
    (Method::DELETE, routes::VDB_GROUP, Right::Use, "vdb-group delete"),
    (Method::POST, routes::VDB_GROUP_START, Right::Use, "group start"),
    (Method::POST, routes::VDB_GROUP_STOP, Right::Use, "group stop"),
    (Method::POST, routes::VDB_GROUP_REFRESH, Right::Use, "group refresh"),
    (Method::POST, routes::VDB_GROUP_REWIND, Right::Use, "group rewind"),
    (Method::POST, routes::VDB_GROUP_BOOKMARK, Right::Use, "group bookmark"),
    (Method::GET, routes::MASKS, Right::Survey, "mask list"),
    (Method::POST, routes::MASKS, Right::Operate, "mask apply"),
    (Method::POST, routes::MASKS_CHECK, Right::Operate, "mask check"),
    (Method::POST, routes::MASK_DISCOVERIES, Right::Operate, "mask discover"),
    (Method::GET, routes::MASK_DISCOVERY, Right::Operate, "mask discovery"),
    (Method::POST, routes::MASK_PREVIEWS, Right::Operate, "mask preview"),
    (Method::GET, routes::MASK_PREVIEW, Right::Operate, "mask preview show"),
    (Method::GET, routes::MASK, Right::Survey, "mask show"),
    (Method::POST, routes::DIFFS, Right::Use, "diff"),
    (Method::GET, routes::DIFF, Right::Use, "diff show"),
    (Method::GET, routes::MASK_REPORT, Right::Survey, "mask report"),
    (Method::GET, routes::MASK_KEYS, Right::Survey, "mask key list"),
    (Method::POST, routes::MASK_KEY_ROTATE, Right::Administer, "mask key rotate"),
    (Method::GET, routes::MASK_REPORT_KEY, Right::Survey, "mask report key"),
    (Method::POST, routes::BISECTIONS, Right::Use, "bisect"),
    (Method::GET, routes::BISECTION, Right::Use, "bisect show"),
    (Method::GET, routes::BOOKMARKS, Right::Look, "bookmark list"),
    (Method::POST, routes::BOOKMARKS, Right::Use, "bookmark create"),
    (Method::GET, routes::BOOKMARK, Right::Look, "bookmark show"),
    (Method::DELETE, routes::BOOKMARK, Right::Use, "bookmark delete"),
    (Method::GET, routes::TIMEFLOWS, Right::Look, "timeflow show"),
    (Method::GET, routes::TIMEFLOW_COMMITS, Right::Look, "timeflow commits"),
    (Method::GET, routes::POLICIES, Right::Look, "policy list"),
    (Method::GET, routes::POLICY, Right::Look, "policy show"),
    (Method::POST, routes::POLICY, Right::Operate, "policy set"),
    (Method::GET, routes::JOBS, Right::Look, "job list"),
    (Method::GET, routes::JOB, Right::Look, "job show"),
    (Method::POST, routes::JOB_CANCEL, Right::Use, "job cancel"),
    (Method::GET, routes::USERS, Right::Audit, "user list"),
    (Method::POST, routes::USERS, Right::Administer, "user add"),
    (Method::POST, routes::USER, Right::Administer, "user set"),
    (Method::DELETE, routes::USER, Right::Administer, "user remove"),
    (Method::GET, routes::TOKENS, Right::Audit, "token list"),
    (Method::POST, routes::TOKENS, Right::Administer, "token create"),
    (Method::DELETE, routes::TOKEN, Right::Administer, "token revoke"),
    (Method::GET, routes::AUDIT, Right::Audit, "audit"),
    (Method::GET, routes::TEMPLATES, Right::Look, "template list"),
    (Method::POST, routes::TEMPLATES, Right::Operate, "template create"),
    (Method::GET, routes::TEMPLATE, Right::Look, "template show"),
    (Method::POST, routes::TEMPLATE, Right::Operate, "template set"),
    (Method::DELETE, routes::TEMPLATE, Right::Operate, "template delete"),
    (Method::GET, routes::WEBHOOKS, Right::Administer, "webhook list"),
    (Method::POST, routes::WEBHOOKS, Right::Administer, "webhook add"),
    (Method::GET, routes::WEBHOOK, Right::Administer, "webhook show"),
    (Method::POST, routes::WEBHOOK, Right::Administer, "webhook set"),
    (Method::DELETE, routes::WEBHOOK, Right::Administer, "webhook remove"),
    (Method::POST, routes::WEBHOOK_TEST, Right::Administer, "webhook test"),
    (Method::GET, routes::SECRETS, Right::Audit, "secret show"),
    (Method::POST, routes::SECRETS_ROTATE, Right::Administer, "secret rotate"),
    (Method::POST, routes::REPLICATION_ARCHIVES, Right::Administer, "replication import"),
    (Method::GET, routes::REPLICATION_ARCHIVE, Right::Administer, "replication export"),
    (Method::POST, routes::FAILOVERS, Right::Administer, "failover"),
    (Method::GET, routes::PEERS, Right::Survey, "peer list"),
    (Method::POST, routes::PEERS, Right::Administer, "peer add"),
    (Method::POST, routes::PEER_INVITATIONS, Right::Administer, "peer invite"),
    (Method::POST, routes::PEER_KEY_ROTATE, Right::Administer, "peer rotate"),
    (Method::GET, routes::TOPOLOGY, Right::Survey, "topology"),
    (Method::GET, routes::PEER, Right::Survey, "peer show"),
    (Method::DELETE, routes::PEER, Right::Administer, "peer remove"),
    (Method::GET, routes::REPLICATIONS, Right::Survey, "replication list"),
    (Method::POST, routes::REPLICATIONS, Right::Administer, "replication create"),
    (Method::GET, routes::REPLICATION, Right::Survey, "replication show"),
    (Method::DELETE, routes::REPLICATION, Right::Administer, "replication delete"),
    (Method::GET, routes::REPLICATION_HISTORY, Right::Survey, "replication history"),
    (Method::POST, routes::REPLICATION_RUN, Right::Operate, "replication run"),
    (Method::POST, routes::REPLICATION_PAUSE, Right::Operate, "replication pause"),
    (Method::POST, routes::REPLICATION_RESUME, Right::Operate, "replication resume"),
    (Method::GET, routes::POOL, Right::Look, "pool status"),
    (Method::GET, routes::POOL_LEDGER, Right::Look, "pool ledger"),
    (Method::POST, routes::POOL_RECLAIM, Right::Operate, "pool reclaim"),
    (Method::GET, routes::POOL_SCRUB, Right::Survey, "pool scrub show"),
    (Method::POST, routes::POOL_SCRUB, Right::Operate, "pool scrub"),
];

/// The row of an endpoint: what it takes, and what the audit calls it. `HEAD` is answered as `GET` is.
pub(crate) fn row(method: &Method, route: &str) -> Option<(Right, &'static str)> {
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let found = TABLE.iter().find(|(verb, path, ..)| verb == method && *path == route);
    found.map(|(_, _, right, action)| (*right, *action))
}

#[cfg(test)]
mod tests;
