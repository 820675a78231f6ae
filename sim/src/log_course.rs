//! The intent log alone: opening after opening on one disk, each ended by a power loss.
//!
//! A store logs one record at a time and rarely loses power twice in a row; here several records wait for
//! one flush, are of equal length, and openings follow each other quickly, so that what one leaves behind
//! is exactly where the next one writes.

use crate::Dice;
use crate::tally::Tally;
use crate::world::data_key;
use offshoot_dataset::Seals;
use offshoot_intent_log::IntentLog;
use offshoot_os::disk::sim::SimDisk;
use std::io::IoSlice;

/// Bytes of a file of the log.
const FILE_LEN: u64 = 64 << 10;
/// Openings of one run.
const OPENINGS: u64 = 12;

/// What the last opening did.
#[derive(Default)]
struct Done {
    /// Payloads by sequence, from the first of the opening.
    appended: Vec<(u64, Vec<u8>)>,
    /// Records below this were acknowledged.
    synced: u64,
    /// Records below this may be gone.
    trimmed: u64,
}

/// Runs a seed.
///
/// # Panics
/// If a replay shows anything but the acknowledged records and a prefix of those after them.
pub fn run_seed(seed: u64, prepare: &dyn Fn(&SimDisk)) -> Tally {
    let mut dice = Dice::new(seed ^ 0x106);
    let disk = SimDisk::new(seed);
    IntentLog::create(&*disk, FILE_LEN, 3).expect("a log is made on a sound disk");
    prepare(&disk);
    let seals = Seals::new(data_key(seed).as_ref()).expect("there is a source of randomness");
    let (mut before, mut done) = (Vec::new(), Done::default());
    let mut tally = Tally::default();
    for opening in 0..OPENINGS {
        let found = replay(&disk, &seals);
        // An opening that acknowledged nothing may not have begun on the medium: its predecessor's
        // records, which are durable elsewhere, are there then.
        let unbegun = done.synced == 0 && found == before;
        if !unbegun {
            check(&found, &done, &format!("seed {seed}, opening {opening}"));
        }
        before = found;
        disk.crash_after(1 + dice.roll(24));
        done = work(&disk, &seals, opening, &mut dice, &mut tally);
        disk.crash();
        tally.crashes += 1;
    }
    tally.disk_operations = disk.operations();
    tally.weakened = disk.weakened();
    tally
}

fn replay(disk: &SimDisk, seals: &Seals) -> Vec<(u64, Vec<u8>)> {
    let replay = IntentLog::replay_sealed(disk, seals).expect("the log is there");
    assert_eq!((&replay.damage[..], replay.mended), (&[][..], 0), "nothing was damaged");
    replay.records.into_iter().map(|record| (record.sequence, record.payload)).collect()
}

/// One opening, until power is lost or the log is full.
fn work(disk: &SimDisk, seals: &Seals, opening: u64, dice: &mut Dice, tally: &mut Tally) -> Done {
    let mut done = Done::default();
    let Ok(log) = IntentLog::open_sealed(disk, seals.clone()) else { return done };
    let len = dice.pick(&[100, 700, 5000, 20_000]);
    for _ in 0..60 {
        tally.steps += 1;
        if !disk.lost_power() {
            disk.settle(); // late flushes are late within one step
        }
        match dice.roll(6) {
            0..=3 => {
                let sequence = log.next_sequence();
                let mut payload = [opening.to_le_bytes(), sequence.to_le_bytes()].concat();
                payload.resize(len, sequence as u8);
                if log.append(opening, sequence, &[IoSlice::new(&payload)]).is_ok() {
                    done.appended.push((sequence, payload));
                }
            }
            4 => {
                let Some((last, _)) = done.appended.last() else { continue };
                if log.sync(*last).is_err() {
                    return done;
                }
                done.synced = last + 1;
            }
            _ if done.synced > 0 && dice.chance(3) => {
                let kept = dice.roll(3).min(done.synced);
                done.trimmed = done.trimmed.max(done.synced - kept);
                log.trim(done.trimmed);
            }
            _ => {}
        }
    }
    done
}

/// Records found: all that were acknowledged and not trimmed, and then some of the next, nothing else.
fn check(found: &[(u64, Vec<u8>)], done: &Done, context: &str) {
    for record in found {
        let known = done.appended.contains(record);
        assert!(known, "{context}: record {} is of another opening", record.0);
    }
    for (sequence, _) in &done.appended {
        if (done.trimmed..done.synced).contains(sequence) {
            let there = found.iter().any(|(found, _)| found == sequence);
            assert!(there, "{context}: record {sequence} was acknowledged and is gone");
        }
    }
    let follows = found.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0);
    assert!(follows, "{context}: records are missing in the middle");
}

#[cfg(test)]
mod tests;
