//! The OpenAPI document, made from the handlers and types themselves.

use crate::endpoints::replication::profiles;
use crate::endpoints::{
    audit, bisection, bookmark, console, diff, dsource, events, group, job, mask, peer, policy,
    pool, replication, secret, snapshot, template, timeflow, token, user, vdb, webhook,
};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use offshoot_api::ErrorBody;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Offshoot",
        version = "1",
        description = "Virtual databases made from any moment of a synchronised copy. Long work is \
            answered with status 202 and the id of a job, which continues without the client. Sizes are \
            in bytes, durations in milliseconds, times RFC 3339. Fields are only ever added.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    paths(
        console::create_code,
        console::open_session,
        console::show_session,
        console::end_session,
        events::events,
        pool::status,
        pool::pool_status,
        pool::ledger,
        pool::reclaim_pool,
        pool::last_scrub,
        pool::scrub_pool,
        secret::secrets,
        secret::rotate_secrets,
        dsource::link_dsource,
        dsource::list_dsources,
        dsource::show_dsource,
        dsource::set_dsource,
        dsource::sync_dsource,
        dsource::pause_dsource,
        dsource::resume_dsource,
        dsource::unlink_dsource,
        snapshot::take_snapshot,
        snapshot::list_snapshots,
        snapshot::show_snapshot,
        snapshot::delete_snapshot,
        vdb::provision_vdb,
        vdb::list_vdbs,
        vdb::show_vdb,
        vdb::set_vdb,
        vdb::vdb_log,
        vdb::vdb_hooks,
        vdb::start_vdb,
        vdb::stop_vdb,
        vdb::reset_password_of_vdb,
        vdb::delete_vdb,
        vdb::reparent_vdb,
        vdb::refresh_vdb,
        vdb::rewind_vdb,
        group::create_group,
        group::list_groups,
        group::show_group,
        group::delete_group,
        group::provision_vdb_group,
        group::list_vdb_groups,
        group::show_vdb_group,
        group::delete_vdb_group,
        group::start_vdb_group,
        group::stop_vdb_group,
        group::refresh_vdb_group,
        group::rewind_vdb_group,
        group::bookmark_vdb_group,
        replication::export_archive,
        replication::import_archive,
        peer::invite_peer,
        peer::add_peer,
        peer::list_peers,
        peer::show_peer,
        peer::remove_peer,
        peer::rotate_peer_key,
        peer::topology,
        profiles::create_replication,
        profiles::list_replications,
        profiles::show_replication,
        profiles::replication_history,
        profiles::run_replication,
        profiles::fail_over,
        profiles::pause_replication,
        profiles::resume_replication,
        profiles::delete_replication,
        mask::apply_mask,
        mask::check_mask,
        mask::discover_mask,
        mask::show_discovery,
        mask::preview_mask,
        mask::show_preview,
        mask::list_masks,
        mask::show_mask,
 bisection::show_bisection, bisection::start_bisection, diff::create_diff, diff::show_diff, mask::keys::list_mask_keys, mask::keys::rotate_mask_key, mask::report::mask_report, mask::report::mask_report_key,
        bookmark::create_bookmark,
        bookmark::list_bookmarks,
        bookmark::show_bookmark,
        bookmark::delete_bookmark,
        timeflow::show_timeflows,
        timeflow::count_commits,
        policy::list_policies,
        policy::show_policy,
        policy::set_policy,
        job::list_jobs,
        job::show_job,
        job::cancel_job,
        user::add_user,
        user::list_users,
        user::set_user,
        user::remove_user,
        token::create_token,
        token::list_tokens,
        token::revoke_token,
        audit::audit,
        template::create_template,
        template::list_templates,
        template::show_template,
        template::set_template,
        template::delete_template,
        webhook::add_webhook,
        webhook::list_webhooks,
        webhook::show_webhook,
        webhook::set_webhook,
        webhook::test_webhook,
        webhook::remove_webhook,
    ),
    components(schemas(ErrorBody)),
    modifiers(&PoolToken),
    security(("token" = []))
)]
struct Document;

/// Says how the token is shown.
struct PoolToken;

impl Modify for PoolToken {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        document.components.get_or_insert_default().add_security_scheme("token", scheme);
    }
}

/// The OpenAPI document as it is checked in at `openapi/offshoot.json`.
pub fn openapi_json() -> String {
    let mut text = Document::openapi()
        .to_pretty_json()
        .expect("a document made of strings and numbers is writable as JSON");
    text.push('\n');
    text
}

/// Answers with the document.
pub(crate) async fn document() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], openapi_json()).into_response()
}
