//! `offshoot mask …`

mod keys;
mod looking;
mod report;

use super::Session;

use crate::args::{MaskApplyArgs, MaskCheckArgs, MaskCommand};
use crate::output::{Fields, duration, or_dash, seconds, table, word, write_exactly};
pub use looking::init;
use offshoot_api::{ApplyMask, Job, Mask, MaskTable};
use offshoot_types::{ErrorKind, Failure};
pub use report::verify_with;
use std::path::Path;

/// The longest file of rules that is read, in bytes.
const RULES_BYTES_MAX: u64 = 16 << 20;

/// Runs one command.
pub fn run(session: &Session, command: MaskCommand) -> Result<(), Failure> {
    let client = &session.client;
    match command {
        // They ask no engine, so they have run before.
        MaskCommand::Init(args) => init(&args, session.output),
        MaskCommand::Schema => schema(),
        MaskCommand::Discover(args) => looking::discover(session, args),
        MaskCommand::Preview(args) => looking::preview(session, &args),
        MaskCommand::Apply(args) => apply(session, args),
        MaskCommand::Check(args) => check(session, &args),
        MaskCommand::Report(args) => report::run(session, &args),
        MaskCommand::Key(command) => keys::run(session, &command),
        MaskCommand::Status { name: Some(name) } => {
            session.output.print(&client.show_mask(&name)?, show_text);
            Ok(())
        }
        MaskCommand::Status { name: None } => {
            session.output.print(&client.list_masks()?, |list| list_text(&list.masks));
            Ok(())
        }
    }
}

/// Prints the JSON schema of rulesets. It asks no engine.
pub fn schema() -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(&offshoot_masking::schema())
        .map_err(|error| Failure::internal(format!("the schema cannot be written: {error}")))?;
    write_exactly(&(text + "\n"));
    Ok(())
}

fn apply(session: &Session, args: MaskApplyArgs) -> Result<(), Failure> {
    let name = args.name.clone().unwrap_or_else(|| format!("{}-masked", args.from));
    let request = ApplyMask {
        from: args.from,
        name: args.name,
        snapshot: args.snapshot,
        rules: read(&args.rules)?,
        every_ms: args.every,
        full: args.full,
    };
    let job = session.client.apply_mask(&request)?;
    session.follow(job, args.job, |_| {
        session.output.print(&session.client.show_mask(&name)?, show_text);
        Ok(())
    })
}

fn check(session: &Session, args: &MaskCheckArgs) -> Result<(), Failure> {
    let request = ApplyMask {
        from: args.from.clone(),
        name: None,
        snapshot: None,
        rules: read(&args.rules)?,
        every_ms: None,
        full: false,
    };
    let job = session.client.check_mask(&request)?;
    session.follow(job, args.job, |job| checked(session, &job, args.strict))
}

fn checked(session: &Session, job: &Job, strict: bool) -> Result<(), Failure> {
    if strict && !job.notes.is_empty() {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            job.notes.join("; "),
            "add rules, or give such columns the algorithm 'keep'; remove rules that meet nothing",
        ));
    }
    let text = match job.notes.as_slice() {
        [] => "the rules fit, and no column that looks sensitive is without one".to_owned(),
        notes => format!("the rules fit\n{}", notes.join("\n")),
    };
    session.done(job, text);
    Ok(())
}

fn read(path: &Path) -> Result<String, Failure> {
    let failed = |why: String| {
        let message = format!("the rules {} cannot be read: {why}", path.display());
        Failure::new(
            ErrorKind::InvalidInput,
            message,
            "name a file with rules in YAML, JSON or TOML",
        )
    };
    let size = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
    if size > RULES_BYTES_MAX {
        return Err(failed(format!("it has more than {} MiB", RULES_BYTES_MAX >> 20)));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let rules = offshoot_masking::assemble(&text, &mut |list| read_list(path, list))?;
    match rules.len() as u64 > RULES_BYTES_MAX {
        true => {
            Err(failed(format!("with its lists it has more than {} MiB", RULES_BYTES_MAX >> 20)))
        }
        false => Ok(rules),
    }
}

/// A list that rules have in a file of its own, beside them.
fn read_list(rules: &Path, list: &str) -> Result<String, Failure> {
    let path = rules.parent().unwrap_or(Path::new("")).join(list);
    let failed = |why: String| {
        let message = format!("the list {} cannot be read: {why}", path.display());
        Failure::new(
            ErrorKind::InvalidInput,
            message,
            "name a file with one value on each line, by its path from the rules",
        )
    };
    let size = std::fs::metadata(&path).map_err(|error| failed(error.to_string()))?.len();
    if size > RULES_BYTES_MAX {
        return Err(failed(format!("it has more than {} MiB", RULES_BYTES_MAX >> 20)));
    }
    std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))
}

fn show_text(mask: &Mask) -> String {
    let mut text = Fields::default()
        .add("name", &mask.name)
        .add("source", &mask.source)
        .add("state", word(&mask.state))
        .add_some("snapshot", mask.snapshot)
        .add_some("masked at", mask.masked_at)
        .add_some("key", mask.key.as_ref())
        .add("renewed every", or_dash(mask.every_ms.map(duration)))
        .add("mode", word(&mask.mode))
        .add_some("masked in full because", mask.full_because.as_ref())
        .add("rows masked", mask.rows_masked)
        .add("rows per second", mask.rows_per_second)
        .add("values masked", mask.values_masked)
        .add("took", duration(mask.took_ms))
        .add_some("without a rule", lines(&mask.columns_without_rule))
        .add_some("rules that meet nothing", lines(&mask.idle_rules))
        .add_some("error", mask.error.as_ref().map(|error| &error.message))
        .add_some("hint", mask.error.as_ref().map(|error| &error.hint))
        .text();
    if !mask.tables.is_empty() {
        let row = |one: &MaskTable| vec![one.name.clone(), one.rows.to_string(), word(&one.state)];
        text.push('\n');
        text.push_str(&table(&["table", "rows", "state"], mask.tables.iter().map(row).collect()));
    }
    text
}

fn lines(of: &[String]) -> Option<String> {
    (!of.is_empty()).then(|| of.join("\n"))
}

fn list_text(masks: &[Mask]) -> String {
    if masks.is_empty() {
        return "nothing is masked; mask a dSource with: offshoot mask apply".to_owned();
    }
    let row = |mask: &Mask| {
        vec![
            mask.name.clone(),
            mask.source.clone(),
            word(&mask.state),
            or_dash(mask.snapshot.map(|snapshot| snapshot.to_string())),
            or_dash(mask.masked_at.map(seconds)),
            mask.rows_masked.to_string(),
            mask.columns_without_rule.len().to_string(),
        ]
    };
    let heads = ["name", "source", "state", "snapshot", "masked at", "rows", "without a rule"];
    table(&heads, masks.iter().map(row).collect())
}
