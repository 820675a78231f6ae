//! How passwords are sealed.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How the passwords that the pool keeps are sealed. None of them is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Secrets {
    /// How many there are.
    pub sealed: u64,
    /// The ids of the keys: the first seals, the others open what older copies of the pool have.
    #[schema(example = json!(["371c5242b4ad4fe5"]))]
    pub keys: Vec<String>,
    /// The file or directory of the engine's host with the keys.
    pub place: String,
    /// Whether the engine can change the keys: not those that the system hands to it.
    pub changeable: bool,
}

/// Asks for a new key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateSecrets {
    /// Whether the keys before it are removed. Passwords in older copies of the pool can then not be read any more.
    #[serde(default)]
    pub forget_old: bool,
}
