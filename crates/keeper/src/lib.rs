//! The keeper: a small process that holds what must outlive an engine.
//!
//! What an engine has open ends with its process: a connection that nobody else holds is closed, memory that
//! nobody else maps is gone. So a process that does next to nothing, and therefore does not die, holds a copy of such
//! descriptors, under a number that the engine chooses. The next engine asks for them. What the descriptors are, and
//! what the numbers mean, the keeper does not know.
//!
//! [`Keeper`] is an engine's connection to it; [`run`] is the process itself.
//!
//! ```text
//! message   0 4 what     request: HOLD key (1 to 4 descriptors) · DROP key · LIST · ENGINE
//!           4 4 version  answer:  DONE · HELD key (its descriptors), for LIST, DONE at its end ·
//!           8 8 key               DONE with the engine's pid as key, for ENGINE
//! ```
//! An engine is who has sent HOLD or LIST. Without an engine the keeper ends at once when it holds
//! nothing, else after [`PATIENCE`]: whoever waits for an engine gets errors then.
//!
//! A keeper outlives the release that started it, so an engine may meet an older one. Those before this crate hold
//! exactly two descriptors under a number and hang up at another count.

mod connection;
mod process;
mod protocol;
#[cfg(test)]
mod tests;

pub use connection::{Held, Keeper, remove_deserted};
pub use process::run;
pub use protocol::PATIENCE;
