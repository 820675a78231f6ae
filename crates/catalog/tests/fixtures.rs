//! Catalogs as earlier engines left them: each must open, with everything in it.
#![allow(clippy::unwrap_used)]

use jiff::Timestamp;
use offshoot_catalog::{
    AuditEntry, AuditFilter, Catalog, Happening, JobState, Keyring, SecretKey, StepState, Subject,
};
use offshoot_domain::{
    AccessToken, Bookmark, Dsource, DsourceState, HookKind, Moment, Owner, Policy, Snapshot,
    SnapshotKind, Template, Timeflow, User, Vdb, VdbState, Webhook,
};
use offshoot_types::{
    BookmarkId, DatasetId, DsourceId, JobId, LogPosition, SnapshotId, TimeflowId, VdbId,
};
use rusqlite::Connection;
use tempfile::TempDir;

const VERSION_1: &str = include_str!("fixtures/version1.sql");
const VERSION_2: &str = include_str!("fixtures/version2.sql");
/// The same with sealed secrets.
const VERSION_4: &str = include_str!("fixtures/version4.sql");

/// With a webhook, and events that say what they were.
const VERSION_5: &str = include_str!("fixtures/version5.sql");
const VERSION_6: &str = include_str!("fixtures/version6.sql");

/// The key of the fixtures that are sealed.
fn keys() -> Keyring {
    SecretKey::of([7; 32]).into()
}

fn restored(dump: &str) -> (TempDir, Catalog) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("catalog.db");
    Connection::open(&path).unwrap().execute_batch(dump).unwrap();
    let catalog = Catalog::open(&path, keys()).expect("a catalog of an earlier engine opens");
    (dir, catalog)
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A position as the release that wrote the fixture stored it.
fn halves(position: LogPosition) -> String {
    format!("{:X}/{:X}", position.0 >> 32, position.0 & 0xFFFF_FFFF)
}

#[test]
fn version_1_keeps_its_dsources() {
    let (_dir, catalog) = restored(VERSION_1);
    let dsources = catalog.list::<Dsource>().unwrap();
    let named: Vec<_> = dsources.iter().map(|one| (one.id, one.name.as_str())).collect();
    assert_eq!(named, [(DsourceId(1), "prod"), (DsourceId(2), "other")]);
    let prod = &dsources[0];
    assert_eq!((prod.state, &prod.problem), (DsourceState::Active, &None));
    assert_eq!(prod.connector, "postgres");
    assert_eq!(prod.source, "postgresql://offshoot@127.0.0.1:5999/shop?sslmode=disable");
    assert_eq!(prod.server_version, "15.18 (Debian 15.18-0+deb12u1)");
    assert!(prod.server_version.starts_with("15."));
    assert_eq!(prod.identity, "7711328676957158221");
    let facts = &prod.connector_state;
    assert_eq!(facts.version, 1);
    assert_eq!(facts.data["system_identifier"], 7_711_328_676_957_158_221_u64);
    assert_eq!(
        (&facts.data["timeline"], &facts.data["wal_segment_bytes"]),
        (&1.into(), &(16 << 20).into())
    );
    assert_eq!(prod.reservation.as_deref(), Some("offshoot_1_1a2082ee78c"));
    assert_eq!(prod.created_at, time("2026-11-23T11:33:41.292320192Z"));
    assert_eq!(prod.log_dataset, Some(DatasetId(1)));
    assert_eq!(prod.staging_dataset, Some(DatasetId(2)));
    assert_eq!(prod.timeflow, Some(TimeflowId(1)));
    let synced = prod.synced_to.expect("it was synchronised");
    assert_eq!(halves(synced.log), "0/50000A0");
    assert_eq!(synced.time, time("2026-11-23T11:34:03.766979Z"));
    let policy = &prod.policy;
    assert_eq!(policy.snapshots.every_ms, Some(600_000));
    assert_eq!((policy.retention.keep_all_ms, policy.retention.log_ms), (86_400_000, 604_800_000));
    assert_eq!(policy.retention.weekly_ms, 31_536_000_000);

    assert_eq!(dsources[1].state, DsourceState::Paused);
    assert_eq!(dsources[1].policy, Policy::default());
    let secret = catalog.secret("dsource-1/source-password").unwrap();
    assert_eq!(secret.expect("its password").reveal(), "secret");
}

#[test]
fn version_1_keeps_its_vdbs() {
    let (_dir, catalog) = restored(VERSION_1);
    let vdbs = catalog.list::<Vdb>().unwrap();
    let states: Vec<_> = vdbs.iter().map(|one| (one.id.0, one.name.as_str(), one.state)).collect();
    assert_eq!(
        states,
        [
            (1, "dev", VdbState::Running),
            (2, "then", VdbState::Running),
            (3, "by-xid", VdbState::Stopped),
            (7, "half", VdbState::Provisioning),
        ]
    );
    let dev = &vdbs[0];
    assert_eq!(
        (dev.parent.owner, dev.parent.name.as_str()),
        (Owner::Dsource(DsourceId(1)), "prod")
    );
    let moment = dev.moment.expect("it was opened");
    assert_eq!((moment.snapshot, halves(moment.log)), (SnapshotId(5), "0/301B6E8".to_owned()));
    assert_eq!(moment.time, time("2026-11-23T11:33:49.891770007Z"));
    assert_eq!((dev.port, dev.user.as_str()), (6601, "offshoot"));
    assert_eq!(dev.settings["log_line_prefix"], "%m [%p] ");
    assert_eq!(dev.settings["work_mem"], "8MB");
    assert_eq!(dev.memory_bytes, Some(512 << 20));
    assert_eq!(dev.policy.quota_bytes, Some(2 << 30));
    assert_eq!((dev.dataset, dev.timeflow), (Some(DatasetId(16)), Some(TimeflowId(6))));
    assert_eq!((dev.timings.total_ms, dev.timings.start_ms), (887, 743));
    assert_eq!(
        vdbs.iter().map(|one| one.keep_source_logins).collect::<Vec<_>>(),
        [false, false, true, false]
    );
    assert_eq!((vdbs[3].moment, vdbs[3].dataset), (None, None));
    let password = catalog.secret("vdb-1/password").unwrap().expect("its password");
    assert_eq!(password.reveal().len(), 32);
    assert_eq!(catalog.secret("vdb-3/database").unwrap().expect("its database").reveal(), "shop");
}

#[test]
fn version_1_keeps_its_histories() {
    let (_dir, catalog) = restored(VERSION_1);
    let snapshots = catalog.list::<Snapshot>().unwrap();
    let found: Vec<_> =
        snapshots.iter().map(|one| (one.id.0, one.owner.to_string(), one.kind)).collect();
    let expected = [
        (1, "dsource-1", SnapshotKind::Link),
        (3, "dsource-1", SnapshotKind::Policy),
        (5, "vdb-1", SnapshotKind::Manual),
        (6, "dsource-1", SnapshotKind::Manual),
        (7, "vdb-1", SnapshotKind::Policy),
        (9, "vdb-1", SnapshotKind::Policy),
        (12, "vdb-1", SnapshotKind::Policy),
        (15, "dsource-2", SnapshotKind::Link),
    ];
    assert_eq!(found, expected.map(|(id, owner, kind)| (id, owner.to_owned(), kind)));
    let link = &snapshots[0];
    assert_eq!(
        (halves(link.position.log), halves(link.replay_from)),
        ("0/3000000".to_owned(), "0/2000028".to_owned())
    );
    assert_eq!((link.timeflow, link.epoch), (TimeflowId(1), 1));
    assert_eq!(link.proven_image(), Some(SnapshotId(2)));

    let timeflows = catalog.list::<Timeflow>().unwrap();
    let ids: Vec<_> = timeflows.iter().map(|one| one.id.0).collect();
    assert_eq!(ids, [1, 2, 3, 4, 6, 7, 8]);
    assert_eq!(halves(timeflows[0].log[0].from.log), "0/2000028");
    let rewound = &timeflows[4];
    assert_eq!((rewound.parent, rewound.ended_at), (Some(TimeflowId(2)), None));
    let origin = rewound.origin.as_ref().expect("it branched off");
    assert_eq!(
        (origin.snapshot, halves(origin.position.log)),
        (SnapshotId(5), "0/301B6E8".to_owned())
    );

    let bookmarks = catalog.list_of::<Bookmark>(DsourceId(1)).unwrap();
    assert_eq!((bookmarks[0].id, bookmarks[0].name.as_str()), (BookmarkId(1), "before-release"));
    assert_eq!(halves(bookmarks[0].position.log), "0/301B210");
    assert_eq!(catalog.list_of::<Bookmark>(VdbId(1)).unwrap()[0].name.as_str(), "seeded");
}

#[test]
fn version_1_keeps_its_jobs_and_faults() {
    let (_dir, catalog) = restored(VERSION_1);
    let jobs = catalog.jobs(100).unwrap();
    assert_eq!(jobs.len(), 30);
    let failed: Vec<_> = jobs.iter().filter(|job| job.state == JobState::Failed).collect();
    assert_eq!(failed[0].kind, "dsource_sync");
    assert!(failed[0].error.as_ref().unwrap().message.contains("Connection refused"));

    let unsettled = catalog.unsettled_jobs().unwrap();
    let [half] = &unsettled[..] else { panic!("one job was under way: {unsettled:?}") };
    assert_eq!(
        (half.id, half.kind.as_str(), &half.object),
        (JobId(30), "vdb_provision", &Subject::named("half"))
    );
    let recover = half.steps.iter().find(|step| step.name == "recover").expect("the step");
    assert_eq!(recover.state, StepState::Running);
    assert_eq!(half.input["vdb"], "vdb-7");
    assert!(half.bag.contains_key("dataset"), "what it made is known: {:?}", half.bag);

    let faults = catalog.faults().unwrap();
    assert_eq!((&faults[0].subject, faults[0].topic.as_str()), (&Subject::named("prod"), "source"));
    assert!(!catalog.events(100).unwrap().is_empty());
    assert_eq!(catalog.allocate::<Vdb>().unwrap(), VdbId(8), "no id is given twice");
}

#[test]
fn version_2_has_neither_users_nor_an_audit_and_takes_both() {
    let (_dir, catalog) = restored(VERSION_2);
    let vdbs = catalog.list::<Vdb>().unwrap();
    let found: Vec<_> = vdbs
        .iter()
        .map(|vdb| (vdb.id.0, vdb.name.as_str(), vdb.parent.name.as_str(), vdb.state, vdb.owner))
        .collect();
    let expected = [
        (1, "first", "sample", VdbState::Running, None),
        (2, "second", "sample", VdbState::Stopped, None),
        (3, "branch", "first", VdbState::Running, None),
    ];
    assert_eq!(found, expected, "what was there belongs to the administrators");
    assert!(vdbs.iter().all(|vdb| !vdb.superuser));
    assert_eq!(catalog.list::<Dsource>().unwrap()[0].state, DsourceState::Active);
    assert_eq!(catalog.list::<Bookmark>().unwrap()[0].name.as_str(), "before-release");
    assert_eq!(catalog.jobs(100).unwrap().len(), 10);
    assert!(catalog.secret("vdb-3/password").unwrap().is_some());

    assert!(catalog.list::<User>().unwrap().is_empty());
    assert!(catalog.list::<AccessToken>().unwrap().is_empty());
    let filter = AuditFilter { limit: 10, ..AuditFilter::default() };
    assert!(catalog.audit(&filter).unwrap().is_empty());
    let entry = AuditEntry {
        id: 1,
        time: time("2026-11-23T21:40:00.5Z"),
        user: "eve".into(),
        origin: "127.0.0.1:1".into(),
        action: "vdb stop".into(),
        object: "first".into(),
        outcome: "done".into(),
        job: Some(JobId(11)),
        refused: false,
    };
    catalog.add_audit(&entry).unwrap();
    assert_eq!(catalog.audit(&filter).unwrap(), [entry]);
}

#[test]
fn version_4_keeps_its_secrets() {
    let (_dir, catalog) = restored(VERSION_4);
    let (_old_dir, old) = restored(VERSION_1);
    assert_eq!(catalog.secrets().unwrap(), 9);
    for name in ["dsource-1/source-password", "dsource-2/source-password", "vdb-1/database"] {
        let kept = catalog.secret(name).unwrap().expect("it is there");
        assert_eq!(Some(kept), old.secret(name).unwrap());
    }
    let password = catalog.secret("vdb-7/password").unwrap().expect("it is there");
    assert_eq!(password.reveal(), "qwbsmxc9r5sq54avn4wj87vgzcr673jb");
    assert_eq!(catalog.list::<Vdb>().unwrap(), old.list::<Vdb>().unwrap());
    assert_eq!(catalog.list::<Dsource>().unwrap(), old.list::<Dsource>().unwrap());
    assert_eq!(catalog.list::<Snapshot>().unwrap(), old.list::<Snapshot>().unwrap());
    assert_eq!(catalog.allocate::<Vdb>().unwrap(), VdbId(8), "no id is given twice");
}

#[test]
fn version_4_has_events_that_do_not_say_what_they_were() {
    let (_dir, catalog) = restored(VERSION_4);
    let events = catalog.events_after(0, 100).unwrap();
    let topic = String::new();
    assert_eq!(events[0].what, Happening::FaultRaised { topic: topic.clone(), hint: topic });
    assert!(catalog.list::<Webhook>().unwrap().is_empty());
}

#[test]
fn version_5_keeps_its_webhooks_and_events() {
    let (_dir, catalog) = restored(VERSION_5);
    let webhooks = catalog.list::<Webhook>().unwrap();
    let [ci] = &webhooks[..] else { panic!("{webhooks:?}") };
    assert_eq!((ci.name.as_str(), ci.url.as_str()), ("ci", "https://ci.example/hook"));
    assert!(ci.wants("fault.raised") && !ci.wants("job.diff.done"));
    assert_eq!((ci.cursor, ci.missed, ci.failures), (2, 1, 5));
    assert_eq!(ci.error.as_deref(), Some("nothing listens there"));
    let secret = catalog.secret("webhook-1/signing-key").unwrap().expect("its secret");
    assert_eq!(secret.reveal(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let events = catalog.events_after(0, 100).unwrap();
    let kinds: Vec<_> = events.iter().map(|event| event.what.kind()).collect();
    let expected = ["fault.raised", "fault.raised", "fault.cleared", "job.vdb_provision.failed"];
    assert_eq!(kinds, expected);
    let cleared =
        Happening::FaultCleared { topic: "source".to_owned(), since: time("2026-11-27T16:00:01Z") };
    assert_eq!(events[2].what, cleared);
    let Happening::JobEnded { job, state, .. } = &events[3].what else { panic!("{events:?}") };
    assert_eq!((*job, *state), (JobId(12), JobState::Failed));
    assert_eq!(catalog.faults().unwrap()[0].topic, "webhook ci");
}

#[test]
fn version_6_keeps_its_templates_and_what_users_may_take() {
    let (_dir, catalog) = restored(VERSION_6);
    let [eve] = &catalog.list::<User>().unwrap()[..] else { panic!("a user") };
    assert_eq!((eve.vdbs_max, eve.space_bytes_max), (Some(5), Some(50 << 30)));
    let [ci] = &catalog.list::<Template>().unwrap()[..] else { panic!("a template") };
    assert_eq!(ci.from.as_ref().map(|from| from.as_str()), Some("shop-masked"));
    let wishes = &ci.wishes;
    assert_eq!((&wishes.moment, wishes.superuser), (&Moment::Latest, true));
    assert_eq!(wishes.gateway.stop_when_idle_ms, Some(Some(1_800_000)));
    assert_eq!(wishes.care.labels["team"].as_deref(), Some("qa"));
    let kinds: Vec<_> = ci.hooks.iter().map(|(event, hook)| (event.as_str(), hook.kind)).collect();
    assert_eq!(kinds, [("after-provision", HookKind::Sql), ("before-stop", HookKind::Program)]);
}
