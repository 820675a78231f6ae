//! Whatever breaks while one engine sends to another: the target opens its last complete state, and the next run completes.
//!
//! `OFFSHOOT_TEST_KILLS` says how often something breaks, by default four times.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, bail, ensure};
use offshoot_api::{Job, JobAccepted, Vdb};
use offshoot_conformance::Random;
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::Database;
use offshoot_testbed::{
    FLIPPED, PATIENCE, SmallDisk, TroubledLink, Two, flip, received_moment, wait_until,
};
use std::time::Duration;

/// Rows of a kilobyte that each round sends.
const ROWS: u32 = 6_000;
/// What a run may take of the network, so that there is a middle of it.
const LIMIT: &str = "2MB/s";
/// Bytes of a round that are sent when something breaks: so many, and up to so many more.
const SENT: (u64, u64) = (256 << 10, 2 << 20);
/// How long the network is cut or slow, at least, and how much longer at most.
const AWAY_MS: (u64, u64) = (300, 1_500);
/// Bytes that no codec makes smaller: they are found on the disk as they are. So few of them share a block with zeros, so that
/// it is compressed; many fill blocks.
const RAW: [usize; 2] = [3_000, 40_000];
/// Places in them, from the middle on, each in a chunk of two kilobytes as PostgreSQL cuts them: so many bytes, so far apart.
const MARKS: usize = 3;
const MARK_LEN: usize = 32;
const MARK_STEP: usize = 2_000;
/// Bytes a second of a slow network.
const SLOW: u64 = 200_000;
/// After so many rounds all that is stored is read, on both sides.
const SCRUB_EVERY: u32 = 20;

#[derive(Debug, Clone, Copy)]
enum Trouble {
    SenderKilled,
    TargetKilled,
    BothKilled,
    NetworkCut,
    NetworkDamaged,
    NetworkSlow,
    /// A block of what is to be sent is damaged on the sender's disk.
    SenderDamaged,
    /// Others take all room of the target's disk, until the run has ended.
    TargetFull,
}

/// In this order, again and again.
const ALL: [Trouble; 7] = [
    Trouble::SenderKilled,
    Trouble::TargetKilled,
    Trouble::NetworkCut,
    Trouble::SenderDamaged,
    Trouble::NetworkDamaged,
    Trouble::BothKilled,
    Trouble::NetworkSlow,
];
/// The size of a target's small disk, in bytes.
const DISK: u64 = 1 << 30;
/// What is left of it when it is full.
const LEFT: u64 = 1 << 20;

/// Two engines, the network between them, and what is random.
struct Bed {
    two: Two,
    link: TroubledLink,
    random: Random,
    /// Where the target's pool is, if that is a file system of its own.
    disk: Option<SmallDisk>,
}

fn count() -> u32 {
    std::env::var("OFFSHOOT_TEST_KILLS").map_or(4, |text| text.parse().unwrap())
}

#[test]
fn whatever_breaks_the_last_state_opens_and_the_next_run_completes() {
    Bed::start(Two::start().unwrap(), None).unwrap().goes_through(&ALL, count());
}

mod needs_loop_devices {
    use super::*;

    #[test]
    #[ignore = "needs root and a loop device"]
    fn a_target_without_room_goes_on_when_there_is_some() {
        let disk = SmallDisk::new(DISK).unwrap();
        let two = Two::start_on(&disk).unwrap();
        Bed::start(two, Some(disk)).unwrap().goes_through(&[Trouble::TargetFull], count() / 2);
    }
}

impl Bed {
    fn goes_through(mut self, troubles: &[Trouble], count: u32) {
        for number in 1..=count {
            let trouble = troubles[(number as usize - 1) % troubles.len()];
            let survived = self.round(number, trouble);
            survived
                .with_context(|| format!("round {number}, {trouble:?}: {}", self.logs()))
                .unwrap();
        }
        self.two.check().unwrap();
    }

    fn start(two: Two, disk: Option<SmallDisk>) -> Result<Bed> {
        two.here.link("shop")?;
        // How soon moments open beside all this is not what is tried here.
        two.here.engine.command(["policy", "set", "shop", "--open-within", "10min"])?;
        let source = two.here.source.connect("postgres")?;
        source
            .execute("CREATE TABLE noise (i int, t text); CREATE TABLE round AS SELECT 0 AS n; CREATE TABLE raw (b bytea)")?;
        received_moment(&two.here)?;
        let link = TroubledLink::open(two.address.parse()?)?;
        let code = two.code(&["--as", "west"])?.code;
        let words = ["peer", "add", "east", "--address", &link.address(), "--code", &code];
        two.here.engine.command(words)?;
        two.create("first", &["--include", "dsource:shop"])?;
        two.run("first")?;
        two.here.engine.command(["replication", "delete", "first"])?;
        two.create("slow", &["--include", "dsource:shop", "--limit", LIMIT])?;
        Ok(Bed { two, link, random: Random::fresh(), disk })
    }

    /// Something new is committed and sent, and something breaks on its way.
    fn round(&mut self, number: u32, trouble: Trouble) -> Result<()> {
        let raw = self.commit(number)?;
        let said = match trouble {
            Trouble::SenderDamaged => self.is_damaged(number, &raw)?,
            _ => self.is_interrupted(number, trouble)?,
        };
        println!("round {number}: {trouble:?} {said}");
        // What went on by itself needs no other run; but the next one completes in any case.
        let next = self.two.run("slow")?;
        ensure!(next.error.is_none(), "{next:?}");
        let rows = "SELECT concat(count(*), md5(string_agg(t, '' ORDER BY i)), (SELECT n FROM round)) FROM noise";
        let there = self.opens()?.text(rows)?;
        let here = self.two.here.source.connect("postgres")?.text(rows)?;
        ensure!(there == here, "{there} there, {here} here");
        self.two.there.command(["vdb", "delete", "probe"])?;
        if number.is_multiple_of(SCRUB_EVERY) {
            self.two.here.check_pool()?;
            self.two.there.command(["pool", "scrub"])?;
        }
        Ok(())
    }

    /// Commits what is to be sent; some of it is stored as it is.
    fn commit(&mut self, number: u32) -> Result<Vec<u8>> {
        let raw: Vec<u8> =
            (0..RAW[number as usize % RAW.len()]).map(|_| self.random.below(256) as u8).collect();
        let digits: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
        self.two.here.source.connect("postgres")?.execute(&format!(
            "BEGIN; TRUNCATE noise, raw; INSERT INTO raw VALUES ('\\x{digits}'); \
             INSERT INTO noise SELECT i, (SELECT string_agg(md5(random()::text || i || j), '') \
             FROM generate_series(1, 30) j) FROM generate_series(1, {ROWS}) i; UPDATE round SET n = {number}; COMMIT"
        ))?;
        received_moment(&self.two.here)?;
        Ok(raw)
    }

    /// Something breaks in the middle of a run.
    fn is_interrupted(&mut self, number: u32, trouble: Trouble) -> Result<String> {
        let run: JobAccepted =
            self.two.here.engine.ask(["replication", "run", "slow", "--detach"])?;
        let run = run.job.to_string();
        let bytes = SENT.0 + self.random.below(SENT.1 - SENT.0);
        wait_until("it is in the middle", PATIENCE, || {
            let job = self.job(&run)?;
            Ok(job.progress.done > bytes || job.state.is_final())
        })?;
        let middle = !self.job(&run)?.state.is_final();
        self.breaks(trouble, &run)?;
        let held = self.holds(&[number - 1, number])?;
        wait_until("the run ends", PATIENCE, || Ok(self.job(&run)?.state.is_final()))?;
        let ended = self.job(&run)?.error.map_or_else(|| "done".to_owned(), |error| error.message);
        Ok(format!("after {bytes} bytes, in the middle: {middle}, held {held}; the run: {ended}"))
    }

    /// A block of what is to be sent is damaged on the sender's disk: it is not sent, until it is whole again.
    fn is_damaged(&mut self, number: u32, raw: &[u8]) -> Result<String> {
        self.two.here.wait_ready(&self.two.here.snapshot("shop")?)?;
        let marks = (raw.len() / 2..raw.len() - MARK_LEN).step_by(MARK_STEP).take(MARKS);
        let mut patterns: Vec<Vec<u8>> = marks.map(|at| raw[at..at + MARK_LEN].to_vec()).collect();
        let places = self.flips(&mut patterns)?;
        ensure!(places > 0, "the block is stored");
        let refused = self.two.run("slow").err().context("what is damaged was sent")?;
        self.holds(&[number - 1])?;
        self.flips(&mut patterns)?;
        Ok(format!("in {places} places; the run: {}", refused.message))
    }

    /// Flips a bit in each, or flips it back.
    fn flips(&mut self, patterns: &mut [Vec<u8>]) -> Result<usize> {
        let engine = &mut self.two.here.engine;
        // What is in memory is not read again.
        engine.stop()?;
        let mut flipped = 0;
        for pattern in patterns {
            flipped += flip(&engine.pool().join("segments"), pattern)?;
            pattern[0] ^= FLIPPED;
        }
        engine.restart()?;
        Ok(flipped)
    }

    /// The target opens one of these rounds.
    fn holds(&self, rounds: &[u32]) -> Result<i64> {
        let held = self.opens()?.number("SELECT n FROM round")?;
        ensure!(rounds.iter().any(|round| held == i64::from(*round)), "it holds {held}");
        self.two.there.command(["vdb", "delete", "probe"])?;
        Ok(held)
    }

    fn breaks(&mut self, trouble: Trouble, run: &str) -> Result<()> {
        let away = Duration::from_millis(AWAY_MS.0 + self.random.below(AWAY_MS.1 - AWAY_MS.0));
        let Two { here, there, .. } = &mut self.two;
        match trouble {
            Trouble::SenderDamaged => bail!("not in the middle"),
            Trouble::TargetFull => return self.fills(run),
            Trouble::SenderKilled => drop(here.engine.kill_and_restart()?),
            Trouble::TargetKilled => drop(there.kill_and_restart()?),
            Trouble::BothKilled => {
                here.engine.kill()?;
                there.kill_and_restart()?;
                here.engine.restart()?;
            }
            Trouble::NetworkCut => {
                self.link.cut();
                SystemClock.sleep(away);
            }
            Trouble::NetworkDamaged => self.link.damage(),
            Trouble::NetworkSlow => {
                self.link.slow(SLOW);
                SystemClock.sleep(away);
            }
        }
        if !matches!(trouble, Trouble::NetworkDamaged) {
            self.link.mend();
        }
        Ok(())
    }

    fn fills(&self, run: &str) -> Result<()> {
        let disk = self.disk.as_ref().context("a small disk")?;
        disk.fill(LEFT)?;
        wait_until("the run ends", PATIENCE, || Ok(self.job(run)?.state.is_final()))?;
        disk.empty()
    }

    /// What the target has last received as a whole.
    fn opens(&self) -> Result<Database> {
        // From a minute after all has come a run lets nobody begin: it ends soon.
        let mut opened = None;
        wait_until("the target opens its last state", PATIENCE, || {
            let vdb: Vdb =
                self.two.there.ask(["vdb", "provision", "probe", "--from", "west/shop"])?;
            opened = Some(Database::connect(&vdb.uri)?);
            Ok(true)
        })?;
        opened.context("a VDB")
    }

    fn job(&self, id: &str) -> Result<Job> {
        self.two.here.engine.ask(["job", "show", id])
    }

    fn logs(&self) -> String {
        let ends = [&self.two.here.engine, &self.two.there].map(|engine| engine.log_end(20));
        format!("here:\n{}\nthere:\n{}", ends[0], ends[1])
    }
}
