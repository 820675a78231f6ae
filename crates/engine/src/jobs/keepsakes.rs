//! What a refresh keeps of a VDB beside its name, port and password, where its user wants that: roles and settings.
//!
//! It is taken before the present state is closed, and brought to the next one before users reach that. In between it is a secret of
//! the catalog, as there are passwords in it.

use crate::core::keys::{kept_key, vdb_key};
use crate::core::kind::Kind;
use crate::parts::{Context, Parts};
use offshoot_connector::{Keepsakes, Server};
use offshoot_domain::{Kept, Vdb};
use offshoot_types::{ErrorKind, Failure, VdbId};
use std::collections::BTreeSet;

/// Refuses what a kind of database cannot keep.
pub fn check(kind: &Kind, kinds: &BTreeSet<Kept>) -> Result<(), Failure> {
    if kinds.is_empty() { Ok(()) } else { keeper(kind).map(drop) }
}

fn keeper(kind: &Kind) -> Result<&dyn Keepsakes, Failure> {
    kind.connector.keepsakes().ok_or_else(|| {
        let message = format!("a refresh keeps nothing of a VDB of {}", kind.connector.kind());
        Failure::new(ErrorKind::InvalidInput, message, "leave out --refresh-keeps")
    })
}

/// Takes what a VDB, whose server runs, wants kept.
pub fn take(parts: &Parts, vdb: &Vdb) -> Result<(), Failure> {
    let server = parts.servers.get(&vdb_key(vdb.id));
    let server = server.ok_or_else(|| Failure::internal(format!("'{}' does not run", vdb.name)))?;
    let kept = keeper(&Kind::of_vdb(parts, vdb)?)?.take(&*server, &vdb.refresh_keeps)?;
    Ok(parts.catalog.put_secret(&kept_key(vdb.id), &kept)?)
}

/// Brings it to the server of the next state; the job says what did not fit.
pub fn bring(context: &Context, vdb: &Vdb, server: &dyn Server) -> Result<(), Failure> {
    let parts = context.app();
    let Some(kept) = parts.catalog.secret(&kept_key(vdb.id))? else { return Ok(()) };
    let left_out = keeper(&Kind::of_vdb(parts, vdb)?)?.bring(server, &kept, vdb.superuser)?;
    left_out.into_iter().try_for_each(|what| context.note(what))
}

/// Forgets what was taken; that there is nothing is no error.
pub fn forget(parts: &Parts, id: VdbId) -> Result<(), Failure> {
    Ok(parts.catalog.delete_secret(&kept_key(id))?)
}
