//! A network between two engines on one host that a test cuts, slows and damages.

use anyhow::{Context, Result};
use offshoot_os::{Clock, SystemClock};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// Pause between two looks at whether somebody connects.
const LOOK: Duration = Duration::from_millis(10);
/// Bytes that are passed on at a time.
const CHUNK: usize = 16 << 10;

/// A way to an address, until it is dropped.
#[derive(Debug)]
pub struct TroubledLink {
    address: SocketAddr,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    ends: AtomicBool,
    /// Nobody gets through.
    cut: AtomicBool,
    /// A bit of what is passed on next is flipped.
    damage: AtomicBool,
    /// Bytes a second; 0: as many as come.
    rate: AtomicU64,
    /// Both ends of each connection.
    open: Mutex<Vec<TcpStream>>,
}

impl TroubledLink {
    /// Opens one on a free port of loopback.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(to: SocketAddr) -> Result<TroubledLink> {
        let listener = TcpListener::bind("127.0.0.1:0").context("a port for a link")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let state = Arc::new(State::default());
        let theirs = Arc::clone(&state);
        let thread = spawn(move || {
            while !theirs.ends.load(Ordering::Relaxed) {
                match listener.accept() {
                    // Whoever is refused sees a connection that ends at once.
                    Ok((near, _)) if !theirs.cut.load(Ordering::Relaxed) => {
                        let _ = join(near, to, &theirs);
                    }
                    Ok(_) => {}
                    Err(_) => SystemClock.sleep(LOOK),
                }
            }
        });
        Ok(TroubledLink { address, state, thread: Some(thread) })
    }

    /// Where it begins.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Ends all connections, and lets none through until it is mended.
    pub fn cut(&self) {
        self.state.cut.store(true, Ordering::Relaxed);
        self.state.hang_up();
    }

    /// Ends nothing, but passes on so many bytes a second, until it is mended.
    pub fn slow(&self, bytes_per_second: u64) {
        self.state.rate.store(bytes_per_second, Ordering::Relaxed);
    }

    /// Flips a bit of what is passed on next.
    pub fn damage(&self) {
        self.state.damage.store(true, Ordering::Relaxed);
    }

    /// As it was in the beginning.
    pub fn mend(&self) {
        self.state.cut.store(false, Ordering::Relaxed);
        self.state.damage.store(false, Ordering::Relaxed);
        self.state.rate.store(0, Ordering::Relaxed);
    }
}

impl State {
    fn hang_up(&self) {
        for stream in self.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // The other side may have ended it.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for TroubledLink {
    fn drop(&mut self) {
        self.state.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.state.hang_up();
    }
}

/// Passes on what both ends say, until one hangs up.
fn join(near: TcpStream, to: SocketAddr, state: &Arc<State>) -> std::io::Result<()> {
    near.set_nonblocking(false)?;
    let far = TcpStream::connect(to)?;
    for stream in [&near, &far] {
        stream.set_nodelay(true)?;
        let mut open = state.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push(stream.try_clone()?);
    }
    pass(near.try_clone()?, far.try_clone()?, state);
    pass(far, near, state);
    Ok(())
}

fn pass(mut from: TcpStream, mut to: TcpStream, state: &Arc<State>) {
    let state = Arc::clone(state);
    spawn(move || {
        let mut chunk = vec![0; CHUNK];
        while let Ok(count @ 1..) = from.read(&mut chunk) {
            if state.damage.swap(false, Ordering::Relaxed) {
                chunk[count / 2] ^= 0x10;
            }
            if let rate @ 1.. = state.rate.load(Ordering::Relaxed) {
                SystemClock.sleep(Duration::from_secs_f64(count as f64 / rate as f64));
            }
            if to.write_all(&chunk[..count]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    });
}
