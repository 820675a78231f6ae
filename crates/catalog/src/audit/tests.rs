use super::*;
use crate::{Job, JobState, Keyring, Progress, SecretKey, Subject};

fn open() -> (tempfile::TempDir, Catalog) {
    let dir = tempfile::tempdir().unwrap();
    let catalog =
        Catalog::open(&dir.path().join("catalog.db"), Keyring::from(SecretKey::of([7; 32])))
            .unwrap();
    (dir, catalog)
}

fn entry(user: &str, second: i64, refused: bool) -> AuditEntry {
    AuditEntry {
        id: 0,
        time: Timestamp::from_second(second).unwrap(),
        user: user.to_owned(),
        origin: "127.0.0.1:1".to_owned(),
        action: "vdb stop".to_owned(),
        object: "dev".to_owned(),
        outcome: "done".to_owned(),
        job: Some(JobId(7)),
        refused,
    }
}

fn filter(limit: u32) -> AuditFilter {
    AuditFilter { limit, ..AuditFilter::default() }
}

#[test]
fn entries_come_back_newest_first_by_time_and_user() {
    let (_dir, catalog) = open();
    for (user, second) in [("eve", 1), ("bob", 2), ("eve", 3)] {
        catalog.add_audit(&entry(user, second, false)).unwrap();
    }
    let seconds = |filter: &AuditFilter| {
        let found = catalog.audit(filter).unwrap();
        found.iter().map(|one| one.time.as_second()).collect::<Vec<_>>()
    };
    assert_eq!(seconds(&filter(10)), [3, 2, 1]);
    assert_eq!(seconds(&filter(1)), [3]);
    assert_eq!(seconds(&AuditFilter { user: Some("eve".into()), ..filter(10) }), [3, 1]);
    let since = Some(Timestamp::from_second(2).unwrap());
    assert_eq!(seconds(&AuditFilter { since, ..filter(10) }), [3, 2]);
    let newest = catalog.audit(&filter(1)).unwrap().remove(0);
    assert_eq!(newest, AuditEntry { id: 3, ..entry("eve", 3, false) });
}

#[test]
fn nothing_of_it_can_be_changed_or_removed() {
    let (_dir, catalog) = open();
    catalog.add_audit(&entry("eve", 1, false)).unwrap();
    for sql in ["UPDATE audit SET user = 'bob'", "DELETE FROM audit"] {
        let changed = catalog.transaction(|tx| Ok(tx.sql().execute(sql, [])?));
        assert!(changed.unwrap_err().to_string().contains("append-only"), "{sql}");
    }
    assert_eq!(catalog.audit(&filter(10)).unwrap()[0].user, "eve");
}

#[test]
fn it_is_bounded_and_refused_requests_push_out_no_others() {
    let (_dir, catalog) = open();
    catalog.add_audit(&entry("first", 1, false)).unwrap();
    let refused = AUDIT_KEPT[1] + 3 * PRUNED_EVERY;
    catalog
        .transaction(|tx| (0..refused).try_for_each(|n| tx.add_audit(&entry("eve", n, true))))
        .unwrap();
    let kept = catalog.audit(&filter(u32::MAX)).unwrap();
    assert!(kept.len() as i64 <= AUDIT_KEPT[1] + PRUNED_EVERY + 1, "{}", kept.len());
    assert_eq!(kept.last().unwrap().user, "first");
}

#[test]
fn a_job_s_user_goes_with_the_job() {
    let (_dir, catalog) = open();
    let job = catalog
        .add_job(|id| Job {
            id,
            kind: "vdb_stop".into(),
            object: Subject::named("dev"),
            of_engine: false,
            state: JobState::Done,
            settled: true,
            cancel_requested: false,
            progress: Progress::default(),
            started_at: Timestamp::UNIX_EPOCH,
            ended_at: None,
            steps: Vec::new(),
            input: serde_json::Value::Null,
            bag: serde_json::Map::new(),
            locks: Vec::new(),
            error: None,
            notes: Vec::new(),
        })
        .unwrap();
    catalog.set_job_user(job.id, UserId(4)).unwrap();
    assert_eq!(catalog.jobs_of(UserId(4)).unwrap(), [job.id]);
    assert_eq!(catalog.jobs_of(UserId(5)).unwrap(), []);
    catalog.transaction(|tx| Ok(tx.sql().execute("DELETE FROM job", [])?)).unwrap();
    assert_eq!(catalog.jobs_of(UserId(4)).unwrap(), []);
}
