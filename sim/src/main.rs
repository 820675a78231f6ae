//! `offshoot-sim`: the store on a simulated disk, seed after seed.

use anyhow::{Context, Result, bail};
use clap::Parser;
use offshoot_os::{Clock, SystemClock};
use offshoot_sim::ENCRYPTED;
use offshoot_sim::course::Plan;
use offshoot_sim::seed::run_seed;
use offshoot_sim::tally::Tally;
use offshoot_sim::trial::attempt;
use offshoot_sim::weaknesses::{STEPS, try_out};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often a long run reports its progress.
const REPORT: Duration = Duration::from_secs(60);

/// Run the real pool, intent log and datasets on a disk that loses, tears, reorders, fails and fills up
///
/// Each seed is a run of random steps compared with a model, repeated with power lost at every operation of
/// the disk, and with bits flipped after some of these.
#[derive(Parser)]
#[command(
    name = "offshoot-sim",
    after_help = "Examples:\n  offshoot-sim --seed 89\n  offshoot-sim --seed 89 --at 77\n  \
                  offshoot-sim --minutes 60 --jobs 2\n  offshoot-sim --seeds sim/failed-seeds.txt\n  \
                  offshoot-sim --weaknesses"
)]
struct Args {
    /// Run this seed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Lose power at this operation of the disk only, and print the steps before
    #[arg(long, value_name = "OPERATION", requires = "seed")]
    at: Option<u64>,
    /// Damage the run with these flipped bits only, and print the steps before
    #[arg(long, value_name = "INDEX", requires = "seed")]
    flip: Option<u64>,
    /// Run the seeds of this file, one per line; `#` begins a remark
    #[arg(long, value_name = "FILE")]
    seeds: Option<PathBuf>,
    /// Run fresh seeds for so long
    #[arg(long, value_name = "M")]
    minutes: Option<f64>,
    /// Lose power this many times in each run, at random operations [default: at every one]
    #[arg(long, value_name = "N")]
    crashes: Option<u64>,
    /// Seeds at a time
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Where seeds that fail are added
    #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/failed-seeds.txt"))]
    record: PathBuf,
    /// Leave out each flush of the store in turn and print a table of what was noticed
    #[arg(long)]
    weaknesses: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if args.weaknesses {
        return print_weaknesses();
    }
    if let (Some(seed), Some(at)) = (args.seed, args.at) {
        let plan = Plan::new(seed);
        println!("{plan}");
        plan.crash_at(at, &|_| {});
        println!("seed {seed}, power lost at operation {at}: as it should be");
        return Ok(());
    }
    if let (Some(seed), Some(index)) = (args.seed, args.flip) {
        let plan = Plan::new(seed);
        println!("{plan}");
        plan.flip(index);
        println!("seed {seed}, flipped bits {index}: as it should be");
        return Ok(());
    }
    let mut seeds: Vec<u64> = args.seed.into_iter().collect();
    if let Some(path) = &args.seeds {
        seeds.extend(read_seeds(path)?);
    }
    if seeds.is_empty() && args.minutes.is_none() && args.seeds.is_none() {
        bail!("nothing to do: give --seed, --seeds, --minutes or --weaknesses");
    }
    let campaign = Campaign::new(&args, seeds);
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(|| campaign.work());
        }
    });
    campaign.finish()
}

fn read_seeds(path: &PathBuf) -> Result<Vec<u64>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let seeds = lines.filter(|line| !line.is_empty()).map(|line| {
        line.parse().with_context(|| format!("'{line}' in {} is no seed", path.display()))
    });
    seeds.collect()
}

/// Seeds being run, by several threads.
struct Campaign<'a> {
    args: &'a Args,
    given: Vec<u64>,
    first_fresh: u64,
    next: AtomicU64,
    began: Duration,
    until: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tally: Tally,
    failed: Vec<u64>,
    reported: Duration,
}

impl<'a> Campaign<'a> {
    fn new(args: &'a Args, given: Vec<u64>) -> Self {
        let began = SystemClock.elapsed();
        let minutes = args.minutes.unwrap_or(0.0).max(0.0);
        // Seeds of a few digits, so that a failure can be typed.
        let first_fresh = u64::from_le_bytes(offshoot_os::random_bytes()) >> 24;
        let until = began + Duration::from_secs_f64(minutes * 60.0);
        if minutes > 0.0 {
            println!("fresh seeds from {first_fresh} on, for {minutes} minutes");
        }
        let state = Mutex::new(State { reported: began, ..State::default() });
        Campaign { args, given, first_fresh, next: AtomicU64::new(0), began, until, state }
    }

    /// The next seed: the given ones, then fresh ones as long as there is time.
    fn next_seed(&self) -> Option<u64> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let fresh = || {
            let number = index - self.given.len() as u64;
            let encrypted = if number % 4 == 3 { ENCRYPTED } else { 0 };
            (self.first_fresh + number) | encrypted
        };
        let in_time = SystemClock.elapsed() < self.until;
        self.given.get(index as usize).copied().or_else(|| in_time.then(fresh))
    }

    fn work(&self) {
        while let Some(seed) = self.next_seed() {
            let outcome = attempt(|| run_seed(seed, self.args.crashes));
            let mut state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            match outcome {
                Ok(tally) => state.tally += tally,
                Err(why) => {
                    state.failed.push(seed);
                    println!("FAILED seed {seed}: {why}");
                    println!("  repeat: cargo run --release -p offshoot-sim -- --seed {seed}");
                    if let Err(error) = self.record(seed, &why) {
                        println!("  it could not be added to the failed seeds: {error:#}");
                    }
                }
            }
            let now = SystemClock.elapsed();
            if now >= state.reported + REPORT {
                state.reported = now;
                println!("{:>6.0} s: {}", (now - self.began).as_secs_f64(), state.tally);
            }
        }
    }

    /// Adds a seed to the list of those that ever failed.
    fn record(&self, seed: u64, why: &str) -> Result<()> {
        let path = &self.args.record;
        if path.exists() && read_seeds(path)?.contains(&seed) {
            return Ok(());
        }
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
        let why = why.lines().nth(1).unwrap_or(why);
        let why: String = why.chars().take(120).collect();
        writeln!(file, "{seed} # {why}").with_context(|| format!("writing {}", path.display()))
    }

    fn finish(self) -> Result<()> {
        let state = self.state.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let seconds = (SystemClock.elapsed() - self.began).as_secs_f64();
        println!("{}, in {seconds:.0} s", state.tally);
        if !state.failed.is_empty() {
            bail!("failed seeds: {:?}", state.failed);
        }
        Ok(())
    }
}

fn print_weaknesses() -> Result<()> {
    println!(
        "{:<36} {:<5} {:<9} {:>8} {:>8}  noticed at",
        "flush", "rule", "is", "weakened", "crashes"
    );
    let mut unnoticed = 0;
    for step in STEPS {
        let outcome = try_out(step);
        let how = if matches!(step.weakness, offshoot_os::disk::sim::Weakness::Late(_)) {
            "late"
        } else {
            "left out"
        };
        let noticed = match &outcome.noticed {
            Some((seed, at, why)) => {
                let why: String = why.lines().nth(1).unwrap_or(why).chars().take(110).collect();
                format!("seed {seed}, operation {at}: {why}")
            }
            None => {
                unnoticed += 1;
                "NEVER".to_owned()
            }
        };
        println!(
            "{:<36} {:<5} {:<9} {:>8} {:>8}  {noticed}",
            step.place, step.rule, how, outcome.weakened, outcome.crashes
        );
    }
    if unnoticed > 0 {
        bail!("{unnoticed} of {} were not noticed", STEPS.len());
    }
    Ok(())
}
