//! A network between two engines on one machine: so many bytes a second, so long on the way.

use anyhow::{Context, Result};
use offshoot_os::{Clock, SystemClock};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// Bytes that are passed on at a time.
const CHUNK: usize = 16 << 10;
/// How much of what was slept too long is made up for.
const SLACK: Duration = Duration::from_millis(5);
/// Pause between two looks at whether somebody connects.
const LOOK: Duration = Duration::from_millis(20);

/// What a link is like, in each direction.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// How it is called in figures.
    pub name: &'static str,
    /// Bytes a second.
    pub bytes_per_second: u64,
    /// How long a byte is on its way.
    pub delay: Duration,
}

/// A link to an address, until it is dropped.
#[derive(Debug)]
pub struct Link {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Link {
    /// Opens one on a free port of loopback.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(to: SocketAddr, kind: Kind) -> Result<Link> {
        let listener = TcpListener::bind("127.0.0.1:0").context("a port for a link")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let ends = Arc::new(AtomicBool::new(false));
        let stop = ends.clone();
        let thread = spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((near, _)) => {
                        if let Err(error) = join(near, to, kind) {
                            eprintln!("  the link lost a connection: {error}");
                        }
                    }
                    Err(_) => SystemClock.sleep(LOOK),
                }
            }
        });
        Ok(Link { address, ends, thread: Some(thread) })
    }

    /// Where it begins.
    pub fn address(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Passes on what both ends say, until one hangs up.
fn join(near: TcpStream, to: SocketAddr, kind: Kind) -> std::io::Result<()> {
    near.set_nonblocking(false)?;
    let far = TcpStream::connect(to)?;
    for stream in [&near, &far] {
        stream.set_nodelay(true)?;
    }
    pass(near.try_clone()?, far.try_clone()?, kind);
    pass(far, near, kind);
    Ok(())
}

fn pass(mut from: TcpStream, to: TcpStream, kind: Kind) {
    // As much as is on its way at full speed.
    let on_the_way = kind.bytes_per_second as f64 * (kind.delay + SLACK).as_secs_f64();
    let (sender, receiver) = sync_channel(on_the_way as usize / CHUNK + 2);
    spawn(move || {
        let sender: SyncSender<(Duration, Vec<u8>)> = sender;
        let mut chunk = vec![0; CHUNK];
        while let Ok(count @ 1..) = from.read(&mut chunk) {
            let due = SystemClock.elapsed() + kind.delay;
            if sender.send((due, chunk[..count].to_vec())).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Read);
    });
    spawn(move || deliver(&receiver, to, kind.bytes_per_second));
}

fn deliver(chunks: &Receiver<(Duration, Vec<u8>)>, mut to: TcpStream, bytes_per_second: u64) {
    let mut free_at = Duration::ZERO;
    for (due, chunk) in chunks {
        let begins = due.max(free_at);
        let now = SystemClock.elapsed();
        if begins > now {
            SystemClock.sleep(begins - now);
        }
        let took = Duration::from_secs_f64(chunk.len() as f64 / bytes_per_second as f64);
        free_at = begins.max(SystemClock.elapsed().saturating_sub(SLACK)) + took;
        if to.write_all(&chunk).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
