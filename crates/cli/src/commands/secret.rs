//! `offshoot secret …`

use super::Session;
use crate::args::SecretCommand;
use crate::output::Fields;
use offshoot_api::{RotateSecrets, Secrets};
use offshoot_types::Failure;

/// Runs one command.
pub fn run(session: &Session, command: SecretCommand) -> Result<(), Failure> {
    match command {
        SecretCommand::Show => show(session),
        SecretCommand::Rotate(args) => {
            let job =
                session.client.rotate_secrets(&RotateSecrets { forget_old: args.forget_old })?;
            session.follow(job, args.job, |_| show(session))
        }
    }
}

fn show(session: &Session) -> Result<(), Failure> {
    session.output.print(&session.client.secrets()?, text);
    Ok(())
}

fn text(secrets: &Secrets) -> String {
    let (first, older) = match secrets.keys.split_first() {
        Some((first, older)) => (first.as_str(), older),
        None => ("-", &[][..]),
    };
    Fields::default()
        .add("passwords", secrets.sealed)
        .add("sealed with key", first)
        .add_some("older keys", (!older.is_empty()).then(|| older.join(", ")))
        .add("keys kept in", &secrets.place)
        .text()
}
