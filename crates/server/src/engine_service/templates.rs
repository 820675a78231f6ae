//! Templates, as the API shows them.

use super::{LocalEngine, hooks, vdbs};
use crate::service::templates::Templates;
use offshoot_api as api;
use offshoot_domain::{Moment, Template};
use offshoot_types::Failure;

impl Templates for LocalEngine {
    fn create_template(&self, request: api::ProvisionVdb) -> Result<api::Template, Failure> {
        self.engine().templates().create(vdbs::wanted(request, None)?).map(template)
    }

    fn list_templates(&self) -> Result<Vec<api::Template>, Failure> {
        Ok(self.engine().templates().list()?.into_iter().map(template).collect())
    }

    fn show_template(&self, name: &str) -> Result<api::Template, Failure> {
        self.engine().templates().show(name).map(template)
    }

    fn delete_template(&self, name: &str) -> Result<api::Template, Failure> {
        self.engine().templates().delete(name).map(template)
    }
}

fn template(kept: Template) -> api::Template {
    let name = kept.name.to_string();
    let (listen, allow) =
        kept.exposure.map(|exposure| (exposure.listen, exposure.allow)).unwrap_or_default();
    let labels = kept.care.labels.into_iter().filter_map(|(key, value)| Some((key, value?)));
    api::Template {
        id: kept.id,
        name: name.clone(),
        request: api::ProvisionVdb {
            name,
            from: kept.from.map(|from| from.to_string()).unwrap_or_default(),
            template: None,
            moment: shown(kept.moment),
            port: None,
            gateway: kept.gateway.wanted == Some(true),
            stop_when_idle_ms: kept.gateway.stop_when_idle_ms.flatten(),
            settings: kept.settings,
            memory_bytes: kept.memory_bytes,
            keep_source_logins: kept.keep_source_logins,
            superuser: kept.superuser,
            keep_foreign_servers: kept.keep_foreign_servers,
            allow_network: kept.reaches,
            listen,
            allow,
            warm: kept.warm,
            description: kept.care.description,
            labels: labels.collect(),
            protected: kept.care.protected == Some(true),
            expires_in_ms: kept.care.expires_in_ms.flatten(),
            hooks: Vec::new(),
            refresh_keeps: vdbs::shown_kept(&kept.refresh_keeps),
        },
        hooks: hooks::of(&kept.hooks),
        created_at: kept.created_at,
    }
}

fn shown(moment: Moment) -> api::Moment {
    match moment {
        Moment::Latest => api::Moment::Latest,
        Moment::Snapshot(id) => api::Moment::Snapshot { id },
        Moment::At(time) => api::Moment::At { time },
        Moment::Log(lsn) => api::Moment::Lsn { lsn },
        Moment::Bookmark(name) => api::Moment::Bookmark { name },
        Moment::Transaction(xid) => api::Moment::Xid { xid: xid.parse().unwrap_or_default() },
    }
}
