use super::*;

#[test]
fn only_what_one_of_them_committed_differs() {
    // Under way, committed, rolled back, of its parent.
    let outcomes = [0, 1, 2, 3];
    for a in outcomes {
        for b in outcomes {
            let found: Vec<u64> = differing_in(&[0, a << 4], &[0, b << 4]).collect();
            let differs =
                a != b && (a == COMMITTED || b == COMMITTED || a == OF_PARENT || b == OF_PARENT);
            assert_eq!(found, if differs { vec![6] } else { vec![] }, "{a} {b}");
        }
    }
}
