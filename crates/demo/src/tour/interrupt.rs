//! Ctrl-C and SIGTERM: the demonstration cleans up instead of dying.

use anyhow::{Result, bail};
use offshoot_os::{Clock, SystemClock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Whether the user has asked to end.
#[derive(Clone)]
pub(super) struct Interrupt {
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens from now on, for as long as the process lives.
    pub(super) fn listen() -> Self {
        let interrupt = Interrupt { asked: Arc::default() };
        let theirs = interrupt.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let (Ok(mut interrupt), Ok(mut terminate)) =
                    (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
                else {
                    return;
                };
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                theirs.asked.store(true, Ordering::Release);
                // The second signal ends it immediately; the next engine's start would clean up.
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                std::process::exit(130);
            });
        });
        interrupt
    }

    /// An error once the user has asked to end.
    pub(super) fn check(&self) -> Result<()> {
        if self.asked.load(Ordering::Acquire) {
            bail!("interrupted; everything is removed");
        }
        Ok(())
    }

    /// Waits until the user asks to end.
    pub(super) fn wait(&self) {
        while !self.asked.load(Ordering::Acquire) {
            SystemClock.sleep(Duration::from_millis(50));
        }
    }
}
