use super::*;
use crate::{Care, Gateway, LeftThere, Owner, Readiness, SnapshotKind};
use offshoot_types::LogPosition;

fn manifest() -> Manifest {
    let position = Position { log: LogPosition(70), time: Timestamp::UNIX_EPOCH };
    let snapshot = Snapshot {
        id: SnapshotId(3),
        owner: Owner::Dsource(DsourceId(1)),
        timeflow: TimeflowId(1),
        position,
        replay_from: LogPosition(60),
        epoch: 1,
        kind: SnapshotKind::Link,
        taken_at: Timestamp::UNIX_EPOCH,
        readiness: Readiness::Ready { image: SnapshotId(4), proven: true },
        unchecked: Vec::new(),
    };
    let dsource = SentDsource {
        id: Owner::Dsource(DsourceId(1)),
        name: "shop".parse().unwrap(),
        connector: "postgres".to_owned(),
        source: "postgresql://offshoot@host/".to_owned(),
        server_version: "16.4".to_owned(),
        identity: "7".to_owned(),
        connector_state: ConnectorState::default(),
        created_at: Timestamp::UNIX_EPOCH,
        masked: false,
        synced_to: Some(position),
        timeflow: TimeflowId(1),
        timeflows: vec![SentTimeflow {
            id: TimeflowId(1),
            log: vec![LogRange { from: position, to: position }],
            state: Some(0),
            started_at: Timestamp::UNIX_EPOCH,
            ended_at: None,
        }],
        snapshots: vec![SentSnapshot { snapshot, taken: 1, ready: Some(2) }],
        bookmarks: vec![SentBookmark {
            name: "v1".parse().unwrap(),
            snapshot: SnapshotId(3),
            position,
            created_at: Timestamp::UNIX_EPOCH,
        }],
        policy: Some(Policy::default()),
        vdb: None,
    };
    Manifest::new("00112233445566778899aabbccddeeff".to_owned(), Timestamp::UNIX_EPOCH, dsource)
}

fn read(manifest: &Manifest, states: usize) -> Result<Manifest, Failure> {
    Manifest::read(&serde_json::to_vec(manifest).unwrap(), states)
}

#[test]
fn what_is_told_is_understood() {
    assert_eq!(read(&manifest(), 3).unwrap(), manifest());
}

#[test]
fn what_does_not_fit_is_refused() {
    let changes: [fn(&mut Manifest); 11] = [
        |one| one.version = 2,
        |one| one.engine = "../../etc".to_owned(),
        |one| one.dsource.snapshots[0].taken = 0,
        |one| one.dsource.snapshots[0].taken = 9,
        |one| one.dsource.timeflow = TimeflowId(2),
        |one| one.dsource.bookmarks[0].snapshot = SnapshotId(9),
        |one| one.dsource.snapshots[0].snapshot.timeflow = TimeflowId(2),
        |one| one.dsource.timeflows.clear(),
        |one| one.dsource.name = "west/shop".to_owned().try_into().unwrap(),
        |one| one.sender = Some("f".repeat(32)),
        |one| one.via = vec![Hop { engine: "f".repeat(32), name: "west".parse().unwrap() }],
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut wrong = manifest();
        change(&mut wrong);
        assert!(read(&wrong, 3).is_err(), "change {index}");
    }
    assert!(read(&manifest(), 4).is_err(), "a state that nothing claims");
    assert!(Manifest::read(b"{\"version\":1}", 0).is_err());
}

#[test]
fn a_copy_says_which_engines_it_has_passed() {
    let direct = manifest();
    let replica = Replica {
        id: DsourceId(9),
        engine: direct.engine.clone(),
        origin: direct.dsource.id,
        as_of: Timestamp::UNIX_EPOCH,
        masked: false,
        digest: None,
        snapshots: BTreeMap::new(),
        timeflows: BTreeMap::new(),
        policy: None,
        vdb: None,
        via: direct.way(&"west".parse().unwrap()),
    };
    let mut sent = direct.dsource.clone();
    sent.name = "west/shop".to_owned().try_into().unwrap();
    let middle = "a".repeat(32);
    let copy = Manifest::of_copy(middle.clone(), &replica, sent);
    assert_eq!(read(&copy, 3).unwrap(), copy);
    assert_eq!((copy.engine.as_str(), copy.sender()), (direct.engine.as_str(), middle.as_str()));
    let way = copy.way(&"south".parse().unwrap());
    let names: Vec<&str> = way.iter().map(|hop| hop.name.as_str()).collect();
    assert_eq!(names, ["west", "south"]);
    let far = Replica { via: way, ..replica };
    assert!(
        far.has_passed(&middle)
            && far.has_passed(&direct.engine)
            && !far.has_passed(&"b".repeat(32))
    );
}

/// What no engine lets its users choose comes from no engine either.
#[test]
fn what_is_told_of_a_vdb_is_checked() {
    let vdb = |care: Care, policy: Policy| {
        let mut told = manifest();
        let settings = BTreeMap::from([("work_mem".to_owned(), "7MB".to_owned())]);
        told.dsource.policy = None;
        told.dsource.vdb = Some(SentVdb {
            port: 6501,
            settings,
            memory_bytes: None,
            keep_source_logins: false,
            superuser: true,
            keep_foreign_servers: false,
            gateway: Some(Gateway { server_port: 6502, stop_when_idle_ms: Some(1_000) }),
            stopped: false,
            owner: Some("eve".to_owned()),
            refresh_keeps: [crate::Kept::Roles].into(),
            care,
            policy,
            left: [LeftThere::Hooks].into(),
        });
        told
    };
    let usual = vdb(Care::default(), Policy::of_vdb());
    assert_eq!(read(&usual, 3).unwrap(), usual);
    let loud = Care { description: "\u{1b}[31m".to_owned(), ..Care::default() };
    assert!(read(&vdb(loud, Policy::of_vdb()), 3).is_err());
    let mut busy = Policy::of_vdb();
    busy.snapshots.every_ms = Some(1);
    assert!(read(&vdb(Care::default(), busy), 3).is_err());
    let mut restless = usual.clone();
    if let Some(gateway) = restless.dsource.vdb.as_mut().and_then(|vdb| vdb.gateway.as_mut()) {
        gateway.stop_when_idle_ms = Some(0);
    }
    assert!(read(&restless, 3).is_err());
    let mut told = manifest();
    told.dsource.policy = Some(busy);
    assert!(read(&told, 3).is_err(), "of a dSource, too");
}
