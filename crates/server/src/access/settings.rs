//! What of a VDB developers may not choose: hooks that are programs, and settings by which a server runs programs, or reads and writes files and
//! addresses that they name. Being no superuser of the VDB, a developer could not set them there either.

use offshoot_api::NewHook;
use offshoot_types::{ErrorKind, Failure};
use std::collections::BTreeMap;

/// How the names of such settings end.
const ENDINGS: [&str; 8] = [
    "_command",
    "_file",
    "_directory",
    "_directories",
    "_path",
    "_libraries",
    "_conninfo",
    "_program",
];

/// Whether a developer may have these hooks.
///
/// # Errors
/// `forbidden` for programs: they run on the engine's host.
pub(crate) fn check_hooks(hooks: &[NewHook]) -> Result<(), Failure> {
    match hooks.iter().find(|hook| hook.program.is_some()) {
        None => Ok(()),
        Some(hook) => Err(Failure::new(
            ErrorKind::Forbidden,
            format!("the hook {} is a program: those are not for developers", hook.event.as_str()),
            "use SQL, or ask an operator to set it",
        )),
    }
}

/// Whether a developer may change settings so.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_changes(settings: &BTreeMap<String, Option<String>>) -> Result<(), Failure> {
    check(settings.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))))
}

/// Whether a developer may choose these settings.
///
/// # Errors
/// `forbidden`, naming the first that is not for developers.
pub(crate) fn check<'a>(
    settings: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Result<(), Failure> {
    let of_host = |(name, value): &(&String, &String)| {
        let name = name.to_ascii_lowercase();
        let value = value.trim();
        ENDINGS.iter().any(|ending| name.ends_with(ending))
            || value.starts_with(['/', '~', '|', '@'])
            || value.contains("..")
    };
    match settings.into_iter().find(of_host) {
        None => Ok(()),
        Some((name, _)) => {
            let shown: String = name.chars().take(80).collect();
            Err(Failure::new(
                ErrorKind::Forbidden,
                format!(
                    "the setting '{shown}' names programs or files of the engine's host: it is not for developers"
                ),
                "leave it out, or ask an operator to provision the VDB",
            ))
        }
    }
}

#[cfg(test)]
mod tests;
