//! The password of a source, looked for where users of PostgreSQL keep it.

use crate::source::SourceUri;
use offshoot_api::Secret;
use offshoot_types::{ErrorKind, Failure};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Looks in the named file, the URI, PGPASSWORD and the password file, in this order.
pub fn find(file: Option<&Path>, source: &SourceUri) -> Result<Option<Secret>, Failure> {
    if let Some(file) = file {
        return read_file(file).map(Some);
    }
    if let Some(password) = &source.password {
        eprintln!(
            "warning: a password in the command line can be seen by every user of this host; use \
             --password-file, PGPASSWORD or ~/.pgpass"
        );
        return Ok(Some(Secret::new(password)));
    }
    if let Some(password) = of_environment() {
        return Ok(Some(password));
    }
    Ok(password_file().and_then(|file| search_file(&file, source)))
}

/// Looks in the named file and PGPASSWORD, for a source whose URI is not known here.
pub fn given(file: Option<&Path>) -> Result<Option<Secret>, Failure> {
    match file {
        Some(file) => read_file(file).map(Some),
        None => Ok(of_environment()),
    }
}

fn of_environment() -> Option<Secret> {
    std::env::var("PGPASSWORD").ok().filter(|text| !text.is_empty()).map(Secret::new)
}

fn read_file(file: &Path) -> Result<Secret, Failure> {
    let hint = "name a file whose first line is the password";
    let text = std::fs::read_to_string(file).map_err(|error| {
        let message = format!("the password file {} cannot be read: {error}", file.display());
        Failure::new(ErrorKind::InvalidInput, message, hint)
    })?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(Secret::new(line)),
        _ => {
            let message = format!("the first line of {} is empty", file.display());
            Err(Failure::new(ErrorKind::InvalidInput, message, hint))
        }
    }
}

fn password_file() -> Option<PathBuf> {
    let named = std::env::var_os("PGPASSFILE").filter(|file| !file.is_empty());
    named
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pgpass")))
}

/// Searches a password file by the rules of PostgreSQL: the first line that fits counts, and a file that
/// others may read is not used.
fn search_file(file: &Path, source: &SourceUri) -> Option<Secret> {
    let text = std::fs::read_to_string(file).ok()?;
    let mode = std::fs::metadata(file).ok()?.permissions().mode();
    if mode & 0o077 != 0 {
        eprintln!(
            "warning: {} is not used, as others may read it; fix it with: chmod 0600 {}",
            file.display(),
            file.display()
        );
        return None;
    }
    search(&text, &source.search_fields()).map(Secret::new)
}

fn search(text: &str, [host, port, database, user]: &[String; 4]) -> Option<String> {
    // A base backup connects to the pseudo-database "replication", so its lines count as well.
    let lines = text.lines().filter(|line| !line.starts_with('#')).map(split_line);
    lines.into_iter().find_map(|fields| {
        let [at_host, at_port, at_database, at_user, password] = fields?;
        let fits = |pattern: &str, value: &str| pattern == "*" || pattern == value;
        (fits(&at_host, host)
            && fits(&at_port, port)
            && (fits(&at_database, database) || at_database == "replication")
            && fits(&at_user, user))
        .then_some(password)
    })
}

/// The five fields of a line; `\` takes the meaning from `:` and `\`. The last field runs to the end of
/// the line.
fn split_line(line: &str) -> Option<[String; 5]> {
    let mut fields: [String; 5] = Default::default();
    let mut index = 0;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => fields[index].extend(characters.next()),
            ':' if index < 4 => index += 1,
            other => fields[index].push(other),
        }
    }
    (index == 4).then_some(fields)
}

#[cfg(test)]
mod tests;
