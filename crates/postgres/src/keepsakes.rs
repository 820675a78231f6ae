//! Roles and settings that users made in a VDB, for its next data.
//!
//! Taken by the engine's own session, brought by that of the new server before users reach it. Everything that comes from
//! the server is data to us: it is quoted, and gives no right that the VDB's user has not.

use crate::engine_role::ENGINE_ROLE;
use crate::script::one_line;
use crate::session::{Session, quote_identifier, quote_text, quote_texts};
use crate::vdb_role::VDB_ROLE;
use offshoot_domain::{Kept, Secret};
use offshoot_types::Failure;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

/// How long one statement may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What was taken.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Keepsakes {
    roles: Vec<Role>,
    members: Vec<Member>,
    settings: Vec<Setting>,
    /// Settings of `ALTER SYSTEM`, with their values.
    system: Vec<(String, String)>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Role {
    name: String,
    superuser: bool,
    bypasses_rls: bool,
    inherits: bool,
    creates_roles: bool,
    creates_databases: bool,
    logs_in: bool,
    connections: i32,
    verifier: Option<String>,
    until: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Member {
    role: String,
    member: String,
    admin: bool,
}

/// A setting of a database, of a role, or of a role in a database.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Setting {
    database: Option<String>,
    role: Option<String>,
    name: String,
    value: String,
}

/// Takes what there is.
///
/// # Errors
/// When the server does not answer.
pub(crate) fn take(session: &mut Session, kinds: &BTreeSet<Kept>) -> Result<Keepsakes, Failure> {
    let mut kept = Keepsakes::default();
    if kinds.contains(&Kept::Roles) {
        kept.roles = roles(session)?;
        kept.members = members(session)?;
    }
    if kinds.contains(&Kept::Settings) {
        kept.settings = settings(session)?;
        kept.system = system(session)?;
    }
    Ok(kept)
}

type Row = Vec<Option<String>>;

/// Rows of texts, each of which must be there.
fn whole<const N: usize>(rows: Vec<Row>) -> Vec<[String; N]> {
    let one = |row: Row| row.into_iter().collect::<Option<Vec<_>>>()?.try_into().ok();
    rows.into_iter().filter_map(one).collect()
}

fn roles(session: &mut Session) -> Result<Vec<Role>, Failure> {
    let sql = format!(
        "SELECT rolname, rolsuper, rolbypassrls, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolconnlimit, \
           rolpassword, rolvaliduntil FROM pg_catalog.pg_authid \
         WHERE rolname !~ '^pg_' AND rolname NOT IN ({}) ORDER BY oid",
        quote_texts([VDB_ROLE, ENGINE_ROLE])
    );
    let role = |row: Row| {
        let mut fields = row.into_iter();
        let mut next = || fields.next().flatten();
        let name = next()?;
        let flags: Vec<bool> = (0..6).map(|_| next().is_some_and(|flag| flag == "t")).collect();
        Some(Role {
            name,
            superuser: flags[0],
            bypasses_rls: flags[1],
            inherits: flags[2],
            creates_roles: flags[3],
            creates_databases: flags[4],
            logs_in: flags[5],
            connections: next()?.parse().ok()?,
            verifier: next(),
            until: next(),
        })
    };
    Ok(session.query(&sql, TIMEOUT)?.into_iter().filter_map(role).collect())
}

fn members(session: &mut Session) -> Result<Vec<Member>, Failure> {
    let sql = format!(
        "SELECT DISTINCT role.rolname, member.rolname, admin_option FROM pg_catalog.pg_auth_members \
         JOIN pg_catalog.pg_authid role ON role.oid = roleid \
         JOIN pg_catalog.pg_authid member ON member.oid = member \
         WHERE {engine} NOT IN (role.rolname, member.rolname)",
        engine = quote_text(ENGINE_ROLE)
    );
    let member = |[role, member, admin]: [String; 3]| Member { role, member, admin: admin == "t" };
    Ok(whole(session.query(&sql, TIMEOUT)?).into_iter().map(member).collect())
}

fn settings(session: &mut Session) -> Result<Vec<Setting>, Failure> {
    let sql = format!(
        "SELECT datname, rolname, one FROM pg_catalog.pg_db_role_setting \
         CROSS JOIN LATERAL pg_catalog.unnest(setconfig) one \
         LEFT JOIN pg_catalog.pg_database base ON base.oid = setdatabase \
         LEFT JOIN pg_catalog.pg_authid role ON role.oid = setrole \
         WHERE rolname IS DISTINCT FROM {}",
        quote_text(ENGINE_ROLE)
    );
    let setting = |row: Row| {
        let [database, role, one] = <[_; 3]>::try_from(row).ok()?;
        let one = one?;
        let (name, value) = one.split_once('=')?;
        Some(Setting { database, role, name: name.to_owned(), value: value.to_owned() })
    };
    Ok(session.query(&sql, TIMEOUT)?.into_iter().filter_map(setting).collect())
}

/// The file of `ALTER SYSTEM` was emptied when the VDB was made: what is in it was set in it.
fn system(session: &mut Session) -> Result<Vec<(String, String)>, Failure> {
    let sql = "SELECT name, setting FROM pg_catalog.pg_file_settings \
               WHERE sourcefile LIKE '%/postgresql.auto.conf' AND name IS NOT NULL ORDER BY seqno";
    let rows = whole::<2>(session.query(sql, TIMEOUT)?);
    Ok(rows.into_iter().map(|[name, value]| (name, value)).collect())
}

/// Brings it to a server of other data; what does not fit is left out, and returned.
///
/// # Errors
/// When the server does not answer.
pub(crate) fn bring(
    session: &mut Session,
    kept: &Keepsakes,
    superuser: bool,
) -> Result<Vec<String>, Failure> {
    let there: HashSet<String> = session
        .query_column("SELECT rolname FROM pg_catalog.pg_roles", TIMEOUT)?
        .into_iter()
        .collect();
    let mut left_out = Vec::new();
    let mut run = |what: String, sql: String| {
        if let Err(failure) = session.execute(&sql, TIMEOUT) {
            left_out.push(format!("{what} is not kept: {}", one_line(&failure.message)));
        }
    };
    for role in &kept.roles {
        let name = quote_identifier(&role.name);
        let create = if there.contains(&role.name) {
            String::new()
        } else {
            format!("CREATE ROLE {name}; ")
        };
        run(format!("the role {}", role.name), create + &alter(role, superuser));
    }
    for Member { role, member, admin } in &kept.members {
        let option = if *admin { " WITH ADMIN OPTION" } else { "" };
        let sql =
            format!("GRANT {} TO {}{option}", quote_identifier(role), quote_identifier(member));
        run(format!("that {member} is a member of {role}"), sql);
    }
    for setting in &kept.settings {
        run(format!("the setting {} of {}", setting.name, whose(setting)), set(setting));
    }
    for (name, value) in &kept.system {
        let sql =
            format!("ALTER SYSTEM SET {} TO {}", setting_name(name), written_value(name, value));
        run(format!("the setting {name} of the server"), sql);
    }
    session.execute("SELECT pg_catalog.pg_reload_conf()", TIMEOUT)?;
    Ok(left_out)
}

/// Nobody is given a right that the VDB's user could not give.
fn alter(role: &Role, superuser: bool) -> String {
    let word = |has: bool, word: &str| format!(" {}{word}", if has { "" } else { "NO" });
    let mut sql = format!("ALTER ROLE {} WITH", quote_identifier(&role.name));
    if superuser {
        sql += &word(role.superuser, "SUPERUSER");
        sql += &word(role.bypasses_rls, "BYPASSRLS");
    }
    sql += &word(role.inherits, "INHERIT");
    sql += &word(role.creates_roles, "CREATEROLE");
    sql += &word(role.creates_databases, "CREATEDB");
    sql += &word(role.logs_in, "LOGIN");
    sql += &format!(" CONNECTION LIMIT {}", role.connections);
    let verifier = role.verifier.as_deref().map_or("NULL".to_owned(), quote_text);
    sql += &format!(" PASSWORD {verifier} VALID UNTIL ");
    sql + &quote_text(role.until.as_deref().unwrap_or("infinity"))
}

/// Whose setting it is, as users say it.
fn whose(setting: &Setting) -> String {
    match (&setting.role, &setting.database) {
        (Some(role), Some(database)) => format!("the role {role} in the database {database}"),
        (Some(role), None) => format!("the role {role}"),
        (None, Some(database)) => format!("the database {database}"),
        (None, None) => "all roles".to_owned(),
    }
}

fn set(setting: &Setting) -> String {
    let database = setting.database.as_deref().map(quote_identifier);
    let of = match (&setting.role, database) {
        (Some(role), Some(database)) => {
            format!("ROLE {} IN DATABASE {database}", quote_identifier(role))
        }
        (Some(role), None) => format!("ROLE {}", quote_identifier(role)),
        (None, Some(database)) => format!("DATABASE {database}"),
        (None, None) => "ROLE ALL".to_owned(),
    };
    let Setting { name, value, .. } = setting;
    format!("ALTER {of} SET {} TO {}", setting_name(name), written_value(name, value))
}

/// Settings that are lists of names, in which each name is quoted (`GUC_LIST_QUOTE` of PostgreSQL): written as one text
/// they would be one name.
const LISTS: [&str; 6] = [
    "local_preload_libraries",
    "search_path",
    "session_preload_libraries",
    "shared_preload_libraries",
    "temp_tablespaces",
    "unix_socket_directories",
];

fn written_value(name: &str, value: &str) -> String {
    if !LISTS.contains(&name.to_ascii_lowercase().as_str()) {
        return quote_text(value);
    }
    match names(value) {
        all if all.is_empty() => "''".to_owned(),
        all => quote_texts(all),
    }
}

/// The names in a list of them.
fn names(list: &str) -> Vec<String> {
    let (mut all, mut name, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = list.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                name.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(std::mem::take(&mut name)),
            letter if letter.is_whitespace() && !quoted => {}
            letter => name.push(letter),
        }
    }
    all.push(name);
    all.retain(|name| !name.is_empty());
    all
}

/// Names of extensions have a point in them.
fn setting_name(name: &str) -> String {
    let parts: Vec<String> = name.split('.').map(quote_identifier).collect();
    parts.join(".")
}

impl Keepsakes {
    /// As a text, to be kept in between.
    pub(crate) fn written(&self) -> Result<Secret, Failure> {
        let text = serde_json::to_string(self);
        text.map(Secret::new).map_err(|error| Failure::internal(format!("what is kept: {error}")))
    }

    /// What was written.
    pub(crate) fn read(text: &Secret) -> Result<Keepsakes, Failure> {
        serde_json::from_str(text.reveal())
            .map_err(|error| Failure::internal(format!("what was kept is damaged: {error}")))
    }
}

#[cfg(test)]
mod tests;
