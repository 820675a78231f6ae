//! The host of the engine is lost, and another engine goes on with what it was sent.

use super::checks::Seen;
use super::interrupt::Interrupt;
use super::voice::Voice;
use super::{Stage, provision_on};
use crate::report::{Report, Takeover};
use anyhow::{Context, Result};
use jiff::Timestamp;
use offshoot_api::{
    Dsource, DsourceState, PeerInvitation, Replication, SnapshotList, Status, Vdb, VdbState,
};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{Database, Engine, EngineOptions, Scratch, Tick};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// Longest that anything here may be waited for.
const WAIT_MAX: Duration = Duration::from_secs(120);
/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// What the profile sends.
const INCLUDE: &str = "dsource:sample,vdb:first";

/// The moment at which the first engine was lost.
struct Loss {
    /// By the monotonic clock.
    at: Duration,
    /// By the clock that the writer uses.
    time: Timestamp,
    /// The last commit that production had acknowledged.
    acknowledged: i64,
}

/// The VDBs that the second engine has at the end: the one that it took over, and one of what production committed since.
pub(super) struct TakenOver {
    pub(super) first: Vdb,
    pub(super) latest: Vdb,
}

/// One engine sends to another, its host is lost, and the other one takes over.
pub(super) fn show(
    stage: &mut Stage,
    voice: &Voice,
    interrupt: &Interrupt,
    report: &mut Report,
) -> Result<TakenOver> {
    voice.heading("A second engine");
    let second = voice
        .timed(report, "second engine, on a pool of its own", || start_second(&stage.scratch))?;
    stage.second = Some(second);
    introduce(stage, voice)?;
    interrupt.check()?;
    let lag_ms = send(stage, voice, interrupt, report)?;
    interrupt.check()?;
    voice.heading("The first engine's host is lost");
    let loss = lose_first(stage)?;
    voice.say("          kill -9: the engine and all databases that it runs");
    let (first, vdb_answers_ms) = take_over(stage, voice, interrupt, report, &loss)?;
    let (lacking, follows_ms) = go_on(stage, voice, interrupt, report, &loss)?;
    let latest = provision_on(stage.second()?, voice, report, "latest", "sample", None)?;
    nothing_is_lost(voice, report, &latest, &loss)?;
    voice.say(&format!(
        "  since the loss: first answered after {:.1} s, sample followed production after {:.1} s",
        vdb_answers_ms as f64 / 1e3,
        follows_ms as f64 / 1e3
    ));
    report.takeover = Some(Takeover { lag_ms, lacking, vdb_answers_ms, follows_ms });
    interrupt.check()?;
    come_back(stage, voice, interrupt, report)?;
    Ok(TakenOver { first, latest })
}

/// An engine that others can send to.
fn start_second(scratch: &Scratch) -> Result<Engine> {
    // By TLS, as it is to be sent to; on loopback, as nobody else has to reach a demonstration.
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])
        .context("a certificate for the second engine")?;
    let (certificate, key) =
        (scratch.path().join("second-tls.crt"), scratch.path().join("second-tls.key"));
    write_secret(&certificate, &made.cert.pem())?;
    write_secret(&key, &made.signing_key.serialize_pem())?;
    let mut options = EngineOptions::new(std::env::current_exe().context("finding this binary")?);
    options.arguments = vec![
        "--tls-cert".into(),
        certificate.display().to_string(),
        "--tls-key".into(),
        key.display().to_string(),
    ];
    let mut engine = Engine::prepare(scratch.path().join("second"), options);
    engine.restart()?;
    Ok(engine)
}

/// The first engine is `west` to the second one, which is `east` to it.
fn introduce(stage: &Stage, voice: &Voice) -> Result<()> {
    let second = stage.second()?;
    let status: Status = second.ask(["status"])?;
    voice.command("offshoot peer invite --as west                       # on the second");
    let invited: PeerInvitation = second.ask(["peer", "invite", "--as", "west"])?;
    let add = ["peer", "add", "east", "--address", &status.listen, "--code", "-"];
    voice.command(&format!("offshoot {}   # on the first, which reads the code", add.join(" ")));
    let code = stage.scratch.path().join("code");
    write_secret(&code, &invited.code)?;
    stage.engine.command_with_stdin(add, &code)?;
    std::fs::remove_file(&code).context("removing the code")
}

/// Sends the sample and `first`, always. How long after its commit something opens on the second engine, in milliseconds.
fn send(stage: &Stage, voice: &Voice, interrupt: &Interrupt, report: &mut Report) -> Result<u64> {
    voice.command("offshoot snapshot take first");
    voice.timed(report, "snapshot of first, proved to open", || {
        stage.engine.command(["snapshot", "take", "first"])?;
        wait_until(interrupt, "the snapshot of first is ready", || {
            let list: SnapshotList = stage.engine.ask(["snapshot", "list", "first"])?;
            Ok(list.snapshots.last().is_some_and(|one| one.ready))
        })
    })?;
    let words =
        ["replication", "create", "always", "--to", "east", "--include", INCLUDE, "--continuous"];
    voice.command(&format!("offshoot {}", words.join(" ")));
    let shown = || stage.engine.ask::<Replication, _>(["replication", "show", "always"]);
    voice.timed(report, "all of it is on the second engine", || {
        stage.engine.command(words)?;
        wait_until(interrupt, "the first copy is sent", || Ok(shown()?.last_success_at.is_some()))
    })?;
    let profile = shown()?;
    let behind = format!("{} bytes, {} ms", profile.lag_bytes, profile.lag_ms.unwrap_or_default());
    voice.command("offshoot replication show always");
    voice.say(&format!(
        "        {:.1} MB sent; behind production: {behind}",
        profile.sent_bytes as f64 / 1e6
    ));
    let tick = newest(stage)?;
    let began = SystemClock.elapsed();
    wait_until(interrupt, "a commit opens on the second engine", || {
        has(stage.second()?, "west/sample", tick.after)
    })?;
    let lag_ms = millis_since(began);
    let seen = format!("write {}, {lag_ms} ms after its commit", tick.value);
    voice.check(report, "what production commits opens on the second engine", true, seen);
    Ok(lag_ms)
}

/// All processes of the first engine end at once; its files stay, as on the disk of a host without power.
fn lose_first(stage: &mut Stage) -> Result<Loss> {
    let status: Status = stage.engine.ask(["status"])?;
    // Where a link to its console leads, also after it has come back.
    stage.engine.options.listen = status.listen;
    let acknowledged = newest(stage)?.value;
    let (at, time) = (SystemClock.elapsed(), now()?);
    stage.engine.lose_host()?;
    Ok(Loss { at, time, acknowledged })
}

/// The second engine takes over; the VDB that it makes again, and after how many milliseconds that answered.
fn take_over(
    stage: &Stage,
    voice: &Voice,
    interrupt: &Interrupt,
    report: &mut Report,
    loss: &Loss,
) -> Result<(Vdb, u64)> {
    let second = stage.second()?;
    voice.command("offshoot failover west --force                       # on the second");
    voice.timed(report, "what was sent belongs to the second engine", || {
        Ok(second.command(["failover", "west", "--force"]).map(drop)?)
    })?;
    let mut found = None;
    wait_until(interrupt, "first answers on the second engine", || {
        let vdb: Vdb = second.ask(["vdb", "show", "first"])?;
        if vdb.state != VdbState::Running {
            return Ok(false);
        }
        let rows = Database::connect(&vdb.uri)?.number("SELECT count(*) FROM only_in_first")?;
        found = Some((vdb, rows));
        Ok(true)
    })?;
    let ms = millis_since(loss.at);
    let (vdb, rows) = found.context("a VDB that answered")?;
    let seen = format!("{rows} row, {ms} ms after the loss");
    voice.check(report, "first answers there, and has what was written in it", rows == 1, seen);
    Ok((vdb, ms))
}

/// The dSource goes on with production. How many commits it lacked before, and milliseconds from the loss until it followed.
fn go_on(
    stage: &Stage,
    voice: &Voice,
    interrupt: &Interrupt,
    report: &mut Report,
    loss: &Loss,
) -> Result<(i64, u64)> {
    let second = stage.second()?;
    let taken: Dsource = second.ask(["dsource", "show", "sample"])?;
    let until = taken.synced_to.and_then(|synced| synced.time);
    let until = until.context("the second engine has log of production")?;
    let file = stage.scratch.path().join("password");
    write_secret(&file, stage.source.link_password())?;
    voice.command("offshoot dsource set sample --password-file FILE     # passwords do not travel");
    voice.timed(report, "the second engine follows production", || {
        let file = file.display().to_string();
        second.command(["dsource", "set", "sample", "--password-file", &file])?;
        wait_until(interrupt, "a commit made after the loss opens", || {
            let history = stage.writer.history();
            let later = history.ticks().iter().find(|tick| tick.before > loss.time);
            later.map_or(Ok(false), |tick| has(second, "sample", tick.after))
        })
    })?;
    let follows_ms = millis_since(loss.at);

    // What was there before production was asked again.
    let words = ["vdb", "provision", "as-sent", "--from", "sample", "--at", &until.to_string()];
    let vdb: Vdb = second.ask(words)?;
    let seen = Seen::of(&Database::connect(&vdb.uri)?)?;
    second.command(["vdb", "delete", "as-sent"])?;
    let lacking = (loss.acknowledged - seen.max()).max(0);
    let expected = stage.writer.history().value_at(until);
    let ok = seen.whole() && expected.is_none_or(|value| value == seen.max());
    let text = format!(
        "up to write {}; production had acknowledged {}, {lacking} more, when the host was lost",
        seen.max(),
        loss.acknowledged
    );
    voice.check(report, "what was sent is there to the last commit", ok, text);
    Ok((lacking, follows_ms))
}

fn nothing_is_lost(voice: &Voice, report: &mut Report, latest: &Vdb, loss: &Loss) -> Result<()> {
    let seen = Seen::of(&Database::connect(&latest.uri)?)?;
    let ok = seen.whole() && seen.max() > loss.acknowledged;
    voice.check(report, "no commit of production is lost", ok, seen.say());
    Ok(())
}

/// The first engine learns that it was taken over.
fn come_back(
    stage: &mut Stage,
    voice: &Voice,
    interrupt: &Interrupt,
    report: &mut Report,
) -> Result<()> {
    voice.heading("The first engine comes back");
    voice.timed(report, "the first engine on its pool again", || stage.engine.restart())?;
    let mut said = String::new();
    wait_until(interrupt, "the first engine knows that it was taken over", || {
        let vdb: Vdb = stage.engine.ask(["vdb", "show", "first"])?;
        let sample: Dsource = stage.engine.ask(["dsource", "show", "sample"])?;
        said = vdb.error.map(|error| error.message).unwrap_or_default();
        let stopped = vdb.state == VdbState::Stopped && sample.state == DsourceState::Paused;
        Ok(stopped && !said.is_empty())
    })?;
    let fenced = said.contains("has taken it over");
    voice.check(report, "first is stopped there, and sample paused", fenced, said);
    let others = ["second", "branch", "masked"];
    wait_until(interrupt, "what was not sent runs on the first engine", || {
        for name in others {
            let vdb: Vdb = stage.engine.ask(["vdb", "show", name])?;
            Database::connect(&vdb.uri)?;
        }
        Ok(true)
    })?;
    voice.check(report, "what was not sent runs there as before", true, others.join(", "));
    Ok(())
}

/// Whether any moment up to `time` of a dSource opens there.
fn has(engine: &Engine, dsource: &str, time: Timestamp) -> Result<bool> {
    let shown: Dsource = engine.ask(["dsource", "show", dsource])?;
    Ok(shown.synced_to.and_then(|synced| synced.time).is_some_and(|synced| synced >= time))
}

/// The newest commit that production has acknowledged.
fn newest(stage: &Stage) -> Result<Tick> {
    let history = stage.writer.history();
    history.ticks().last().copied().context("a write of the sample source")
}

fn now() -> Result<Timestamp> {
    Timestamp::try_from(SystemClock.now()).context("this host's clock")
}

fn millis_since(began: Duration) -> u64 {
    (SystemClock.elapsed() - began).as_millis() as u64
}

/// Waits until it holds, or somebody ends the demonstration.
fn wait_until(
    interrupt: &Interrupt,
    what: &str,
    mut holds: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let ended = || Ok(interrupt.check().is_err() || holds()?);
    offshoot_rig::wait_until(what, WAIT_MAX, LOOK, ended)?;
    interrupt.check()
}

/// A file that nobody else can read.
fn write_secret(path: &Path, text: &str) -> Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let mut file = file.with_context(|| format!("making {}", path.display()))?;
    writeln!(file, "{}", text.trim_end()).with_context(|| format!("writing {}", path.display()))
}
