//! The sizes of requests that reach a block device, as the kernel's tracing sees them.
//!
//! See the kernel's `trace/ftrace.rst` and `trace/events.rst`. Needs root; its own instance does not
//! interfere with other tracing.

use crate::volume::run;
use anyhow::{Context, Result, anyhow};
use offshoot_os::process::Spec;
use offshoot_os::{Clock, SystemClock};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Where tracefs is.
const TRACEFS: &str = "/sys/kernel/tracing";

/// Requests by their size in bytes.
pub type Sizes = BTreeMap<u64, u64>;

/// Writes and reads by their size.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Requests that write.
    pub writes: Sizes,
    /// Requests that read.
    pub reads: Sizes,
}

/// A count that runs until [`BlockTrace::end`].
#[derive(Debug)]
pub struct BlockTrace {
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<Requests>>,
    instance: Instance,
}

/// An instance of tracing, removed when dropped.
#[derive(Debug)]
struct Instance {
    directory: PathBuf,
    mounted: bool,
}

impl BlockTrace {
    /// Begins to count the requests of the device `major:minor`.
    ///
    /// # Errors
    /// What is missing here: tracefs, the event, the right to use them.
    pub fn begin(device: &str) -> Result<Self> {
        let (major, minor) = device.split_once(':').context("a device is major:minor")?;
        let (major, minor): (u32, u32) = (major.parse()?, minor.parse()?);
        let instance = Instance::make()?;
        let event = instance.directory.join("events/block/block_rq_issue");
        // The kernel's own number of a device: 12 bits of major, 20 of minor.
        let filter = format!("dev == {}", (major << 20) | minor);
        std::fs::write(event.join("filter"), filter).context("filtering requests")?;
        let pipe = File::options()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(instance.directory.join("trace_pipe"))
            .context("reading the trace")?;
        std::fs::write(event.join("enable"), "1").context("tracing requests")?;
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        let reader = std::thread::spawn(move || count(pipe, &theirs));
        Ok(BlockTrace { stop, reader: Some(reader), instance })
    }

    /// Ends the count and returns it.
    ///
    /// # Errors
    /// When the counting thread panicked.
    pub fn end(mut self) -> Result<Requests> {
        let event = self.instance.directory.join("events/block/block_rq_issue");
        std::fs::write(event.join("enable"), "0").context("ending the trace")?;
        self.stop.store(true, Ordering::Release);
        let reader = self.reader.take().context("the count was ended already")?;
        reader.join().map_err(|_| anyhow!("the thread that counts panicked"))
    }
}

impl Drop for BlockTrace {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Instance {
    fn make() -> Result<Self> {
        let instances = Path::new(TRACEFS).join("instances");
        let mounted = !instances.is_dir();
        if mounted {
            run(Spec::new("mount").args(["-t", "tracefs", "tracefs", TRACEFS]))?;
        }
        let directory = instances.join(format!("offshoot-bench-{}", std::process::id()));
        let instance = Instance { directory, mounted };
        std::fs::create_dir(&instance.directory).context("making an instance of tracing")?;
        Ok(instance)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Removing an instance ends what it traces.
        let _ = std::fs::remove_dir(&self.directory);
        if self.mounted {
            let _ = run(Spec::new("umount").arg(TRACEFS));
        }
    }
}

/// Reads lines until told to stop and nothing is left.
fn count(mut pipe: File, stop: &AtomicBool) -> Requests {
    let mut requests = Requests::default();
    let (mut buffer, mut rest) = (vec![0; 64 << 10], Vec::new());
    loop {
        let stopping = stop.load(Ordering::Acquire);
        match pipe.read(&mut buffer) {
            Ok(length) if length > 0 => {
                rest.extend_from_slice(&buffer[..length]);
                let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                let lines: Vec<u8> = rest.drain(..whole).collect();
                String::from_utf8_lossy(&lines).lines().for_each(|line| requests.add(line));
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() != ErrorKind::WouldBlock => return requests,
            _ if stopping => return requests,
            _ => SystemClock.sleep(Duration::from_millis(20)),
        }
    }
}

impl Requests {
    /// A line as `… block_rq_issue: 7,0 WS 8192 () 1234 + 16 be,0,4 [fio]`.
    fn add(&mut self, line: &str) {
        let Some((_, event)) = line.split_once("block_rq_issue: ") else { return };
        let mut words = event.split_whitespace().skip(1);
        let (Some(kind), Some(Ok(bytes))) = (words.next(), words.next().map(str::parse::<u64>))
        else {
            return;
        };
        // A flush has no size, a discard writes nothing.
        if bytes > 0 && !kind.starts_with('D') {
            let sizes = if kind.contains('W') { &mut self.writes } else { &mut self.reads };
            *sizes.entry(bytes).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests;
