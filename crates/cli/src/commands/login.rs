//! `offshoot login`

use crate::args::LoginArgs;
use crate::output::Output;
use crate::target;
use offshoot_client::{KnownEngine, KnownEngines, shown_fingerprint};
use offshoot_types::{ErrorKind, Failure};
use std::io::{self, BufRead, IsTerminal, Write};

/// Remembers the certificate of an engine.
pub fn run(args: &LoginArgs, output: Output) -> Result<(), Failure> {
    let known = KnownEngines::new(target::known_engines()?);
    let url = &args.url;
    let shown = shown_fingerprint(url)?;
    match &args.fingerprint {
        Some(wanted) if wanted.trim().eq_ignore_ascii_case(&shown.fingerprint) => {}
        Some(wanted) => {
            return Err(Failure::new(
                ErrorKind::Unauthorized,
                format!(
                    "what answers at {url} shows the certificate {}, not {wanted}",
                    shown.fingerprint
                ),
                "compare with what `offshoot status` says on the engine's host",
            ));
        }
        None => ask(&known, url, &shown)?,
    }
    known.put(&shown)?;
    output.print(&shown, |shown| format!("{} is known by {}", shown.host, shown.fingerprint));
    Ok(())
}

/// Asks on the terminal whether a certificate is right. One that differs from what is known is never asked about.
fn ask(known: &KnownEngines, url: &str, shown: &KnownEngine) -> Result<(), Failure> {
    let before = known.find(&shown.host)?;
    if before.as_ref() == Some(&shown.fingerprint) {
        return Ok(());
    }
    let mut stderr = io::stderr();
    if before.is_some() || !io::stdin().is_terminal() || !stderr.is_terminal() {
        let message = match before {
            Some(before) => format!(
                "{url} shows the certificate {}, but was known by {before}",
                shown.fingerprint
            ),
            None => format!("the certificate of {url} is not known, and nobody can be asked"),
        };
        let hint = "ask the engine's administrator for its fingerprint (offshoot status), and give it by --fingerprint";
        return Err(Failure::new(ErrorKind::Unauthorized, message, hint));
    }
    let question = format!(
        "{url} shows the certificate {}.\nIs it what `offshoot status` says on the engine's host? [y/N] ",
        shown.fingerprint
    );
    // Nothing can be done about a closed stderr.
    let _ = stderr.write_all(question.as_bytes()).and_then(|()| stderr.flush());
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    if read.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::Cancelled,
        "nothing was remembered",
        "answer y, or give --fingerprint",
    ))
}
