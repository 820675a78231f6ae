//! What an error of the source means for the user, and how to fix it.

use offshoot_types::{ErrorKind, Failure};
use std::error::Error;
use tokio_postgres::error::SqlState;

use super::wire::Breach;
use super::{Source, SourceAddress, TlsMode};

/// How to give a password.
const GIVE_PASSWORD: &str = "give the right one with --password-file, PGPASSWORD or ~/.pgpass; for a dSource that is \
                             there: offshoot dsource set NAME --password-file FILE";

/// Explains why a session could not be opened.
pub(super) fn of_connect(
    error: &tokio_postgres::Error,
    source: &Source,
    breach: Option<&Breach>,
) -> Failure {
    let address = &source.address;
    let Some(database_error) = error.as_db_error() else {
        if let Some(breach) = breach {
            return of_breach(*breach, address);
        }
        let text = chain(error);
        if text.contains("password missing") {
            return refused(
                format!("{address} asks for a password, and none was given"),
                GIVE_PASSWORD,
            );
        }
        return of_tls(&text, address).unwrap_or_else(|| unreachable(address, &text));
    };
    let text = database_error.message();
    let code = database_error.code();
    if *code == SqlState::INVALID_PASSWORD {
        wrong_password(address)
    } else if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION {
        not_admitted(address, text)
    } else if *code == SqlState::UNDEFINED_DATABASE {
        refused(
            format!("{address}: {text}"),
            "name an existing database in the URI, for example /postgres",
        )
    } else if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        refused(
            format!("{address}: {text}"),
            format!(
                "GRANT CONNECT ON DATABASE {} TO {};",
                identifier(&address.database),
                identifier(&address.user)
            ),
        )
    } else if *code == SqlState::TOO_MANY_CONNECTIONS {
        refused(
            format!("{address}: {text}"),
            "free connections on the source, or raise max_connections there",
        )
    } else if *code == SqlState::CANNOT_CONNECT_NOW || *code == SqlState::ADMIN_SHUTDOWN {
        unreachable(address, text)
    } else {
        refused(format!("{address}: {text}"), "")
    }
}

/// Explains what a source did that no source may.
fn of_breach(breach: Breach, address: &SourceAddress) -> Failure {
    if breach != Breach::Exposed {
        let hint = "check that host and port in the URI are those of a PostgreSQL server";
        return refused(format!("{address}: {breach}"), hint);
    }
    let user = identifier(&address.user);
    refused(
        format!("{address}: {breach}, and without TLS anybody on the way could read it"),
        format!(
            "on the source: SET password_encryption = 'scram-sha-256'; ALTER ROLE {user} PASSWORD '…'; and \
             scram-sha-256 in pg_hba.conf; or insist on TLS with sslmode=verify-full&sslrootcert=FILE in the URI"
        ),
    )
}

/// Explains why a statement failed.
pub(super) fn of_statement(
    error: &tokio_postgres::Error,
    source: &Source,
    breach: Option<&Breach>,
) -> Failure {
    let address = &source.address;
    match error.as_db_error() {
        None => match breach {
            Some(breach) => of_breach(*breach, address),
            None => unreachable(address, &chain(error)),
        },
        Some(error) if *error.code() == SqlState::ADMIN_SHUTDOWN => {
            unreachable(address, error.message())
        }
        Some(error) => {
            let hint = error.hint().unwrap_or_default();
            refused(format!("{address}: {}", error.message()), hint)
        }
    }
}

/// Explains what one of the database's own tools printed before it failed.
pub(crate) fn of_tool(stderr: &str, address: &SourceAddress) -> Failure {
    let says = |part: &str| stderr.contains(part);
    let line = last_message(stderr);
    if says("No space left on device") || says("Disk quota exceeded") {
        Failure::pool_full(format!("the pool has no room: {line}"))
    } else if says("password authentication failed") {
        wrong_password(address)
    } else if says("authentication method requirement") {
        of_breach(Breach::Exposed, address)
    } else if says("fe_sendauth: no password supplied") {
        refused(format!("{address} asks for a password, and none was given"), GIVE_PASSWORD)
    } else if says("no pg_hba.conf entry") || says("pg_hba.conf rejects") {
        not_admitted(address, stderr)
    } else if says("replication role")
        || says("permission denied to start WAL sender")
        || says("permission denied to use replication slots")
    {
        no_replication(address)
    } else if says("max_wal_senders") {
        refused(
            format!("{address}: all WAL senders are in use"),
            "ALTER SYSTEM SET max_wal_senders = 20; then restart the source",
        )
    } else if let Some(failure) = of_tls(line, address) {
        failure
    } else if says("could not create file") || says("could not create directory") {
        // Files are created here, under the names that the source sends.
        refused(format!("{address}: {line}"), "check the engine's host: disk, permissions")
    } else if UNREACHABLE.iter().any(|part| says(part)) {
        unreachable(address, line)
    } else {
        refused(format!("{address}: {line}"), "")
    }
}

/// What libpq and the server say when there is no (longer a) connection.
const UNREACHABLE: [&str; 14] = [
    "Connection refused",
    "could not translate host name",
    "timeout expired",
    "No route to host",
    "Network is unreachable",
    "Connection timed out",
    "Connection reset by peer",
    "No such file or directory",
    "server closed the connection unexpectedly",
    "terminating connection due to",
    "the database system is",
    "could not receive data",
    "could not send",
    "disconnected",
];

/// What libpq and the TLS library say when there is no TLS with the server, and how to fix it.
const TLS: [(&str, &str); 9] = [
    (
        "does not support",
        "turn it on there: ALTER SYSTEM SET ssl = on; or leave sslmode out of the URI",
    ),
    ("UnknownIssuer", VOUCH),
    ("CaUsedAsEndEntity", VOUCH),
    ("certificate verify failed", VOUCH),
    ("NotValidForName", NAME),
    ("not valid for name", NAME),
    ("does not match host name", NAME),
    ("Expired", "renew the source's certificate"),
    (
        "certificate",
        "check the source's certificate (ssl_cert_file) and sslrootcert, sslcert and sslkey",
    ),
];
const VOUCH: &str =
    "give with sslrootcert the file of the authority that signed the source's certificate";
const NAME: &str = "name the host in the URI as the source's certificate does (subject alternative \
                    name), or use sslmode=verify-ca";

/// Explains why there is no TLS with the source; `None`: the text is about something else.
fn of_tls(text: &str, address: &SourceAddress) -> Option<Failure> {
    let about = ["TLS", "SSL", "certificate"].iter().any(|part| text.contains(part));
    let hint = TLS.iter().find(|(part, _)| about && text.contains(part)).map(|(_, hint)| *hint);
    hint.map(|hint| refused(format!("{address}: {text}"), hint))
}

/// The role lacks REPLICATION.
pub(super) fn no_replication(address: &SourceAddress) -> Failure {
    refused(
        format!("{address}: the role {} may not replicate", address.user),
        format!("ALTER ROLE {} REPLICATION;", identifier(&address.user)),
    )
}

fn wrong_password(address: &SourceAddress) -> Failure {
    refused(format!("{address}: the password of {} is wrong", address.user), GIVE_PASSWORD)
}

/// The server's host-based rules admit no such connection.
fn not_admitted(address: &SourceAddress, text: &str) -> Failure {
    if !text.contains("pg_hba.conf") {
        return refused(
            format!("{address}: {}", last_message(text)),
            format!(
                "check the role on the source: CREATE ROLE {} LOGIN REPLICATION PASSWORD '…';",
                identifier(&address.user)
            ),
        );
    }
    let wants_tls = text.contains("no encryption") || text.contains("SSL off");
    if wants_tls && matches!(address.tls, TlsMode::Disable) {
        return refused(
            format!("{address}: pg_hba.conf of the source does not admit this without TLS"),
            "leave sslmode=disable out of the URI, or ask for sslmode=require",
        );
    }
    let replication = text.contains("replication connection");
    let database =
        if replication { "replication".to_owned() } else { quote_rule(&address.database) };
    let kind = if replication { "replication connections" } else { "connections" };
    let user = quote_rule(&address.user);
    let rule = match quoted_after(text, "host \"") {
        Some("[local]") | None if address.host.starts_with('/') => {
            format!("local {database} {user} scram-sha-256")
        }
        Some(client) => {
            let bits = if client.contains(':') { 128 } else { 32 };
            format!("host {database} {user} {client}/{bits} scram-sha-256")
        }
        None => format!("host {database} {user} all scram-sha-256"),
    };
    refused(
        format!("{address}: pg_hba.conf of the source does not admit {kind} of {}", address.user),
        format!("add to pg_hba.conf of the source: {rule}   then: SELECT pg_reload_conf();"),
    )
}

pub(crate) fn unreachable(address: &SourceAddress, why: &str) -> Failure {
    Failure::new(
        ErrorKind::SourceUnreachable,
        short(format!("cannot reach {address}: {why}")),
        "check that the server runs, host and port are right, it listens there \
         (listen_addresses), and no firewall is between",
    )
}

pub(super) fn refused(message: impl Into<String>, hint: impl Into<String>) -> Failure {
    let (message, hint) = (short(message.into()), short(hint.into()));
    Failure::new(ErrorKind::SourceRefused, message, hint)
}

/// A text of ours that quotes a source, which may say as much as it likes.
fn short(mut text: String) -> String {
    const BYTES_MAX: usize = 4 << 10;
    if text.len() > BYTES_MAX {
        text.truncate(text.floor_char_boundary(BYTES_MAX));
        text.push('…');
    }
    text
}

/// An error with its causes, which the outermost text does not contain.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}

/// The last line that gives a reason, without the tool's name and level.
fn last_message(stderr: &str) -> &str {
    let lines = || stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let says_why = |line: &&str| line.contains("error:") || line.contains("FATAL:");
    let chosen = lines()
        .filter(says_why)
        .rfind(|line| !line.ends_with("error: disconnected"))
        .or_else(|| lines().next_back());
    let line = chosen.unwrap_or("no reason given");
    line.split_once(" error: ").map_or(line, |(_, rest)| rest)
}

/// The text between a prefix that ends in a quote and the next quote.
fn quoted_after<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(prefix)?;
    Some(rest.split_once('"')?.0)
}

/// Quotes a name for pg_hba.conf, where a bare `all` or `replication` would mean more.
fn quote_rule(name: &str) -> String {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let keyword = ["all", "replication", "sameuser", "samerole", "samegroup"].contains(&name);
    if plain && !keyword { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Quotes a name as an SQL identifier if necessary.
pub(crate) fn identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}
