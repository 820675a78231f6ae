use super::{CrashPoint, CrashPoints, FailAt, Place};

#[test]
fn crash_points_are_read() {
    let cases = [
        ("vdb.provision/clone", CrashPoint::Before),
        ("vdb.provision/clone:before", CrashPoint::Before),
        ("vdb.provision/clone:after", CrashPoint::After),
        ("vdb.provision/clone:before-undo", CrashPoint::BeforeUndo),
        ("vdb.provision/clone:after-undo", CrashPoint::AfterUndo),
    ];
    for (text, point) in cases {
        let at = Place::parse(text).expect(text);
        assert!(at.is_at("vdb.provision", "clone", point), "{text}");
        assert!(!at.is_at("vdb.provision", "mount", point));
        assert!(!at.is_at("vdb.delete", "clone", point));
    }
    for text in ["", "clone", "vdb.provision/clone:now"] {
        assert!(Place::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_step_fails_once_each_time_it_is_asked_for() {
    let fail = FailAt::default();
    let at_clone = || fail.reached("vdb.provision", "clone", CrashPoint::After);
    assert!(at_clone().is_ok(), "nothing was asked for");
    fail.arm("vdb.provision/clone:after").expect("a place");
    assert!(fail.reached("vdb.provision", "clone", CrashPoint::Before).is_ok());
    assert!(at_clone().expect_err("it fails").message.contains("as asked for"));
    assert!(at_clone().is_ok(), "once");
    assert!(!fail.disarm());
    fail.arm("vdb.provision/clone:after").expect("a place");
    assert!(fail.disarm());
    assert!(at_clone().is_ok());
}
