//! The stream of log as the engine sees it.

use crate::receiver::{Receiver, ReceiverState, ReceiverStatus, SyncedTo};
use offshoot_connector::{LogStream, StreamState, StreamStatus};
use offshoot_domain::Position;
use offshoot_types::Failure;
use std::time::Duration;

/// A receiver.
pub(super) struct WalStream(pub(super) Receiver);

fn position(synced: SyncedTo) -> Position {
    Position { log: synced.lsn.into(), time: synced.time }
}

fn told(status: &ReceiverStatus) -> StreamStatus {
    StreamStatus {
        state: match &status.state {
            ReceiverState::Connecting | ReceiverState::Stopped => StreamState::Idle,
            ReceiverState::Streaming => StreamState::Streaming,
            ReceiverState::Retrying(failure) => StreamState::Retrying(failure.clone()),
            ReceiverState::Gap(failure) => StreamState::Gap(failure.clone()),
        },
        state_for: status.state_for,
        received: status.received.map(Into::into),
        synced_to: status.synced_to.map(position),
        lag_bytes: status.lag_bytes,
        lag: status.lag,
        silent_for: status.silent_for,
        clock_skew_ms: status.clock_skew_ms,
    }
}

impl LogStream for WalStream {
    fn status(&self) -> StreamStatus {
        told(&self.0.status())
    }

    fn wait_streaming(&self, timeout: Duration) -> Result<(), Failure> {
        self.0.wait_streaming(timeout)
    }

    fn ask_now(&self, timeout: Duration) -> Result<Position, Failure> {
        self.0.ask_now(timeout).map(position)
    }

    fn receive_all(
        &self,
        silence: Duration,
        tick: &mut dyn FnMut(&StreamStatus) -> Result<(), Failure>,
    ) -> Result<Position, Failure> {
        self.0.receive_all(silence, &mut |status| tick(&told(status))).map(position)
    }

    fn stop(&self) {
        self.0.stop();
    }
}
