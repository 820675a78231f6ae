//! What can be asked of templates.

use crate::core::hooks::{self, NewHook};
use crate::core::kind::Kind;
use crate::core::missing;
use crate::face::wanted::{ProvisionRequest, check_rights};
use crate::history::names;
use crate::parts::Parts;
use offshoot_domain::{Care, HookEvent, ObjectName, Template};
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
        let parts = self.parts;
        let (name, from) = names_in(parts, &request)?;
        let id = parts.catalog.allocate::<Template>()?;
        let template = Template {
            id,
            name,
            from,
            wishes: request.wishes,
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

    /// Has a template that was seen say what is asked for now; its hooks stay but for those that are named here: they are
    /// replaced, or removed where there is none. VDBs that were made by it stay as they are.
    ///
    /// # Errors
    /// As [`Templates::create`]; `Busy` where it has been changed since it was seen.
    pub fn replace(
        &self,
        seen: &Template,
        request: ProvisionRequest,
        hooks: BTreeMap<HookEvent, Option<NewHook>>,
    ) -> Result<Template, Failure> {
        let parts = self.parts;
        let (name, from) = names_in(parts, &request)?;
        let mut records = seen.hooks.clone();
        let dropped: Vec<_> = hooks.keys().filter_map(|event| records.remove(event)).collect();
        let set = hooks.into_iter().filter_map(|(event, hook)| Some((event, hook?))).collect();
        let set = hooks::keep(parts, &set)?;
        records.extend(set.clone());
        let template =
            Template { name, from, wishes: request.wishes, hooks: records, ..seen.clone() };
        let put = parts.catalog.transaction(|tx| {
            let stands = tx.find::<Template>(seen.id)?.as_ref() == Some(seen);
            if stands {
                tx.put(&template)?;
            }
            Ok(stands)
        });
        let put = put.map_err(Failure::from).and_then(|stands| {
            let changed = || {
                let message = format!("the template '{}' was changed meanwhile", seen.name);
                Failure::new(ErrorKind::Busy, message, "look at it, and try again")
            };
            stands.then_some(template).ok_or_else(changed)
        });
        match &put {
            Ok(_) => hooks::forget(parts, &dropped)?,
            Err(_) => hooks::forget(parts, set.values())?,
        }
        put
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

/// The name of a template and that of what its VDBs are made from. Refuses what no VDB could have.
fn names_in(
    parts: &Parts,
    request: &ProvisionRequest,
) -> Result<(ObjectName, Option<ObjectName>), Failure> {
    let name: ObjectName = request.name.parse()?;
    if request.port.is_some() || request.template.is_some() {
        let message = "a template has neither a port nor another template";
        return Err(Failure::new(ErrorKind::InvalidInput, message, "leave them out"));
    }
    let wishes = &request.wishes;
    check_rights(wishes)?;
    Care::default().changed(&wishes.care, parts.now())?;
    wishes.gateway.of(None)?;
    if request.from.is_empty() {
        return Ok((name, None));
    }
    let owner = names::find(parts, &request.from)?;
    let kind = Kind::of(parts, owner)?;
    kind.connector.validate_settings(&kind.version, &wishes.settings)?;
    Ok((name, Some(names::of(parts, owner)?.parse()?)))
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
    let from = match (request.from.is_empty(), template.from) {
        (true, Some(from)) => from.to_string(),
        _ => request.from,
    };
    let wishes = request.wishes.or(template.wishes);
    Ok(ProvisionRequest { from, wishes, hooks, template: None, ..request })
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
                format!("give it again: offshoot template set {name} --hook {event}=FILE"),
            )
        })?;
        let (database, time_limit) = (hook.database.clone(), Some(hook.time_limit()));
        Ok((*event, NewHook { kind: hook.kind, text, database, time_limit }))
    };
    template.hooks.iter().map(copy).collect()
}
