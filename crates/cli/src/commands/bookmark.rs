//! `offshoot bookmark …`

use super::Session;
use crate::args::{BookmarkCommand, BookmarkCreateArgs};
use crate::output::{Fields, seconds, table, word};
use offshoot_api::{Bookmark, CreateBookmark};
use offshoot_types::Failure;

/// Runs one command.
pub fn run(session: &Session, command: BookmarkCommand) -> Result<(), Failure> {
    let client = &session.client;
    match command {
        BookmarkCommand::Create(args) => create(session, &args),
        BookmarkCommand::List => {
            session.output.print(&client.list_bookmarks()?, |list| list_text(&list.bookmarks));
            Ok(())
        }
        BookmarkCommand::Delete(args) => {
            let job = client.delete_bookmark(&args.name)?;
            session.follow(job, args.job, |job| {
                session.done(&job, format!("{} is deleted", args.name));
                Ok(())
            })
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

fn list_text(bookmarks: &[Bookmark]) -> String {
    if bookmarks.is_empty() {
        return "there is no bookmark; set one with: offshoot bookmark create".to_owned();
    }
    let row = |bookmark: &Bookmark| {
        vec![
            bookmark.name.clone(),
            bookmark.object.clone(),
            seconds(bookmark.time),
            bookmark.lsn.clone(),
            bookmark.snapshot.to_string(),
        ]
    };
    let heads = ["bookmark", "on", "time", "lsn", "snapshot"];
    table(&heads, bookmarks.iter().map(row).collect())
}
