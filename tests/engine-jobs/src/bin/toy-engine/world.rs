//! Everything that a job could leave behind.

use crate::asked;
use offshoot_catalog::register_row_functions;
use offshoot_engine::{Engine, KeyPlaces, row_key_of};
use offshoot_toy::Client;
use offshoot_types::Failure;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Where the keys of a pool are.
pub fn key_places(pool: &Path) -> KeyPlaces {
    KeyPlaces { directory: Some(pool.with_extension("keys")), ..KeyPlaces::default() }
}

fn told(error: impl std::fmt::Display) -> Failure {
    Failure::internal(error.to_string())
}

/// All there is: records, secrets, mounts, servers, what VDBs show, what the source reserves, the store's figures.
///
/// # Errors
/// Where something cannot be asked, and where the store holds what no record names.
pub fn look(engine: &Engine, pool: &Path) -> Result<Value, Failure> {
    let catalog = Connection::open_with_flags(
        pool.join("catalog.db"),
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(told)?;
    let row_key = row_key_of(pool, &key_places(pool))?;
    register_row_functions(&catalog, row_key.as_deref())?;
    let sql = "SELECT kind || ' ' || id, unseal('object', body) FROM object";
    let records = rows(&catalog, sql)?;
    let secrets = rows(&catalog, "SELECT name, '' FROM sealed")?;
    let records: BTreeMap<String, Value> = (records.into_iter())
        .map(|(key, body)| Ok((key, serde_json::from_str(&body).map_err(told)?)))
        .collect::<Result<_, Failure>>()?;
    let (datasets, images, _) = asked::store(engine);
    let (named_datasets, named_images) = named(&records);
    let figures = (datasets, images);
    if figures != (named_datasets.len() as u64, named_images.len() as u64) {
        let message = format!(
            "strays: {datasets} datasets and {images} images, named {named_datasets:?} and {named_images:?}"
        );
        return Err(Failure::internal(message));
    }
    let states = asked::states(engine)?;
    let mut contents = BTreeMap::new();
    for name in asked::running(engine)? {
        let uri = asked::uri(engine, &name)?;
        let content = Client::open(&uri).and_then(|mut client| client.ask("DUMP")).map_err(told)?;
        contents.insert(name, content);
    }
    let reservations = pool.with_file_name("source").join("data/reservations");
    let reservations = std::fs::read_to_string(reservations).unwrap_or_else(|_| "{}".to_owned());
    let reservations: BTreeMap<String, u64> = serde_json::from_str(&reservations).map_err(told)?;
    Ok(json!({
        "records": records.into_iter().map(|(key, body)| (key, lasting(body))).collect::<BTreeMap<_, _>>(),
        "secrets": secrets.into_keys().collect::<Vec<_>>(),
        "faults": states["faults"],
        "mounts": mounts(pool),
        "servers": sorted(servers(pool).into_values()),
        "contents": contents,
        "reserved": reservations.into_keys().collect::<Vec<_>>(),
        "store": { "datasets": datasets, "images": images },
    }))
}

fn rows(catalog: &Connection, sql: &str) -> Result<BTreeMap<String, String>, Failure> {
    let mut statement = catalog.prepare(sql).map_err(told)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(told)?;
    rows.collect::<Result<_, _>>().map_err(told)
}

/// A record without what continues.
fn lasting(mut body: Value) -> Value {
    if let Some(fields) = body.as_object_mut() {
        fields.remove("synced_to");
        fields.remove("timings");
        for range in fields.get_mut("log").and_then(Value::as_array_mut).into_iter().flatten() {
            range.as_object_mut().and_then(|range| range.remove("to"));
        }
    }
    body
}

/// The datasets and images that records name.
fn named(records: &BTreeMap<String, Value>) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let (mut datasets, mut images) = (BTreeSet::new(), BTreeSet::new());
    for (key, body) in records {
        for field in ["log_dataset", "staging_dataset", "dataset"] {
            datasets.extend(body[field].as_str());
        }
        if key.starts_with("snapshot ") {
            images.extend(body["id"].as_str());
            images.extend(body["readiness"]["image"].as_str());
        }
    }
    (datasets, images)
}

/// The mounts below a directory.
fn mounts(below: &Path) -> Vec<String> {
    let all = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let points = all.lines().filter_map(|line| line.split(' ').nth(1));
    sorted(points.filter(|point| Path::new(point).starts_with(below)).map(str::to_owned))
}

fn sorted(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = all.collect();
    all.sort();
    all
}

/// The servers that work below a directory, by process: what they are for, and where.
pub fn servers(below: &Path) -> BTreeMap<i32, String> {
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let of = |pid: i32| {
        let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let word = |name| text.split('\0').skip_while(move |word| *word != name).nth(1);
        let (data, title) = (word("--data")?, word("--name")?);
        Path::new(data).starts_with(below).then(|| (pid, format!("{title} in {data}")))
    };
    pids.filter_map(of).collect()
}
