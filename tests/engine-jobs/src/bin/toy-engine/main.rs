//! `toy-engine [--keeper] POOL TOYD SOURCE ACTION…`: opens the engine, does one action after the other, closes it. Each
//! action is one argument of words with spaces between; a line of JSON tells what came of it.

mod actions;
mod asked;
mod world;

use crate::actions::Session;
use crate::world::key_places;
use offshoot_connector::Registry;
use offshoot_engine::{Engine, EngineOptions, NoNetwork, NoPoster};
use offshoot_fuse::Fuse;
use offshoot_toy::Toy;
use offshoot_types::Failure;
use offshoot_workflow::{AbortAt, CrashPoint, CrashPoints, FailAt};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// The variable that names the step at which this process dies.
const CRASH_VARIABLE: &str = "OFFSHOOT_CRASH_AT";

/// Where the engine dies, and where a job of it fails.
struct Points {
    abort: Option<AbortAt>,
    fail: Arc<FailAt>,
}

impl CrashPoints for Points {
    fn reached(&self, kind: &str, step: &str, point: CrashPoint) -> Result<(), Failure> {
        if let Some(abort) = &self.abort {
            abort.reached(kind, step, point)?;
        }
        self.fail.reached(kind, step, point)
    }
}

/// Variable with which the pool is encrypted.
const ENCRYPT_VARIABLE: &str = "OFFSHOOT_TOY_ENCRYPT";

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure:?}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let wrong = || Failure::internal(format!("these are no arguments: {arguments:?}"));
    if let [keeper, pool, path] = arguments
        && (keeper.as_str(), pool.as_str()) == ("keeper", "--pool")
    {
        return offshoot_engine::run_keeper(path.as_ref(), Arc::new(Fuse::default()));
    }
    let (keeper, rest) = match arguments.split_first() {
        Some((first, rest)) if first == "--keeper" => (std::env::current_exe().ok(), rest),
        _ => (None, arguments),
    };
    let [pool, toyd, source, actions @ ..] = rest else { return Err(wrong()) };
    let pool = PathBuf::from(pool);
    let options = EngineOptions {
        pool: pool.clone(),
        cache_size: Some(64 << 20),
        direct_size: 0,
        capacity: None,
        secret_keys: key_places(&pool),
        forget_secrets: false,
        encrypt: std::env::var_os(ENCRYPT_VARIABLE).is_some(),
        connectors: Registry::new(vec![Arc::new(Toy::new(toyd))]),
        delivery: Arc::new(Fuse::default()),
        network: Arc::new(NoNetwork),
        poster: Arc::new(NoPoster),
        collector: None,
        keeper,
    };
    let fail = Arc::new(FailAt::default());
    let abort = std::env::var(CRASH_VARIABLE).ok().map(|text| AbortAt::parse(&text)).transpose()?;
    let points = Arc::new(Points { abort, fail: fail.clone() });
    let engine = Engine::open_with_crash_points(&options, points)?;
    let session = Session { engine: &engine, fail: &fail, pool: &pool, source };
    let mut result = Ok(());
    for action in actions {
        let words: Vec<&str> = action.split(' ').collect();
        match session.act(&words) {
            Ok(answer) => println!("{answer}"),
            Err(failure) => {
                println!("{}", json!({ "action": action, "failed": failure }));
                result = Err(failure);
                break;
            }
        }
    }
    engine.close()?;
    result
}
