//! What goes with a dSource or VDB that is removed, and whether its user means it.

use super::Session;
use offshoot_api::SnapshotKind;
use offshoot_types::{ErrorKind, Failure};
use std::io::{self, BufRead, IsTerminal, Write};

/// How many names of a kind are shown.
const SHOWN: usize = 8;

/// Says what goes with objects and, on a terminal, asks whether to go on unless `yes` says so already. Scripts are
/// never asked: they have no terminal, or want a document.
///
/// # Errors
/// `Cancelled` where the user does not mean it; those of looking.
pub fn confirm(session: &Session, verb: &str, names: &[&str], yes: bool) -> Result<(), Failure> {
    confirm_with(session, verb, &names.join("', '"), names, yes)
}

/// The same of something that several objects go with.
///
/// # Errors
/// As [`confirm`].
pub fn confirm_with(
    session: &Session,
    verb: &str,
    name: &str,
    objects: &[&str],
    yes: bool,
) -> Result<(), Failure> {
    if yes || session.output.json {
        return Ok(());
    }
    let losses = objects.iter().map(|object| losses(session, object));
    let losses = losses.collect::<Result<String, Failure>>()?;
    ask(&losses, &format!("{verb} '{name}'"), name)
}

/// Says something and, on a terminal, asks whether to go on; nobody else is asked. What is refused leaves `name` as it is.
///
/// # Errors
/// `Cancelled` where the user does not mean it.
pub fn ask(said: &str, question: &str, name: &str) -> Result<(), Failure> {
    let mut stderr = io::stderr();
    // Nothing can be done about a closed stderr.
    let _ = stderr.write_all(said.as_bytes());
    if !io::stdin().is_terminal() || !stderr.is_terminal() {
        return Ok(());
    }
    let _ = write!(stderr, "{question}? [y/N] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    if read.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        return Ok(());
    }
    let message = format!("'{name}' stays as it is");
    Err(Failure::new(ErrorKind::Cancelled, message, "answer y, or give --yes"))
}

/// What goes with an object, a line each; nothing where nothing does.
fn losses(session: &Session, name: &str) -> Result<String, Failure> {
    let client = &session.client;
    let snapshots = client.list_snapshots(Some(name))?.snapshots.into_iter();
    let manual = snapshots.filter(|one| one.kind == SnapshotKind::Manual);
    let bookmarks = client.list_bookmarks()?.bookmarks.into_iter();
    let vdbs = client.list_vdbs()?.vdbs.into_iter();
    let gone = [
        line("bookmarks", bookmarks.filter(|one| one.object == name).map(|one| one.name)),
        line("snapshots taken on demand", manual.map(|one| one.id.to_string())),
    ]
    .concat();
    let children = vdbs.filter(|one| one.parent == name).map(|one| one.name);
    let orphans = line("VDBs that stay, but can no longer be refreshed", children);
    let with = if gone.is_empty() { gone } else { format!("with '{name}' go\n{gone}") };
    Ok(with + &orphans)
}

fn line(what: &str, names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => String::new(),
        count if count > SHOWN => format!("  {what}: {shown} and {} more\n", count - SHOWN),
        _ => format!("  {what}: {shown}\n"),
    }
}
