use super::*;

fn value(text: &str) -> Answer {
    Answer::Value(text.to_owned())
}

#[test]
fn null_is_no_text() {
    let until = Condition::Until("NULL".to_owned());
    assert!(until.met(&Answer::Null, &value("1")));
    assert!(!until.met(&Answer::Value("NULL".to_owned()), &value("1")));
    assert!(!until.met(&Answer::NoRow, &value("1")));
}

#[test]
fn each_condition_has_its_side() {
    let first = value("7");
    assert!(!Condition::Changes.met(&value("7"), &first));
    assert!(Condition::Changes.met(&Answer::NoRow, &first));
    let expect = Condition::Expect("7".to_owned());
    assert!(!expect.met(&value("7"), &first));
    assert!(expect.met(&Answer::Error("gone".to_owned()), &first));
    let until = Condition::Until("true".to_owned());
    assert!(until.met(&value("true"), &value("false")));
    assert!(!until.met(&Answer::Error("true".to_owned()), &value("false")));
}
