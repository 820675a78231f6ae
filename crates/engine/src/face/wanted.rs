//! What is asked for where a VDB is provisioned, or a template made.

use crate::core::hooks::NewHook;
use offshoot_domain::{CareChange, Exposure, GatewayChange, HookEvent, Kept, Moment};
use offshoot_types::{ErrorKind, Failure, Remote, UserId};
use std::collections::{BTreeMap, BTreeSet};

/// What is provisioned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProvisionRequest {
    /// The VDB's name.
    pub name: String,
    /// The name of the dSource or VDB that it is made from; empty: that of its template.
    pub from: String,
    /// The name of a template, which says what is not said here.
    pub template: Option<String>,
    /// The moment of its history to open.
    pub moment: Moment,
    /// The port it listens on; a free one if absent.
    pub port: Option<u16>,
    /// What listens on that port.
    pub gateway: GatewayChange,
    /// Settings of its server that are not those of the source.
    pub settings: BTreeMap<String, String>,
    /// What its server and the kernel's cache of its files may take, in bytes.
    pub memory_bytes: Option<u64>,
    /// The source's logins work on it as well.
    pub keep_source_logins: bool,
    /// Its user is a superuser, who may also run programs in the server's cell.
    pub superuser: bool,
    /// The source's foreign servers stay, with the passwords for them.
    pub keep_foreign_servers: bool,
    /// How other hosts reach it; none: not at all.
    pub exposure: Option<Exposure>,
    /// The ports of other hosts that it may connect to.
    pub reaches: Vec<Remote>,
    /// Whose it is; none: the administrators'.
    pub user: Option<UserId>,
    /// A warm copy will do, if there is one: of a moment that may be a minute old.
    pub warm: bool,
    /// What its user says about it.
    pub care: CareChange,
    /// What runs in it when something has been done to it.
    pub hooks: BTreeMap<HookEvent, NewHook>,
    /// What a refresh keeps of it.
    pub refresh_keeps: BTreeSet<Kept>,
}

/// A superuser could let in whom it likes, as it writes the server's files.
pub(super) fn check_rights(request: &ProvisionRequest) -> Result<(), Failure> {
    if !request.superuser || request.exposure.is_none() {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::InvalidInput,
        "a VDB whose user is a superuser listens on loopback alone: its user could let in anybody",
        "leave --superuser or --listen out",
    ))
}
