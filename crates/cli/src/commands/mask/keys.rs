//! Keys that values are masked with.

use super::Session;
use crate::args::MaskKeyCommand;
use crate::commands::removal;
use crate::output::{or_dash, seconds, table};
use offshoot_api::MaskKey;
use offshoot_types::Failure;

/// Runs `mask key`.
pub fn run(session: &Session, command: &MaskKeyCommand) -> Result<(), Failure> {
    let (client, output) = (&session.client, session.output);
    match command {
        MaskKeyCommand::List => {
            output.print(&client.list_mask_keys()?, |list| list_text(&list.keys));
        }
        MaskKeyCommand::Rotate { name, yes } => {
            removal::confirm_with(session, "rotate the key", name, &[], *yes)?;
            output.print(&client.rotate_mask_key(name)?, rotated_text);
        }
    }
    Ok(())
}

fn list_text(keys: &[MaskKey]) -> String {
    if keys.is_empty() {
        return "nothing is masked, so no key is in use".to_owned();
    }
    let row = |key: &MaskKey| {
        vec![
            key.name.clone(),
            key.version.to_string(),
            or_dash(key.made_at.map(seconds)),
            key.used_by.join(", "),
        ]
    };
    table(&["name", "version", "made at", "used by"], keys.iter().map(row).collect())
}

fn rotated_text(key: &MaskKey) -> String {
    let again = match key.used_by.is_empty() {
        true => String::new(),
        false => format!("; renew what was masked with it: {}", key.used_by.join(", ")),
    };
    format!("'{}' is another key now, version {}{again}", key.name, key.version)
}
