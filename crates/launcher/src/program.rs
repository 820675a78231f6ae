//! Programs that are to end, followed until they have.

use crate::launcher::{Launch, Launcher};
use offshoot_os::process::{Line, Lines, Signal, Sink};
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, Failure};
use std::io::{self, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// How often whoever follows a program is asked whether it may go on.
const TICK: Duration = Duration::from_millis(100);
/// How long it, and what it has started, may take to end when killed.
const END: Duration = Duration::from_secs(20);
/// How long the last of what it has said may take to arrive.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A program that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// How it ended, where that is known.
    pub status: Option<ExitStatus>,
    /// What it has written, where that was to be kept.
    pub output: Vec<u8>,
}

impl Ran {
    /// Whether it reported success.
    pub fn success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// How it ended, as in `it ended with …`.
    pub fn how(&self) -> String {
        let code =
            self.status.and_then(|status| status.code()).map(|code| format!("exit status {code}"));
        let signal = || self.status.and_then(|status| status.signal());
        code.or_else(|| signal().map(|signal| format!("signal {signal}")))
            .unwrap_or_else(|| "an error".to_owned())
    }
}

/// Runs a program to its end; nothing of it is left then. `turn` gets each line of what it says, and nothing at least ten
/// times a second; an error of it ends the program. With `output_max`, what it writes to stdout is kept and not
/// said.
///
/// # Errors
/// Those of [`Launcher::launch`] and of `turn`; `InvalidInput` for more output than that; `Internal` if it does not end even
/// when killed.
pub fn run_to_end(
    launcher: &dyn Launcher,
    mut launch: Launch,
    output_max: Option<usize>,
    turn: &mut dyn FnMut(Option<String>) -> Result<(), Failure>,
) -> Result<Ran, Failure> {
    let (said, stderr) = pipe()?;
    let (output, stdout) = match output_max {
        Some(most) => {
            let (output, stdout) = pipe()?;
            (Some((collect(output, most)?, most)), stdout)
        }
        None => (None, stderr.clone()),
    };
    launch.command = launch.command.stdout(Sink::Open(stdout)).stderr(Sink::Open(stderr));
    let name = launch.name.clone();
    // With this, our ends of what it writes to are closed.
    let started = launcher.launch(launch)?;
    let mut process =
        started.ok_or_else(|| Failure::internal(format!("the {name} did not start")))?;
    let lines = Lines::read(said);
    let lines = lines.ok_or_else(|| Failure::internal("what a program says cannot be read"));
    let followed = lines.as_ref().map_err(Clone::clone).and_then(|lines| {
        while process.running() {
            turn(next(lines))?;
        }
        Ok(())
    });
    let ended = process.end(Signal::Kill, Signal::Kill, END);
    followed?;
    let ended = ended.ok_or_else(|| Failure::internal(format!("the {name} does not end")))?;
    let until = SystemClock.elapsed() + LAST_WORDS;
    while let Some(line) = lines.as_ref().ok().and_then(next) {
        turn(Some(line))?;
        if SystemClock.elapsed() >= until {
            break;
        }
    }
    let output = output.map_or(Ok(Vec::new()), |(output, most)| kept(&output, most))?;
    Ok(Ran { status: ended.status, output })
}

fn pipe() -> Result<(PipeReader, Arc<OwnedFd>), Failure> {
    let made = io::pipe().map(|(reader, writer)| (reader, Arc::new(writer.into())));
    made.map_err(|error| Failure::internal(format!("a program gets no streams: {error}")))
}

fn next(lines: &Lines) -> Option<String> {
    match lines.next_within(TICK) {
        Line::Text(line) => Some(line),
        Line::Nothing => None,
        // It may have closed what it says something by, and go on.
        Line::End => {
            SystemClock.sleep(TICK / 10);
            None
        }
    }
}

/// Reads a little more than is kept; whoever writes more is told by a closed pipe.
fn collect(stream: PipeReader, most: usize) -> Result<Receiver<Vec<u8>>, Failure> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        let mut bytes = Vec::new();
        let _ = stream.take(most as u64 + 1).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    };
    let reading = std::thread::Builder::new().name("output".to_owned()).spawn(read);
    reading.map_err(|error| Failure::internal(format!("a thread cannot be started: {error}")))?;
    Ok(receiver)
}

fn kept(output: &Receiver<Vec<u8>>, most: usize) -> Result<Vec<u8>, Failure> {
    let bytes = output.recv_timeout(LAST_WORDS);
    let bytes = bytes.map_err(|_| Failure::internal("what a program writes has no end"))?;
    if bytes.len() <= most {
        return Ok(bytes);
    }
    let message = format!("it writes more than {} MiB to its standard output", most >> 20);
    Err(Failure::new(ErrorKind::InvalidInput, message, "make it write less"))
}

#[cfg(test)]
mod tests;
