//! Jobs as traces: a span for the job, and one below it for each of its steps.
//!
//! The form is OTLP as JSON, of the [OpenTelemetry protocol](https://opentelemetry.io/docs/specs/otlp/), which collectors take
//! at `/v1/traces`. Names, times, states and errors are told, and nothing of what a job was asked with.

use crate::core::hex;
use jiff::Timestamp;
use offshoot_catalog::{Job, JobState, StepRecord, StepState};
use offshoot_domain::webhook_url;
use offshoot_os::random_bytes;
use offshoot_types::Failure;
use serde::Serialize;
use serde_json::{Value, json};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u8 = 1;
/// `STATUS_CODE_OK` and `STATUS_CODE_ERROR`.
const STATUS: [u8; 2] = [1, 2];

/// The address of a collector: without a path, that of its traces.
///
/// # Errors
/// `InvalidInput` for what is no address, or has a password in it.
pub fn collector_url(text: &str) -> Result<String, Failure> {
    let url = webhook_url(text, true)?;
    let has_path = !url.ends_with('/') || url.matches('/').count() > 3;
    Ok(if has_path { url } else { format!("{url}v1/traces") })
}

/// Jobs that have ended, as a body to send; `engine` tells this engine from others.
pub fn encode(engine: &str, jobs: &[Job]) -> Vec<u8> {
    let spans: Vec<Value> = jobs.iter().flat_map(spans).collect();
    let resource = attributes(&[
        ("service.name", "offshoot".to_owned()),
        ("service.version", VERSION.to_owned()),
        ("service.instance.id", engine.to_owned()),
    ]);
    let scope = json!({"name": "offshoot.jobs", "version": VERSION});
    let body = json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": scope, "spans": spans}],
    }]});
    body.to_string().into_bytes()
}

fn spans(job: &Job) -> Vec<Value> {
    let trace = hex(&random_bytes::<16>());
    let own = hex(&random_bytes::<8>());
    let end = job.ended_at.unwrap_or(job.started_at);
    let failed = job.error.as_ref().filter(|_| job.state != JobState::Done);
    let mut named = vec![
        ("offshoot.job.id", job.id.to_string()),
        ("offshoot.job.state", word(&job.state)),
        ("offshoot.object", job.object.to_string()),
    ];
    named.extend(failed.map(|failure| ("error.type", failure.code.code().to_owned())));
    let mut all = vec![json!({
        "traceId": trace,
        "spanId": own,
        "name": job.kind,
        "kind": INTERNAL,
        "startTimeUnixNano": nanoseconds(job.started_at),
        "endTimeUnixNano": nanoseconds(end),
        "attributes": attributes(&named),
        "status": status(failed),
    })];
    all.extend(job.steps.iter().filter_map(|step| {
        let StepRecord { name, state, started_at, ended_at } = step;
        let from = (*started_at)?;
        // A step that failed, or was undone, is one that did not do its work.
        let failed = failed.filter(|_| matches!(state, StepState::Failed | StepState::Undone));
        Some(json!({
            "traceId": trace,
            "spanId": hex(&random_bytes::<8>()),
            "parentSpanId": own,
            "name": format!("{}/{name}", job.kind),
            "kind": INTERNAL,
            "startTimeUnixNano": nanoseconds(from),
            "endTimeUnixNano": nanoseconds(ended_at.unwrap_or(end)),
            "attributes": attributes(&[("offshoot.step.state", word(state))]),
            "status": status(failed),
        }))
    }));
    all
}

fn attributes(named: &[(&str, String)]) -> Vec<Value> {
    let one = |(key, value): &(&str, String)| json!({"key": key, "value": {"stringValue": value}});
    named.iter().map(one).collect()
}

fn status(failed: Option<&Failure>) -> Value {
    match failed {
        None => json!({"code": STATUS[0]}),
        Some(failure) => json!({"code": STATUS[1], "message": failure.message}),
    }
}

/// Numbers of 64 bits are texts in this form.
fn nanoseconds(time: Timestamp) -> String {
    time.as_nanosecond().max(0).to_string()
}

fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
