//! Two engines, of which one sends to the other.

use super::Arguments;
use crate::benchmarks::engine_options;
use crate::stage::{CHECKPOINTS, Stage};
use anyhow::{Context, Result, ensure};
use offshoot_api::{JobList, PeerInvitation, Replication, SnapshotList, Status};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::Engine;
use std::net::SocketAddr;
use std::time::Duration;

/// Longest one run may take.
pub const RUN_MAX: Duration = Duration::from_secs(7_200);
/// Longest that a snapshot may take to be ready.
const READY_MAX: Duration = Duration::from_secs(900);
/// After so long without a job the engine is at rest.
const RESTED: Duration = Duration::from_secs(5);

/// Two engines, of which one sends to the other. The order of the fields is the order in which they end.
pub struct Pair {
    /// The one that receives; there the other is `west`.
    pub there: Engine,
    /// The one that sends, and its source.
    pub stage: Stage,
    /// Where the other one is.
    pub address: SocketAddr,
}

impl Pair {
    pub fn start(arguments: &Arguments) -> Result<Pair> {
        let mut options = engine_options(&arguments.setting)?;
        let stage = Stage::start(&options, arguments.scale, &CHECKPOINTS)?;
        options.listen = "0.0.0.0:0".into();
        let mut there = Engine::prepare(stage.scratch.path().join("there"), options);
        there.restart()?;
        let address = address_of(&there)?;
        Ok(Pair { there, stage, address })
    }

    /// Makes the other engine known as `east`, by this way to it. Profiles have to be gone.
    pub fn reach_by(&self, address: &str) -> Result<()> {
        let known = self.stage.engine.command(["peer", "show", "east"]).is_ok();
        if known {
            self.stage.engine.command(["peer", "remove", "east"])?;
            self.there.command(["peer", "remove", "west"])?;
        }
        let invited: PeerInvitation = self.there.ask(["peer", "invite", "--as", "west"])?;
        let add = ["peer", "add", "east", "--address", address, "--code", &invited.code];
        self.stage.engine.command(add)?;
        Ok(())
    }

    /// Makes a profile.
    pub fn create(&self, name: &str, more: &[&str]) -> Result<()> {
        let words = ["replication", "create", name, "--to", "east"];
        self.stage.engine.command(words.iter().chain(more))?;
        Ok(())
    }

    /// Deletes it.
    pub fn delete(&self, name: &str) -> Result<()> {
        self.stage.engine.command(["replication", "delete", name])?;
        Ok(())
    }

    /// Runs it; what it did, and seconds of the whole command.
    pub fn run(&self, name: &str) -> Result<(Replication, f64)> {
        let began = SystemClock.elapsed();
        self.stage.engine.command_within(["replication", "run", name], &[], RUN_MAX)?;
        let seconds = (SystemClock.elapsed() - began).as_secs_f64();
        let shown = self.show(name)?;
        ensure!(shown.error.is_none(), "the run failed: {:?}", shown.error);
        Ok((shown, seconds))
    }

    /// Shows it.
    pub fn show(&self, name: &str) -> Result<Replication> {
        self.stage.engine.ask(["replication", "show", name])
    }

    /// Waits until the engine has the source's log.
    pub fn settle(&self) -> Result<()> {
        self.stage.engine.command(["dsource", "sync", "shop"])?;
        Ok(())
    }

    /// Waits until the engine that sends has had no job for a while.
    pub fn rest(&self) -> Result<()> {
        let deadline = SystemClock.elapsed() + READY_MAX;
        let mut since = SystemClock.elapsed();
        while SystemClock.elapsed() < since + RESTED {
            let list: JobList = self.stage.engine.ask(["job", "list"])?;
            if list.jobs.iter().any(|job| !job.state.is_final()) {
                since = SystemClock.elapsed();
            }
            ensure!(SystemClock.elapsed() < deadline, "the engine never rests");
            SystemClock.sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Takes a snapshot of a VDB, and waits until it is ready.
    pub fn snapshot(&self, vdb: &str) -> Result<()> {
        self.stage.engine.command(["snapshot", "take", vdb])?;
        let deadline = SystemClock.elapsed() + READY_MAX;
        loop {
            let list: SnapshotList = self.stage.engine.ask(["snapshot", "list", vdb])?;
            if list.snapshots.last().is_some_and(|one| one.ready) {
                return Ok(());
            }
            ensure!(SystemClock.elapsed() < deadline, "the snapshot of {vdb} is not ready");
            SystemClock.sleep(Duration::from_millis(100));
        }
    }
}

/// Where an engine is that listens on all addresses.
pub fn address_of(engine: &Engine) -> Result<SocketAddr> {
    let status: Status = engine.ask(["status"])?;
    let port = status.listen.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let port: u16 = port.context("the port of an engine")?;
    Ok(([127, 0, 0, 1], port).into())
}
