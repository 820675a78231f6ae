//! `offshoot webhook …`

use super::Session;
use crate::args::{WebhookAddArgs, WebhookChangeArgs, WebhookCommand, WebhookSetArgs};
use crate::listing::{self, Column, Key, more, usual};
use crate::output::{FAILED, Fields, duration, or_dash, seconds, word};
use offshoot_api::{AddWebhook, AddedWebhook, Secret, SetWebhook, Webhook, WebhookTest};
use offshoot_types::{ErrorKind, Failure};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

/// Stands for stdin.
const STANDARD: &str = "-";
/// The events that --faults stands for.
const FAULTS: &str = "fault.*";

/// Runs one command.
pub fn run(session: &Session, command: WebhookCommand) -> Result<(), Failure> {
    let (client, output) = (&session.client, session.output);
    match command {
        WebhookCommand::Add(args) => add(session, args)?,
        WebhookCommand::Set(args) => set(session, args)?,
        WebhookCommand::List(args) => listing::print(
            output,
            client.list_webhooks()?,
            |list| &mut list.webhooks,
            (&args, COLUMNS),
            |_| (),
            "there is no webhook; add one with: offshoot webhook add",
        )?,
        WebhookCommand::Show(args) => output.print(&client.show_webhook(&args.name)?, one),
        // Its exit code says what became of it.
        WebhookCommand::Test(args) => return test(session, &args.name).map(drop),
        WebhookCommand::Remove(args) => {
            let removed = client.remove_webhook(&args.name)?;
            output.print(&removed, |webhook| match webhook.waiting {
                0 => format!("{} is removed", webhook.name),
                waiting => format!(
                    "{} is removed; events that it was not told of: {waiting}",
                    webhook.name
                ),
            });
        }
    }
    Ok(())
}

fn add(session: &Session, args: WebhookAddArgs) -> Result<(), Failure> {
    let WebhookAddArgs { name, url, events, faults, secret_file, insecure } = args;
    let url = if url == STANDARD { from_stdin()? } else { url };
    let events = if faults { vec![FAULTS.to_owned()] } else { events };
    let secret = secret_file.as_deref().map(read_secret).transpose()?;
    let request = AddWebhook { name, url, events, secret, insecure };
    tell(session, &session.client.add_webhook(&request)?, "added; this is its secret", "added");
    Ok(())
}

fn set(session: &Session, WebhookSetArgs { name, change }: WebhookSetArgs) -> Result<(), Failure> {
    let WebhookChangeArgs {
        new_name,
        url,
        events,
        faults,
        rotate_secret,
        secret_file,
        insecure,
        secure,
    } = change;
    let url = match url {
        Some(url) if url == STANDARD => Some(from_stdin()?),
        url => url,
    };
    let events = if faults { vec![FAULTS.to_owned()] } else { events };
    let request = SetWebhook {
        name: new_name,
        url,
        events: Some(events).filter(|events| !events.is_empty()),
        secret: secret_file.as_deref().map(read_secret).transpose()?,
        rotate_secret,
        insecure: (insecure || secure).then_some(insecure),
    };
    let set = session.client.set_webhook(&name, &request)?;
    let rotated = "changed; this is its new secret, and the one of before signs, too, for 24 hours";
    tell(session, &set, rotated, "changed");
    Ok(())
}

/// Prints a secret that is shown this once, alone, or that there is none.
fn tell(session: &Session, webhook: &AddedWebhook, with_secret: &str, without: &str) {
    let name = &webhook.name;
    let test = format!("try it: offshoot webhook test {name}");
    if !session.output.json && webhook.secret.is_some() {
        eprintln!("{name} is {with_secret}; it is not shown again; {test}");
    }
    session.output.print(webhook, |webhook| match &webhook.secret {
        Some(secret) => secret.reveal().to_owned(),
        None => format!("{name} is {without}; {test}"),
    });
}

/// Sends a test. One that was not taken is a failure of the command.
pub fn test(session: &Session, name: &str) -> Result<ExitCode, Failure> {
    let test = session.client.test_webhook(name)?;
    session.output.print(&test, tested);
    Ok(if test.delivered { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn tested(test: &WebhookTest) -> String {
    let (name, took) = (&test.name, duration(test.took_ms));
    match (&test.error, test.status) {
        (None, Some(status)) => format!("{name} has taken it: status {status}, in {took}"),
        (None, None) => format!("{name} has taken it, in {took}"),
        (Some(why), _) => format!("{name} has not taken it: {why}"),
    }
}

fn from_stdin() -> Result<String, Failure> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|error| {
        let message = format!("no address can be read from stdin: {error}");
        Failure::new(ErrorKind::InvalidInput, message, "write it to stdin, on one line")
    })?;
    Ok(line.trim().to_owned())
}

/// The first line of a file that nobody else may read.
fn read_secret(file: &Path) -> Result<Secret, Failure> {
    let refuse =
        |message: String, hint: String| Err(Failure::new(ErrorKind::InvalidInput, message, hint));
    let read = std::fs::metadata(file)
        .and_then(|meta| Ok((meta.permissions().mode(), std::fs::read_to_string(file)?)));
    let shown = file.display();
    match read {
        Err(error) => refuse(
            format!("the secret file {shown} cannot be read: {error}"),
            "name a file whose first line is the secret".to_owned(),
        ),
        Ok((mode, _)) if mode & 0o077 != 0 => refuse(
            format!("others may read the secret in {shown}"),
            format!("make another secret, in a file of your own: chmod 0600 {shown}"),
        ),
        Ok((_, text)) => Ok(Secret::new(text.lines().next().unwrap_or_default().trim())),
    }
}

fn one(webhook: &Webhook) -> String {
    Fields::default()
        .add("name", &webhook.name)
        .add("url", &webhook.url)
        .add("events", webhook.events.join(", "))
        .add("state", word(&webhook.state))
        .add("waiting", webhook.waiting)
        .add("missed", webhook.missed)
        .add_some("delivered at", webhook.delivered_at)
        .add_some("failing since", webhook.failing_since)
        .add_some("failures", Some(webhook.failures).filter(|count| *count > 0))
        .add_some("error", webhook.error.as_ref())
        .add_some("secret of before until", webhook.old_secret_until)
        .add_some("insecure", webhook.insecure.then_some("yes"))
        .add("id", webhook.id)
        .add("created at", webhook.created_at)
        .text()
}

const COLUMNS: &[Column<Webhook>] = &[
    usual("webhook", |one| one.name.clone(), |one| Key::text(&one.name)),
    usual("state", |one| word(&one.state), |one| Key::text(word(&one.state))),
    usual("events", |one| one.events.join(","), |one| Key::text(one.events.join(","))),
    usual("waiting", |one| one.waiting.to_string(), |one| Key::Number(one.waiting)),
    usual("missed", |one| one.missed.to_string(), |one| Key::Number(one.missed)),
    usual(
        "delivered-at",
        |one| or_dash(one.delivered_at.map(seconds)),
        |one| Key::time(one.delivered_at),
    ),
    usual("url", |one| one.url.clone(), |one| Key::text(&one.url)),
    more("created-at", |one| seconds(one.created_at), |one| Key::Time(one.created_at)),
    more("error", |one| or_dash(one.error.clone()), |one| Key::text(or_dash(one.error.clone()))),
];

#[cfg(test)]
mod tests;
