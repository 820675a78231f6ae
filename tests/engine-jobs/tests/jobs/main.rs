//! Every step of the engine's jobs: killed before it and after it, then finished or undone by the next engine, which
//! is killed, too, while it undoes that; failing before its work and after it, then undone by the same engine.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::too_many_lines)]

mod bed;
mod case;
mod failing;
mod killed;
mod opening;
mod takeover;
