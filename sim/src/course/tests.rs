use super::*;
use crate::seed::run_seed;
use crate::{ENCRYPTED, seeds};

#[test]
fn a_crash_anywhere_leaves_a_prefix() {
    for seed in seeds(8) {
        run_seed(seed, Some(6));
    }
}

#[test]
fn the_same_on_encrypted_pools() {
    for seed in seeds(4) {
        run_seed(seed | ENCRYPTED, Some(6));
    }
}

/// Otherwise a printed seed repeats nothing.
#[test]
fn a_seed_repeats_its_run() {
    for seed in [3, 89, 3 | ENCRYPTED] {
        let (first, second) = (Plan::new(seed), Plan::new(seed));
        assert_eq!(first.to_string(), second.to_string());
        assert_eq!(first.operations, second.operations);
        assert_eq!(first.crash_at(60, &|_| {}), second.crash_at(60, &|_| {}));
    }
}
