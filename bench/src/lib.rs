//! `offshoot bench`: measures what users notice, compared with what they would do without Offshoot.
//!
//! Every benchmark starts from a fixed state that it makes itself, interleaves and repeats what it
//! compares, records machine, versions, settings and seed, and writes `result.json` and a
//! self-contained `report.html`. It speaks to engines through the command line and to databases through
//! SQL: nothing here knows the engine from inside. How to run them and what each figure means is in
//! `docs/benchmarks.md`.

mod arguments;
mod benchmarks;
mod block_trace;
mod chart;
mod connection;
mod driver;
mod figures;
mod group;
mod host;
mod limits;
mod observer;
mod order_entry;
mod pair;
mod processor_time;
mod record;
mod report;
mod seed;
mod server;
mod setting;
mod stage;
mod standby;
mod statistics;
mod volume;

pub use arguments::BenchCommand;
pub use benchmarks::run;
