//! The whole life of virtual databases, at several sizes and kinds of load.

use super::load::{add_load_figures, observe_blocking};
use super::{engine_options, provision};
use crate::driver::LoadPlan;
use crate::order_entry::Mix;
use crate::record::{EngineCache, Measurement, Record};
use crate::setting::Setting;
use crate::stage::Stage;
use crate::statistics::interleaved;
use anyhow::Result;
use offshoot_os::{Clock, SystemClock};
use std::collections::BTreeMap;

/// Link, provision, load, refresh: sizes by loads, start to end
///
/// For each size and each load: the source takes the load while it is linked; VDBs are provisioned
/// together; all of them take the load; each is refreshed; what the pool holds is counted.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(after_help = "Example:\n  offshoot bench suite --scales 1,10 --seconds 60\n  \
                        offshoot bench suite --scales 0.05 --seconds 10 --vdbs 3 --repeats 1")]
pub struct Arguments {
    /// Sizes of the order entry data, about 1 GB each
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1,10,60")]
    scales: Vec<f64>,
    /// Loads
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "oltp,read,write"
    )]
    mixes: Vec<Mix>,
    /// VDBs at a time
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=100))]
    vdbs: u32,
    /// Users over all VDBs, and as many on the source
    #[arg(long, value_name = "N", default_value_t = 12)]
    users: u32,
    /// Seconds of each load
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u32,
    /// How often each, in turn
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeats: u32,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// Samples of each figure, by its name.
type Samples = BTreeMap<String, Vec<f64>>;

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let mut samples = Samples::new();
    let mut whole: Option<Record> = None;
    for scale in &arguments.scales {
        let stage = Stage::start(&engine_options(&arguments.setting)?, 0, &[])?;
        let record = match &mut whole {
            Some(record) => record,
            None => whole.insert(Record::begin("suite", arguments, stage.scratch.path())?),
        };
        let filled = stage.fill(*scale, arguments.setting.seed)?;
        let mut add = |name: &str, value: f64| {
            samples.entry(format!("scale {scale} {name}")).or_default().push(value);
        };
        add("fill mb_per_s", filled.copy_mb_per_s);
        add("database_mb", filled.database_bytes as f64 / 1e6);
        for (round, index) in interleaved(arguments.mixes.len(), arguments.repeats) {
            let one = Run { stage: &stage, arguments, scale: *scale, mix: arguments.mixes[index] };
            one.run(round + 1, record, &mut samples)?;
        }
    }
    let mut record = whole.ok_or_else(|| anyhow::anyhow!("no size to run"))?;
    add_load_figures(&mut record);
    for (name, values) in samples {
        record.figures.note(name, values);
    }
    Ok(record)
}

/// One size and one load.
struct Run<'a> {
    stage: &'a Stage,
    arguments: &'a Arguments,
    scale: f64,
    mix: Mix,
}

impl Run<'_> {
    fn run(&self, repeat: u32, record: &mut Record, samples: &mut Samples) -> Result<()> {
        let stage = self.stage;
        let mut add = |name: &str, value: f64| {
            let name = format!("scale {} {} {name}", self.scale, self.mix.name());
            samples.entry(name).or_default().push(value);
        };
        let (seconds, gigabytes) = self.link_under_load(repeat, record)?;
        add("link s_per_gb of data and log", seconds / gigabytes);
        let snapshot = stage.ready_snapshot("prod")?.id.to_string();
        let together = provision::at_once(stage, "prod", &snapshot, self.arguments.vdbs)?;
        add("provision at once, all, ms", together.total_ms);
        for ms in together.each_ms {
            add("provision at once, each, ms", ms);
        }
        let names: Vec<String> =
            (1..=self.arguments.vdbs).map(|number| format!("copy-{number}")).collect();
        let mut uris = Vec::new();
        for name in &names {
            uris.push(stage.provision(name, "prod", &["--snapshot", &snapshot])?.uri);
        }
        self.measure("vdb", &uris, repeat, record)?;
        stage.engine.command(["dsource", "sync", "prod"])?;
        for name in &names {
            let began = SystemClock.elapsed();
            stage.engine.command(["vdb", "refresh", name])?;
            add("refresh, ms", crate::figures::millis(SystemClock.elapsed() - began));
        }
        let pool = stage.pool()?;
        add("pool_mb", pool.used_bytes as f64 / 1e6);
        add("logical_mb", pool.logical_bytes as f64 / 1e6);
        for name in &names {
            stage.engine.command(["vdb", "delete", name])?;
        }
        stage.engine.command(["dsource", "unlink", "prod"])?;
        Ok(())
    }

    /// Links while the source takes the load: seconds, and gigabytes of data and log.
    fn link_under_load(&self, repeat: u32, record: &mut Record) -> Result<(f64, f64)> {
        let uris = [self.stage.source.superuser_uri("postgres")];
        let (linked, observed) = std::thread::scope(|scope| {
            let link = scope.spawn(|| self.stage.link("prod"));
            let observed = observe_blocking(&uris, &self.plan());
            let linked = link.join();
            (linked.unwrap_or_else(|_| anyhow::bail!("the link panicked")), observed)
        });
        let (seconds, observed) = (linked?, observed?);
        let bytes = self.stage.source.data_bytes() + observed.database.wal_bytes;
        record.measured(Measurement {
            variant: "source".into(),
            conditions: self.conditions(),
            repeat,
            observed,
            engine_cache: None,
            space_bytes: self.stage.source.data_bytes(),
        });
        Ok((seconds, bytes as f64 / 1e9))
    }

    fn measure(
        &self,
        variant: &str,
        uris: &[String],
        repeat: u32,
        record: &mut Record,
    ) -> Result<()> {
        let before = self.stage.pool()?.cache;
        let observed = observe_blocking(uris, &self.plan())?;
        let after = self.stage.pool()?;
        record.measured(Measurement {
            variant: variant.to_owned(),
            conditions: self.conditions(),
            repeat,
            observed,
            engine_cache: Some(EngineCache::between(&before, &after.cache)),
            space_bytes: after.used_bytes,
        });
        Ok(())
    }

    fn plan(&self) -> LoadPlan {
        let Arguments { users, seconds, setting, .. } = self.arguments;
        LoadPlan::closed_loop(self.mix, *users, *seconds, setting.seed)
    }

    fn conditions(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("scale".to_owned(), self.scale.to_string()),
            ("mix".to_owned(), self.mix.name().to_owned()),
        ])
    }
}
