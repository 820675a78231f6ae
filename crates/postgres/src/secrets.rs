//! Secrets of the source that a VDB may keep by choice: logins with their passwords, and foreign servers
//! with theirs. An image has them; a VDB that does not keep them loses them before its user may log in. An image also
//! says what it has lost itself, so that users of its VDBs learn what of the source these lack.

use std::time::Duration;

use offshoot_connector::DataDir;
use offshoot_domain::TiesCut;
use offshoot_types::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};

use crate::files::{remove_file, write_file};
use crate::server::Server;
use crate::session::{Session, quote_texts};

/// File in the data directory of an image that says which secrets of the source are in it. A VDB that
/// was given to its user has none: what its users make from then on is theirs.
const FILE: &str = "offshoot.source_logins.json";

const TIMEOUT: Duration = Duration::from_secs(60);

/// How many names of a kind are told: a source may have any number, and chooses them.
const TOLD_MAX: usize = 20;

/// Tells whether a database has foreign servers with an address, or users' passwords for them.
pub(crate) const FOREIGN: &str = "SELECT srvname FROM pg_catalog.pg_foreign_server \
    WHERE srvoptions IS NOT NULL \
    UNION ALL SELECT 'mapping' FROM pg_catalog.pg_user_mapping WHERE umoptions IS NOT NULL";

/// Where secrets of the source are, and what else tied it to others.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Secrets {
    /// The roles that could log in.
    pub(crate) logins: Vec<String>,
    /// The roles that had a password.
    pub(crate) passwords: Vec<String>,
    /// Databases with foreign servers.
    pub(crate) foreign: Vec<String>,
    /// Subscriptions that are disabled.
    pub(crate) subscriptions: Vec<String>,
    /// Replication slots that were dropped.
    pub(crate) slots: Vec<String>,
    /// Databases whose scheduled jobs were deleted.
    pub(crate) unscheduled: Vec<String>,
    /// What could not be looked at.
    pub(crate) warnings: Vec<String>,
}

/// What earlier releases wrote: logins alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum Known {
    Secrets(Secrets),
    Logins(Vec<String>),
}

impl Secrets {
    fn read(dir: &dyn DataDir) -> Result<Option<Secrets>, Failure> {
        let broken = |error: &dyn std::fmt::Display| {
            Failure::new(
                ErrorKind::DataDamaged,
                format!("{FILE} cannot be read: {error}"),
                "provision again from the dSource",
            )
        };
        match dir.read(FILE) {
            Ok(bytes) => match serde_json::from_slice(&bytes).map_err(|error| broken(&error))? {
                Known::Secrets(secrets) => Ok(Some(secrets)),
                Known::Logins(logins) => {
                    Ok(Some(Secrets { passwords: logins.clone(), logins, ..Secrets::default() }))
                }
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(broken(&error)),
        }
    }

    /// What a VDB lacks that keeps this much.
    fn told(self, keep: Keep) -> TiesCut {
        let unless = |kept: bool, names: Vec<String>| if kept { Vec::new() } else { names };
        let cut = [
            ("logins of roles", unless(keep.logins, self.logins)),
            ("passwords of roles", unless(keep.logins, self.passwords)),
            (
                "addresses and passwords of foreign servers, in databases",
                unless(keep.foreign_servers, self.foreign),
            ),
            ("subscriptions", self.subscriptions),
            ("replication slots", self.slots),
            ("scheduled jobs, in databases", self.unscheduled),
        ];
        let cut = cut.into_iter().filter(|(_, names)| !names.is_empty());
        TiesCut {
            cut: cut.map(|(what, names)| format!("{what}: {}", listed(&names))).collect(),
            warnings: self.warnings.iter().take(TOLD_MAX).map(|one| plain(one)).collect(),
        }
    }
}

fn listed(names: &[String]) -> String {
    let told: Vec<String> = names.iter().take(TOLD_MAX).map(|name| plain(name)).collect();
    match names.len() - told.len() {
        0 => told.join(", "),
        more => format!("{} and {more} more", told.join(", ")),
    }
}

/// A text of the source's without what a terminal would take for commands.
fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

/// Adds to what is known of an image.
///
/// # Errors
/// `DataDamaged` when what is known cannot be read; `Internal` when it cannot be written.
pub(crate) fn remember(dir: &dyn DataDir, found: Secrets) -> Result<(), Failure> {
    let mut known = Secrets::read(dir)?.unwrap_or_default();
    for (known, found) in [
        (&mut known.logins, found.logins),
        (&mut known.passwords, found.passwords),
        (&mut known.foreign, found.foreign),
        (&mut known.subscriptions, found.subscriptions),
        (&mut known.slots, found.slots),
        (&mut known.unscheduled, found.unscheduled),
        (&mut known.warnings, found.warnings),
    ] {
        known.extend(found);
        known.sort();
        known.dedup();
    }
    let text = serde_json::to_string(&known)
        .map_err(|error| Failure::internal(format!("cannot remember the logins: {error}")))?;
    write_file(dir, FILE, &text)
}

/// What a VDB keeps.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    /// The source's logins, with their passwords.
    pub logins: bool,
    /// Foreign servers, with the passwords for them.
    pub foreign_servers: bool,
}

/// Removes what a VDB does not keep, if it is fresh from an image, and says what it then lacks; safe to repeat. Nobody
/// may be able to log in yet.
///
/// # Errors
/// `DataDamaged` when what the image says of itself cannot be read, `Internal` with the server's words.
pub fn remove(server: &Server, dir: &dyn DataDir, keep: Keep) -> Result<Option<TiesCut>, Failure> {
    let Some(found) = Secrets::read(dir)? else { return Ok(None) };
    let mut session = server.connect()?;
    if keep.logins {
        session.execute(&login_sql(&are_among(&found.logins), "LOGIN"), TIMEOUT)?;
    } else {
        let of_source = are_among(&found.passwords);
        let forget =
            format!("UPDATE pg_catalog.pg_authid SET rolpassword = NULL WHERE {of_source}");
        session.execute(&forget, TIMEOUT)?;
    }
    if !keep.foreign_servers {
        for database in &found.foreign {
            let mut inside = server.connect_to(database)?;
            inside.execute(
                "UPDATE pg_catalog.pg_user_mapping SET umoptions = NULL; \
                 UPDATE pg_catalog.pg_foreign_server SET srvoptions = NULL;",
                TIMEOUT,
            )?;
            // Old versions of the rows would stay in the files.
            for table in ["pg_user_mapping", "pg_foreign_server"] {
                inside.execute(&format!("VACUUM (FULL) pg_catalog.{table}"), TIMEOUT)?;
            }
        }
    }
    remove_file(dir, FILE)?;
    Ok(Some(found.told(keep)))
}

/// Removes old versions of roles from their file, which a superuser can read.
///
/// # Errors
/// `Internal` with the server's words.
pub(crate) fn wipe_roles(session: &mut Session) -> Result<(), Failure> {
    session.execute("VACUUM (FULL) pg_catalog.pg_authid", TIMEOUT)
}

fn are_among(names: &[String]) -> String {
    format!("rolname = ANY (ARRAY[{}]::pg_catalog.name[])", quote_texts(names))
}

/// Statements that give or take the right to log in to or from the roles of a condition.
pub(crate) fn login_sql(condition: &str, attribute: &str) -> String {
    format!(
        "DO $do$ DECLARE name text; BEGIN \
           FOR name IN SELECT rolname FROM pg_catalog.pg_roles WHERE {condition} LOOP \
             EXECUTE pg_catalog.format('ALTER ROLE %I {attribute}', name); \
           END LOOP; \
         END $do$;"
    )
}

#[cfg(test)]
mod tests;
