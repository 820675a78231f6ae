//! Everything that one seed decides.

use crate::Dice;
use crate::course::Plan;
use crate::tally::Tally;
use crate::{flips, log_course};

/// Everything about one seed: the run, the intent log alone, `crashes` power losses (`None`: one at each
/// operation), and some more with flipped bits.
///
/// # Panics
/// If anything is wrong.
pub fn run_seed(seed: u64, crashes: Option<u64>) -> Tally {
    let plan = Plan::new(seed);
    let steps = plan.steps() as u64;
    let mut tally = Tally { seeds: 1, steps, disk_operations: plan.operations, ..Tally::default() };
    let mut dice = Dice::new(seed ^ 0xC4A5);
    for index in 0..crashes.unwrap_or(plan.operations + 1) {
        let at = match crashes {
            None => index + 1,
            Some(_) => 1 + dice.roll(plan.operations + 1),
        };
        tally += plan.crash_at(at, &|_| {});
    }
    for index in 0..flips::count(crashes.unwrap_or(plan.operations)) {
        tally += plan.flip(index);
    }
    tally += log_course::run_seed(seed, &|_| {});
    tally
}
