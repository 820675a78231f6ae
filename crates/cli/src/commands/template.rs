//! `offshoot template …`

use super::vdb::joined;
use super::{Session, hooks, vdb};
use crate::args::{SaidArg, TemplateCommand, TemplateCreateArgs, TemplateSetArgs};
use crate::listing::{self, Column, Key, usual};
use crate::output::{Fields, duration, or_dash, seconds, size};
use offshoot_api::{HookEvent, Moment, ProvisionVdb, SetTemplate, Template};
use offshoot_types::{ErrorKind, Failure};
use serde_json::{Map, Value};

/// Runs one command.
pub fn run(session: &Session, command: TemplateCommand) -> Result<(), Failure> {
    let (client, output) = (&session.client, session.output);
    match command {
        TemplateCommand::Create(args) => {
            let TemplateCreateArgs { name, from, moment, options } = *args;
            let moment = moment.moment();
            let from = from.unwrap_or_default();
            let request = ProvisionVdb { name, from, moment, ..vdb::options(options)? };
            output.print(&client.create_template(&request)?, text);
        }
        TemplateCommand::List(args) => listing::print(
            output,
            client.list_templates()?,
            |list| &mut list.templates,
            (&args, COLUMNS),
            |_| (),
            "there is no template; make one with: offshoot template create",
        )?,
        TemplateCommand::Show(args) => output.print(&client.show_template(&args.name)?, text),
        TemplateCommand::Set(args) => {
            let name = args.name.clone();
            output.print(&client.set_template(&name, &change(*args)?)?, text);
        }
        TemplateCommand::Delete(args) => {
            let deleted = client.delete_template(&args.name)?;
            output.print(&deleted, |template| {
                format!("{} is deleted; VDBs that were made by it stay", template.name)
            });
        }
    }
    Ok(())
}

fn change(args: TemplateSetArgs) -> Result<SetTemplate, Failure> {
    let TemplateSetArgs {
        new_name,
        from,
        moment,
        options,
        unset,
        unlabel,
        no_hook,
        mut remove,
        ..
    } = args;
    if moment.latest {
        remove.push(SaidArg::Moment);
    }
    let (name, from) = (new_name.unwrap_or_default(), from.unwrap_or_default());
    let request = ProvisionVdb { name, from, moment: moment.moment(), ..vdb::options(options)? };
    let removed: Vec<HookEvent> = no_hook.into_iter().map(|event| event.0).collect();
    let mut change = SetTemplate::saying(&request, &removed);
    for (pairs, gone) in [("settings", unset), ("labels", unlabel)] {
        if gone.is_empty() {
            continue;
        }
        let pairs = change.0.entry(pairs).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(pairs) = pairs {
            pairs.extend(gone.into_iter().map(|key| (key, Value::Null)));
        }
    }
    for field in remove.iter().flat_map(|said| said.fields()) {
        if change.0.insert((*field).to_owned(), Value::Null).is_some_and(|set| !set.is_null()) {
            let message = format!("'{field}' is given, and removed");
            return Err(Failure::new(ErrorKind::InvalidInput, message, "ask for one of them"));
        }
    }
    if change.0.is_empty() {
        let hint = "name what is to be different: offshoot template set --help";
        return Err(Failure::new(ErrorKind::InvalidInput, "nothing is to be changed", hint));
    }
    Ok(change)
}

const COLUMNS: &[Column<Template>] = &[
    usual("template", |one| one.name.clone(), |one| Key::text(&one.name)),
    usual("from", |one| or_dash(given(&one.request.from)), |one| Key::text(&one.request.from)),
    usual(
        "expires-after",
        |one| or_dash(one.request.expires_in_ms.map(duration)),
        |one| Key::number(one.request.expires_in_ms),
    ),
    usual(
        "description",
        |one| or_dash(one.request.description.clone()),
        |one| Key::text(or_dash(one.request.description.clone())),
    ),
    usual("created-at", |one| seconds(one.created_at), |one| Key::Time(one.created_at)),
];

fn given(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

fn text(template: &Template) -> String {
    let request = &template.request;
    let rights = [
        ("superuser", request.superuser),
        ("source logins", request.keep_source_logins),
        ("foreign servers", request.keep_foreign_servers),
    ];
    let rights = rights.iter().filter(|(_, has)| *has).map(|(right, _)| *right).collect::<Vec<_>>();
    let pairs = |pairs: &std::collections::BTreeMap<String, String>| {
        let all = pairs.iter().map(|(key, value)| format!("{key}={value}"));
        given(&joined(&all.collect::<Vec<_>>()))
    };
    let hooks = template.hooks.iter().map(hooks::in_short).collect::<Vec<_>>().join("; ");
    Fields::default()
        .add("name", &template.name)
        .add_some("from", given(&request.from))
        .add_some("moment", (request.moment != Moment::Latest).then(|| moment(&request.moment)))
        .add_some("description", request.description.clone())
        .add_some("labels", pairs(&request.labels))
        .add_some("settings", pairs(&request.settings))
        .add_some("memory", request.memory_bytes.map(size))
        .add_some("expires after", request.expires_in_ms.map(duration))
        .add_some("stopped when idle for", request.stop_when_idle_ms.map(duration))
        .add_some("gateway", request.gateway.then_some("yes"))
        .add_some("protected", request.protected.then_some("yes"))
        .add_some("warm copies", request.warm.then_some("yes"))
        .add_some("keeps", given(&joined(&rights)))
        .add_some("listens on", given(&joined(&request.listen)))
        .add_some("for", given(&joined(&request.allow)))
        .add_some("reaches", given(&joined(&request.allow_network)))
        .add_some("hooks", given(&hooks))
        .add("id", template.id)
        .add("created at", template.created_at)
        .text()
}

fn moment(moment: &Moment) -> String {
    match moment {
        Moment::Latest => "latest".to_owned(),
        Moment::Snapshot { id } => id.to_string(),
        Moment::At { time } => time.to_string(),
        Moment::Lsn { lsn } => lsn.to_string(),
        Moment::Bookmark { name } => format!("bookmark {name}"),
        Moment::Xid { xid } => format!("transaction {xid}"),
    }
}
