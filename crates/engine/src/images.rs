//! Images: clones that are opened, recovered and proved.

pub mod opening;
pub mod pair;
pub mod proof;
pub mod readiness;
