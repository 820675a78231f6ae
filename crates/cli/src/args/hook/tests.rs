use super::*;

#[test]
fn hooks_are_an_event_and_a_file() {
    let (event, file) = hook("after-refresh=a=b.sql").unwrap();
    assert_eq!((event.0, file), (HookEvent::AfterRefresh, PathBuf::from("a=b.sql")));
    for wrong in ["after-refresh", "after-refresh=", "=x.sql", "before-delete=x.sql"] {
        assert!(hook(wrong).is_err(), "{wrong}");
    }
    assert!(hook("refresh=x.sql").unwrap_err().contains("before-provision, after-provision"));
}
