//! The command line of Offshoot: `offshoot NOUN VERB`, a client of the engine's API, and the engine itself.
//!
//! stdout carries results (with `--json` exactly one document), stderr everything else. Exit codes: 0 done,
//! 1 failed, 2 wrong usage.

mod args;
mod commands;
mod listing;
mod output;
mod password;
mod progress;
mod psql;
mod source;
mod target;

use args::Cli;
use clap::Parser;
use clap::error::{ContextValue, ErrorKind as UsageKind};
use offshoot_fuse::Heap;
use offshoot_types::{ErrorKind, Failure};
use output::{FAILED, Output};
use std::process::ExitCode;
use tikv_jemallocator::Jemalloc;

// Most blocks are allocated by one thread and freed by another: docs/decisions/2026-11-22-jemalloc.md.
#[global_allocator]
static HEAP: Heap<Jemalloc> = Heap(Jemalloc);

/// Settings of the heap, where jemalloc looks for them: blocks of 8 KiB come from slabs of 16 pages.
/// By default each would be a slab of its own, with all its bookkeeping.
// SAFETY: the heap reads this symbol as a pointer to a C string, which it is; nothing else defines it.
#[unsafe(export_name = "malloc_conf")]
static HEAP_SETTINGS: &std::ffi::c_char = {
    const TEXT: &std::ffi::CStr = c"slab_sizes:8192-8192:16";
    // SAFETY: a C string has at least its end.
    unsafe { &*TEXT.as_ptr() }
};

/// Exit code of a command line that is wrong.
const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse_usage(&without_addresses(error)),
    };
    let output = Output { json: cli.target.json };
    match commands::run(cli, output) {
        Ok(code) => code,
        Err(failure) => {
            output.failure(&failure);
            ExitCode::from(FAILED)
        }
    }
}

/// Without the rest of each address in it: a password may be there.
fn without_addresses(mut error: clap::Error) -> clap::Error {
    let texts = error.context().filter_map(|(kind, value)| match value {
        ContextValue::String(text) => Some((kind, conceal(text)?)),
        _ => None,
    });
    for (kind, text) in texts.collect::<Vec<_>>() {
        error.insert(kind, ContextValue::String(text));
    }
    error
}

/// The text without what follows `://` or, in a list of words, `password=`; none if there is nothing to leave out.
fn conceal(text: &str) -> Option<String> {
    let at =
        ["://", "password="].iter().filter_map(|mark| Some(text.find(mark)? + mark.len())).min();
    at.map(|at| format!("{}…", text.get(..at).unwrap_or_default()))
}

/// Help and version were asked for; everything else is wrong usage, reported as a document if one
/// was asked for.
fn refuse_usage(error: &clap::Error) -> ExitCode {
    let asked = matches!(error.kind(), UsageKind::DisplayHelp | UsageKind::DisplayVersion);
    if !asked && std::env::args_os().any(|arg| arg == "--json") {
        let text = error.render().to_string();
        let message = text.trim_start_matches("error: ").trim();
        let hint = "see --help of the command";
        Output { json: true }.failure(&Failure::new(ErrorKind::InvalidInput, message, hint));
        return ExitCode::from(WRONG_USAGE);
    }
    // Nothing can be done about a closed stdout or stderr.
    let _ = error.print();
    if asked { ExitCode::SUCCESS } else { ExitCode::from(WRONG_USAGE) }
}
