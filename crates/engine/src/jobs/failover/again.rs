//! VDBs that are made again of the copies of what they were on the engine that is taken over.

use super::Taken;
use crate::history::names;
use crate::jobs::provision::{self, Input};
use crate::parts::Parts;
use offshoot_domain::{Owner, Parent, Replica, SentVdb, User, Vdb};
use offshoot_types::{Failure, JobId};
use std::sync::Arc;

/// A choice of its users, with what the VDB has where this host cannot give it.
type Choice = (&'static str, fn(&mut Input, &SentVdb));

const CHOICES: [Choice; 4] = [
    ("the usual limit of memory", |input, sent| input.memory_bytes = sent.memory_bytes),
    ("the usual settings", |input, sent| input.settings.clone_from(&sent.settings)),
    ("no gateway", |input, sent| input.gateway.clone_from(&sent.gateway)),
    ("another port", |input, sent| input.port = Some(sent.port).filter(|port| *port != 0)),
];

/// Has a VDB made again of its copy, by a job of its own; says what becomes of it. One that cannot be made keeps nobody
/// from what else is taken over.
pub fn make(parts: &Arc<Parts>, one: &Taken) -> Vec<String> {
    let (copy, name) = (&one.from, &one.to);
    match submit(parts, one) {
        Ok((job, missing)) => {
            let made = format!(
                "'{copy}' is the last state of a VDB, which is made again as '{name}' ({job})"
            );
            let missing = missing.into_iter().map(|what| format!("'{name}' {what}"));
            [made].into_iter().chain(missing).collect()
        }
        Err(why) => vec![format!(
            "'{copy}' is the last state of a VDB, which is not made again as '{name}': {}. By hand: offshoot vdb provision \
             NAME --from {copy}",
            why.message
        )],
    }
}

/// The job, and what the VDB does not have that it had.
fn submit(parts: &Arc<Parts>, one: &Taken) -> Result<(JobId, Vec<String>), Failure> {
    names::check_free(parts, &one.to)?;
    let parent = Parent { owner: Owner::Dsource(one.id), name: one.from.clone() };
    let vdb = parts.catalog.allocate::<Vdb>()?;
    let latest = Input::of_latest(parts, vdb, one.to.clone(), parent);
    let plain = Input { password_of: Some(one.id), ..latest };
    let sent = parts.catalog.find::<Replica>(one.id)?.and_then(|replica| replica.vdb);
    let (input, missing) = match sent {
        Some(sent) => as_it_was(parts, plain, &sent)?,
        None => (plain, Vec::new()),
    };
    Ok((provision::submit(parts, input)?, missing))
}

fn as_it_was(parts: &Parts, plain: Input, sent: &SentVdb) -> Result<(Input, Vec<String>), Failure> {
    provision::check_input(parts, &plain)?;
    let mut missing = Vec::new();
    let mut input = Input {
        keep_source_logins: sent.keep_source_logins,
        superuser: sent.superuser,
        keep_foreign_servers: sent.keep_foreign_servers,
        stopped: sent.stopped,
        care: sent.care.clone(),
        refresh_keeps: sent.refresh_keeps.clone(),
        policy: Some(sent.policy),
        ..plain
    };
    let mut choose = |otherwise: &str, chosen: &dyn Fn(&mut Input)| {
        let mut candidate = input.clone();
        chosen(&mut candidate);
        match provision::check_input(parts, &candidate) {
            Ok(()) => input = candidate,
            Err(why) => missing.push(format!("has {otherwise}: {}", why.message)),
        }
    };
    for (otherwise, chosen) in CHOICES {
        choose(otherwise, &|input| chosen(input, sent));
    }
    if let Some(name) = &sent.owner {
        match parts.catalog.find_named::<User>(name)? {
            Some(user) => choose("no owner", &|input| input.user = Some(user.id)),
            None => missing.push("has no owner: there is no user of that name here".to_owned()),
        }
    }
    missing.extend(
        sent.left.iter().map(|what| format!("{} there, and does not here", what.as_text())),
    );
    // Those that are made at the same time may be given its port.
    Ok((Input { any_port: true, ..input }, missing))
}
