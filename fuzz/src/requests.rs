//! Bodies of the API, in both directions, and the texts that people write.

use crate::target::Target;
use offshoot_domain::{
    ObjectName, Owner, format_duration, format_size, parse_duration, parse_size, parse_time,
};
use offshoot_postgres::Lsn;
use offshoot_types::DatasetId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "api-body", run: body, seeds: body_seeds },
    Target { name: "text", run: text, seeds: text_seeds },
];

/// A body that can be read can be written, and reads back the same.
fn check<T: DeserializeOwned + Serialize + PartialEq>(bytes: &[u8]) {
    if let Ok(value) = serde_json::from_slice::<T>(bytes) {
        let again = serde_json::to_vec(&value).expect("what was read can be written");
        let again = serde_json::from_slice::<T>(&again).expect("what was written can be read");
        assert!(again == value, "a body changes when it is written and read");
    }
}

/// How a body is checked, and an example of it.
type Body = (fn(&[u8]), &'static str);

const BODIES: &[Body] = &[
    (
        check::<offshoot_api::ProvisionVdb>,
        r#"{"name":"a","from":"b","moment":{"latest":true},"port":5433,"settings":{"work_mem":"4MB"},"memory_bytes":1048576}"#,
    ),
    (check::<offshoot_api::RefreshVdb>, r#"{"moment":{"time":"2026-11-21T12:00:00Z"}}"#),
    (check::<offshoot_api::RewindVdb>, r#"{"to":{"snapshot":"snap-1"}}"#),
    (check::<offshoot_api::TakeSnapshot>, r#"{"object":"a"}"#),
    (
        check::<offshoot_api::LinkDsource>,
        r#"{"name":"a","connector":"postgres","source":"postgresql://u@h:5432/d","password":"x","snapshot_every_ms":600000}"#,
    ),
    (
        check::<offshoot_api::SetPolicy>,
        r#"{"quota_bytes":null,"keep_all_ms":5,"snapshot_every_ms":null}"#,
    ),
    (
        check::<offshoot_api::CreateBookmark>,
        r#"{"name":"a","on":"b","moment":{"lsn":"0/3000028"}}"#,
    ),
    (check::<offshoot_api::Vdb>, r#"{"name":"a","state":"running","parent":"b"}"#),
    (check::<offshoot_api::Dsource>, r#"{"name":"a","state":"following","snapshots":[]}"#),
    (check::<offshoot_api::Snapshot>, r#"{"id":"snap-1","lsn":"0/1"}"#),
    (
        check::<offshoot_api::Job>,
        r#"{"id":"job-1","state":"done","progress":{"done":1,"total":2,"unit":"bytes"}}"#,
    ),
    (check::<offshoot_api::ErrorBody>, r#"{"error":{"code":"internal","message":"m","hint":"h"}}"#),
];

/// The first byte says of which kind it is.
fn body(bytes: &[u8]) {
    if let Some((kind, body)) = bytes.split_first() {
        BODIES[usize::from(*kind) % BODIES.len()].0(body);
    }
}

fn body_seeds() -> Vec<Vec<u8>> {
    let seed = |(kind, (_, body)): (usize, &Body)| [&[kind as u8][..], body.as_bytes()].concat();
    BODIES.iter().enumerate().map(seed).collect()
}

/// What is accepted reads back the same from the text it is shown as.
fn shown<T, E: Debug>(text: &str, parse: impl Fn(&str) -> Result<T, E>, show: fn(&T) -> String)
where
    T: PartialEq + Debug,
{
    if let Ok(value) = parse(text) {
        assert_eq!(parse(&show(&value)).expect("what is shown is understood"), value);
    }
}

fn text(bytes: &[u8]) {
    let text = &String::from_utf8_lossy(bytes);
    shown(text, str::parse::<Lsn>, ToString::to_string);
    shown(text, str::parse::<DatasetId>, ToString::to_string);
    shown(text, str::parse::<Owner>, ToString::to_string);
    shown(text, str::parse::<ObjectName>, ToString::to_string);
    let _ = parse_time(text);
    // These round for people.
    let _ = parse_size(text).map(format_size);
    let _ = parse_duration(text).map(format_duration);
}

fn text_seeds() -> Vec<Vec<u8>> {
    [
        "0/3000028",
        "dataset-7",
        "dsource/a",
        "vdb-3",
        "production-copy_1",
        "2026-11-21T12:00:00.5+01:00",
        "2026-11-21 12:00",
        "14:03:27",
        "4.5GiB",
        "10min",
        "3d",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}
