//! `offshoot peer …`

use super::Session;
use crate::args::{PeerAddArgs, PeerCommand, PeerInviteArgs};
use crate::listing::{self, Column, Key, more, usual};
use crate::output::{Fields, or_dash, seconds};
use offshoot_api::{AddPeer, InvitePeer, Peer};
use offshoot_types::{ErrorKind, Failure};

/// Stands for stdin.
const STANDARD: &str = "-";

/// Runs one command.
pub fn run(session: &Session, command: PeerCommand) -> Result<(), Failure> {
    let (client, output) = (&session.client, session.output);
    match command {
        PeerCommand::Invite(PeerInviteArgs { name, expires }) => {
            let made = client.invite_peer(&InvitePeer { name, expires_in_ms: Some(expires) })?;
            if !output.json {
                eprintln!(
                    "good once, until {}; it is not shown again\non the other engine: \
                     offshoot peer add NAME --address HOST:PORT --code CODE (this engine listens on {})",
                    seconds(made.expires_at),
                    made.listen
                );
            }
            output.print(&made, |made| made.code.clone());
        }
        PeerCommand::Add(PeerAddArgs { name, address, code }) => {
            let code = if code == STANDARD { from_stdin()? } else { code };
            let added = client.add_peer(&AddPeer { name, address, code })?;
            output.print(&added, |peer| {
                format!(
                    "{} is added; send it something: offshoot replication create NAME --to {} --include all",
                    peer.name, peer.name
                )
            });
        }
        PeerCommand::List(args) => listing::print(
            output,
            client.list_peers()?,
            |list| &mut list.peers,
            (&args, COLUMNS),
            |_| (),
            "there is no peer; let one in with: offshoot peer invite",
        )?,
        PeerCommand::Show(args) => output.print(&client.show_peer(&args.name)?, one),
        PeerCommand::Rotate => {
            let rotated = client.rotate_peer_key()?;
            output.print(&rotated, |rotated| match &rotated.pending[..] {
                [] => "there is another key; there is no peer to tell".to_owned(),
                pending => format!(
                    "there is another key; told of it by the next connection: {}",
                    pending.join(", ")
                ),
            });
        }
        PeerCommand::Remove(args) => {
            let removed = client.remove_peer(&args.name)?;
            output.print(&removed, |peer| format!("{} is removed", peer.name));
        }
    }
    Ok(())
}

fn from_stdin() -> Result<String, Failure> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|error| {
        let message = format!("no code can be read from stdin: {error}");
        Failure::new(ErrorKind::InvalidInput, message, "write it to stdin, on one line")
    })?;
    Ok(line.trim().to_owned())
}

fn ways(peer: &Peer) -> &'static str {
    match (peer.address.is_some(), peer.may_send && peer.taken_over_at.is_none()) {
        (false, false) if peer.taken_over_at.is_some() => "taken over",
        (true, true) => "both",
        (true, false) => "is sent to",
        (false, true) => "sends here",
        (false, false) => "nothing",
    }
}

/// Whether it is still to be told of this engine's new key.
fn rotation(peer: &Peer) -> Option<String> {
    peer.rotation_pending.then(|| "pending".to_owned())
}

fn one(peer: &Peer) -> String {
    let profiles = Some(peer.profiles.join(", ")).filter(|names| !names.is_empty());
    Fields::default()
        .add("name", &peer.name)
        .add("role", ways(peer))
        .add_some("address", peer.address.as_ref())
        .add("fingerprint", &peer.fingerprint)
        .add("engine", &peer.engine)
        .add_some("profiles", profiles)
        .add_some("last seen at", peer.last_seen_at)
        .add_some("taken over at", peer.taken_over_at)
        .add_some("rotation", rotation(peer))
        .add("id", peer.id)
        .add("created at", peer.created_at)
        .text()
}

const COLUMNS: &[Column<Peer>] = &[
    usual("peer", |one| one.name.clone(), |one| Key::text(&one.name)),
    usual("role", |one| ways(one).to_owned(), |one| Key::text(ways(one))),
    usual(
        "address",
        |one| or_dash(one.address.clone()),
        |one| Key::text(or_dash(one.address.clone())),
    ),
    usual(
        "last-seen-at",
        |one| or_dash(one.last_seen_at.map(seconds)),
        |one| Key::time(one.last_seen_at),
    ),
    usual("rotation", |one| or_dash(rotation(one)), |one| Key::text(or_dash(rotation(one)))),
    usual("fingerprint", |one| one.fingerprint.clone(), |one| Key::text(&one.fingerprint)),
    more("engine", |one| one.engine.to_string(), |one| Key::text(one.engine.to_string())),
    more("created-at", |one| seconds(one.created_at), |one| Key::Time(one.created_at)),
];
