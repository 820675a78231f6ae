use super::*;
use crate::{ENCRYPTED, seeds};

#[test]
fn what_was_acknowledged_is_there_and_nothing_of_another_opening() {
    for seed in seeds(2000) {
        run_seed(seed, &|_| {});
    }
    for seed in seeds(200) {
        run_seed(seed | ENCRYPTED, &|_| {});
    }
}
