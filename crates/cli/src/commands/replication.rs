//! `offshoot replication …`

mod profiles;

use super::Session;
use crate::args::{ExportArgs, ImportArgs, ReplicationCommand};
use crate::output::table;
use crate::progress::Progress;
use offshoot_api::{Job, JobList};
use offshoot_domain::format_size;
use offshoot_types::{ErrorKind, Failure};
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How the names of archives end.
const ENDING: &str = "offshoot";
/// Stands for stdin and stdout.
const STANDARD: &str = "-";
/// Bytes that are read or written at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// An archive that was written.
#[derive(Debug, Serialize)]
struct Written {
    name: String,
    file: PathBuf,
    bytes: u64,
}

/// All of them.
#[derive(Debug, Serialize)]
struct WrittenList {
    archives: Vec<Written>,
}

/// Runs one command.
pub fn run(session: &Session, command: ReplicationCommand) -> Result<(), Failure> {
    let (client, output) = (&session.client, session.output);
    match command {
        ReplicationCommand::Create(args) => return profiles::create(session, args),
        ReplicationCommand::Run(args) => {
            let job = client.run_replication(&args.name)?;
            return session.follow(job, args.job, |job| profiles::ran(session, &job, &args.name));
        }
        ReplicationCommand::List(args) => profiles::list(session, &args)?,
        ReplicationCommand::Show(args) => {
            output.print(&client.show_replication(&args.name)?, profiles::one);
        }
        ReplicationCommand::History(args) => {
            let history = client.replication_history(&args.name)?;
            output.print(&history, |history| profiles::history(&history.runs));
        }
        ReplicationCommand::Pause(args) => {
            let paused = client.pause_replication(&args.name, true)?;
            output.print(&paused, |one| format!("{} does not run by itself now", one.name));
        }
        ReplicationCommand::Resume(args) => {
            let resumed = client.pause_replication(&args.name, false)?;
            output.print(&resumed, |one| format!("{} runs by itself again", one.name));
        }
        ReplicationCommand::Delete(args) => {
            let deleted = client.delete_replication(&args.name)?;
            output.print(&deleted, |one| format!("{} is deleted", one.name));
        }
        ReplicationCommand::Export(args) => return export(session, &args),
        ReplicationCommand::Import(args) => return import(session, &args),
    }
    Ok(())
}

fn export(session: &Session, args: &ExportArgs) -> Result<(), Failure> {
    if args.output.as_os_str() == STANDARD {
        return to_stdout(session, args);
    }
    let into_directory = args.output.is_dir();
    if !into_directory && args.names.len() > 1 {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("{} archives cannot be one file", args.names.len()),
            "name a directory that is there: --output DIR",
        ));
    }
    let mut archives = Vec::new();
    for name in &args.names {
        let file = match into_directory {
            true => args.output.join(format!("{}.{ENDING}", name.replace('/', "-"))),
            false => args.output.clone(),
        };
        let bytes = write(session, args, name, &file)?;
        archives.push(Written { name: name.clone(), file, bytes });
    }
    session.output.print(&WrittenList { archives }, |list| {
        let row = |one: &Written| {
            vec![one.name.clone(), one.file.display().to_string(), format_size(one.bytes)]
        };
        table(&["name", "file", "size"], list.archives.iter().map(row).collect())
    });
    Ok(())
}

/// The archive is all that is written there.
fn to_stdout(session: &Session, args: &ExportArgs) -> Result<(), Failure> {
    let [name] = args.names.as_slice() else {
        let message = "stdout takes one archive";
        return Err(Failure::new(ErrorKind::InvalidInput, message, "export one after the other"));
    };
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, std::io::stdout().lock());
    session.client.export_archive(name, args.plain, &mut out)?;
    out.flush().map_err(|error| cannot("written", Path::new("stdout"), &error))
}

/// Writes beside the file and gives it its name when all of it is on the device.
fn write(session: &Session, args: &ExportArgs, name: &str, file: &Path) -> Result<u64, Failure> {
    if file.exists() && !args.force {
        return Err(Failure::new(
            ErrorKind::AlreadyExists,
            format!("{} is there already", file.display()),
            "name another file, or replace it: --force",
        ));
    }
    let mut partial = file.as_os_str().to_owned();
    partial.push(".part");
    let partial = PathBuf::from(partial);
    // Only for its owner: it holds all that production holds.
    let opened =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial);
    let out = opened.map_err(|error| cannot("written", &partial, &error))?;
    let done = fill(session, args, name, out, &partial).and_then(|bytes| {
        match std::fs::rename(&partial, file) {
            Ok(()) => Ok(bytes),
            Err(error) => Err(cannot("written", file, &error)),
        }
    });
    if done.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    done
}

fn fill(
    session: &Session,
    args: &ExportArgs,
    name: &str,
    out: File,
    path: &Path,
) -> Result<u64, Failure> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
    let bytes = session.client.export_archive(name, args.plain, &mut out)?;
    let synced = out.flush().and_then(|()| out.get_ref().sync_all());
    synced.map_err(|error| cannot("written", path, &error))?;
    Ok(bytes)
}

fn import(session: &Session, args: &ImportArgs) -> Result<(), Failure> {
    let client = &session.client;
    let send_file = |file: &PathBuf| {
        let opened = File::open(file).map_err(|error| cannot("read", file, &error))?;
        let about = opened.metadata().map_err(|error| cannot("read", file, &error))?;
        // Of what is no file it is not known.
        let total = about.is_file().then_some(about.len());
        let what = format!("sending {}", file.display());
        let archive = BufReader::with_capacity(BUFFER_BYTES, opened);
        let mut progress = Progress::new(session.output.json);
        let mut watched = Watched { archive, what, done: 0, total, progress: &mut progress };
        let sent = client.import_archive(&mut watched, &args.namespace, total);
        progress.end();
        sent
    };
    if args.input.is_dir() {
        let mut jobs = Vec::new();
        for file in &archives(&args.input)? {
            jobs.push(client.wait_job(send_file(file)?, |_| {})?);
        }
        session.output.print(&JobList { jobs }, |list| {
            list.jobs.iter().map(said).collect::<Vec<_>>().join("\n")
        });
        return Ok(());
    }
    let job = match args.input.as_os_str() == STANDARD {
        true => client.import_archive(&mut std::io::stdin().lock(), &args.namespace, None)?,
        false => send_file(&args.input)?,
    };
    session.follow(job, args.job, |job| {
        session.done(&job, said(&job));
        Ok(())
    })
}

/// An archive that is sent, with how far that is.
struct Watched<'a, R> {
    archive: R,
    what: String,
    done: u64,
    total: Option<u64>,
    progress: &'a mut Progress,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.archive.read(buffer)?;
        self.done += count as u64;
        if let Some(total) = self.total {
            self.progress.show_sent(&self.what, self.done, total);
        }
        Ok(count)
    }
}

fn said(job: &Job) -> String {
    let (name, notes) = (&job.object, job.notes.join("; "));
    format!(
        "'{name}' is here: {notes}\nmake a VDB of it: offshoot vdb provision NAME --from {name}"
    )
}

fn archives(input: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = std::fs::read_dir(input).map_err(|error| cannot("read", input, &error))?;
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
    found.sort();
    if found.is_empty() {
        return Err(Failure::new(
            ErrorKind::NotFound,
            format!("no archive is in {}", input.display()),
            format!("name a directory with files that end with .{ENDING}"),
        ));
    }
    Ok(found)
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(
        ErrorKind::InvalidInput,
        format!("{} cannot be {what}: {error}", path.display()),
        "name another place",
    )
}
