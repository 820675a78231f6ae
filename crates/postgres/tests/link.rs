//! The link side against real servers: precheck, slots, base backups, the receiver, the archive and
//! the index of commits.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod link {
    mod backup;
    mod commits;
    mod failover;
    mod precheck;
    mod receiver;
    mod server;
    mod tls;
}
