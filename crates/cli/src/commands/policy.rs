//! `offshoot policy …`

use super::Session;
use crate::args::{PolicyCommand, PolicySetArgs};
use crate::output::{Fields, duration, or_dash, size, table, word};
use offshoot_api::{Policy, SetPolicy};
use offshoot_types::Failure;

/// Runs one command.
pub fn run(session: &Session, command: PolicyCommand) -> Result<(), Failure> {
    let client = &session.client;
    match command {
        PolicyCommand::Show { name: None } => {
            session.output.print(&client.list_policies()?, |list| list_text(&list.policies));
        }
        PolicyCommand::Show { name: Some(name) } => {
            session.output.print(&client.show_policy(&name)?, show_text);
        }
        PolicyCommand::Set(args) => {
            let request = request(&args);
            session.output.print(&client.set_policy(&args.name, &request)?, show_text);
        }
    }
    Ok(())
}

fn request(args: &PolicySetArgs) -> SetPolicy {
    let change = &args.change;
    SetPolicy {
        snapshot_every_ms: change.snapshot_every.map(|choice| choice.0),
        keep_all_ms: change.keep_all,
        hourly_ms: change.hourly,
        daily_ms: change.daily,
        weekly_ms: change.weekly,
        log_ms: change.log,
        quota_bytes: change.quota.map(|choice| choice.0),
        warm: change.warm,
        open_within_ms: change.open_within,
    }
}

fn every(policy: &Policy) -> String {
    policy.snapshot_every_ms.map_or_else(|| "never".to_owned(), duration)
}

fn reach(ms: u64) -> Option<String> {
    Some(ms).filter(|ms| *ms > 0).map(duration)
}

fn show_text(policy: &Policy) -> String {
    let none = || "none".to_owned();
    let reach = |ms| reach(ms).unwrap_or_else(none);
    Fields::default()
        .add("name", &policy.name)
        .add("kind", word(&policy.kind))
        .add("snapshot every", every(policy))
        .add("keep all for", reach(policy.keep_all_ms))
        .add("one an hour for", reach(policy.hourly_ms))
        .add("one a day for", reach(policy.daily_ms))
        .add("one a week for", reach(policy.weekly_ms))
        .add("log for", reach(policy.log_ms))
        .add("quota", policy.quota_bytes.map_or_else(none, size))
        .add_some("warm copies", Some(policy.warm).filter(|warm| *warm > 0))
        .add_some("moments open in", Some(policy.open_within_ms).filter(|ms| *ms > 0).map(duration))
        .text()
}

fn list_text(policies: &[Policy]) -> String {
    if policies.is_empty() {
        return "there is nothing yet; link a source with: offshoot dsource link".to_owned();
    }
    let row = |policy: &Policy| {
        vec![
            policy.name.clone(),
            word(&policy.kind),
            every(policy),
            or_dash(reach(policy.keep_all_ms)),
            or_dash(reach(policy.hourly_ms)),
            or_dash(reach(policy.daily_ms)),
            or_dash(reach(policy.weekly_ms)),
            or_dash(reach(policy.log_ms)),
            or_dash(policy.quota_bytes.map(size)),
        ]
    };
    let heads = ["name", "kind", "every", "keep all", "hourly", "daily", "weekly", "log", "quota"];
    table(&heads, policies.iter().map(row).collect())
}
