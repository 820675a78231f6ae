//! `offshoot webhook …`

use super::{ListArgs, NameArgs};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum WebhookCommand {
    Add(WebhookAddArgs),
    /// List webhooks: what they are told of, and whether they take it
    ///
    /// Columns: webhook, state, events, waiting, missed, delivered-at, url; and created-at, error.
    #[command(
        after_help = "Examples:\n  offshoot webhook list\n  offshoot webhook list --sort -waiting"
    )]
    List(ListArgs),
    /// Show one of them; not its secret, which is shown only when it is made
    #[command(after_help = "Example:\n  offshoot webhook show ci")]
    Show(NameArgs),
    Set(WebhookSetArgs),
    /// Send a message that tells of nothing, once, and say how it was answered; fails if it was not taken
    #[command(after_help = "Example:\n  offshoot webhook test ci")]
    Test(NameArgs),
    /// Remove one of them, with its secret; what it was not told of is not told any more
    #[command(after_help = "Example:\n  offshoot webhook remove ci")]
    Remove(NameArgs),
}

/// Tell an address of events from now on, by signed messages over HTTP
///
/// Events are fault.raised, fault.cleared and, when a job ends that somebody asked for, job.KIND.STATE, as job.vdb_provision.done: the
/// kinds of 'offshoot job list', and done, failed or cancelled. Messages are signed as Standard Webhooks has it; without --secret-file
/// the secret is made and printed, and not shown again.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  (umask 077; offshoot webhook add ci --url https://ci.example/offshoot > ci.secret)\n  \
                  offshoot webhook add pager --url https://pager.example/offshoot --faults --secret-file pager.secret\n  \
                  offshoot webhook add ci --url https://ci.example/offshoot --events 'fault.*,job.vdb_*.failed'"
)]
pub struct WebhookAddArgs {
    /// The name to give it
    pub name: String,
    /// Where to: https, or http on loopback; or - to read it from stdin, so that no list of processes shows it
    #[arg(long)]
    pub url: String,
    /// Of which events, in which * stands for any text [default: all]
    #[arg(long, value_name = "PATTERN,…", value_delimiter = ',', conflicts_with = "faults")]
    pub events: Vec<String>,
    /// Of faults, as they are raised and cleared: short for --events fault.*
    #[arg(long)]
    pub faults: bool,
    /// A file whose first line is what messages are signed with: whsec_ and 24 to 64 bytes in base64. Nobody else may read it
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Allow plain http to another host: anybody on the way can read what it is told
    #[arg(long)]
    pub insecure: bool,
}

/// Change a webhook's name, where it is, what it is told of, or its secret
///
/// What is not named stays, and so does what waits. For 24 hours after its secret was changed, messages are signed with the one of
/// before, too: give its receiver the new one in that time. A secret that is made is printed, and not shown again.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  (umask 077; offshoot webhook set ci --rotate-secret > ci.secret)\n  \
                  offshoot webhook set ci --url https://new.example/offshoot --events 'fault.*,job.*.failed'\n  \
                  offshoot webhook set pager --secret-file pager.secret\n  \
                  offshoot webhook set ci --name builds"
)]
pub struct WebhookSetArgs {
    /// Its name
    pub name: String,
    #[command(flatten)]
    pub change: WebhookChangeArgs,
}

/// At least one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct WebhookChangeArgs {
    /// Another name
    #[arg(long = "name", value_name = "NEW NAME")]
    pub new_name: Option<String>,
    /// Where to: https, or http on loopback; or - to read it from stdin, so that no list of processes shows it
    #[arg(long)]
    pub url: Option<String>,
    /// Of which events, in place of those before; `*` is all, and in others stands for any text
    #[arg(long, value_name = "PATTERN,…", value_delimiter = ',', conflicts_with = "faults")]
    pub events: Vec<String>,
    /// Of faults alone: short for --events fault.*
    #[arg(long)]
    pub faults: bool,
    /// Make another secret, and print it
    #[arg(long, conflicts_with = "secret_file")]
    pub rotate_secret: bool,
    /// A file whose first line is another secret: whsec_ and 24 to 64 bytes in base64. Nobody else may read it
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Allow plain http to another host: anybody on the way can read what it is told
    #[arg(long, conflicts_with = "secure")]
    pub insecure: bool,
    /// Refuse that again
    #[arg(long)]
    pub secure: bool,
}
