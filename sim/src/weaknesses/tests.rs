use super::*;

#[test]
fn every_flush_that_is_left_out_or_late_is_noticed() {
    for step in STEPS {
        let outcome = try_out(step);
        assert!(outcome.noticed.is_some(), "{}, {:?}: nothing notices", step.place, step.weakness);
    }
}
