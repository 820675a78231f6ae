//! The PostgreSQL connector: link a source and follow its log; configure, start and recover servers.

pub mod archive;
pub mod base_backup;
pub mod commit_index;
pub mod installation;
pub mod receiver;
pub mod slot;
pub mod source;
