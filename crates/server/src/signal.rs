//! Signals as something to wait for.

use offshoot_types::Failure;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// The name of the signal by which another engine asks for room.
pub(crate) const MAKE_ROOM: &str = "SIGUSR1";

/// Notes when the process is asked to stop. Made before anything is started, so that no request to stop
/// is missed; from then on no such signal ends the process directly.
#[derive(Debug)]
pub struct ShutdownSignal {
    asked: Receiver<&'static str>,
}

impl ShutdownSignal {
    /// Takes over SIGTERM, SIGINT and SIGUSR1 for the whole process.
    ///
    /// # Errors
    /// `internal` where the operating system refuses.
    pub fn install() -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::internal(format!("signals cannot be received: {error}"))
        };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (mut terminate, mut interrupt, mut make_room) = {
            let _inside = runtime.enter();
            let terminate = signal(SignalKind::terminate()).map_err(failed)?;
            let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
            (terminate, interrupt, signal(SignalKind::user_defined1()).map_err(failed)?)
        };
        let (tell, asked) = sync_channel(1);
        let listen = move || {
            runtime.block_on(async {
                loop {
                    let name = tokio::select! {
                        _ = terminate.recv() => "SIGTERM",
                        _ = interrupt.recv() => "SIGINT",
                        _ = make_room.recv() => MAKE_ROOM,
                    };
                    // A second signal while the first is being handled has no effect.
                    let _ = tell.try_send(name);
                }
            })
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(failed)?;
        Ok(ShutdownSignal { asked })
    }

    /// Blocks until the process is asked to stop; returns the signal's name.
    pub fn wait(&self) -> &'static str {
        self.asked.recv().unwrap_or("the end of the signal thread")
    }

    /// Blocks until the process is asked to stop or the time is over; returns the signal's name.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<&'static str> {
        match self.asked.recv_timeout(timeout) {
            Ok(name) => Some(name),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some("the end of the signal thread"),
        }
    }
}
