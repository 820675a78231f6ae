//! What a session has on its server that the next one must have, too.
//!
//! It is read by one query when a session is parked, and put back when it is opened anew. All names in that query are
//! qualified, operators too: what a session has in its search path cannot fool it. Values go back as parameters, never as
//! text of SQL.

use crate::customs::Customs;
use crate::messages::{error_words, put};
use crate::opening::LOGIN_BYTES_MAX;
use crate::wire::Server;
use std::io;

/// Most that is kept of a session, in bytes.
const BYTES_MAX: usize = 256 << 10;
/// Longest message of the answer, in bytes.
const FRAME_BYTES_MAX: usize = BYTES_MAX + 1024;

/// A row for each thing: what it is, its name, its value, and more of it.
const INSPECT: &str = "\
SELECT 'setting'::pg_catalog.text, name::pg_catalog.text, setting::pg_catalog.text, ''::pg_catalog.text \
FROM pg_catalog.pg_settings WHERE source OPERATOR(pg_catalog.=) 'session'::pg_catalog.text \
UNION ALL SELECT 'role'::pg_catalog.text, pg_catalog.current_setting('role'::pg_catalog.text), \
''::pg_catalog.text, ''::pg_catalog.text \
UNION ALL SELECT 'authorization'::pg_catalog.text, session_user::pg_catalog.text, ''::pg_catalog.text, \
''::pg_catalog.text \
UNION ALL SELECT CASE WHEN from_sql THEN 'sql'::pg_catalog.text ELSE 'protocol'::pg_catalog.text END, \
name::pg_catalog.text, statement::pg_catalog.text, pg_catalog.array_to_string(\
parameter_types::pg_catalog.oid[]::pg_catalog.text[], ','::pg_catalog.text) \
FROM pg_catalog.pg_prepared_statements \
UNION ALL SELECT 'channel'::pg_catalog.text, channel, ''::pg_catalog.text, ''::pg_catalog.text \
FROM pg_catalog.pg_listening_channels() AS listening (channel) \
UNION ALL SELECT 'temporary tables'::pg_catalog.text, ''::pg_catalog.text, ''::pg_catalog.text, \
''::pg_catalog.text WHERE EXISTS (SELECT FROM pg_catalog.pg_class \
WHERE relnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()) \
UNION ALL SELECT 'cursors'::pg_catalog.text, ''::pg_catalog.text, ''::pg_catalog.text, ''::pg_catalog.text \
WHERE EXISTS (SELECT FROM pg_catalog.pg_cursors WHERE is_holdable) \
UNION ALL SELECT 'advisory locks'::pg_catalog.text, ''::pg_catalog.text, ''::pg_catalog.text, \
''::pg_catalog.text WHERE EXISTS (SELECT FROM pg_catalog.pg_locks \
WHERE pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid() \
AND locktype OPERATOR(pg_catalog.=) 'advisory'::pg_catalog.text)";

/// What is carried over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    settings: Vec<(Vec<u8>, Vec<u8>)>,
    role: Vec<u8>,
    authorization: Vec<u8>,
    statements: Vec<Statement>,
    channels: Vec<Vec<u8>>,
}

/// A prepared statement.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Statement {
    /// By `PREPARE`, which `text` is.
    from_sql: bool,
    name: Vec<u8>,
    text: Vec<u8>,
    parameters: Vec<u32>,
}

/// What a session has, and what its server said meanwhile that is the client's.
#[derive(Debug, Default)]
pub(crate) struct Inspected {
    pub(crate) carried: Carried,
    pub(crate) aside: Vec<u8>,
}

/// Reads what a quiet session has. `into` has what the server said meanwhile even after an error.
///
/// # Errors
/// Why it cannot be carried over, to tell the client.
pub(crate) async fn inspect(
    server: &mut Server,
    customs: &Customs,
    into: &mut Inspected,
) -> Result<(), String> {
    let failed = |error: io::Error| format!("the session's state cannot be read: {error}");
    let mut query = Vec::new();
    let customs =
        customs.names().ok_or("the session may have settings of its own that no catalog lists")?;
    let customs: String = customs.map(inspect_custom).collect();
    put(&mut query, b'Q', &[INSPECT.as_bytes(), customs.as_bytes(), b"\0"]);
    server.send(&query).await.map_err(failed)?;
    let (mut bytes, mut error, mut described) = (0, None, false);
    loop {
        let frame = server.frame(FRAME_BYTES_MAX).await.map_err(failed)?;
        match frame.tag() {
            b'T' => described = true,
            b'D' if described => {
                bytes += frame.bytes.len();
                if bytes > BYTES_MAX {
                    return Err("the session has more state than can be carried over".to_owned());
                }
                let row = row(frame.body()).ok_or("the session's state cannot be read")?;
                if let Err(why) = into.carried.add(row) {
                    error.get_or_insert(why);
                }
            }
            b'A' | b'N' | b'S' => {
                if into.aside.len() + frame.bytes.len() > BYTES_MAX {
                    return Err("too much came for the session meanwhile".to_owned());
                }
                into.aside.extend_from_slice(&frame.bytes);
            }
            b'C' => {}
            b'Z' => return error.map_or(if described { Ok(()) } else { Err(busy()) }, Err),
            b'E' => {
                let words = error_words(frame.body());
                error = Some(format!("the session's state cannot be read: {words}"));
            }
            _ => return Err(busy()),
        }
    }
}

/// A row for a setting that no catalog lists. The name has nothing in it that SQL would take for anything else.
fn inspect_custom(name: &str) -> String {
    let value = format!("pg_catalog.current_setting('{name}'::pg_catalog.text, true)");
    format!(
        " UNION ALL SELECT 'setting'::pg_catalog.text, '{name}'::pg_catalog.text, {value}, \
         ''::pg_catalog.text WHERE {value} IS NOT NULL"
    )
}

fn busy() -> String {
    "the session was at work".to_owned()
}

type Row<'a> = [&'a [u8]; 4];

/// The four texts of a DataRow.
fn row(body: &[u8]) -> Option<Row<'_>> {
    let (count, mut rest) = body.split_first_chunk()?;
    if u16::from_be_bytes(*count) != 4 {
        return None;
    }
    let mut row: Row<'_> = [&[]; 4];
    for text in &mut row {
        let (length, after) = rest.split_first_chunk()?;
        // NULL is as good as empty.
        let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
        *text = after.get(..length)?;
        rest = &after[length..];
    }
    Some(row)
}

impl Carried {
    /// What a session has that nothing was sent in since its client logged in as `user`: what every login gives it.
    pub(crate) fn of_login(user: &[u8]) -> Carried {
        let (role, authorization) = (b"none".to_vec(), own_name(user).to_vec());
        Carried { role, authorization, ..Carried::default() }
    }

    /// Whether its client is to hear what is notified.
    pub(crate) fn listens(&self) -> bool {
        !self.channels.is_empty()
    }

    fn add(&mut self, [kind, name, value, more]: Row<'_>) -> Result<(), String> {
        match kind {
            b"setting" => {
                if !name.starts_with(b"transaction_") {
                    self.settings.push((name.to_vec(), value.to_vec()));
                }
            }
            b"role" => self.role = name.to_vec(),
            b"authorization" => self.authorization = name.to_vec(),
            b"channel" => self.channels.push(name.to_vec()),
            b"sql" if !is_prepare(value) => {
                let name = String::from_utf8_lossy(name);
                return Err(format!("the prepared statement {name} cannot be carried over"));
            }
            b"sql" | b"protocol" => self.statements.push(Statement {
                from_sql: kind == b"sql",
                name: name.to_vec(),
                text: value.to_vec(),
                parameters: oids(more).ok_or("a prepared statement has unknown parameters")?,
            }),
            other => {
                let what = String::from_utf8_lossy(other);
                return Err(format!("the session has {what}, which cannot be carried over"));
            }
        }
        Ok(())
    }

    /// The messages that put it back for a client that logged in as `user`, and how often the server will say
    /// ReadyForQuery.
    fn restore(&self, user: &[u8]) -> (Vec<u8>, usize) {
        let mut out = Vec::new();
        let is_encoding = |name: &[u8]| name == b"client_encoding";
        // Everything below is in this encoding.
        for (name, value) in self.settings.iter().filter(|(name, _)| is_encoding(name)) {
            set(&mut out, name, value);
        }
        put(&mut out, b'S', &[]);
        for (name, value) in self.settings.iter().filter(|(name, _)| !is_encoding(name)) {
            set(&mut out, name, value);
        }
        if self.authorization != own_name(user) {
            set(&mut out, b"session_authorization", &self.authorization);
        }
        if self.role != b"none" {
            set(&mut out, b"role", &self.role);
        }
        for statement in &self.statements {
            statement.restore(&mut out);
        }
        for channel in &self.channels {
            let quoted: Vec<u8> = channel
                .iter()
                .flat_map(|byte| std::iter::repeat_n(*byte, if *byte == b'"' { 2 } else { 1 }))
                .collect();
            execute(&mut out, &[b"LISTEN \"", &quoted[..], b"\""].concat(), &[]);
        }
        put(&mut out, b'S', &[]);
        (out, 2)
    }
}

impl Statement {
    fn restore(&self, out: &mut Vec<u8>) {
        if self.from_sql {
            return execute(out, &self.text, &[]);
        }
        let oids: Vec<u8> = self.parameters.iter().flat_map(|oid| oid.to_be_bytes()).collect();
        let count = (self.parameters.len() as u16).to_be_bytes();
        put(out, b'P', &[&self.name, b"\0", &self.text, b"\0", &count, &oids]);
    }
}

/// Puts the state back. What the server tells of its parameters meanwhile goes to `told`; what else is the client's is
/// returned.
///
/// # Errors
/// The server's words.
pub(crate) async fn restore(
    server: &mut Server,
    carried: &Carried,
    user: &[u8],
    mut told: impl FnMut(&[u8]),
) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| format!("the session's state cannot be put back: {error}");
    let (messages, mut awaited) = carried.restore(user);
    let mut aside = Vec::new();
    // The answers are short: they find room on the way back while this is written.
    server.send(&messages).await.map_err(failed)?;
    while awaited > 0 {
        let frame = server.frame(LOGIN_BYTES_MAX).await.map_err(failed)?;
        match frame.tag() {
            b'E' => return Err(error_words(frame.body())),
            b'S' => told(frame.body()),
            b'A' if aside.len() < BYTES_MAX => aside.extend_from_slice(&frame.bytes),
            b'Z' => awaited -= 1,
            _ => {}
        }
    }
    Ok(aside)
}

fn set(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    execute(out, b"SELECT pg_catalog.set_config($1, $2, false)", &[name, value]);
}

/// One statement by the extended protocol, which refuses several in one text.
fn execute(out: &mut Vec<u8>, sql: &[u8], parameters: &[&[u8]]) {
    put(out, b'P', &[b"\0", sql, b"\0\0\0"]);
    let mut bind = b"\0\0\0\0".to_vec();
    bind.extend((parameters.len() as u16).to_be_bytes());
    for parameter in parameters {
        bind.extend((parameter.len() as u32).to_be_bytes());
        bind.extend_from_slice(parameter);
    }
    bind.extend_from_slice(b"\0\0");
    put(out, b'B', &[&bind]);
    put(out, b'E', &[b"\0\0\0\0\0"]);
}

/// The role that a client logs in as: the server cuts a name that is too long.
fn own_name(user: &[u8]) -> &[u8] {
    &user[..user.len().min(63)]
}

/// Whether a text is a `PREPARE`: what else it could be must not be run again.
fn is_prepare(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    text.get(..7).is_some_and(|word| word.eq_ignore_ascii_case(b"prepare"))
        && text.get(7).is_some_and(u8::is_ascii_whitespace)
}

fn oids(text: &[u8]) -> Option<Vec<u32>> {
    let text = std::str::from_utf8(text).ok()?;
    let parts = text.split(',').filter(|part| !part.is_empty());
    let oids: Option<Vec<u32>> = parts.map(|part| part.parse().ok()).collect();
    oids.filter(|oids| u16::try_from(oids.len()).is_ok())
}

#[cfg(test)]
mod tests;
