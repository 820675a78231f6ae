//! The PostgreSQL connector: link a source and follow its log; configure, start and recover servers.

pub mod access;
pub mod archive;
pub mod base_backup;
pub mod check_image;
pub mod commit_index;
pub mod config;
mod connector;
pub mod control;
mod databases;
mod differ;
mod engine_role;
mod files;
mod gateway;
mod handover;
mod inquiry;
pub mod installation;
mod lsn;
pub mod masker;
pub mod receiver;
pub mod recovery;
pub mod rounds;
pub mod script;
pub mod secrets;
pub mod server;
pub mod session;
pub mod settle;
mod settled;
pub mod slot;
pub mod source;
pub mod standby;
pub mod superuser;
mod tls;
pub mod vdb_role;
pub mod wire;

pub use connector::Postgres;
pub use lsn::{Lsn, ParseLsnError};
