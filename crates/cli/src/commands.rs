//! What each command does: a request, perhaps a job to wait for, a result.

mod access;
mod bisect;
mod bookmark;
mod console;
mod diff;
mod dsource;
mod failover;
mod group;
mod hooks;
mod host;
mod job;
mod login;
mod mask;
mod peer;
mod policy;
mod pool;
mod removal;
mod replication;
mod scrub;
mod secret;
mod serve;
mod several;
mod snapshot;
mod template;
mod timeflow;
mod topology;
mod vdb;
mod webhook;

use crate::args::{
    Cli, Command, DemoArgs, JobArgs, MaskCommand, MaskReportArgs, PoolCommand, WebhookCommand,
};
use crate::output::Output;
use crate::progress::Progress;
use crate::target;
use offshoot_api::{Job, JobAccepted};
use offshoot_bench::BenchCommand;
use offshoot_client::Client;
use offshoot_demo::DemoOptions;
use offshoot_server::ShutdownSignal;
use offshoot_types::{ErrorKind, Failure, JobId};
use std::process::ExitCode;

/// Runs one command.
pub fn run(cli: Cli, output: Output) -> Result<ExitCode, Failure> {
    match cli.command {
        Command::Serve(args) => serve::run(&cli.target, &args)?,
        Command::Keeper => serve::run_keeper(&cli.target)?,
        Command::Login(args) => login::run(&args, output)?,
        Command::Cell { spec, command } => match offshoot_server::enter_cell(&spec, &command)? {},
        Command::Gateway { options, .. } => offshoot_server::run_gateway(&options)?,
        Command::Demo(args) => return Ok(demo(&args, output)),
        Command::Doctor(args) => return host::examine(&cli.target, &args, output),
        Command::Completions(args) => host::completions(&args),
        Command::Man(args) => host::man(&args)?,
        Command::Bench(command) => return Ok(bench(&command, output)),
        Command::Pool(PoolCommand::Check { secret_key }) => {
            return pool::check(&cli.target, secret_key.clone(), output);
        }
        Command::Mask(MaskCommand::Init(args)) => mask::init(&args, output)?,
        Command::Mask(MaskCommand::Schema) => mask::schema()?,
        Command::Mask(MaskCommand::Report(MaskReportArgs {
            verify: Some(file),
            key: Some(key),
            ..
        })) => mask::verify_with(&file, &key, output)?,
        command => {
            let client = Client::new(target::resolve(&cli.target)?)?;
            let session = Session { client, output };
            match command {
                // What it finds decides the exit code.
                Command::Pool(PoolCommand::Scrub(args)) => return scrub::run(&session, &args),
                Command::Webhook(WebhookCommand::Test(args)) => {
                    return webhook::test(&session, &args.name);
                }
                Command::Mcp(args) => host::mcp(session.client, &args)?,
                command => ask(&session, command)?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The demonstration has an engine and an output of its own, and its checks decide the exit code.
fn demo(args: &DemoArgs, output: Output) -> ExitCode {
    let options = DemoOptions { exit: args.exit, scale: args.scale, json: output.json };
    let held = offshoot_demo::run(options) == 0;
    if held { ExitCode::SUCCESS } else { ExitCode::from(crate::output::FAILED) }
}

/// A benchmark has an engine and an output of its own, and its goals decide the exit code.
fn bench(command: &BenchCommand, output: Output) -> ExitCode {
    let reached = offshoot_bench::run(command, output.json) == 0;
    if reached { ExitCode::SUCCESS } else { ExitCode::from(crate::output::FAILED) }
}

fn ask(session: &Session, command: Command) -> Result<(), Failure> {
    match command {
        // These ask no engine.
        Command::Serve(_)
        | Command::Keeper
        | Command::Cell { .. }
        | Command::Gateway { .. }
        | Command::Login(_)
        | Command::Demo(_)
        | Command::Doctor(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Bench(_) => Ok(()),
        Command::Mcp(_) => Ok(()),
        Command::Status => pool::engine_status(session),
        Command::Console => console::run(session),
        Command::Dsource(command) => dsource::run(session, command),
        Command::Snapshot(command) => snapshot::run(session, command),
        Command::Vdb(command) => vdb::run(session, command),
        Command::Group(command) => group::run(session, command),
        Command::Mask(command) => mask::run(session, command),
        Command::Diff(args) => diff::run(session, args),
        Command::Bisect(args) => bisect::run(session, args),
        Command::Peer(command) => peer::run(session, command),
        Command::Replication(command) => replication::run(session, command),
        Command::Topology => topology::run(session),
        Command::Failover(args) => failover::run(session, args),
        Command::Bookmark(command) => bookmark::run(session, command),
        Command::Timeflow(command) => timeflow::run(session, command),
        Command::Template(command) => template::run(session, command),
        Command::Policy(command) => policy::run(session, command),
        Command::Job(command) => job::run(session, command),
        Command::User(command) => access::user(session, command),
        Command::Token(command) => access::token(session, command),
        Command::Audit(args) => access::audit(session, &args),
        Command::Webhook(command) => webhook::run(session, command),
        Command::Secret(command) => secret::run(session, command),
        Command::Pool(command) => pool::run(session, command),
    }
}

/// What the commands of one program run share.
struct Session {
    client: Client,
    output: Output,
}

impl Session {
    /// Sees a job through and then calls `show`; with `--detach` prints the job's id instead.
    fn follow(
        &self,
        id: JobId,
        args: JobArgs,
        show: impl FnOnce(Job) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if args.detach {
            self.output.print(&JobAccepted { job: id }, |accepted| accepted.job.to_string());
            return Ok(());
        }
        show(self.wait(id)?)
    }

    /// Waits for a job's end and shows its progress. Ctrl-C ends the program, not the job.
    fn wait(&self, id: JobId) -> Result<Job, Failure> {
        self.leave_on_interrupt(id)?;
        let mut progress = Progress::new(self.output.json);
        let waited = self.client.wait_job(id, |job| progress.show(job));
        progress.end();
        waited
    }

    fn leave_on_interrupt(&self, id: JobId) -> Result<(), Failure> {
        let interrupt = ShutdownSignal::install()?;
        let output = self.output;
        let leave = move || {
            interrupt.wait();
            output.failure(&Failure::new(
                ErrorKind::Cancelled,
                format!("stopped waiting; {id} continues"),
                format!(
                    "follow it with: offshoot job watch {id}; stop it with: offshoot job cancel {id}"
                ),
            ));
            std::process::exit(i32::from(crate::output::FAILED));
        };
        std::thread::Builder::new()
            .name("interrupt".to_owned())
            .spawn(leave)
            .map(drop)
            .map_err(|error| Failure::internal(format!("a thread cannot be started: {error}")))
    }

    /// Says something, unless a document says it.
    fn tell(&self, words: &str) {
        if !self.output.json {
            self.output.print(&(), |()| words.to_owned());
        }
    }

    /// Says in words that something was done; in JSON, shows the job that did it.
    fn done(&self, job: &Job, words: String) {
        self.output.print(job, |_| words);
    }
}
