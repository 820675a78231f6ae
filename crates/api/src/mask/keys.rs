//! Keys that values are masked with.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A key; never the key itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MaskKey {
    /// The name that rules have for it.
    pub name: String,
    /// 1, and one more with each rotation.
    pub version: u32,
    /// When it was made; null: before that was noted.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub made_at: Option<Timestamp>,
    /// Masked dSources whose rules name it.
    pub used_by: Vec<String>,
}

/// The keys that masked dSources use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MaskKeyList {
    /// By name.
    pub keys: Vec<MaskKey>,
}
