use super::*;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000 + millis).unwrap()
}

fn history() -> History {
    let mut history = History::default();
    for (value, before) in [(1, 100), (2, 200), (3, 300)] {
        history.push(Tick { value, before: at(before), after: at(before + 10) });
    }
    history
}

#[test]
fn a_moment_has_the_value_of_the_last_commit_before_it() {
    let history = history();
    assert_eq!(history.value_at(at(50)), Some(0));
    assert_eq!(history.value_at(at(150)), Some(1));
    assert_eq!(history.value_at(at(210)), Some(2));
    assert_eq!(history.value_at(at(10_000)), Some(3));
}

#[test]
fn a_moment_inside_a_commit_has_no_certain_value() {
    assert_eq!(history().value_at(at(205)), None);
}

#[test]
fn a_value_has_a_moment_once_the_next_is_there() {
    let history = history();
    let moment = history.moment_of(2).unwrap();
    assert_eq!(history.value_at(moment), Some(2));
    assert_eq!(history.moment_of(3), None);
    assert_eq!(history.moment_of(9), None);
}
