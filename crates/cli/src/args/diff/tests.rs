use super::*;

#[test]
fn what_is_behind_the_at_is_told_by_how_it_looks() {
    let of = |text: &str| state(text).unwrap();
    assert_eq!(of("shop"), DiffState { object: "shop".to_owned(), moment: Moment::Latest });
    assert_eq!(of("shop@latest").moment, Moment::Latest);
    let time = "2026-11-21T14:03:27Z".parse().unwrap();
    assert_eq!(of("shop@2026-11-21 14:03:27+00").moment, Moment::At { time });
    assert!(matches!(of("shop@-1h").moment, Moment::At { .. }));
    assert!(matches!(of("shop@yesterday 14:03").moment, Moment::At { .. }));
    assert_eq!(
        of("shop@snapshot-7").moment,
        Moment::Snapshot { id: offshoot_types::SnapshotId(7) }
    );
    assert_eq!(of("shop@0/3A2B1C0").moment, Moment::Lsn { lsn: "0/3A2B1C0".to_owned() });
    assert_eq!(of("shop@xid:12").moment, Moment::Xid { xid: 12 });
    let bookmark = |name: &str| Moment::Bookmark { name: name.to_owned() };
    assert_eq!(of("shop@before-release").moment, bookmark("before-release"));
    assert_eq!(of("shop@bookmark:latest").moment, bookmark("latest"));
    for wrong in ["", "@latest", "shop@", "shop@x/y", "shop@xid:one"] {
        assert!(state(wrong).is_err(), "{wrong}");
    }
}
