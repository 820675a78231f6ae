//! Jobs against an outside world that survives the engine: whatever fails, repeats or crashes, a job
//! ends complete or leaves nothing behind.

#![allow(clippy::disallowed_methods)] // the tests of a dying process start one

mod abort;
mod alone;
mod chaos;
mod course;
mod parts;
mod world;
