use super::*;
use crate::{Job, Keyring, SecretKey};
use offshoot_types::Failure;
use tempfile::TempDir;

fn catalog() -> (TempDir, Catalog) {
    let dir = TempDir::new().unwrap();
    let keys = Keyring::from(SecretKey::of([7; 32]));
    let catalog = Catalog::open(&dir.path().join("catalog.db"), keys).unwrap();
    (dir, catalog)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + second).unwrap()
}

fn fault(topic: &str) -> Fault {
    Fault {
        subject: Subject::named("prod"),
        topic: topic.to_owned(),
        time: at(0),
        message: format!("its {topic} is away"),
        hint: "start it".to_owned(),
    }
}

fn kinds(catalog: &Catalog) -> Vec<(u64, String)> {
    let all = catalog.events_after(0, 100).unwrap();
    all.iter().map(|event| (event.id, event.what.kind())).collect()
}

#[test]
fn faults_are_events_when_they_come_and_when_they_go() {
    let (_dir, catalog) = catalog();
    let (source, log) = (fault("source"), fault("log"));
    for one in [&source, &log, &source] {
        catalog.raise_fault(one).unwrap();
    }
    assert!(!catalog.clear_fault(&source.subject, "quota", at(5)).unwrap());
    assert!(catalog.clear_fault(&source.subject, "source", at(7)).unwrap());
    catalog.clear_faults(&Subject::named("other"), at(8)).unwrap();
    catalog.clear_faults(&log.subject, at(9)).unwrap();
    catalog.clear_faults(&log.subject, at(10)).unwrap();
    let events = catalog.events_after(0, 100).unwrap();
    let [raised, other, cleared, last] = &events[..] else { panic!("{events:?}") };
    let topic = "source".to_owned();
    assert_eq!(
        raised.what,
        Happening::FaultRaised { topic: topic.clone(), hint: "start it".into() }
    );
    assert_eq!((raised.object.as_str(), raised.time), ("prod", at(0)));
    assert_eq!(cleared.what, Happening::FaultCleared { topic, since: at(0) });
    assert_eq!((cleared.time, cleared.message.as_str()), (at(7), "its source is away"));
    assert_eq!(
        (other.what.kind(), last.what.kind()),
        ("fault.raised".into(), "fault.cleared".into())
    );
    assert_eq!(catalog.faults().unwrap(), []);
    assert_eq!(catalog.events_after(3, 100).unwrap(), std::slice::from_ref(last));
    assert_eq!(catalog.events_after(0, 1).unwrap(), std::slice::from_ref(raised));
    assert_eq!(catalog.events(1).unwrap(), std::slice::from_ref(last));
    assert_eq!(catalog.transaction(|tx| tx.last_event()).unwrap(), 4);
}

fn job(catalog: &Catalog, of_engine: bool) -> Job {
    let build = |id| Job {
        id,
        kind: "vdb_provision".to_owned(),
        object: Subject::named("dev"),
        of_engine,
        state: JobState::Running,
        settled: false,
        cancel_requested: false,
        progress: Default::default(),
        started_at: at(1),
        ended_at: None,
        steps: Vec::new(),
        input: serde_json::Value::Null,
        bag: Default::default(),
        locks: Vec::new(),
        error: None,
        notes: Vec::new(),
    };
    catalog.add_job(build).unwrap()
}

#[test]
fn a_job_is_an_event_when_it_ends_and_its_error_is_not_told() {
    let (_dir, catalog) = catalog();
    let mut own = job(&catalog, true);
    (own.state, own.settled) = (JobState::Done, true);
    catalog.save_job(&own).unwrap();
    assert_eq!(kinds(&catalog), []);

    let mut job = job(&catalog, false);
    catalog.save_job(&job).unwrap();
    job.state = JobState::Undoing;
    job.error = Some(Failure::new(ErrorKind::SourceRefused, "row 'eve@example.org'", "mend it"));
    catalog.save_job(&job).unwrap();
    assert_eq!(kinds(&catalog), []);
    (job.state, job.ended_at) = (JobState::Failed, Some(at(4)));
    catalog.save_job(&job).unwrap();
    job.settled = true;
    catalog.save_job(&job).unwrap();
    let events = catalog.events(100).unwrap();
    let [event] = &events[..] else { panic!("{events:?}") };
    assert_eq!((event.time, event.what.kind().as_str()), (at(4), "job.vdb_provision.failed"));
    assert_eq!(event.message, "vdb_provision of 'dev' failed");
    let code = Some(ErrorKind::SourceRefused);
    let Happening::JobEnded { code: told, job: id, .. } = &event.what else { panic!("{event:?}") };
    assert_eq!((*told, *id), (code, job.id));
    let all = serde_json::to_string(event).unwrap();
    assert!(!all.contains("eve@"), "{all}");
}

#[test]
fn events_have_no_gaps_and_the_oldest_go() {
    let (_dir, catalog) = catalog();
    let kept = u64::try_from(EVENTS_KEPT).unwrap();
    let failed: Result<(), Error> = catalog.transaction(|tx| {
        tx.add_raised(&fault("log"))?;
        Err(Error::Unusable("undone".to_owned()))
    });
    assert!(failed.is_err());
    catalog
        .transaction(|tx| (0..kept + 10).try_for_each(|_| tx.add_raised(&fault("source"))))
        .unwrap();
    let all = catalog.events_after(0, u32::MAX).unwrap();
    let ids: Vec<u64> = all.iter().map(|event| event.id).collect();
    assert_eq!(ids, (11..=kept + 10).collect::<Vec<_>>());
}
