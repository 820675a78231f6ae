//! Real mounts of datasets for tests, served by a process of their own (`serve_mount`).
//!
//! The process of its own matters: a program that uses a mount which it serves itself can hang so
//! that not even SIGKILL ends it. All waits here have a deadline; whatever happens, a [`Server`]
//! that is dropped leaves no process, no mount and no file.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // tests start processes and measure time themselves

mod kept;
mod server;

pub use kept::Kept;
pub use server::{
    Server, Watchdog, clean_stale, delivery, delivery_name, detach_below, is_mounted,
    read_during_writes, synchronous_writer,
};
