//! Gives VDBs with many sessions at work less of the processors each, while there are not enough for all.
//!
//! Control groups give each server as much as any other. A VDB that could use all processors with its four sessions then
//! has less than half of them beside one with forty, for the other takes its half and both pay for the
//! change between them. What a server gains by sessions beyond twice the processors is nothing; so its
//! share shrinks as they become more, and others hardly notice it. A VDB alone on the host still has all.

use crate::core::keys::vdb_key;
use crate::parts::Parts;
use crate::serving::servers;
use offshoot_domain::{Vdb, VdbState};
use offshoot_os::cgroup::Group;
use offshoot_os::pressure::ready_threads;
use offshoot_types::{Failure, VdbId};
use std::collections::HashMap;
use std::time::Duration;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(500);
/// So much of an average over time is what was seen last.
const WEIGHT_OF_LAST: f64 = 0.5;
/// Processes at work for each processor that a server has its whole share with.
const WHOLE: f64 = 2.0;
/// What every server keeps, in percent of the usual share.
const SHARE_MIN: f64 = 12.5;
/// A share is set anew when it is off by so much of itself.
const TOLERANCE: f64 = 0.15;

/// What VDBs want of the processors.
#[derive(Default)]
pub struct Loads {
    look_at: Duration,
    /// How many processes of each were at work of late, on average; nobody, where there was enough for all.
    at_work: HashMap<VdbId, f64>,
}

impl Loads {
    /// Sets the shares of those whose load has changed.
    pub fn look_after(&mut self, parts: &Parts) -> Result<(), Failure> {
        let now = parts.clock.elapsed();
        if now < self.look_at {
            return Ok(());
        }
        self.look_at = now + PAUSE;
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get()) as f64;
        let busy = ready_threads().is_some_and(|threads| threads as f64 > WHOLE * processors);
        // Where there is enough for all, shares change nothing and nobody needs to look.
        if !busy && self.at_work.is_empty() {
            return Ok(());
        }
        let mut seen = HashMap::new();
        for vdb in parts.catalog.all::<Vdb>()?.iter().filter(|vdb| vdb.state == VdbState::Running) {
            let Some(server) = parts.servers.get(&vdb_key(vdb.id)) else { continue };
            let Some(group) = servers::group_of(&*server) else { continue };
            let Ok(count) = group.processes_at_work() else { continue };
            let before = self.at_work.get(&vdb.id).copied().unwrap_or(0.0);
            let average = before + WEIGHT_OF_LAST * (count as f64 - before);
            set_share(&group, share(average, processors));
            if busy || average > WHOLE * processors {
                seen.insert(vdb.id, average);
            }
        }
        self.at_work = seen;
        Ok(())
    }
}

/// The share of a server with so many processes at work, in percent of the usual one.
fn share(at_work: f64, processors: f64) -> u64 {
    (100.0 * WHOLE * processors / at_work).clamp(SHARE_MIN, 100.0) as u64
}

/// Where it cannot be set, a server keeps the share that it had.
fn set_share(group: &Group, wanted: u64) {
    // One that somebody waits for has more than the usual share, until it serves.
    let Ok(now @ ..=100) = group.processor_share() else { return };
    let off = now.abs_diff(wanted) as f64 > TOLERANCE * wanted as f64;
    if off || wanted == 100 && now < 100 {
        let _ = group.weigh_processors(wanted);
    }
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_share_shrinks_as_more_is_at_work() {
        let shares: Vec<u64> = [0.0, 1.0, 4.0, 8.0, 16.0, 40.0].map(|load| share(load, 2.0)).into();
        assert_eq!(shares, [100, 100, 100, 50, 25, 12]);
    }
}
