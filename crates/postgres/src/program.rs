//! Programs of users: run beside a VDB, as a client of it.
//!
//! ```text
//! RUNTIME_DIR        mode 0711, the engine's
//!   server.json      which process it is: the launcher's
//!   program          mode 0500, of the user that it runs as; gone with it
//! ```
//! A program is confined as a server is, and has less: of files only programs and libraries, and a `/tmp` in
//! memory. It can change its arguments, but not the cell that it is in: so it is found again by that.

use crate::installation::program_dirs;
use crate::script::one_line;
use crate::server::make_dir;
use crate::vdb_role::VDB_ROLE;
use offshoot_connector::{Program, ScriptCourse};
use offshoot_domain::format_duration;
use offshoot_launcher::{Launch, Launcher, Mark, Ran, run_to_end};
use offshoot_os::process::{Signal, Spec};
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, Failure, Remote, Share};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Threads and processes of one, with all that it starts.
const PROCESSES_MAX: u64 = 128;
/// Memory of one, with all that it starts and what it has in `/tmp`.
const MEMORY_BYTES: u64 = 512 << 20;
/// How long what an earlier run has left may take to end.
const END: Duration = Duration::from_secs(20);
/// Where it works: in memory of its own.
const HOME: &str = "/tmp";
/// Where it looks for programs, after those of the database.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Runs a program.
///
/// # Errors
/// As [`offshoot_connector::ScriptRunner::run_program`].
pub(crate) fn run(
    launcher: &dyn Launcher,
    bin_dir: &Path,
    program: &Program,
    course: &mut dyn ScriptCourse,
) -> Result<Vec<u8>, Failure> {
    if !launcher.confines() {
        return Err(Failure::new(
            ErrorKind::HostUnprepared,
            "this engine does not confine programs, and so runs none of its users'",
            "use SQL, or start the engine without --unconfined",
        ));
    }
    end(launcher, &program.runtime_dir, END)?;
    let unwritten = |error: io::Error| {
        let dir = program.runtime_dir.display();
        let message = format!("the program cannot be put into {dir}: {error}");
        Failure::new(
            ErrorKind::HostUnprepared,
            message,
            "make sure that the engine may write there",
        )
    };
    write(program).map_err(unwritten)?;
    let launch = launch(bin_dir, program).map_err(unwritten)?;
    let until = SystemClock.elapsed() + program.time_limit;
    let mut last = String::new();
    let ran = run_to_end(launcher, launch, program.output_bytes_max, &mut |line| {
        if let Some(line) = line {
            last = one_line(&line);
            course.heard(last.clone());
        }
        course.check()?;
        if SystemClock.elapsed() < until {
            return Ok(());
        }
        let message = format!("it takes longer than {}", format_duration(program.time_limit));
        let hint = "make it do less, or allow more: --hook-time-limit 1h";
        Err(Failure::new(ErrorKind::InvalidInput, message, hint))
    });
    let removed = std::fs::remove_file(text_file(&program.runtime_dir)).map_err(unwritten);
    let ran = ran?;
    removed?;
    match ran.success() {
        true => Ok(ran.output),
        false => Err(failed(&ran, &last)),
    }
}

fn failed(ran: &Ran, last: &str) -> Failure {
    let how = ran.how();
    // Where another program takes what it prints, it may have said why there.
    let printed = String::from_utf8_lossy(&ran.output);
    let printed = printed.lines().rfind(|line| !line.trim().is_empty()).map(one_line);
    let said = Some(last.to_owned()).filter(|last| !last.is_empty());
    let message = match said.or(printed).unwrap_or_default().as_str() {
        "" => format!("it ended with {how}, and said nothing"),
        last => format!("it ended with {how}; the last it said: {last}"),
    };
    let hint = "a program that does its work ends with exit code 0";
    Failure::new(ErrorKind::InvalidInput, message, hint)
}

/// Ends what a program has left in a runtime directory, and removes its text.
///
/// # Errors
/// If it does not end even when killed.
pub(crate) fn end(
    launcher: &dyn Launcher,
    runtime_dir: &Path,
    deadline: Duration,
) -> Result<(), Failure> {
    let file = text_file(runtime_dir);
    if !file.exists() {
        return Ok(());
    }
    let mark = Mark { program: "", argument: file.display().to_string() };
    launcher.end_leftover(runtime_dir, &mark, Signal::Kill, deadline)?;
    launcher.end_orphans(&file, "")?;
    std::fs::remove_file(&file).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(Failure::internal(format!("{} cannot be removed: {error}", file.display()))),
    })
}

fn text_file(runtime_dir: &Path) -> PathBuf {
    runtime_dir.join("program")
}

fn write(program: &Program) -> io::Result<()> {
    make_dir(&program.runtime_dir, 0o711, None)?;
    let path = text_file(&program.runtime_dir);
    let mut file = File::options().write(true).create_new(true).mode(0o500).open(path)?;
    if let Some((user, group)) = program.owner {
        fchown(&file, Some(user), Some(group))?;
    }
    file.write_all(program.text.reveal().as_bytes())
}

fn launch(bin_dir: &Path, program: &Program) -> io::Result<Launch> {
    let file = text_file(&program.runtime_dir);
    let mut command = Spec::new("/bin/sh")
        .args(["-c", "cd \"$HOME\" && exec \"$0\""])
        .arg(&file)
        .clear_env()
        .env("PATH", format!("{}:{SYSTEM_PATH}", bin_dir.display()))
        .env("HOME", HOME)
        .env("LC_ALL", "C.UTF-8")
        .cwd("/")
        .stdin_fd(input(&program.input)?);
    for (name, value) in &program.environment {
        command = command.env(name, value);
    }
    let mut reaches = program.reaches.clone();
    if let Some(login) = &program.login {
        reaches.push(Remote { host: "127.0.0.1".to_owned(), port: login.port });
        command = command
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", login.port.to_string())
            .env("PGUSER", VDB_ROLE)
            .env("PGPASSWORD", login.password.reveal());
        if let Some(database) = &login.database {
            command = command.env("PGDATABASE", database);
        }
    }
    Ok(Launch {
        name: program.name.clone(),
        command,
        runtime_dir: program.runtime_dir.clone(),
        data_dir: file,
        ends: true,
        own_dirs: Vec::new(),
        program_dirs: program_dirs(bin_dir),
        port: program.login.as_ref().map_or(0, |login| login.port),
        tcp: false,
        connects: Vec::new(),
        udp: false,
        reaches,
        memory_bytes: Some(MEMORY_BYTES),
        processes_max: PROCESSES_MAX,
        share: Share::Usual,
    })
}

/// A descriptor to read this from.
fn input(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("hook", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}
