use crate::course::Plan;
use crate::seeds;

#[test]
fn flipped_bits_give_errors_and_never_wrong_or_old_content() {
    for seed in seeds(6) {
        let plan = Plan::new(seed);
        for index in 0..12 {
            assert_eq!(plan.flip(index).flips, 1);
        }
    }
}
