//! `offshoot vdb hooks`, and the files of hooks.

use super::Session;
use crate::args::{HookArgs, HooksArgs};
use crate::output::{duration, or_dash, size, table, word, write_exactly};
use offshoot_api::{HookKind, HookText, NewHook, Secret, VdbHook};
use offshoot_types::{ErrorKind, Failure};
use std::io::Read;
use std::path::Path;

/// Shows the hooks of a VDB, or what one of them runs.
pub fn show(session: &Session, args: &HooksArgs) -> Result<(), Failure> {
    let mut all = session.client.vdb_hooks(&args.name)?;
    let Some(event) = args.event else {
        session.output.print(&all, |all| list(&all.name, &all.hooks));
        return Ok(());
    };
    all.hooks.retain(|hook| hook.event == event.0);
    let missing = |message: String, hint: String| Failure::new(ErrorKind::NotFound, message, hint);
    let event = word(&event.0);
    let hook = all.hooks.first().ok_or_else(|| {
        let hint = format!("give it one: offshoot vdb set {} --hook {event}=FILE", args.name);
        missing(format!("'{}' has no hook {event}", args.name), hint)
    })?;
    let text = text(hook).ok_or_else(|| {
        let hint = format!("give it again: offshoot vdb set {} --hook {event}=FILE", args.name);
        missing(format!("what the hook {event} runs went with a lost key"), hint)
    })?;
    match session.output.json {
        true => session.output.print(hook, |_| String::new()),
        false => write_exactly(text),
    }
    Ok(())
}

fn text(hook: &HookText) -> Option<&String> {
    hook.sql.as_ref().or(hook.program.as_ref())
}

fn list(name: &str, hooks: &[HookText]) -> String {
    if hooks.is_empty() {
        return format!(
            "'{name}' has no hooks; give it one: offshoot vdb set {name} --hook after-refresh=FILE"
        );
    }
    let row = |hook: &HookText| {
        vec![
            word(&hook.event),
            word(&hook.kind),
            or_dash(text(hook).map(|text| size(text.len() as u64))),
            or_dash(hook.database.clone()),
            duration(hook.time_limit_ms),
        ]
    };
    table(&["event", "kind", "size", "database", "time limit"], hooks.iter().map(row).collect())
}

/// A hook in one line.
pub fn in_short(hook: &VdbHook) -> String {
    let database = hook.database.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
    let (bytes, limit) = (size(hook.bytes), duration(hook.time_limit_ms));
    let kind = match hook.kind {
        HookKind::Sql => "SQL",
        HookKind::Program => "a program",
    };
    format!("{}: {kind}, {bytes}{database}, {limit} at most", word(&hook.event))
}

/// The hooks that a command line names, with what is in their files.
pub fn read(args: HookArgs) -> Result<Vec<NewHook>, Failure> {
    let HookArgs { hook, hook_database, hook_time_limit } = args;
    let one = |(event, file): (crate::args::EventArg, std::path::PathBuf)| {
        let text = contents(&file)?;
        // No SQL begins so.
        let (sql, program) = match text.starts_with("#!") {
            true => (None, Some(Secret::new(text))),
            false => (Some(Secret::new(text)), None),
        };
        Ok(NewHook {
            event: event.0,
            sql,
            program,
            database: hook_database.clone(),
            time_limit_ms: hook_time_limit,
        })
    };
    hook.into_iter().map(one).collect()
}

fn contents(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match file == Path::new("-") {
        true => std::io::stdin().read_to_string(&mut text).map(drop),
        false => std::fs::read_to_string(file).map(|whole| text = whole),
    };
    read.map_err(|error| {
        let message = format!("the hook {} cannot be read: {error}", file.display());
        Failure::new(
            ErrorKind::InvalidInput,
            message,
            "name a file with SQL, or a program, in UTF-8",
        )
    })?;
    Ok(text)
}
