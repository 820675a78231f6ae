//! A *gateway* holds the connections of a VDB while its server is away.
//!
//! It is a small process of its own. It listens where the VDB is reached, and passes each connection on to the
//! PostgreSQL server that is behind it at present, on another port of the loopback address. Before that server is stopped
//! or replaced, the gateway is told to *hold*; afterwards to *serve*:
//!
//! ```text
//!                        hold: idle           hold: busy, grace is over
//!   relaying ───────────────────────▶ parked  ·  relaying ──────▶ ended (57P01)
//!      ▲                                │
//!      └── serving, and the client ─────┘
//!          sends something or listens
//! ```
//!
//! - *Parked*: the client keeps its connection, the server's is closed. What the session had set, prepared and listened
//!   to was read before (`carry.rs`) and is put back when the session is opened anew. Sessions are read, and those that
//!   listen are opened anew, a few at a time (`turns.rs`).
//! - A session is *quiet* when nothing is under way in either direction (`conversation.rs`). Only a quiet one is parked.
//! - New clients wait. Nobody sees a refused connection.
//!
//! # What it knows of passwords
//! Nothing that is worth stealing at rest. It sees the proof by which a client logged in, and keeps it. Only together with
//! the role's verifier, which it is told when it is to serve, does the proof give the key that logs in again
//! (`scram.rs`). A client whose password changed meanwhile is not logged in again.
//!
//! # What it bounds
//! Clients, the size of a startup packet, what is kept of a session, and every wait. Frames are streamed, never collected:
//! their length is the only thing believed of them, and one too short or too long ends the session.

mod admission;
mod backend;
mod buffer;
mod carry;
mod control;
mod control_socket;
mod conversation;
mod customs;
mod frames;
mod hub;
mod login;
mod messages;
mod opening;
mod process;
mod relay;
mod scram;
mod session;
mod startup;
mod turns;
mod wire;

pub use control::{
    Backend, Control, Hold, Reply, Request, State, Status, Tls, VERSION, Why, parking_time_max,
};
pub use process::{Options, run};
pub use scram::verifier;
