//! What maskers promise.

use crate::{Content, Harness, Linked, PATIENCE, Random};
use offshoot_connector::{Masking, StopMode};
use offshoot_domain::Secret;
use offshoot_types::{ErrorKind, LogPosition};

const PEOPLE: [(&str, &str); 4] =
    [("person1", "Ann"), ("person2", "Ben"), ("person3", "Ann"), ("place", "Basel")];

/// What a copy of a moment shows once it is masked.
fn masked(
    linked: &Linked<'_>,
    harness: &dyn Harness,
    end: LogPosition,
    rules: &dyn Masking,
    key: &str,
) -> Content {
    let clone = linked.clone_of(&linked.copy);
    let server = linked.replay(&clone, end).unwrap().server;
    server.cut_ties().unwrap();
    let mut counted = 0;
    let mut tick = |values| {
        counted += values;
        Ok(())
    };
    let done = rules.mask(&*server, &Secret::new(key), &mut tick).unwrap();
    assert_eq!((done.values, counted, done.idle), (3, 3, Vec::new()));
    let content = harness.content(&linked.spec(&clone)).unwrap();
    assert!(server.stop(StopMode::Fast, PATIENCE).unwrap());
    linked.connector.finish_image(&*linked.spec(&clone).files).unwrap();
    content
}

/// What rules name shows masks, equal ones for equal values, also in another copy; everything else stays.
pub fn what_rules_name_is_masked_alike(harness: &dyn Harness) {
    let mut linked = Linked::new(harness);
    let connector = linked.connector.clone();
    let Some(masker) = connector.masker() else {
        return println!("{} masks nothing", connector.kind());
    };
    linked.write(5, 500, &mut Random::fresh());
    for (key, value) in PEOPLE {
        linked.production.commit(key, value);
    }
    linked.receive();
    let end = linked.log.last().unwrap().expect("commits").end;
    let text = harness.masking_rules().expect("how rules are written");
    let rules = masker.read(text).unwrap();
    let one = masked(&linked, harness, end, &*rules, "secret");
    for (key, value) in PEOPLE {
        assert_eq!(one[key] == value, key == "place", "{key} = {}", one[key]);
    }
    assert!(one["person1"] == one["person3"] && one["person1"] != one["person2"]);
    assert_eq!(masked(&linked, harness, end, &*rules, "secret"), one);
    let other = masked(&linked, harness, end, &*rules, "another");
    assert_ne!(other["person1"], one["person1"], "whoever knows no key computes masks");
    let people = |key: &String| key.starts_with("person");
    let rest = |content: &Content| {
        content.clone().into_iter().filter(|(key, _)| !people(key)).collect::<Content>()
    };
    let mut wanted = linked.content_after(5);
    wanted.insert("place".to_owned(), "Basel".to_owned());
    assert_eq!((rest(&one), rest(&other)), (wanted.clone(), wanted));
    let failure = masker.read("this is no rule\n").err().expect("nonsense");
    assert_eq!(failure.code, ErrorKind::InvalidInput);
    assert!(!failure.hint.is_empty());
}
