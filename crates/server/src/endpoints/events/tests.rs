use super::*;
use offshoot_api::{JobProgress, JobState};

fn job(number: u64, state: JobState, done: u64) -> Job {
    Job {
        id: JobId(number),
        kind: "vdb_provision".to_owned(),
        object: "dev".to_owned(),
        state,
        progress: JobProgress { done, total: None, unit: "bytes".to_owned() },
        started_at: None,
        ended_at: None,
        steps: Vec::new(),
        error: None,
        notes: Vec::new(),
        result: None,
    }
}

fn ids(events: Vec<StreamEvent>) -> Vec<u64> {
    let of = |event| match event {
        StreamEvent::Job { job } => job.id.0,
        StreamEvent::Status { .. } => panic!("nobody told of the status"),
    };
    events.into_iter().map(of).collect()
}

#[test]
fn a_job_is_sent_when_it_begins_comes_further_and_ends() {
    let mut sent = Sent::default();
    let mut keep = |jobs: &[Job]| ids(sent.keep(jobs.to_vec(), None).unwrap());
    assert_eq!(keep(&[job(1, JobState::Running, 0)]), [1]);
    assert!(keep(&[job(1, JobState::Running, 0)]).is_empty());
    assert_eq!(keep(&[job(1, JobState::Running, 5)]), [1]);
    assert_eq!(keep(&[job(2, JobState::Queued, 0), job(1, JobState::Done, 9)]), [2, 1]);
    assert!(keep(&[job(2, JobState::Queued, 0), job(1, JobState::Done, 9)]).is_empty());
}

#[test]
fn a_round_is_bounded_begins_with_work_under_way_and_leaves_out_nothing() {
    let mut sent = Sent::default();
    let most = JOBS_MAX as u64;
    let mut jobs: Vec<Job> = (2..=2 * most).map(|id| job(id, JobState::Done, 0)).rev().collect();
    jobs.push(job(1, JobState::Running, 0));
    let first = ids(sent.keep(jobs.clone(), None).unwrap());
    assert_eq!((first.len(), first[0], first[1]), (JOBS_MAX, 1, 2 * most));
    let second = ids(sent.keep(jobs.clone(), None).unwrap());
    let mut all: Vec<u64> = first.into_iter().chain(second).collect();
    all.sort_unstable();
    assert_eq!(all, (1..=2 * most).collect::<Vec<_>>());
    assert!(sent.keep(jobs, None).unwrap().is_empty());
}
