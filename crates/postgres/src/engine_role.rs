//! The engine's own superuser in a copy: it logs in by the private socket alone.

use crate::session::ensure_role_sql;
use crate::vdb_role::VDB_ROLE;

/// The engine's role. Nobody else may log in as it, or is a member of it.
pub(crate) const ENGINE_ROLE: &str = "offshoot_engine";

/// The roles that the engine logs in as, in the order to try. Copies of earlier releases have no role of
/// the engine; their VDB role is a superuser.
pub(crate) const LOGINS: [&str; 3] = [ENGINE_ROLE, VDB_ROLE, "postgres"];

/// Statements that create it as it must be. A role of the source that has this name becomes it.
pub(crate) fn ensure_sql() -> String {
    ensure_role_sql(ENGINE_ROLE, "SUPERUSER NOREPLICATION", None)
}
