//! The keeper: a small process that holds what must outlive an engine.
//!
//! What an engine has open ends with its process: a connection that nobody else holds is closed, memory that nobody
//! else maps is gone. So a process that does almost nothing, and therefore does not die, holds copies of such
//! descriptors under numbers that the engine chooses. The next engine asks for them. The keeper knows neither what
//! the descriptors are nor what the numbers mean.
//!
//! [`Keeper`] is an engine's connection to it; [`run`] is the process itself.
//!
//! ```text
//! message   0 4 what     request: HOLD key (1 to 4 descriptors) · DROP key · LIST · ENGINE
//!           4 4 version  answer:  DONE · HELD key (its descriptors), for LIST, DONE at its end ·
//!           8 8 key               DONE with the engine's pid as key, for ENGINE
//! ```
//! A client that has sent HOLD or LIST is an engine. Without an engine the keeper ends immediately
//! if it holds nothing, otherwise after [`PATIENCE`]; then everyone who waits for an engine gets
//! errors.
//!
//! A keeper outlives the release that started it, so an engine may meet an older one. Keepers older than this
//! crate hold exactly two descriptors under a number, and hang up at any other count.

mod connection;
mod process;
mod protocol;
#[cfg(test)]
mod tests;

pub use connection::{Held, Keeper, remove_deserted};
pub use process::run;
pub use protocol::PATIENCE;
