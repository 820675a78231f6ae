//! Processor time of processes and of all that they started.

use offshoot_os::process::ProcessId;
use std::collections::{HashMap, HashSet};

/// Ticks of a second as `/proc` counts them for programs (`USER_HZ`).
const TICKS: f64 = 100.0;

/// A process as `/proc/PID/stat` shows it.
struct Process {
    parent: i32,
    /// Its own and those of its children that have ended and were waited for, in programs and in the kernel.
    ticks: u64,
}

/// Seconds that these processes have taken, with their descendants that run or have ended.
///
/// What a descendant that was orphaned took is lost when it ends; the difference of two looks is right otherwise.
pub fn processor_seconds(roots: impl IntoIterator<Item = i32>) -> f64 {
    let all: HashMap<i32, Process> = ProcessId::all()
        .filter_map(|id| {
            let text = std::fs::read_to_string(format!("/proc/{}/stat", id.pid)).ok()?;
            Some((id.pid, parse(&text)?))
        })
        .collect();
    let mut family: HashSet<i32> = roots.into_iter().collect();
    loop {
        let is_new =
            |(pid, one): &(&i32, &Process)| family.contains(&one.parent) && !family.contains(pid);
        let children: Vec<i32> = all.iter().filter(is_new).map(|(pid, _)| *pid).collect();
        if children.is_empty() {
            break;
        }
        family.extend(children);
    }
    let ticks: u64 = family.iter().filter_map(|pid| all.get(pid)).map(|one| one.ticks).sum();
    ticks as f64 / TICKS
}

/// Fields 4 and 14 to 17, counted after the name, which may contain anything.
fn parse(stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let ticks = (11..15).map(number).sum::<Option<u64>>()?;
    Some(Process { parent: fields.get(1)?.parse().ok()?, ticks })
}

#[cfg(test)]
mod tests;
