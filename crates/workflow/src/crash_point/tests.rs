use super::{AbortAt, CrashPoint};

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
        let at = AbortAt::parse(text).expect(text);
        assert!(at.is_at("vdb.provision", "clone", point), "{text}");
        assert!(!at.is_at("vdb.provision", "mount", point));
        assert!(!at.is_at("vdb.delete", "clone", point));
    }
    for text in ["", "clone", "vdb.provision/clone:now"] {
        assert!(AbortAt::parse(text).is_err(), "{text}");
    }
}
