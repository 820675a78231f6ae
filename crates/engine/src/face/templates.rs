//! What can be asked of templates.

use crate::core::hooks::{self, NewHook};
use crate::core::kind::Kind;
use crate::core::missing;
use crate::face::wanted::{ProvisionRequest, check_rights};
use crate::history::names;
use crate::parts::Parts;
use offshoot_domain::{Care, CareChange, GatewayChange, HookEvent, Moment, ObjectName, Template};
use offshoot_types::{ErrorKind, Failure};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Templates, as a user works with them.
pub struct Templates<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

impl Templates<'_> {
    /// Keeps what is asked for, under its name, for VDBs to be made by.
    ///
    /// # Errors
    /// `AlreadyExists`, `NotFound` for a parent; `InvalidInput` for what no VDB could have, and for a port.
    pub fn create(&self, request: ProvisionRequest) -> Result<Template, Failure> {
        let name: ObjectName = request.name.parse()?;
        let parts = self.parts;
        check(parts, &request)?;
        let from = Some(&request.from).filter(|from| !from.is_empty());
        let from = from.map(|from| -> Result<_, Failure> {
            names::of(parts, names::find(parts, from)?)?.parse()
        });
        let id = parts.catalog.allocate::<Template>()?;
        let template = Template {
            id,
            name,
            from: from.transpose()?,
            moment: request.moment,
            gateway: request.gateway,
            settings: request.settings,
            memory_bytes: request.memory_bytes,
            keep_source_logins: request.keep_source_logins,
            superuser: request.superuser,
            keep_foreign_servers: request.keep_foreign_servers,
            exposure: request.exposure,
            reaches: request.reaches,
            warm: request.warm,
            care: request.care,
            refresh_keeps: request.refresh_keeps,
            hooks: hooks::keep(parts, &request.hooks)?,
            created_at: parts.now(),
        };
        let kept = parts.catalog.put(&template);
        if kept.is_err() {
            hooks::forget(parts, template.hooks.values())?;
        }
        kept?;
        Ok(template)
    }

    /// All templates, by name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn list(&self) -> Result<Vec<Template>, Failure> {
        let mut all: Vec<Template> = self.parts.catalog.list()?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// One template.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn show(&self, name: &str) -> Result<Template, Failure> {
        find(self.parts, name)
    }

    /// Removes a template; VDBs that were made by it stay.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn delete(&self, name: &str) -> Result<Template, Failure> {
        let template = self.show(name)?;
        self.parts.catalog.delete::<Template>(template.id)?;
        hooks::forget(self.parts, template.hooks.values())?;
        Ok(template)
    }
}

fn find(parts: &Parts, name: &str) -> Result<Template, Failure> {
    let found = parts.catalog.find_named(name)?;
    found.ok_or_else(|| missing("template", name, "list them: offshoot template list"))
}

/// Refuses what no VDB could have.
fn check(parts: &Parts, request: &ProvisionRequest) -> Result<(), Failure> {
    if request.port.is_some() || request.template.is_some() {
        let message = "a template has neither a port nor another template";
        return Err(Failure::new(ErrorKind::InvalidInput, message, "leave them out"));
    }
    check_rights(request)?;
    Care::default().changed(&request.care, parts.now())?;
    request.gateway.of(None)?;
    if request.from.is_empty() {
        return Ok(());
    }
    let kind = Kind::of(parts, names::find(parts, &request.from)?)?;
    kind.connector.validate_settings(&kind.version, &request.settings)
}

/// A request with what its template says where it says nothing itself.
///
/// # Errors
/// `NotFound`; `HostUnprepared` where the text of a hook went with a lost key.
pub(super) fn fill(parts: &Parts, request: ProvisionRequest) -> Result<ProvisionRequest, Failure> {
    let Some(name) = &request.template else { return Ok(request) };
    let template = find(parts, name)?;
    let mut hooks = texts(parts, &template)?;
    hooks.extend(request.hooks);
    let mut settings = template.settings;
    settings.extend(request.settings);
    let mut reaches = template.reaches;
    reaches.extend(request.reaches);
    let mut refresh_keeps = template.refresh_keeps;
    refresh_keeps.extend(request.refresh_keeps);
    let from = match (request.from.is_empty(), template.from) {
        (true, Some(from)) => from.to_string(),
        _ => request.from,
    };
    Ok(ProvisionRequest {
        from,
        moment: match request.moment {
            Moment::Latest => template.moment,
            chosen => chosen,
        },
        gateway: GatewayChange {
            wanted: request.gateway.wanted.or(template.gateway.wanted),
            stop_when_idle_ms: request
                .gateway
                .stop_when_idle_ms
                .or(template.gateway.stop_when_idle_ms),
        },
        settings,
        memory_bytes: request.memory_bytes.or(template.memory_bytes),
        keep_source_logins: request.keep_source_logins || template.keep_source_logins,
        superuser: request.superuser || template.superuser,
        keep_foreign_servers: request.keep_foreign_servers || template.keep_foreign_servers,
        exposure: request.exposure.or(template.exposure),
        reaches,
        warm: request.warm || template.warm,
        care: care(request.care, template.care),
        hooks,
        refresh_keeps,
        template: None,
        name: request.name,
        port: request.port,
        user: request.user,
    })
}

fn care(asked: CareChange, template: CareChange) -> CareChange {
    let mut labels = template.labels;
    labels.extend(asked.labels);
    CareChange {
        description: asked.description.or(template.description),
        labels,
        protected: asked.protected.or(template.protected),
        expires_in_ms: asked.expires_in_ms.or(template.expires_in_ms),
    }
}

/// The hooks of a template, for a VDB to have copies of.
fn texts(parts: &Parts, template: &Template) -> Result<BTreeMap<HookEvent, NewHook>, Failure> {
    let copy = |(event, hook): (&HookEvent, &offshoot_domain::Hook)| {
        let name = &template.name;
        let text = hooks::text(parts, hook)?.ok_or_else(|| {
            Failure::new(
                ErrorKind::HostUnprepared,
                format!(
                    "the text of the hook {event} of the template '{name}' went with a lost key"
                ),
                "delete the template, and create it again",
            )
        })?;
        let (database, time_limit) = (hook.database.clone(), Some(hook.time_limit()));
        Ok((*event, NewHook { kind: hook.kind, text, database, time_limit }))
    };
    template.hooks.iter().map(copy).collect()
}
