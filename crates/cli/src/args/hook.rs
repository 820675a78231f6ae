//! Hooks of VDBs on the command line.

use super::duration_ms;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use offshoot_api::HookEvent;
use std::path::PathBuf;
use std::sync::LazyLock;

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventArg(pub HookEvent);

impl ValueEnum for EventArg {
    fn value_variants<'a>() -> &'a [EventArg] {
        static EVENTS: LazyLock<[EventArg; HookEvent::ALL.len()]> =
            LazyLock::new(|| HookEvent::ALL.map(EventArg));
        &*EVENTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.as_str()))
    }
}

/// Hooks to set.
#[derive(Debug, Clone, Default, Args)]
pub struct HookArgs {
    /// SQL to run in it, or a program (its first line as in #!/bin/sh) to run beside it, before or after something is done to
    /// it, as in after-refresh=FILE; may be given several times. `-` is stdin
    #[arg(long, value_name = "EVENT=FILE", value_parser = hook)]
    pub hook: Vec<(EventArg, PathBuf)>,
    /// The database that these hooks run in; by default the one that its URI opens
    #[arg(long, value_name = "DATABASE", requires = "hook")]
    pub hook_database: Option<String>,
    /// How long each of these hooks may take; by default 10min
    #[arg(long, value_name = "DURATION", value_parser = duration_ms, requires = "hook")]
    pub hook_time_limit: Option<u64>,
}

/// Show the hooks of a VDB, or print what one runs
///
/// For the VDB's owner alone. `vdb show` tells everybody who sees the VDB that there are hooks, but not what they run.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  offshoot vdb hooks dev\n  offshoot vdb hooks dev after-refresh > refresh.sql"
)]
pub struct HooksArgs {
    /// Its name
    pub name: String,
    /// Print what this one runs
    #[arg(value_enum)]
    pub event: Option<EventArg>,
}

/// An event and a file, as `event=file`.
pub(super) fn hook(text: &str) -> Result<(EventArg, PathBuf), String> {
    let (event, file) = text.split_once('=').ok_or("write it as after-refresh=FILE")?;
    if file.is_empty() {
        return Err("name a file: after-refresh=FILE".to_owned());
    }
    Ok((EventArg::from_str(event, false).map_err(|_| unknown(event))?, file.into()))
}

fn unknown(event: &str) -> String {
    let known = HookEvent::ALL.map(HookEvent::as_str);
    format!("'{event}' is no event: use one of {}", known.join(", "))
}

#[cfg(test)]
mod tests;
