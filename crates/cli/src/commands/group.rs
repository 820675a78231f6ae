//! `offshoot group …`

use super::{Session, removal};
use crate::args::{GroupCommand, GroupProvisionArgs, JobArgs, ListArgs, NameArgs};
use crate::listing::{self, Column, Key, more, usual};
use crate::output::{Fields, or_dash, seconds, table, word};
use jiff::Timestamp;
use offshoot_api::{
    BookmarkVdbGroup, CreateGroup, Group, GroupMember, ProvisionVdbGroup, RefreshVdbGroup,
    RewindVdbGroup, Vdb, VdbGroup,
};
use offshoot_types::{ErrorKind, Failure, JobId};
use serde::Serialize;

/// What a name stands for.
enum Found {
    Group(Group),
    Vdbs(VdbGroup),
}

/// All of both.
#[derive(Serialize)]
struct Lists {
    groups: Vec<Group>,
    vdb_groups: Vec<VdbGroup>,
}

/// Runs one command.
pub fn run(session: &Session, command: GroupCommand) -> Result<(), Failure> {
    let client = &session.client;
    match command {
        GroupCommand::Create(args) => {
            let request = CreateGroup { name: args.name, members: args.members };
            session.output.print(&client.create_group(&request)?, group_text);
            Ok(())
        }
        GroupCommand::List(args) => list(session, &args),
        GroupCommand::Show(args) => show(session, &args),
        GroupCommand::Delete(args) => delete(session, &args.name, args.yes, args.job),
        GroupCommand::Provision(args) => provision(session, args),
        GroupCommand::Refresh(args) => {
            let request = RefreshVdbGroup { at: args.moment.time() };
            change(session, &args.name, args.job, client.refresh_vdb_group(&args.name, &request)?)
        }
        GroupCommand::Rewind(args) => {
            let request = RewindVdbGroup { bookmark: args.bookmark };
            change(session, &args.name, args.job, client.rewind_vdb_group(&args.name, &request)?)
        }
        GroupCommand::Bookmark(args) => {
            let (name, bookmark) = (args.name, args.bookmark);
            let request = BookmarkVdbGroup { bookmark: bookmark.clone() };
            let job = client.bookmark_vdb_group(&name, &request)?;
            session.follow(job, args.job, |job| {
                let back = format!("offshoot group rewind {name} --bookmark {bookmark}");
                session.done(&job, format!("{name} can go back here: {back}"));
                Ok(())
            })
        }
        GroupCommand::Start(args) => {
            change(session, &args.name, args.job, client.start_vdb_group(&args.name)?)
        }
        GroupCommand::Stop(args) => {
            change(session, &args.name, args.job, client.stop_vdb_group(&args.name)?)
        }
    }
}

fn provision(session: &Session, args: GroupProvisionArgs) -> Result<(), Failure> {
    let request = ProvisionVdbGroup {
        name: args.name.clone(),
        group: args.group,
        at: args.moment.time(),
        settings: args.set.into_iter().collect(),
        memory_bytes: args.memory,
    };
    let job = session.client.provision_vdb_group(&request)?;
    change(session, &args.name, args.job, job)
}

/// Waits for a job that leaves a VDB group, and shows it.
fn change(session: &Session, name: &str, args: JobArgs, job: JobId) -> Result<(), Failure> {
    session.follow(job, args, |_| {
        session.output.print(&session.client.show_vdb_group(name)?, vdb_group_text);
        Ok(())
    })
}

/// The group or the VDB group of a name.
fn find(session: &Session, name: &str) -> Result<Found, Failure> {
    let missing = |failure: &Failure| failure.code == ErrorKind::NotFound;
    match session.client.show_group(name) {
        Err(failure) if missing(&failure) => {}
        found => return found.map(Found::Group),
    }
    session.client.show_vdb_group(name).map(Found::Vdbs).map_err(|failure| {
        if !missing(&failure) {
            return failure;
        }
        let message = format!("there is no group and no VDB group named '{name}'");
        Failure::new(ErrorKind::NotFound, message, "list them: offshoot group list")
    })
}

fn show(session: &Session, args: &NameArgs) -> Result<(), Failure> {
    match find(session, &args.name)? {
        Found::Group(group) => session.output.print(&group, group_text),
        Found::Vdbs(group) => session.output.print(&group, vdb_group_text),
    }
    Ok(())
}

fn delete(session: &Session, name: &str, yes: bool, args: JobArgs) -> Result<(), Failure> {
    let group = match find(session, name)? {
        Found::Group(group) => {
            session.client.delete_group(name)?;
            session.output.print(&group, |_| format!("{name} is deleted; its dSources stay"));
            return Ok(());
        }
        Found::Vdbs(group) => group,
    };
    let vdbs: Vec<&str> = group.vdbs.iter().map(|vdb| vdb.name.as_str()).collect();
    removal::confirm_with(session, "delete", name, &vdbs, yes)?;
    let job = session.client.delete_vdb_group(name)?;
    session.follow(job, args, |job| {
        session.done(&job, format!("{name} is deleted with {}", vdbs.join(", ")));
        Ok(())
    })
}

impl Found {
    fn name(&self) -> String {
        match self {
            Found::Group(group) => group.name.clone(),
            Found::Vdbs(group) => group.name.clone(),
        }
    }

    fn members(&self) -> String {
        match self {
            Found::Group(group) => joined(group.members.iter().map(|one| &*one.name)),
            Found::Vdbs(group) => joined(group.vdbs.iter().map(|vdb| &*vdb.name)),
        }
    }

    fn of(&self) -> String {
        match self {
            Found::Group(_) => "dSources".to_owned(),
            Found::Vdbs(_) => "VDBs".to_owned(),
        }
    }

    fn moment(&self) -> Option<Timestamp> {
        match self {
            Found::Group(group) => group.latest,
            Found::Vdbs(group) => group.moment,
        }
    }

    fn created_at(&self) -> Timestamp {
        match self {
            Found::Group(group) => group.created_at,
            Found::Vdbs(group) => group.created_at,
        }
    }
}

const COLUMNS: &[Column<Found>] = &[
    usual("name", Found::name, |one| Key::text(one.name())),
    usual("of", Found::of, |one| Key::text(one.of())),
    usual("members", Found::members, |one| Key::text(one.members())),
    usual("moment", |one| or_dash(one.moment().map(seconds)), |one| Key::time(one.moment())),
    more("created", |one| seconds(one.created_at()), |one| Key::Time(one.created_at())),
];

fn list(session: &Session, args: &ListArgs) -> Result<(), Failure> {
    let groups = session.client.list_groups()?.groups.into_iter().map(Found::Group);
    let vdb_groups = session.client.list_vdb_groups()?.vdb_groups;
    let mut all: Vec<_> = groups.chain(vdb_groups.into_iter().map(Found::Vdbs)).collect();
    let of = all.len();
    listing::arrange(&mut all, args, COLUMNS)?;
    let empty = "there is no group; make one with: offshoot group create";
    let words = listing::text(&all, of, args, COLUMNS, empty);
    let mut lists = Lists { groups: Vec::new(), vdb_groups: Vec::new() };
    for one in all {
        match one {
            Found::Group(group) => lists.groups.push(group),
            Found::Vdbs(group) => lists.vdb_groups.push(group),
        }
    }
    session.output.print(&lists, |_| words);
    Ok(())
}

fn joined<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

fn group_text(group: &Group) -> String {
    let fields = Fields::default()
        .add("name", &group.name)
        .add("latest of all", or_dash(group.latest.map(|time| time.to_string())))
        .add("created at", group.created_at)
        .add_warnings(&group.warnings);
    format!("{}\n{}", fields.text(), members_text(&group.members))
}

fn vdb_group_text(group: &VdbGroup) -> String {
    let fields = Fields::default()
        .add("name", &group.name)
        .add("group", &group.group)
        .add("moment", or_dash(group.moment.map(|time| time.to_string())))
        .add("created at", group.created_at)
        .add_warnings(&group.warnings);
    let row = |vdb: &Vdb| {
        let moment = or_dash(vdb.moment.time.map(seconds));
        vec![vdb.name.clone(), word(&vdb.state), vdb.parent.clone(), moment, vdb.uri.clone()]
    };
    let heads = ["VDB", "state", "parent", "moment", "uri"];
    let vdbs = table(&heads, group.vdbs.iter().map(row).collect());
    format!("{}\n{vdbs}\n{}", fields.text(), members_text(&group.members))
}

fn members_text(members: &[GroupMember]) -> String {
    let row = |one: &GroupMember| {
        let skew = one.clock_skew_ms.map(|skew| format!("{skew:+} ms"));
        vec![one.name.clone(), word(&one.state), or_dash(one.synced_to.map(seconds)), or_dash(skew)]
    };
    let heads = ["dSource", "state", "received to", "clock"];
    table(&heads, members.iter().map(row).collect())
}
