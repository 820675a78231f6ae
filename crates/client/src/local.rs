//! Requests by the Unix socket of a pool. Before anything is sent, the kernel says who answers: in the place of an
//! engine that ended there may be somebody else's program.

use crate::stream::StreamTransport;
use offshoot_os::local_socket;
use offshoot_os::process::User;
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{ConnectionDetails, Connector, NextTimeout};

/// Connects to the engine of a pool.
#[derive(Debug)]
pub(crate) struct LocalConnector {
    socket: PathBuf,
}

/// Somebody else's program answers.
#[derive(Debug)]
pub(crate) struct Stranger {
    uid: u32,
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uid = self.uid;
        write!(f, "what answers is a program of the user {uid}, who does not own the pool")
    }
}

impl std::error::Error for Stranger {}

impl LocalConnector {
    pub(crate) fn new(socket: &Path) -> Self {
        LocalConnector { socket: socket.to_owned() }
    }

    /// A connection to a program of the pool's owner, of root, or of the user who asks.
    fn connect(&self) -> io::Result<UnixStream> {
        let stream = local_socket::connect(&self.socket)?;
        let uid = offshoot_os::descriptors::peer(&stream)?.uid;
        let owner = self.socket.parent().map(std::fs::metadata).transpose()?;
        if uid == 0 || uid == User::own_uid() || owner.is_some_and(|owner| owner.uid() == uid) {
            return Ok(stream);
        }
        Err(io::Error::other(Stranger { uid }))
    }
}

impl Connector for LocalConnector {
    type Out = StreamTransport<UnixStream>;

    fn connect(
        &self,
        details: &ConnectionDetails,
        _chained: Option<()>,
    ) -> Result<Option<StreamTransport<UnixStream>>, ureq::Error> {
        let stream = LocalConnector::connect(self)?;
        Ok(Some(StreamTransport::new(stream, details)))
    }
}

/// There is nothing to look up.
#[derive(Debug)]
pub(crate) struct NoLookup;

impl Resolver for NoLookup {
    fn resolve(
        &self,
        _uri: &Uri,
        _config: &Config,
        _timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        Ok(self.empty())
    }
}

#[cfg(test)]
mod tests;
