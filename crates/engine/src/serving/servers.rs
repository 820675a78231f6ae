//! The database servers that run now, by a key that also names their runtime directory and log.

use crate::core::kind::Kind;
use crate::serving::Serving;
use crate::serving::data_files::DataFiles;
use offshoot_connector::{Registry, Server, ServerSpec, StopMode};
use offshoot_os::cgroup::Group;
use offshoot_os::spawn_or_run;
use offshoot_types::{DatasetId, Failure, Share};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long a server may take to stop before it is killed.
const STOP_DEADLINE: Duration = Duration::from_secs(60);
/// How long one that an earlier engine left may take to end.
const LEFTOVER_DEADLINE: Duration = Duration::from_secs(15);

/// The servers that run now.
#[derive(Default)]
pub struct Servers {
    running: Mutex<HashMap<String, Arc<dyn Server>>>,
}

impl Servers {
    /// The server of that key, if it was started and not stopped.
    pub fn get(&self, key: &str) -> Option<Arc<dyn Server>> {
        self.running.lock().get(key).cloned()
    }

    /// Keeps a server under a key.
    pub fn add(&self, key: &str, server: Arc<dyn Server>) {
        self.running.lock().insert(key.to_owned(), server);
    }

    /// Stops the server of that key; returns whether its data is then clean. If there is none, it
    /// is.
    pub fn stop(&self, key: &str, mode: StopMode) -> Result<bool, Failure> {
        let server = self.running.lock().remove(key);
        match server {
            Some(server) => server.stop(mode, STOP_DEADLINE),
            None => Ok(true),
        }
    }

    /// Whether the postmaster of that key runs.
    pub fn is_running(&self, key: &str) -> bool {
        self.get(key).is_some_and(|server| server.running())
    }

    /// The keys of all servers kept.
    pub fn keys(&self) -> Vec<String> {
        self.running.lock().keys().cloned().collect()
    }
}

/// What to start on a dataset's data directory; the dataset must be mounted.
pub fn spec(
    serving: &Serving,
    key: &str,
    name: String,
    kind: &Kind,
    dataset: DatasetId,
    tcp_port: Option<u16>,
) -> Result<ServerSpec, Failure> {
    let data = kind.connector.layout().data;
    Ok(ServerSpec {
        name,
        version: kind.version.clone(),
        files: files(serving, kind, dataset)?,
        data_dir: serving.paths.mount(dataset).join(data),
        runtime_dir: serving.paths.server(key),
        log_file: serving.paths.log(key),
        tcp_port,
        share: Share::Usual,
        preload: None,
    })
}

/// The same for a job's server, on a copy that nobody has yet.
pub fn spec_of_copy(
    serving: &Serving,
    key: &str,
    name: String,
    kind: &Kind,
    dataset: DatasetId,
) -> Result<ServerSpec, Failure> {
    let spec = spec(serving, key, name, kind, dataset, None)?;
    Ok(ServerSpec { files: files_of_copy(serving, kind, dataset)?, ..spec })
}

/// The data directory on a dataset, as the engine reaches it.
pub fn files(
    serving: &Serving,
    kind: &Kind,
    dataset: DatasetId,
) -> Result<Arc<DataFiles>, Failure> {
    let data = kind.connector.layout().data;
    Ok(Arc::new(DataFiles::at(serving.volumes.files(dataset)?, data)))
}

/// The same of a copy that nobody has yet.
pub fn files_of_copy(
    serving: &Serving,
    kind: &Kind,
    dataset: DatasetId,
) -> Result<Arc<DataFiles>, Failure> {
    let data = kind.connector.layout().data;
    Ok(Arc::new(DataFiles::of_copy(serving.volumes.files(dataset)?, data)))
}

/// The control group of a server, where it has one.
pub fn group_of(server: &dyn Server) -> Option<Group> {
    Group::holding(server.process_id().pid, |name| name.starts_with("offshoot-"))
}

/// Stops what a killed engine left running, and removes its runtime directories, except those of
/// servers that continue. Their data directories are gone with that engine, so nothing in them can
/// be saved.
pub fn stop_leftovers(
    connectors: &Registry,
    runtime: &Path,
    going_on: &[String],
) -> Result<(), Failure> {
    let entries = std::fs::read_dir(runtime).into_iter().flatten().flatten();
    let left = |dir: &std::path::PathBuf| {
        let name = dir.file_name().unwrap_or_default();
        dir.is_dir() && !going_on.iter().any(|key| name == key.as_str())
    };
    let dirs: Vec<_> = entries.map(|entry| entry.path()).filter(left).collect();
    std::thread::scope(|scope| {
        let stops: Vec<_> = dirs
            .iter()
            .map(|dir| spawn_or_run(scope, || connectors.stop_leftover(dir, LEFTOVER_DEADLINE)))
            .collect();
        for stop in stops {
            match stop.join() {
                Ok(result) => drop(result?),
                Err(_) => return Err(Failure::internal("stopping a left server panicked")),
            }
        }
        Ok(())
    })?;
    dirs.iter().for_each(|dir| remove_runtime_dir(dir));
    Ok(())
}

/// Removes the runtime directory of a process that has ended.
pub fn remove_runtime_dir(dir: &Path) {
    if let Err(error) = std::fs::remove_dir_all(dir) {
        tracing::warn!(dir = %dir.display(), %error, "a runtime directory stays");
    }
}
