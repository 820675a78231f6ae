//! Two engines that differ by one option, each with a VDB of the same source: what the option costs.

use crate::record::Record;
use crate::stage::{CHECKPOINTS, Stage};
use crate::statistics::{interleaved, paired_ratio};
use anyhow::Result;
use offshoot_api::Vdb;
use offshoot_rig::{Engine, EngineOptions};

/// Two engines on one source. The order of the fields is the order in which they end.
#[derive(Debug)]
pub struct Pair {
    other: Engine,
    stage: Stage,
    turned: bool,
    names: [&'static str; 2],
}

/// The runs of pgbench that are compared.
#[derive(Debug, Clone, Copy)]
pub struct Runs {
    /// Clients.
    pub clients: u32,
    /// Seconds of each run.
    pub seconds: u32,
    /// Counted runs of each engine, after one that warms up.
    pub repeats: u32,
    /// The least that the second engine's VDB has to give, as a share of the first's.
    pub goal: f64,
}

impl Pair {
    /// Starts a source and both engines, links it in both and stops to follow it. Each side has the name of its
    /// figures and what its engine is given besides.
    ///
    /// # Errors
    /// What did not start, or what a command says.
    pub fn start(
        options: &EngineOptions,
        sides: [(&'static str, &[&str]); 2],
        scale: u32,
    ) -> Result<Self> {
        let [first, second] = sides.map(|(_, more)| {
            let mut options = options.clone();
            options.arguments.extend(more.iter().map(|one| (*one).to_owned()));
            options
        });
        let stage = Stage::start(&first, scale, &CHECKPOINTS)?;
        let mut other = Engine::prepare(stage.scratch.path().join("other"), second);
        other.restart()?;
        let mut pair = Pair { other, stage, turned: false, names: sides.map(|(name, _)| name) };
        for index in 0..2 {
            pair.stage(index).link("prod")?;
            pair.stage(index).ready_snapshot("prod")?;
            pair.stage(index).engine.command(["dsource", "pause", "prod"])?;
        }
        Ok(pair)
    }

    /// The source with one of the engines.
    pub fn stage(&mut self, index: usize) -> &mut Stage {
        if (index == 1) != self.turned {
            std::mem::swap(&mut self.stage.engine, &mut self.other);
            self.turned = !self.turned;
        }
        &mut self.stage
    }

    /// Has pgbench work in a VDB of each, in turn: reads, then its own mix.
    ///
    /// # Errors
    /// What a command or pgbench says.
    pub fn compare(
        &mut self,
        vdb: &str,
        runs: Runs,
        prefix: &str,
        record: &mut Record,
    ) -> Result<()> {
        let mut uris = Vec::new();
        for index in 0..2 {
            let shown: Vdb = self.stage(index).engine.ask(["vdb", "show", vdb])?;
            uris.push(shown.uri);
        }
        for (mix, flags) in [("select_only", &["--select-only"][..]), ("tpcb_like", &[][..])] {
            let mut tps = [Vec::new(), Vec::new()];
            for (round, index) in interleaved(2, runs.repeats + 1) {
                let rate = self.stage.pgbench(&uris[index], runs.clients, runs.seconds, flags)?;
                if round > 0 {
                    tps[index].push(rate);
                }
            }
            let [first, second] = self.names;
            let ratio = paired_ratio(&tps[1], &tps[0]);
            for (name, samples) in self.names.iter().zip(tps) {
                record.figures.note(format!("{prefix}{mix}_{name}_tps"), samples);
            }
            let name = format!("{prefix}{mix}_{second}_to_{first}");
            record.figures.at_least(name, ratio, runs.goal);
        }
        Ok(())
    }
}
