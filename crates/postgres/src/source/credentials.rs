//! Passwords and where they come from.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Password, SourceAddress};

/// The password that the environment of this process has for an address: `PGPASSWORD`, otherwise
/// the first matching line of `PGPASSFILE` or `~/.pgpass`.
pub(super) fn from_surroundings(address: &SourceAddress) -> Option<Password> {
    if let Ok(secret) = std::env::var("PGPASSWORD")
        && !secret.is_empty()
    {
        return Some(Password::new(secret));
    }
    let file = std::env::var_os("PGPASSFILE")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".pgpass")))?;
    from_file(&file, address)
}

/// Looks an address up in a password file. Like libpq, a file that others may read is not used.
pub(super) fn from_file(path: &Path, address: &SourceAddress) -> Option<Password> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.is_file() {
        return None;
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        tracing::warn!(file = %path.display(), "not used: others may read it; chmod 0600 it");
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| matching(line, address))
}

/// The password of a `host:port:database:user:password` line if it is for this address.
fn matching(line: &str, address: &SourceAddress) -> Option<Password> {
    let fields = split_fields(line);
    let [host, port, database, user, password] = fields.as_slice() else { return None };
    // libpq looks up a socket in the default directory as "localhost".
    let wanted_host = if address.host.starts_with('/') { "localhost" } else { &address.host };
    let is = |field: &String, wanted: &str| field == "*" || field == wanted;
    (is(host, wanted_host) || *host == address.host)
        .then_some(())
        .filter(|()| is(port, &address.port.to_string()))
        .filter(|()| is(database, &address.database) && is(user, &address.user))
        .map(|()| Password::new(password.clone()))
}

/// Splits at colons into at most five fields; a backslash takes the next character literally.
fn split_fields(line: &str) -> Vec<String> {
    let (mut fields, mut field) = (Vec::new(), String::new());
    let mut chars = line.trim_end_matches(['\r', '\n']).chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => field.extend(chars.next()),
            ':' if fields.len() < 4 => fields.push(std::mem::take(&mut field)),
            char => field.push(char),
        }
    }
    fields.push(field);
    fields
}
