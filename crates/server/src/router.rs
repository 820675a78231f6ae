//! The routes, and what every request passes before its handler.

use crate::access;
use crate::console as files;
use crate::endpoints::replication::profiles;
use crate::endpoints::{
    App, audit, bisection, bookmark, console, diff, dsource, events, group, job, mask, monitoring,
    peer, policy, pool, replication, secret, snapshot, template, timeflow, token, user, vdb,
    webhook,
};
use crate::openapi;
use crate::reply::Refusal;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware;
use axum::routing::{delete, get, post};
use offshoot_api::routes;
use offshoot_types::{ErrorKind, Failure};
use tower_http::classify::StatusInRangeAsFailures;
use tower_http::trace::TraceLayer;

/// The one status that says that something is wrong with the engine itself. Others above it, as of a full pool or a
/// source that does not answer, are answers like any other: the log has no error for them.
const DEFECT: u16 = 500;

/// The whole API over a service.
pub(crate) fn router(app: App) -> Router {
    let access = app.access.clone();
    beside()
        .merge(people())
        .route(routes::STATUS, get(pool::status))
        .route(routes::DSOURCES, get(dsource::list_dsources).post(dsource::link_dsource))
        .route(
            routes::DSOURCE,
            get(dsource::show_dsource).post(dsource::set_dsource).delete(dsource::unlink_dsource),
        )
        .route(routes::DSOURCE_SYNC, post(dsource::sync_dsource))
        .route(routes::DSOURCE_PAUSE, post(dsource::pause_dsource))
        .route(routes::DSOURCE_RESUME, post(dsource::resume_dsource))
        .route(routes::SNAPSHOTS, get(snapshot::list_snapshots).post(snapshot::take_snapshot))
        .route(routes::SNAPSHOT, get(snapshot::show_snapshot).delete(snapshot::delete_snapshot))
        .route(routes::VDBS, get(vdb::list_vdbs).post(vdb::provision_vdb))
        .route(routes::VDB, get(vdb::show_vdb).post(vdb::set_vdb).delete(vdb::delete_vdb))
        .route(routes::VDB_LOG, get(vdb::vdb_log))
        .route(routes::VDB_HOOKS, get(vdb::vdb_hooks))
        .route(routes::VDB_START, post(vdb::start_vdb))
        .route(routes::VDB_STOP, post(vdb::stop_vdb))
        .route(routes::VDB_RESET_PASSWORD, post(vdb::reset_password_of_vdb))
        .route(routes::VDB_PARENT, post(vdb::reparent_vdb))
        .route(routes::VDB_REFRESH, post(vdb::refresh_vdb))
        .route(routes::VDB_REWIND, post(vdb::rewind_vdb))
        .route(routes::GROUPS, get(group::list_groups).post(group::create_group))
        .route(routes::GROUP, get(group::show_group).delete(group::delete_group))
        .route(routes::VDB_GROUPS, get(group::list_vdb_groups).post(group::provision_vdb_group))
        .route(routes::VDB_GROUP, get(group::show_vdb_group).delete(group::delete_vdb_group))
        .route(routes::VDB_GROUP_START, post(group::start_vdb_group))
        .route(routes::VDB_GROUP_STOP, post(group::stop_vdb_group))
        .route(routes::VDB_GROUP_REFRESH, post(group::refresh_vdb_group))
        .route(routes::VDB_GROUP_REWIND, post(group::rewind_vdb_group))
        .route(routes::VDB_GROUP_BOOKMARK, post(group::bookmark_vdb_group))
        .merge(comparisons())
        .merge(masks())
        .merge(of_replication())
        .route(routes::BOOKMARKS, get(bookmark::list_bookmarks).post(bookmark::create_bookmark))
        .route(routes::BOOKMARK, get(bookmark::show_bookmark).delete(bookmark::delete_bookmark))
        .route(routes::TIMEFLOWS, get(timeflow::show_timeflows))
        .route(routes::TIMEFLOW_COMMITS, get(timeflow::count_commits))
        .route(routes::POLICIES, get(policy::list_policies))
        .route(routes::POLICY, get(policy::show_policy).post(policy::set_policy))
        .route(routes::JOBS, get(job::list_jobs))
        .route(routes::JOB, get(job::show_job))
        .route(routes::JOB_CANCEL, post(job::cancel_job))
        .route(routes::POOL, get(pool::pool_status))
        .route(routes::POOL_LEDGER, get(pool::ledger))
        .route(routes::POOL_RECLAIM, post(pool::reclaim_pool))
        .route(routes::POOL_SCRUB, get(pool::last_scrub).post(pool::scrub_pool))
        .with_state(app)
        .fallback(no_such_route)
        .method_not_allowed_fallback(no_such_method)
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(access, access::admit))
        .layer(middleware::from_fn(files::secure))
        .layer(TraceLayer::new(
            StatusInRangeAsFailures::new(DEFECT..=DEFECT).into_make_classifier(),
        ))
}

/// What is not the engine's objects: monitoring, the console and its sessions, the document, the events.
fn beside() -> Router<App> {
    Router::new()
        .route(routes::METRICS, get(monitoring::metrics))
        .route(routes::HEALTHZ, get(monitoring::healthz))
        .route(routes::READYZ, get(monitoring::readyz))
        .route(routes::OPENAPI, get(openapi::document))
        .route(routes::CONSOLE_PAGE, get(files::page))
        .route(routes::CONSOLE_FILE, get(files::file))
        .route(routes::CONSOLE_CODES, post(console::create_code))
        .route(
            routes::CONSOLE_SESSION,
            post(console::open_session).get(console::show_session).delete(console::end_session),
        )
        .route(routes::EVENTS, get(events::events))
}

/// Who may use the engine, who did, who is told of what happens, and the secrets.
fn people() -> Router<App> {
    Router::new()
        .route(routes::USERS, get(user::list_users).post(user::add_user))
        .route(routes::USER, post(user::set_user).delete(user::remove_user))
        .route(routes::TOKENS, get(token::list_tokens).post(token::create_token))
        .route(routes::TOKEN, delete(token::revoke_token))
        .route(routes::AUDIT, get(audit::audit))
        .route(routes::TEMPLATES, get(template::list_templates).post(template::create_template))
        .route(
            routes::TEMPLATE,
            get(template::show_template)
                .post(template::set_template)
                .delete(template::delete_template),
        )
        .route(routes::WEBHOOKS, get(webhook::list_webhooks).post(webhook::add_webhook))
        .route(
            routes::WEBHOOK,
            get(webhook::show_webhook).post(webhook::set_webhook).delete(webhook::remove_webhook),
        )
        .route(routes::WEBHOOK_TEST, post(webhook::test_webhook))
        .route(routes::SECRETS, get(secret::secrets))
        .route(routes::SECRETS_ROTATE, post(secret::rotate_secrets))
}

/// What is asked of masking.
fn masks() -> Router<App> {
    Router::new()
        .route(routes::MASKS, get(mask::list_masks).post(mask::apply_mask))
        .route(routes::MASKS_CHECK, post(mask::check_mask))
        .route(routes::MASK_DISCOVERIES, post(mask::discover_mask))
        .route(routes::MASK_DISCOVERY, get(mask::show_discovery))
        .route(routes::MASK_PREVIEWS, post(mask::preview_mask))
        .route(routes::MASK_PREVIEW, get(mask::show_preview))
        .route(routes::MASK, get(mask::show_mask))
        .route(routes::MASK_REPORT, get(mask::report::mask_report))
        .route(routes::MASK_KEYS, get(mask::keys::list_mask_keys))
        .route(routes::MASK_KEY_ROTATE, post(mask::keys::rotate_mask_key))
        .route(routes::MASK_REPORT_KEY, get(mask::report::mask_report_key))
}

/// What is asked of what differs.
fn comparisons() -> Router<App> {
    Router::new()
        .route(routes::DIFFS, post(diff::create_diff))
        .route(routes::DIFF, get(diff::show_diff))
        .route(routes::BISECTIONS, post(bisection::start_bisection))
        .route(routes::BISECTION, get(bisection::show_bisection))
}

/// What is asked of replication.
fn of_replication() -> Router<App> {
    Router::new()
        .route(routes::REPLICATION_ARCHIVES, post(replication::import_archive))
        .route(routes::REPLICATION_ARCHIVE, get(replication::export_archive))
        .route(routes::FAILOVERS, post(profiles::fail_over))
        .route(routes::PEERS, get(peer::list_peers).post(peer::add_peer))
        .route(routes::PEER_INVITATIONS, post(peer::invite_peer))
        .route(routes::TOPOLOGY, get(peer::topology))
        .route(routes::PEER_KEY_ROTATE, post(peer::rotate_peer_key))
        .route(routes::PEER, get(peer::show_peer).delete(peer::remove_peer))
        .route(
            routes::REPLICATIONS,
            get(profiles::list_replications).post(profiles::create_replication),
        )
        .route(
            routes::REPLICATION,
            get(profiles::show_replication).delete(profiles::delete_replication),
        )
        .route(routes::REPLICATION_HISTORY, get(profiles::replication_history))
        .route(routes::REPLICATION_RUN, post(profiles::run_replication))
        .route(routes::REPLICATION_PAUSE, post(profiles::pause_replication))
        .route(routes::REPLICATION_RESUME, post(profiles::resume_replication))
}

async fn no_such_route(uri: Uri) -> Refusal {
    Failure::new(
        ErrorKind::NotFound,
        format!("there is nothing at {}", uri.path()),
        format!("{} lists what there is", routes::OPENAPI),
    )
    .into()
}

async fn no_such_method(method: Method, uri: Uri) -> Refusal {
    Refusal::wrong(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("{} does not take {method}", uri.path()),
        "the OpenAPI document at /api/v1/openapi.json lists what each address takes",
    )
}
