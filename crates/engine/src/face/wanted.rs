//! What is asked for where a VDB is provisioned, or a template made.

use crate::core::hooks::NewHook;
use offshoot_domain::{HookEvent, Wishes};
use offshoot_types::{ErrorKind, Failure, UserId};
use std::collections::BTreeMap;

/// What is provisioned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProvisionRequest {
    /// The VDB's name.
    pub name: String,
    /// The name of the dSource or VDB that it is made from; empty: that of its template.
    pub from: String,
    /// The name of a template, which says what is not said here.
    pub template: Option<String>,
    /// The port it listens on; a free one if absent.
    pub port: Option<u16>,
    /// What it is to be like.
    pub wishes: Wishes,
    /// Whose it is; none: the administrators'.
    pub user: Option<UserId>,
    /// What runs in it when something has been done to it.
    pub hooks: BTreeMap<HookEvent, NewHook>,
}

/// A superuser could let in whom it likes, as it writes the server's files.
pub(super) fn check_rights(wishes: &Wishes) -> Result<(), Failure> {
    if !wishes.superuser || wishes.exposure.is_none() {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::InvalidInput,
        "a VDB whose user is a superuser listens on loopback alone: its user could let in anybody",
        "leave --superuser or --listen out",
    ))
}
