use super::*;

#[test]
fn containers_with_few_users_are_told_apart() {
    assert!(maps_all("         0          0 4294967295\n"));
    assert!(!maps_all("0 100000 65536\n"));
    assert!(maps_all("0 100000 65536\n1879048192 300000 65536\n"));
    assert!(!maps_all("1879048192 300000 65535\n"));
    assert!(!maps_all(""));
    assert!(!maps_all("x y z\n0 0\n"));
}

#[test]
fn each_dataset_has_another_user() {
    let kept = Ids { uid: 105, gid: 111 };
    let owners = Owners { kept: Some(kept), shared: None };
    let shown = |id: u64| owners.owner_of(DatasetId(id)).unwrap().shown;
    assert_eq!(shown(7), Ids { uid: FIRST + 7, gid: FIRST + 7 });
    assert_ne!(shown(7), shown(8));
    assert_eq!(shown(u64::MAX).uid, FIRST + COUNT - 1);
    let why = Failure::new(ErrorKind::HostUnprepared, "x", "y");
    let shared = Owners { kept: Some(kept), shared: Some(why) };
    assert_eq!(shared.owner_of(DatasetId(7)), Some(Owner { shown: kept, kept }));
    assert_eq!(Owners { kept: None, shared: None }.owner_of(DatasetId(7)), None);
}
