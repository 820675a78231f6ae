//! Templates: what VDBs are to be like, said once.

use crate::{HookEvent, ProvisionVdb, VdbHook};
use jiff::Timestamp;
use offshoot_types::{ErrorKind, Failure, TemplateId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, OneOfBuilder, SchemaType};
use utoipa::openapi::{ObjectBuilder, Ref, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Events whose hook goes.
const REMOVE_HOOKS: &str = "remove_hooks";
/// Pairs, of which each is set or removed by itself.
const PAIRS: [&str; 2] = ["settings", "labels"];
/// What no template has.
const OF_ONE_VDB: [&str; 2] = ["port", "template"];
/// What is never without a value.
const NEVER_NULL: [&str; 2] = ["name", "hooks"];

/// A template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Template {
    /// Its id.
    #[schema(value_type = String, example = "template-1")]
    pub id: TemplateId,
    /// Its name.
    pub name: String,
    /// What a VDB that is made by it has, unless whoever makes one asks for something else. Without hooks.
    pub request: ProvisionVdb,
    /// What runs in such a VDB.
    pub hooks: Vec<VdbHook>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// All templates that one may see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TemplateList {
    /// By name.
    pub templates: Vec<Template>,
}

/// Changes a template: fields of [`ProvisionVdb`], as a JSON Merge Patch (RFC 7396) has them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SetTemplate(pub Map<String, Value>);

impl SetTemplate {
    /// Sets what a request says that is not usual, and removes the hooks of some events.
    pub fn saying(request: &ProvisionVdb, remove_hooks: &[HookEvent]) -> SetTemplate {
        let fields = |request: &ProvisionVdb| match serde_json::to_value(request) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        let usual = fields(&ProvisionVdb::default());
        let mut said = fields(request);
        said.retain(|name, value| usual.get(name) != Some(value));
        if !remove_hooks.is_empty() {
            let events = remove_hooks.iter().map(|event| event.as_str().into()).collect();
            said.insert(REMOVE_HOOKS.to_owned(), Value::Array(events));
        }
        SetTemplate(said)
    }

    /// What a template says then that said this, with the hooks to set; and the events whose hooks go.
    ///
    /// # Errors
    /// `InvalidInput` for what is no such request.
    pub fn of(self, said: &ProvisionVdb) -> Result<(ProvisionVdb, Vec<HookEvent>), Failure> {
        let SetTemplate(mut change) = self;
        let refused = |error: serde_json::Error| {
            let hint = "see SetTemplate in /api/v1/openapi.json";
            Failure::new(ErrorKind::InvalidInput, format!("it cannot be changed so: {error}"), hint)
        };
        let removed = change.remove(REMOVE_HOOKS).unwrap_or(Value::Array(Vec::new()));
        let removed = serde_json::from_value(removed).map_err(refused)?;
        let mut document = serde_json::to_value(said).map_err(refused)?;
        if let Value::Object(fields) = &mut document {
            for (name, value) in change {
                match (value, fields.get_mut(&name)) {
                    (Value::Object(pairs), Some(Value::Object(before)))
                        if PAIRS.contains(&name.as_str()) =>
                    {
                        pairs.into_iter().for_each(|(key, value)| put(before, key, value));
                    }
                    (Value::Object(mut pairs), None) if PAIRS.contains(&name.as_str()) => {
                        pairs.retain(|_, value| !value.is_null());
                        fields.insert(name, Value::Object(pairs));
                    }
                    (value, _) => put(fields, name, value),
                }
            }
        }
        Ok((serde_json::from_value(document).map_err(refused)?, removed))
    }
}

fn put(fields: &mut Map<String, Value>, name: String, value: Value) {
    match value {
        Value::Null => drop(fields.remove(&name)),
        value => drop(fields.insert(name, value)),
    }
}

/// Without values: the text of a hook is a secret.
impl fmt::Debug for SetTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl PartialSchema for SetTemplate {
    /// That of what it changes; nothing is required, and null takes away.
    fn schema() -> RefOr<Schema> {
        let RefOr::T(Schema::Object(mut object)) = ProvisionVdb::schema() else {
            return ProvisionVdb::schema();
        };
        object.required.clear();
        object.description = Some(
            "Changes a template, as a JSON Merge Patch (RFC 7396): what is absent stays, null takes away what was said, also \
             one of the settings or labels. Hooks take the place of those of the same events."
                .to_owned(),
        );
        object.properties.retain(|name, _| !OF_ONE_VDB.contains(&name.as_str()));
        for (name, property) in &mut object.properties {
            if !NEVER_NULL.contains(&name.as_str()) {
                *property = or_null(property.clone());
            }
        }
        let events = ArrayBuilder::new()
            .items(Ref::from_schema_name(HookEvent::name()))
            .description(Some("Events whose hook is removed."));
        object.properties.insert(REMOVE_HOOKS.to_owned(), events.into());
        Schema::Object(object).into()
    }
}

impl ToSchema for SetTemplate {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("SetTemplate")
    }
}

fn or_null(property: RefOr<Schema>) -> RefOr<Schema> {
    let types = |types| match types {
        SchemaType::Type(one) => SchemaType::Array(vec![one, Type::Null]),
        others => others,
    };
    match property {
        RefOr::T(Schema::Object(mut object)) => {
            object.schema_type = types(object.schema_type);
            object.additional_properties = object.additional_properties.map(|more| match *more {
                AdditionalProperties::RefOr(one) => {
                    Box::new(AdditionalProperties::RefOr(or_null(one)))
                }
                free => Box::new(free),
            });
            Schema::Object(object).into()
        }
        RefOr::T(Schema::Array(mut array)) => {
            array.schema_type = types(array.schema_type);
            Schema::Array(array).into()
        }
        RefOr::Ref(one) => {
            let null = ObjectBuilder::new().schema_type(Type::Null);
            OneOfBuilder::new().item(null).item(one).into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
