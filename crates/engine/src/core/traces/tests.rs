use super::*;
use offshoot_catalog::{Progress, Subject};
use offshoot_types::{ErrorKind, JobId};

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn step(name: &str, state: StepState, from: Option<i64>, to: Option<i64>) -> StepRecord {
    let (started_at, ended_at) = (from.map(time), to.map(time));
    StepRecord { name: name.to_owned(), state, started_at, ended_at }
}

fn job(state: JobState, error: Option<Failure>, steps: Vec<StepRecord>) -> Job {
    Job {
        id: JobId(7),
        kind: "vdb_refresh".to_owned(),
        object: Subject::named("dev"),
        of_engine: false,
        state,
        settled: true,
        cancel_requested: false,
        progress: Progress::default(),
        started_at: time(0),
        ended_at: Some(time(5)),
        steps,
        input: json!({"secret": "of nobody"}),
        bag: serde_json::Map::new(),
        locks: Vec::new(),
        error,
        notes: vec!["said".to_owned()],
    }
}

fn spans_of(jobs: &[Job]) -> Vec<Value> {
    let body = encode("engine-1", jobs);
    let text = String::from_utf8(body.clone()).unwrap();
    assert!(!text.contains("of nobody") && !text.contains("said"), "{text}");
    let whole: Value = serde_json::from_slice(&body).unwrap();
    let resource = &whole["resourceSpans"][0];
    assert_eq!(resource["resource"]["attributes"][2]["value"]["stringValue"], "engine-1");
    resource["scopeSpans"][0]["spans"].as_array().unwrap().clone()
}

#[test]
fn a_collector_takes_traces_where_nothing_else_is_said() {
    for (text, url) in [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("http://collector.example:4318/", "http://collector.example:4318/v1/traces"),
        ("https://collector.example/otlp/v1/traces", "https://collector.example/otlp/v1/traces"),
    ] {
        assert_eq!(collector_url(text).unwrap(), url);
    }
    for text in ["127.0.0.1:4318", "ftp://a/", "http://user:word@a/", ""] {
        assert_eq!(collector_url(text).unwrap_err().code, ErrorKind::InvalidInput, "{text}");
    }
}

#[test]
fn a_job_is_a_span_with_its_steps_below() {
    let done = StepState::Done;
    let steps = vec![step("clone", done, Some(0), Some(1)), step("open", done, Some(1), Some(5))];
    let spans = spans_of(&[job(JobState::Done, None, steps)]);
    let names: Vec<_> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["vdb_refresh", "vdb_refresh/clone", "vdb_refresh/open"]);
    assert_eq!(spans[0]["startTimeUnixNano"], "1700000000000000000");
    assert_eq!(spans[2]["endTimeUnixNano"], "1700000005000000000");
    for span in &spans {
        assert_eq!(span["traceId"], spans[0]["traceId"]);
        assert_eq!(span["traceId"].as_str().unwrap().len(), 32);
        assert_eq!(span["spanId"].as_str().unwrap().len(), 16);
        assert_eq!(span["status"]["code"], 1);
    }
    assert_eq!(spans[1]["parentSpanId"], spans[0]["spanId"]);
    assert!(spans[0]["parentSpanId"].is_null());
    assert_ne!(spans[1]["spanId"], spans[2]["spanId"]);
}

#[test]
fn a_failure_is_at_the_step_that_failed_and_what_was_undone() {
    let steps = vec![
        step("clone", StepState::Undone, Some(0), Some(4)),
        step("open", StepState::Failed, Some(1), None),
        step("publish", StepState::Pending, None, None),
    ];
    let failure = Failure::new(ErrorKind::PoolFull, "there is no room", "make some");
    let spans = spans_of(&[job(JobState::Failed, Some(failure), steps)]);
    assert_eq!(spans.len(), 3, "what never began is no span");
    assert_eq!(spans[0]["status"], json!({"code": 2, "message": "there is no room"}));
    assert_eq!(spans[0]["attributes"][3]["value"]["stringValue"], "pool_full");
    assert_eq!((&spans[1]["status"]["code"], &spans[2]["status"]["code"]), (&2.into(), &2.into()));
    assert_eq!(spans[2]["endTimeUnixNano"], spans[0]["endTimeUnixNano"]);
}
