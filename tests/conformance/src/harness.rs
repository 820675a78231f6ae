//! What a connector's tests do for the suite.

use offshoot_connector::{Connector, ServerSpec};
use offshoot_domain::ConnectorState;
use offshoot_types::LogPosition;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What a database shows to its users.
pub type Content = BTreeMap<String, String>;

/// A long time: everything the suite waits for has happened by then.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// What a connector's tests must be able to do in addition to it.
pub trait Harness: Send + Sync {
    /// The connector.
    fn connector(&self) -> Arc<dyn Connector>;

    /// Starts a new, empty database in production; everything of it is below an empty directory.
    fn produce(&self, directory: &Path) -> Box<dyn Production>;

    /// What a server shows on the socket that only the engine uses.
    ///
    /// # Errors
    /// What the server said.
    fn content(&self, spec: &ServerSpec) -> Result<Content, String>;

    /// What a user sees through a URI.
    ///
    /// # Errors
    /// Why it does not open.
    fn content_by(&self, uri: &str) -> Result<Content, String>;

    /// Commits as a user, through a URI.
    ///
    /// # Errors
    /// What the server said.
    fn put_by(&self, uri: &str, key: &str, value: &str) -> Result<(), String>;

    /// The ways to another database that a server still has.
    fn ties(&self, spec: &ServerSpec) -> Vec<String>;

    /// A setting that VDBs accept, and one that they do not.
    fn settings(&self) -> (Setting, Setting);

    /// Rules that mask the values of all keys that begin with `person`, where the connector masks.
    fn masking_rules(&self) -> Option<&'static str> {
        None
    }

    /// Flips a bit of the users' data in a data directory that was shut down.
    fn damage(&self, data_dir: &Path);

    /// The file of received log that holds the byte at a position, and where in it.
    fn log_byte(&self, state: &ConnectorState, log: &Path, position: LogPosition) -> (String, u64);
}

/// A setting's name and value.
pub type Setting = (&'static str, &'static str);

/// A database in production. Dropping it removes it and its processes.
pub trait Production: Send {
    /// Its URI for the engine, with a secret that opens it, at this port or at another one.
    fn uri(&self, port: Option<u16>) -> String;

    /// The same with a secret that opens nothing.
    fn wrong_uri(&self) -> String;

    /// The secret in a URI replaced by the host and port of a VDB: how a user of the source would try to get into it.
    fn uri_at(&self, port: u16) -> String;

    /// Sets a key in its own commit; returns the label of that commit.
    fn commit(&mut self, key: &str, value: &str) -> String;

    /// Everything in it.
    fn content(&mut self) -> Content;

    /// Gives it a way to another database, which listens on a port of the loopback address: copies have that too.
    fn tie_to(&mut self, port: u16);

    /// The reservations of log that it has.
    fn reservations(&mut self) -> Vec<String>;

    /// Makes it give up all log that nobody has reserved.
    fn drop_log(&mut self);

    /// Stops it, like a crash or cleanly.
    fn stop(&mut self, crash: bool);

    /// Starts it again.
    fn start(&mut self);
}
