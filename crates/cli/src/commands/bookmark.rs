//! `offshoot bookmark …`

use super::{Session, several};
use crate::args::{BookmarkCommand, BookmarkCreateArgs, ListBookmarksArgs};
use crate::listing::{self, Column, Key, more, usual};
use crate::output::{Fields, seconds, word};
use offshoot_api::{Bookmark, CreateBookmark};
use offshoot_types::Failure;

/// Runs one command.
pub fn run(session: &Session, command: BookmarkCommand) -> Result<(), Failure> {
    let client = &session.client;
    match command {
        BookmarkCommand::Create(args) => create(session, &args),
        BookmarkCommand::List(args) => list(session, &args),
        BookmarkCommand::Delete(args) => {
            let remove = |name: &str| client.delete_bookmark(name);
            several::each_done(session, &args.names.all(), args.job, "deleted", remove)
        }
    }
}

fn create(session: &Session, args: &BookmarkCreateArgs) -> Result<(), Failure> {
    let request = CreateBookmark {
        name: args.name.clone(),
        on: args.on.clone(),
        moment: args.moment.moment(),
    };
    let job = session.client.create_bookmark(&request)?;
    session.follow(job, args.job, |_| {
        session.output.print(&session.client.show_bookmark(&args.name)?, show_text);
        Ok(())
    })
}

fn show_text(bookmark: &Bookmark) -> String {
    Fields::default()
        .add("name", &bookmark.name)
        .add(&word(&bookmark.object_kind), &bookmark.object)
        .add("time", bookmark.time)
        .add("lsn", &bookmark.lsn)
        .add("snapshot", bookmark.snapshot)
        .add("created at", bookmark.created_at)
        .text()
}

const COLUMNS: &[Column<Bookmark>] = &[
    usual("bookmark", |one| one.name.clone(), |one| Key::text(&one.name)),
    usual("on", |one| one.object.clone(), |one| Key::text(&one.object)),
    usual("time", |one| seconds(one.time), |one| Key::Time(one.time)),
    usual("lsn", |one| one.lsn.clone(), |one| Key::Time(one.time)),
    usual("snapshot", |one| one.snapshot.to_string(), |one| Key::Number(one.snapshot.0)),
    more("created-at", |one| seconds(one.created_at), |one| Key::Time(one.created_at)),
];

fn list(session: &Session, args: &ListBookmarksArgs) -> Result<(), Failure> {
    listing::print(
        session.output,
        session.client.list_bookmarks()?,
        |list| &mut list.bookmarks,
        (&args.list, COLUMNS),
        |all| {
            all.retain(|one| args.on.as_ref().is_none_or(|name| *name == one.object));
        },
        "there is no bookmark; set one with: offshoot bookmark create",
    )
}
