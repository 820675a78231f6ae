//! The engine's own superuser in a copy: it logs in by the private socket alone.

use crate::session::{quote_identifier, quote_text};

/// The engine's role. Nobody else may log in as it, or is a member of it.
pub(crate) const ENGINE_ROLE: &str = "offshoot_engine";

/// Statements that create it as it must be. A role of the source that has this name becomes it.
pub(crate) fn ensure_sql() -> String {
    let (role, name) = (quote_identifier(ENGINE_ROLE), quote_text(ENGINE_ROLE));
    format!(
        "DO $do$ BEGIN \
           IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = {name}) THEN \
             CREATE ROLE {role}; \
           END IF; \
         END $do$; \
         ALTER ROLE {role} WITH SUPERUSER INHERIT CREATEROLE CREATEDB LOGIN NOREPLICATION BYPASSRLS \
           CONNECTION LIMIT -1 VALID UNTIL 'infinity' PASSWORD NULL; \
         DELETE FROM pg_catalog.pg_db_role_setting WHERE setrole = \
           (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = {name});"
    )
}
