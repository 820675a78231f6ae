//! Templates: what VDBs are to be like, said once.

use crate::{ProvisionVdb, VdbHook};
use jiff::Timestamp;
use offshoot_types::TemplateId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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
