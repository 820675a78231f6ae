//! `offshoot doctor`, `mcp`, `completions` and `man`

use crate::args::{Cli, CompletionsArgs, DoctorArgs, ManArgs, McpArgs, TargetArgs};
use crate::output::{FAILED, Output};
use crate::target;
use clap::CommandFactory;
use offshoot_api::{HostCheck, HostCheckState, HostReport};
use offshoot_client::Client;
use offshoot_mcp::McpOptions;
use offshoot_server::ServeOptions;
use offshoot_types::{ErrorKind, Failure};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Looks at the host.
pub fn examine(
    target: &TargetArgs,
    args: &DoctorArgs,
    output: Output,
) -> Result<ExitCode, Failure> {
    let mut options = ServeOptions::new(target::pool_dir(target)?);
    if let Some(file) = &args.config {
        options.read_config(file)?;
    }
    let report = offshoot_server::examine_host(&options);
    let failed = report.checks.iter().any(|check| check.state == HostCheckState::Failed);
    output.print(&report, report_text);
    Ok(if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn report_text(report: &HostReport) -> String {
    let width = report.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let line = |check: &HostCheck| {
        let state = match check.state {
            HostCheckState::Ok => "ok",
            HostCheckState::Warning => "warning",
            HostCheckState::Failed => "FAILED",
        };
        let mut line = format!("{state:<8} {:<width$}  {}\n", check.name, check.message);
        if !check.hint.is_empty() {
            line.push_str(&format!("{:>9}{:<width$}  fix: {}\n", "", "", check.hint));
        }
        line
    };
    report.checks.iter().map(line).collect()
}

/// Answers an agent until it goes.
pub fn mcp(client: Client, args: &McpArgs) -> Result<(), Failure> {
    let expires = Duration::from_millis(args.expires);
    offshoot_mcp::serve(client, McpOptions { allow_changes: args.allow_changes, expires })
}

/// Prints a shell's completions.
pub fn completions(args: &CompletionsArgs) {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "offshoot", &mut script);
    // A reader that has closed the pipe has what it wanted.
    let _ = std::io::stdout().write_all(&script);
}

/// Writes the manual.
pub fn man(args: &ManArgs) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let message = format!("{}: {error}", args.dir.display());
        Failure::new(ErrorKind::InvalidInput, message, "name a directory that you may write to")
    };
    std::fs::create_dir_all(&args.dir).map_err(failed)?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    write_pages(&command, &args.dir).map_err(failed)
}

/// Writes the page of a command, and those of the commands below it.
fn write_pages(command: &clap::Command, dir: &Path) -> std::io::Result<()> {
    for part in command.get_subcommands().filter(|part| !part.is_hide_set()) {
        write_pages(part, dir)?;
    }
    let source = concat!("offshoot ", env!("CARGO_PKG_VERSION"));
    let page = clap_mangen::Man::new(command.clone()).source(source);
    let mut text = Vec::new();
    page.render(&mut text)?;
    std::fs::write(dir.join(page.get_filename()), with_examples(&String::from_utf8_lossy(&text)))
}

/// What stands below a command's help is rendered as words of a section EXTRA, which are filled anew. These are commands, a
/// line each, so they are shown as they are; what is not indented is words indeed.
fn with_examples(page: &str) -> String {
    let (mut shown, mut below, mut as_is) = (String::new(), false, false);
    for line in page.lines() {
        let before = (below, as_is);
        below = line == ".SH EXTRA" || (below && !line.starts_with(".SH "));
        let command = line.strip_prefix("  ").filter(|_| below);
        as_is = command.is_some();
        match (before, as_is) {
            ((_, true), false) => shown.push_str(".fi\n"),
            ((_, false), true) => shown.push_str(".nf\n"),
            _ => {}
        }
        match line {
            ".SH EXTRA" => shown.push_str(".SH EXAMPLES\n"),
            "Example:" | "Examples:" if below => {}
            "" if below => shown.push_str(".PP\n"),
            _ => shown.extend([command.unwrap_or(line), "\n"]),
        }
    }
    shown
}
