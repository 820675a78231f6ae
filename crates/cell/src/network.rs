//! What Landlock takes away: TCP ports, the abstract sockets and the processes of others.

use landlock::{
    ABI, Access, AccessNet, CompatLevel, Compatible, NetPort, Ruleset, RulesetAttr,
    RulesetCreatedAttr, Scope,
};
use std::io;

/// The first version that knows TCP ports (Linux 6.7) and scopes (6.12). An older kernel takes away what
/// it knows.
const VERSION: ABI = ABI::V6;

/// Only this port can be listened on, and none connected to but `connects`: Landlock knows no addresses, and a server of
/// production may have the same port on its own host. Signals and abstract sockets end at the cell.
pub(crate) fn restrict(port: Option<u16>, connects: &[u16]) -> io::Result<()> {
    rule(port, connects).map_err(io::Error::other)
}

fn rule(port: Option<u16>, connects: &[u16]) -> Result<(), landlock::RulesetError> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessNet::from_all(VERSION))?
        .scope(Scope::from_all(VERSION))?
        .create()?;
    let listens = port.map(|port| NetPort::new(port, AccessNet::BindTcp));
    let connects = connects.iter().map(|port| NetPort::new(*port, AccessNet::ConnectTcp));
    let ports = listens.into_iter().chain(connects);
    rules.add_rules(ports.map(Ok::<_, landlock::RulesetError>))?.restrict_self().map(drop)
}
