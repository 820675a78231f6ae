//! How every failed request is answered.

use offshoot_types::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of every response whose status is 400 or more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// What went wrong.
    pub error: ErrorDetail,
}

/// What failed, why, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// The kind, for scripts.
    #[schema(value_type = String, example = "not_found")]
    pub code: ErrorKind,
    /// What failed and why.
    pub message: String,
    /// How to fix it; empty when nothing the user can do is known.
    pub hint: String,
}

impl From<Failure> for ErrorDetail {
    fn from(failure: Failure) -> Self {
        ErrorDetail { code: failure.code, message: failure.message, hint: failure.hint }
    }
}

impl From<ErrorDetail> for Failure {
    fn from(detail: ErrorDetail) -> Self {
        Failure::new(detail.code, detail.message, detail.hint)
    }
}

impl From<Failure> for ErrorBody {
    fn from(failure: Failure) -> Self {
        ErrorBody { error: failure.into() }
    }
}
