//! `offshoot failover`

use super::{Session, removal};
use crate::args::FailoverArgs;
use offshoot_api::FailOver;
use offshoot_types::Failure;

/// Runs the command.
pub fn run(session: &Session, args: FailoverArgs) -> Result<(), Failure> {
    let FailoverArgs { namespace, planned, force, rename, yes, job } = args;
    if !yes && !session.output.json {
        removal::ask(
            &copies(session, &namespace)?,
            &format!("take over from '{namespace}'"),
            &namespace,
        )?;
    }
    let rename = rename.into_iter().collect();
    let request = FailOver { name: namespace, planned, force, rename };
    let id = session.client.fail_over(&request)?;
    session.follow(id, job, |job| {
        let notes = job.notes.join("\n");
        session.done(&job, notes);
        Ok(())
    })
}

/// What is there of another engine, a line each.
fn copies(session: &Session, namespace: &str) -> Result<String, Failure> {
    let all = session.client.list_dsources()?.dsources;
    let line = |name: &String| format!("{name} is a copy of '{namespace}'\n");
    let within = |name: &&String| name.rsplit_once('/').is_some_and(|(of, _)| of == namespace);
    Ok(all.iter().map(|one| &one.name).filter(within).map(line).collect())
}
