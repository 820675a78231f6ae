//! `offshoot doctor`, `mcp`, `completions` and `man`

use super::duration_ms;
use clap::Args;
use std::path::PathBuf;

/// Check whether this host has what an engine needs, and say what to fix
///
/// Looks at mounts, cells, PostgreSQL, the pool's directory and room, the address, the kernel and limits, as the start of the
/// engine does. Asks no engine, and changes nothing. The exit code is 1 if the engine would not start, or no VDB.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot doctor --pool /data/pool\n  \
                        offshoot doctor --config /etc/offshoot/offshoot.conf --json")]
pub struct DoctorArgs {
    /// The settings that the engine is to be run with
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Let a coding agent look at dSources and VDBs, and have VDBs of its own to try on
///
/// Speaks the Model Context Protocol on stdin and stdout: an agent's program starts it. By default it only looks, and runs
/// queries that cannot write.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot mcp\n  \
                        offshoot mcp --allow-changes --expires 4h\n  \
                        claude mcp add offshoot -- offshoot mcp --pool /data/pool")]
pub struct McpArgs {
    /// Let it make VDBs, and change and delete those
    #[arg(long)]
    pub allow_changes: bool,
    /// How long a VDB that it makes is kept at most
    #[arg(long, value_name = "DURATION", default_value = "1d", value_parser = duration_ms, requires = "allow_changes")]
    pub expires: u64,
}

/// Print what makes a shell complete this program's commands
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  offshoot completions bash > /etc/bash_completion.d/offshoot\n  \
                        offshoot completions zsh > ~/.zfunc/_offshoot\n  \
                        offshoot completions fish > ~/.config/fish/completions/offshoot.fish"
)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Write manual pages, one for each command
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  offshoot man /usr/local/share/man/man1\n  man offshoot-vdb-provision"
)]
pub struct ManArgs {
    /// The directory to write them into
    pub dir: PathBuf,
}
