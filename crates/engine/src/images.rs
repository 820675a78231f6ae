//! Images: clones that are opened, recovered and proved.

mod durable_soon;
pub mod opening;
pub mod pair;
pub mod proof;
pub mod readiness;
