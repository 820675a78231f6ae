//! `offshoot peer …`

use super::{ListArgs, NameArgs, duration_ms};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum PeerCommand {
    Invite(PeerInviteArgs),
    Add(PeerAddArgs),
    /// List other engines: who sends here, and to whom this one sends
    ///
    /// Columns: peer, role, address, last-seen-at, rotation, fingerprint; and engine, created-at.
    #[command(
        after_help = "Examples:\n  offshoot peer list\n  offshoot peer list --columns peer,rotation"
    )]
    List(ListArgs),
    /// Show one of them
    #[command(after_help = "Example:\n  offshoot peer show east")]
    Show(NameArgs),
    /// Make another key that this engine proves itself with to other engines
    ///
    /// Each peer is told of it by the next connection, which the key before proves; until then it is shown that one: 'peer
    /// list' says who is still to be told. No new codes are needed, but those that were given out and not used are no good any more.
    /// Refused while a peer was not told of the last one.
    #[command(after_help = "Example:\n  offshoot peer rotate")]
    Rotate,
    /// Forget one of them; what it has sent stays
    ///
    /// Refused while profiles send to it. To let it in again takes a new code.
    #[command(after_help = "Example:\n  offshoot peer remove east")]
    Remove(NameArgs),
}

/// Print a code that lets another engine in, once: it may send into its namespace here, and do nothing else
///
/// Give the code to who runs the other engine, by a way that nobody listens to. It holds the fingerprint of this engine's
/// certificate and a secret, so that it proves each to the other. The engine keeps only its hash.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot peer invite --as west\n  \
                        offshoot peer invite --as west --expires 5min")]
pub struct PeerInviteArgs {
    /// The name that the other engine gets here: what it sends becomes NAME/… [default: one made of its id]
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,
    /// How long the code is good, a day at most
    #[arg(long, value_name = "DURATION", value_parser = duration_ms, default_value = "15min")]
    pub expires: u64,
}

/// Add an engine to send to, by a code that 'offshoot peer invite' has printed there
///
/// Both remember each other's certificates and take no others from then on. Nothing is sent before there is a profile.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  offshoot peer add east --address east.example:7640 --code peer1-…\n  \
                  offshoot peer add east --address 10.1.0.5:7640 --code - < code"
)]
pub struct PeerAddArgs {
    /// The name to give it here
    pub name: String,
    /// Where it listens by TLS
    #[arg(long, value_name = "HOST:PORT")]
    pub address: String,
    /// The code; or - to read it from stdin, so that no list of processes shows it
    #[arg(long)]
    pub code: String,
}
