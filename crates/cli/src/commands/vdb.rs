//! `offshoot vdb …`

use super::{Session, hooks, removal, several};
use crate::args::{
    ConnectArgs, HookArgs, JobArgs, KeepArg, ListVdbsArgs, LogsArgs, NamesJobArgs, ProvisionArgs,
    RewindArgs, VdbChangeArgs, VdbCommand, VdbOptionArgs,
};
use crate::listing::{self, Column, Key, more, usual};
use crate::output::{Fields, duration, or_dash, seconds, size, word, write_exactly};
use crate::psql;
use offshoot_api::{
    ProvisionTimings, ProvisionVdb, RefreshVdb, ReparentVdb, RewindTo, RewindVdb, SetVdb, Vdb,
    VdbGateway, VdbLog,
};
use offshoot_types::{ErrorKind, Failure, JobId};
use std::collections::BTreeMap;

/// How much of a log is asked for: what a server shows of it at most.
const LOG_BYTES: u64 = 1 << 20;

/// Runs one command.
pub fn run(session: &Session, command: VdbCommand) -> Result<(), Failure> {
    let client = &session.client;
    match command {
        VdbCommand::Provision(args) => provision(session, *args),
        VdbCommand::List(args) => list(session, &args),
        VdbCommand::Show(args) => show(session, &args.name),
        VdbCommand::Connect(args) => connect(session, &args),
        VdbCommand::Exec(args) => {
            psql::run_with(&session.client.show_vdb(&args.name)?, &args.command)
        }
        VdbCommand::Set(args) => {
            let name = args.change.new_name.clone().unwrap_or_else(|| args.name.clone());
            let job = client.set_vdb(&args.name, &set_request(args.change)?)?;
            change(session, &name, args.job, job)
        }
        VdbCommand::Logs(args) => logs(session, &args),
        VdbCommand::Hooks(args) => hooks::show(session, &args),
        VdbCommand::Certificate(args) => certificate(session, &args.name),
        VdbCommand::Start(NamesJobArgs { names, job }) => {
            several::each_shown(session, &names.all(), (job, show), "started", |name| {
                client.start_vdb(name)
            })
        }
        VdbCommand::Stop(NamesJobArgs { names, job }) => {
            several::each_shown(session, &names.all(), (job, show), "stopped", |name| {
                client.stop_vdb(name)
            })
        }
        VdbCommand::ResetPassword(args) => {
            change(session, &args.name, args.job, client.reset_password_of_vdb(&args.name)?)
        }
        VdbCommand::Delete(args) => {
            removal::confirm(session, "delete", &args.names.all(), args.yes)?;
            let remove = |name: &str| client.delete_vdb(name);
            several::each_done(session, &args.names.all(), args.job, "deleted", remove)
        }
        VdbCommand::Reparent(args) => {
            let request = ReparentVdb { to: args.to };
            change(session, &args.name, args.job, client.reparent_vdb(&args.name, &request)?)
        }
        VdbCommand::Refresh(args) => {
            let request = RefreshVdb { moment: args.moment.moment() };
            let refresh = |name: &str| client.refresh_vdb(name, &request);
            several::each_shown(session, &args.names.all(), (args.job, show), "refreshed", refresh)
        }
        VdbCommand::Rewind(args) => rewind(session, &args),
    }
}

fn provision(session: &Session, args: ProvisionArgs) -> Result<(), Failure> {
    let request = ProvisionVdb {
        name: args.name.clone(),
        from: args.from.unwrap_or_default(),
        template: args.template,
        moment: args.moment.moment(),
        port: args.port,
        ..options(args.options)?
    };
    let job = session.client.provision_vdb(&request)?;
    change(session, &args.name, args.job, job)
}

/// What a VDB is to be like, of a request that says no more.
pub fn options(args: VdbOptionArgs) -> Result<ProvisionVdb, Failure> {
    Ok(ProvisionVdb {
        gateway: args.gateway.gateway,
        stop_when_idle_ms: args.gateway.stop_when_idle,
        settings: args.set.into_iter().collect(),
        memory_bytes: args.memory,
        keep_source_logins: args.keep_source_logins,
        superuser: args.superuser,
        keep_foreign_servers: args.keep.contains(&KeepArg::ForeignServers),
        allow_network: args.allow_network,
        listen: args.listen,
        allow: args.allow,
        warm: args.warm,
        description: args.description,
        labels: args.label.into_iter().collect(),
        protected: args.protect,
        expires_in_ms: args.expires,
        hooks: hooks::read(args.hooks)?,
        refresh_keeps: args.refresh_keeps.into_iter().map(Into::into).collect(),
        ..ProvisionVdb::default()
    })
}

/// What is to be set and what is to go, by their keys; null goes. One of each is asked for.
fn changes(
    set: Vec<(String, String)>,
    unset: Vec<String>,
) -> Result<BTreeMap<String, Option<String>>, Failure> {
    if let Some(both) = unset.iter().find(|key| set.iter().any(|(set, _)| set == *key)) {
        let message = format!("'{both}' is to be set, and to be removed");
        return Err(Failure::new(ErrorKind::InvalidInput, message, "ask for one of them"));
    }
    let set = set.into_iter().map(|(key, value)| (key, Some(value)));
    Ok(set.chain(unset.into_iter().map(|key| (key, None))).collect())
}

fn set_request(change: VdbChangeArgs) -> Result<SetVdb, Failure> {
    let kept = change.refresh_keeps;
    let refresh_keeps = (!kept.is_empty())
        .then(|| kept.iter().filter_map(|choice| choice.0).map(Into::into).collect());
    let (hook, hook_database) = (change.hook, change.hook_database);
    let hooks = HookArgs { hook, hook_database, hook_time_limit: change.hook_time_limit };
    Ok(SetVdb {
        name: change.new_name,
        port: change.port,
        hooks: hooks::read(hooks)?,
        refresh_keeps,
        remove_hooks: change.no_hook.into_iter().map(|event| event.0).collect(),
        description: change.description,
        labels: changes(change.label, change.unlabel)?,
        protected: (change.protect || change.unprotect).then_some(change.protect),
        expires_in_ms: change.expires.map(|choice| choice.0),
        settings: changes(change.set, change.unset)?,
        memory_bytes: change.memory.map(|choice| choice.0),
        gateway: (change.gateway || change.no_gateway).then_some(change.gateway),
        stop_when_idle_ms: change.stop_when_idle.map(|choice| choice.0),
    })
}

/// Its users write into the log what they like: control characters do not reach the terminal.
fn logs(session: &Session, args: &LogsArgs) -> Result<(), Failure> {
    if args.follow && session.output.json {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            "--follow has no end, and --json prints one document",
            "leave out one of them; a program asks for `since` by the API",
        ));
    }
    let log = session.client.vdb_log(&args.name, None, LOG_BYTES)?;
    let lines: Vec<&str> = log.text.lines().collect();
    let last = lines.len().saturating_sub(args.tail);
    let text = lines[last..].join("\n");
    let log = VdbLog { text, ..log };
    let plain = |letter: &char| matches!(letter, '\n' | '\t') || !letter.is_control();
    let plain = |text: &str| text.chars().filter(plain).collect::<String>();
    session.output.print(&log, |log| plain(&log.text));
    if args.follow {
        let show = |text: &str| write_exactly(&plain(text));
        return Err(session.client.follow_vdb_log(&args.name, log.end, LOG_BYTES, show));
    }
    Ok(())
}

fn rewind(session: &Session, args: &RewindArgs) -> Result<(), Failure> {
    // The grammar lets through exactly one of --snapshot, --bookmark and --undo.
    let to = match (args.to.snapshot, args.to.bookmark.clone()) {
        (Some(id), _) => RewindTo::Snapshot { id },
        (None, Some(name)) => RewindTo::Bookmark { name },
        (None, None) => RewindTo::Undo,
    };
    let job = session.client.rewind_vdb(&args.name, &RewindVdb { to })?;
    change(session, &args.name, args.job, job)
}

fn connect(session: &Session, args: &ConnectArgs) -> Result<(), Failure> {
    let vdb = session.client.show_vdb(&args.name)?;
    if session.output.json {
        session.output.print(&vdb, show_text);
        return Ok(());
    }
    psql::open(&vdb, &args.psql)
}

fn certificate(session: &Session, name: &str) -> Result<(), Failure> {
    let vdb = session.client.show_vdb(name)?;
    let network = vdb.network.as_ref().ok_or_else(|| {
        Failure::new(
            ErrorKind::WrongState,
            format!("'{name}' listens on loopback alone, without TLS"),
            "give it --listen and --allow when it is provisioned",
        )
    })?;
    session.output.print(&vdb.network, |_| network.certificate.trim_end().to_owned());
    Ok(())
}

/// Waits for a job that leaves a VDB, and shows it.
fn change(session: &Session, name: &str, args: JobArgs, job: JobId) -> Result<(), Failure> {
    session.follow(job, args, |_| show(session, name))
}

fn show(session: &Session, name: &str) -> Result<(), Failure> {
    session.output.print(&session.client.show_vdb(name)?, show_text);
    Ok(())
}

fn provisioned_in(timings: &ProvisionTimings) -> String {
    let parts = [
        ("clone", timings.clone_ms),
        ("mount", timings.mount_ms),
        ("recover", timings.recover_ms),
        ("start", timings.start_ms),
    ];
    let parts = parts.map(|(name, ms)| format!("{name} {}", duration(ms))).join(", ");
    let (log, replay) = (size(timings.log_bytes), duration(timings.replay_ms));
    let replayed = match timings.log_bytes {
        0 => String::new(),
        _ => format!("; {log} of log were replayed in {replay}"),
    };
    format!("{} ({parts}{replayed})", duration(timings.total_ms))
}

fn show_text(vdb: &Vdb) -> String {
    let mut fields = Fields::default()
        .add("name", &vdb.name)
        .add("state", state(vdb))
        .add("parent", format!("{} ({})", vdb.parent, word(&vdb.parent_kind)))
        .add_some("snapshot", vdb.moment.snapshot)
        .add_some("lsn", vdb.moment.lsn.as_deref())
        .add_some("moment", vdb.moment.time)
        .add("host", &vdb.host)
        .add("port", vdb.port)
        .add_some("owner", vdb.owner.as_ref())
        .add("user", &vdb.user)
        .add("rights", rights(vdb))
        .add("uri", &vdb.uri);
    for one in &vdb.removed {
        fields = fields.add("removed", one);
    }
    fields = fields
        .add_some("reaches", (!vdb.allow_network.is_empty()).then(|| joined(&vdb.allow_network)))
        .add_some("reached at", vdb.network.as_ref().map(|network| joined(&network.listen)))
        .add_some("reached from", vdb.network.as_ref().map(|network| joined(&network.allow)))
        .add("server version", &vdb.server_version)
        .add("logical size", size(vdb.logical_bytes))
        .add("unique", size(vdb.unique_bytes))
        .add_some("memory", vdb.memory_bytes.map(size))
        .add("provisioned in", provisioned_in(&vdb.timings))
        .add("created at", vdb.created_at);
    if !vdb.description.is_empty() {
        fields = fields.add("description", &vdb.description);
    }
    for (key, value) in &vdb.labels {
        fields = fields.add("label", format!("{key}={value}"));
    }
    fields = fields
        .add_some("protected", vdb.protected.then_some("it is neither deleted nor replaced"))
        .add_some("expires at", vdb.expires_at);
    for hook in &vdb.hooks {
        fields = fields.add("hook", hooks::in_short(hook));
    }
    fields = fields.add_some("gateway", vdb.gateway.as_ref().map(gateway));
    let kept: Vec<String> = vdb.refresh_keeps.iter().map(word).collect();
    let kept = Some(kept.join(", ")).filter(|kept| !kept.is_empty());
    fields = fields.add_some("a refresh keeps", kept);
    for (key, value) in &vdb.settings {
        fields = fields.add("setting", format!("{key} = {value}"));
    }
    fields
        .add_some("error", vdb.error.as_ref().map(|error| &error.message))
        .add_some("hint", vdb.error.as_ref().map(|error| &error.hint))
        .add_warnings(&vdb.warnings)
        .text()
}

/// Asleep is more than stopped: it says that connecting is enough.
fn state(vdb: &Vdb) -> String {
    let asleep = vdb.gateway.as_ref().is_some_and(|gateway| gateway.asleep);
    if asleep { "stopped (asleep)".to_owned() } else { word(&vdb.state) }
}

fn gateway(gateway: &VdbGateway) -> String {
    let stops = gateway
        .stop_when_idle_ms
        .map(|ms| format!("; its server is stopped when nobody has used it for {}", duration(ms)));
    format!("holds connections while its server is away{}", stops.unwrap_or_default())
}

/// A list in one line.
pub fn joined<T: ToString>(all: &[T]) -> String {
    all.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// What its user may do, and what of production is still in it.
fn rights(vdb: &Vdb) -> String {
    let user = if vdb.superuser { "superuser" } else { "owner of the databases" };
    let kept = [
        (vdb.keep_source_logins, "source's logins work, with production's passwords"),
        (vdb.keep_foreign_servers, "source's foreign servers work, with production's passwords"),
    ];
    let kept = kept.into_iter().filter_map(|(keeps, words)| keeps.then_some(words));
    std::iter::once(user).chain(kept).collect::<Vec<_>>().join("; ")
}

const COLUMNS: &[Column<Vdb>] = &[
    usual("name", |vdb| vdb.name.clone(), |vdb| Key::text(&vdb.name)),
    usual("state", state, |vdb| Key::text(word(&vdb.state))),
    usual("parent", |vdb| vdb.parent.clone(), |vdb| Key::text(&vdb.parent)),
    usual("moment", |vdb| or_dash(vdb.moment.time.map(seconds)), |vdb| Key::time(vdb.moment.time)),
    usual("port", |vdb| vdb.port.to_string(), |vdb| Key::Number(vdb.port.into())),
    usual("size", |vdb| size(vdb.logical_bytes), |vdb| Key::Number(vdb.logical_bytes)),
    usual("unique", |vdb| size(vdb.unique_bytes), |vdb| Key::Number(vdb.unique_bytes)),
    usual("expires", |vdb| or_dash(vdb.expires_at.map(seconds)), |vdb| Key::time(vdb.expires_at)),
    more("owner", |vdb| or_dash(vdb.owner.clone()), |vdb| key_of(vdb.owner.as_ref())),
    more("labels", |vdb| or_dash(labels(vdb)), |vdb| key_of(labels(vdb).as_ref())),
    more("description", |vdb| vdb.description.clone(), |vdb| Key::text(&vdb.description)),
    more("version", |vdb| vdb.server_version.clone(), |vdb| Key::text(&vdb.server_version)),
    more("memory", |vdb| or_dash(vdb.memory_bytes.map(size)), |vdb| Key::number(vdb.memory_bytes)),
    more("hooks", |vdb| vdb.hooks.len().to_string(), |vdb| Key::Number(vdb.hooks.len() as u64)),
    more("created-at", |vdb| seconds(vdb.created_at), |vdb| Key::Time(vdb.created_at)),
    more("error", |vdb| or_dash(error(vdb).cloned()), |vdb| key_of(error(vdb))),
];

fn key_of(text: Option<&String>) -> Key {
    text.map_or(Key::Nothing, Key::text)
}

fn labels(vdb: &Vdb) -> Option<String> {
    let labels: Vec<String> =
        vdb.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    Some(labels.join(",")).filter(|all| !all.is_empty())
}

fn error(vdb: &Vdb) -> Option<&String> {
    vdb.error.as_ref().map(|error| &error.message)
}

/// Whether it has a label, by `key=value`, or one of a key.
fn has_label(vdb: &Vdb, wanted: &str) -> bool {
    match wanted.split_once('=') {
        Some((key, value)) => vdb.labels.get(key).is_some_and(|one| one == value),
        None => vdb.labels.contains_key(wanted),
    }
}

fn list(session: &Session, args: &ListVdbsArgs) -> Result<(), Failure> {
    listing::print(
        session.output,
        session.client.list_vdbs()?,
        |list| &mut list.vdbs,
        (&args.list, COLUMNS),
        |all| {
            listing::retain_in(all, &args.state, |vdb| word(&vdb.state));
            all.retain(|vdb| {
                args.label.iter().all(|wanted| has_label(vdb, wanted))
                    && args.parent.as_ref().is_none_or(|name| *name == vdb.parent)
                    && args.owner.as_ref().is_none_or(|name| vdb.owner.as_ref() == Some(name))
            });
        },
        "there is no VDB; make one with: offshoot vdb provision",
    )
}
