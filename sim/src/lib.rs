//! The real pool, intent log and datasets on a disk that loses, tears, reorders, refuses and lies.
//!
//! One seed makes one *run*: random steps on a store, each compared with a model of plain maps. The run
//! is then repeated with power lost at each operation of the disk; what comes back must be a prefix of
//! the history that holds all that was acknowledged, and must pass the offline check. It is repeated once
//! more with bits flipped after the power loss: then whatever can be read must still be right.
//!
//! Begin reading at [`course`].
#![allow(clippy::unwrap_used)]

mod choice;
pub mod course;
mod dice;
pub mod flips;
mod log_course;
mod model;
mod run;
pub mod seed;
pub mod tally;
pub mod trial;
pub mod weaknesses;
mod world;

pub use dice::{Dice, seeds};
pub use world::{ENCRYPTED, create, open, small_options};
