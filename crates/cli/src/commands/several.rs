//! One command on several objects: the same job for each, all at the same time.

use super::Session;
use crate::args::JobArgs;
use crate::output::FAILED;
use offshoot_api::{ErrorBody, Job};
use offshoot_types::{Failure, JobId};
use serde::Serialize;
use std::fmt;

/// What became of all of them.
#[derive(Serialize)]
struct Results {
    results: Vec<OneResult>,
}

/// What became of one of them. Only one of these is there.
#[derive(Serialize)]
struct OneResult {
    name: String,
    /// The job that was begun, with `--detach`.
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<JobId>,
    /// The job that has done it.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<Job>,
    #[serde(flatten)]
    error: Option<ErrorBody>,
}

/// What shows an object by its name.
type Show = fn(&Session, &str) -> Result<(), Failure>;

/// Begins a job for each object and waits for all. For one alone, `one` says what became of it; of several, each is `done`, or
/// why it is not is said, and the program fails at the end. One that fails holds up no other.
///
/// # Errors
/// Those of a single object.
fn each<T: Copy + PartialEq + fmt::Display>(
    session: &Session,
    (names, args): (&[T], JobArgs),
    done: &str,
    begin: impl Fn(T) -> Result<JobId, Failure>,
    one: impl FnOnce(T, JobId) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if let [name] = *names {
        return one(name, begin(name)?);
    }
    let again = |at: usize, name: &T| names.iter().take(at).any(|one| one == name);
    let names = names.iter().enumerate().filter(|(at, name)| !again(*at, name));
    let begun: Vec<_> = names.map(|(_, name)| (*name, begin(*name))).collect();
    let mut results = Vec::new();
    for (name, begun) in begun {
        let (mut job_id, mut job, mut error) = (None, None, None);
        let ended = begun.and_then(|id| {
            let ended = (!args.detach).then(|| session.wait(id)).transpose()?;
            Ok((id, ended))
        });
        match ended {
            Ok((id, None)) => {
                session.tell(&format!("{name}: {id}"));
                job_id = Some(id);
            }
            Ok((_, ended)) => {
                session.tell(&format!("{name} is {done}"));
                job = ended;
            }
            Err(failure) => {
                if !session.output.json {
                    let message = format!("{name}: {}", failure.message);
                    session.output.failure(&Failure { message, ..failure.clone() });
                }
                error = Some(ErrorBody::from(failure));
            }
        }
        results.push(OneResult { name: name.to_string(), job_id, job, error });
    }
    let failed = results.iter().any(|one| one.error.is_some());
    if session.output.json {
        session.output.print(&Results { results }, |_| String::new());
    }
    if failed {
        // Everything is said.
        std::process::exit(i32::from(FAILED));
    }
    Ok(())
}

/// The same of objects of which one alone is shown when it is done.
///
/// # Errors
/// Those of a single object.
pub fn each_shown(
    session: &Session,
    names: &[&str],
    (args, show): (JobArgs, Show),
    done: &str,
    begin: impl Fn(&str) -> Result<JobId, Failure>,
) -> Result<(), Failure> {
    each(session, (names, args), done, begin, |name, job| {
        session.follow(job, args, |_| show(session, name))
    })
}

/// The same of objects that are no more when it is done.
///
/// # Errors
/// Those of a single object.
pub fn each_done<T: Copy + PartialEq + fmt::Display>(
    session: &Session,
    names: &[T],
    args: JobArgs,
    done: &str,
    begin: impl Fn(T) -> Result<JobId, Failure>,
) -> Result<(), Failure> {
    each(session, (names, args), done, begin, |name, job| {
        session.follow(job, args, |job| {
            session.done(&job, format!("{name} is {done}"));
            Ok(())
        })
    })
}
