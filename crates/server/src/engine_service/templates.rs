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

    fn set_template(
        &self,
        name: &str,
        request: api::SetTemplate,
    ) -> Result<api::Template, Failure> {
        let seen = self.engine().templates().show(name)?;
        let (mut request, removed) = request.of(&template(seen.clone()).request)?;
        let hooks = hooks::changes(std::mem::take(&mut request.hooks), removed)?;
        let wanted = vdbs::wanted(request, None)?;
        self.engine().templates().replace(&seen, wanted, hooks).map(template)
    }

    fn delete_template(&self, name: &str) -> Result<api::Template, Failure> {
        self.engine().templates().delete(name).map(template)
    }
}

fn template(kept: Template) -> api::Template {
    let name = kept.name.to_string();
    let wishes = kept.wishes;
    let (listen, allow) =
        wishes.exposure.map(|exposure| (exposure.listen, exposure.allow)).unwrap_or_default();
    let labels = wishes.care.labels.into_iter().filter_map(|(key, value)| Some((key, value?)));
    api::Template {
        id: kept.id,
        name: name.clone(),
        request: api::ProvisionVdb {
            name,
            from: kept.from.map(|from| from.to_string()).unwrap_or_default(),
            template: None,
            moment: shown(wishes.moment),
            port: None,
            gateway: wishes.gateway.wanted == Some(true),
            stop_when_idle_ms: wishes.gateway.stop_when_idle_ms.flatten(),
            settings: wishes.settings,
            memory_bytes: wishes.memory_bytes,
            keep_source_logins: wishes.keep_source_logins,
            superuser: wishes.superuser,
            keep_foreign_servers: wishes.keep_foreign_servers,
            allow_network: wishes.reaches,
            listen,
            allow,
            warm: wishes.warm,
            description: wishes.care.description,
            labels: labels.collect(),
            protected: wishes.care.protected == Some(true),
            expires_in_ms: wishes.care.expires_in_ms.flatten(),
            hooks: Vec::new(),
            refresh_keeps: vdbs::shown_kept(&wishes.refresh_keeps),
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
