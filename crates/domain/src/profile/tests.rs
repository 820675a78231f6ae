use super::*;
use offshoot_types::ErrorKind;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn profile() -> Profile {
    Profile {
        id: ProfileId(1),
        name: "nightly".parse().unwrap(),
        peer: PeerId(1),
        include: Included::All,
        replicas: false,
        masked_only: false,
        with_secrets: false,
        connections: CONNECTIONS,
        every_ms: None,
        crontab: None,
        continuous: false,
        rpo_ms: None,
        bytes_per_second_max: None,
        paused: false,
        created_at: at(0),
        running: None,
        sent_as_of: None,
        sent: BTreeMap::new(),
        runs: Vec::new(),
    }
}

fn run(job: u64, from: i64, to: i64, fails: bool) -> ProfileRun {
    ProfileRun {
        job: JobId(job),
        started_at: at(from),
        ended_at: at(to),
        objects: 1,
        sent_bytes: 10,
        unique_bytes: 5,
        saved_bytes: 3,
        resumed: false,
        error: fails.then(|| Failure::new(ErrorKind::EngineUnreachable, "gone", "wait")),
    }
}

#[test]
fn it_runs_by_itself_when_its_time_has_come() {
    let now = at(1000);
    assert_eq!(profile().next_run_at(now), None);
    let mut every = Profile { every_ms: Some(60_000), ..profile() };
    assert!(every.is_due(now), "it has never run");
    every.ended(run(1, 100, 130, false));
    assert_eq!(every.next_run_at(now), Some(at(160)));
    let mut always = Profile { continuous: true, ..profile() };
    assert!(always.is_due(now));
    always.ended(run(1, 100, 995, true));
    assert_eq!(always.next_run_at(now), Some(at(1000)), "a while after it failed");
    always.paused = true;
    assert_eq!(always.next_run_at(now), None);
}

#[test]
fn rounds_of_one_run_are_one_entry() {
    let mut profile = Profile { running: Some(JobId(1)), ..profile() };
    profile.went_on(run(1, 0, 1, false));
    profile.went_on(run(1, 5, 6, false));
    assert_eq!(profile.running, Some(JobId(1)));
    profile.ended(run(1, 8, 9, true));
    assert_eq!(profile.running, None);
    let [one] = &profile.runs[..] else { panic!("{:?}", profile.runs) };
    assert_eq!((one.started_at, one.ended_at, one.sent_bytes), (at(0), at(9), 30));
    assert!(one.error.is_some());
    profile.ended(run(2, 10, 11, false));
    assert_eq!(profile.runs.len(), 2);
}

#[test]
fn it_is_late_when_the_peer_is_further_behind_than_it_may_be() {
    let mut profile = Profile { rpo_ms: Some(60_000), created_at: at(100), ..profile() };
    assert!(!profile.is_late(at(160)) && profile.is_late(at(161)), "it never had anything");
    profile.sent_as_of = Some(at(200));
    assert!(!profile.is_late(at(260)) && profile.is_late(at(261)));
    assert_eq!(profile.behind_ms(at(199)), 0, "a clock that was set back");
    profile.rpo_ms = None;
    assert!(!profile.is_late(at(10_000)));
}

#[test]
fn one_with_times_runs_at_them_and_makes_up_once_for_those_that_were_missed() {
    let crontab = Crontab::new("*/10 * * * *", at(0)).unwrap();
    let mut timed = Profile { crontab: Some(crontab), ..profile() };
    assert_eq!(timed.next_run_at(at(5)), Some(at(600)));
    assert!(!timed.is_due(at(599)) && timed.is_due(at(600)));
    timed.ended(run(1, 600, 650, false));
    assert_eq!(timed.next_run_at(at(650)), Some(at(1200)));
    // The engine was away for hours.
    assert!(timed.is_due(at(20_000)));
    timed.ended(run(2, 20_000, 20_001, true));
    assert_eq!(timed.next_run_at(at(20_002)), Some(at(20_400)));
    timed.paused = true;
    assert!(!timed.is_due(at(30_000)));
}
