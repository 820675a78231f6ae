use super::*;

#[test]
fn writers_of_the_same_second_add_up() {
    let log = "1000, 1000, 1, 8192, 0\n1000, 3000, 1, 8192, 0\n2000, 500, 1, 8192, 0\n9000, 7, 1, 8192, 0\n";
    let sums = per_second(log, 3);
    assert_eq!(sums, [4.096, 0.512, 0.0]);
}
