//! VDBs, as the API has them.

use super::{hooks, kind, moment, warnings};
use offshoot_api as api;
use offshoot_domain as domain;
use offshoot_engine::{ProvisionRequest, VdbChange, VdbView};
use offshoot_types::{Failure, UserId};
use std::collections::{BTreeMap, BTreeSet};

/// What is asked for where a VDB is provisioned.
pub(super) fn wanted(
    request: api::ProvisionVdb,
    user: Option<UserId>,
) -> Result<ProvisionRequest, Failure> {
    Ok(ProvisionRequest {
        name: request.name,
        from: request.from,
        template: request.template,
        port: request.port,
        user,
        hooks: hooks::new(request.hooks)?,
        wishes: domain::Wishes {
            moment: moment(request.moment)?,
            gateway: domain::GatewayChange {
                wanted: request.gateway.then_some(true),
                stop_when_idle_ms: request.stop_when_idle_ms.map(Some),
            },
            settings: request.settings,
            memory_bytes: request.memory_bytes,
            keep_source_logins: request.keep_source_logins,
            superuser: request.superuser,
            keep_foreign_servers: request.keep_foreign_servers,
            reaches: request.allow_network,
            exposure: domain::Exposure::asked(request.listen, request.allow)?,
            warm: request.warm,
            care: domain::CareChange {
                description: request.description,
                labels: labels(request.labels),
                protected: Some(request.protected).filter(|protected| *protected),
                expires_in_ms: request.expires_in_ms.map(Some),
            },
            refresh_keeps: request.refresh_keeps.into_iter().map(kept).collect(),
        },
    })
}

/// What is asked for where a VDB is changed.
pub(super) fn change(request: api::SetVdb) -> Result<VdbChange, Failure> {
    let api::SetVdb {
        name,
        port,
        description,
        labels,
        protected,
        expires_in_ms,
        settings,
        memory_bytes,
        gateway,
        stop_when_idle_ms,
        refresh_keeps,
        ..
    } = request;
    let refresh_keeps = refresh_keeps.map(|kinds| kinds.into_iter().map(kept).collect());
    let gateway = domain::GatewayChange { wanted: gateway, stop_when_idle_ms };
    let care = domain::CareChange { description, labels, protected, expires_in_ms };
    let hooks = hooks::changes(request.hooks, request.remove_hooks)?;
    Ok(VdbChange { care, settings, memory_bytes, hooks, gateway, refresh_keeps, name, port })
}

/// A VDB as it is now.
pub(super) fn vdb(view: VdbView) -> api::Vdb {
    let VdbView { vdb, owner, moment, uri, logical_bytes, unique_bytes, warnings: view_warnings } =
        view;
    let moment = moment.map(|at| api::Position {
        snapshot: vdb.moment.map(|moment| moment.snapshot),
        lsn: Some(at.log),
        time: Some(at.time),
    });
    let hooks = hooks::of(&vdb.hooks);
    let asleep = vdb.is_asleep();
    api::Vdb {
        gateway: vdb.gateway.map(|gateway| api::VdbGateway {
            stop_when_idle_ms: gateway.stop_when_idle_ms,
            asleep,
        }),
        warnings: warnings(&vdb.name, view_warnings),
        id: vdb.id,
        name: vdb.name.to_string(),
        state: match vdb.state {
            domain::VdbState::Provisioning => api::VdbState::Provisioning,
            domain::VdbState::Running => api::VdbState::Running,
            domain::VdbState::Stopped => api::VdbState::Stopped,
            domain::VdbState::Failed => api::VdbState::Failed,
        },
        parent: vdb.parent.name.to_string(),
        parent_kind: kind(vdb.parent.owner.into()),
        moment: moment.unwrap_or_default(),
        host: "127.0.0.1".to_owned(),
        port: vdb.port,
        user: vdb.user,
        uri,
        owner,
        server_version: vdb.server_version,
        logical_bytes,
        unique_bytes,
        hooks,
        settings: vdb.settings,
        refresh_keeps: shown_kept(&vdb.refresh_keeps),
        superuser: vdb.superuser,
        keep_source_logins: vdb.keep_source_logins,
        keep_foreign_servers: vdb.keep_foreign_servers,
        removed: vdb.ties.cut,
        allow_network: vdb.reaches,
        network: vdb.exposure.map(|exposure| api::VdbNetwork {
            listen: exposure.listen,
            allow: exposure.allow,
            certificate: vdb.certificate,
        }),
        memory_bytes: vdb.memory_bytes,
        description: vdb.care.description,
        labels: vdb.care.labels,
        protected: vdb.care.protected,
        expires_at: vdb.care.expires_at,
        created_at: vdb.created_at,
        timings: api::ProvisionTimings {
            total_ms: vdb.timings.total_ms,
            clone_ms: vdb.timings.clone_ms,
            mount_ms: vdb.timings.mount_ms,
            recover_ms: vdb.timings.recover_ms,
            replay_ms: vdb.timings.replay_ms,
            log_bytes: vdb.timings.log_bytes,
            start_ms: vdb.timings.start_ms,
        },
        error: vdb.problem.map(Into::into),
    }
}

fn kept(kind: api::Kept) -> domain::Kept {
    match kind {
        api::Kept::Roles => domain::Kept::Roles,
        api::Kept::Settings => domain::Kept::Settings,
    }
}

/// What a refresh keeps.
pub(super) fn shown_kept(kinds: &BTreeSet<domain::Kept>) -> BTreeSet<api::Kept> {
    let shown = |kind: &domain::Kept| match kind {
        domain::Kept::Roles => api::Kept::Roles,
        domain::Kept::Settings => api::Kept::Settings,
    };
    kinds.iter().map(shown).collect()
}

fn labels(all: BTreeMap<String, String>) -> BTreeMap<String, Option<String>> {
    all.into_iter().map(|(key, value)| (key, Some(value))).collect()
}
