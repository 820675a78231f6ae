//! What maskers promise.

use crate::{Content, Harness, Linked, PATIENCE, Random};
use offshoot_connector::{DataDir, MaskedTable, Masking, Role, StopMode, TableState};
use offshoot_domain::Secret;
use offshoot_types::{ErrorKind, LogPosition};

/// Long, so that they are in no copy by chance.
const NAMES: [&str; 2] = ["Annemarie Unmasked", "Benedikt Unmasked"];
const PEOPLE: [(&str, &str); 4] =
    [("person1", NAMES[0]), ("person2", NAMES[1]), ("person3", NAMES[0]), ("place", "Basel")];

/// Everything in a directory, one file after the other.
fn all_bytes(files: &dyn DataDir, below: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for name in files.list(below).unwrap() {
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        match files.open(&path) {
            Ok(file) => {
                let from = bytes.len();
                bytes.resize(from + file.size().unwrap() as usize, 0);
                let mut at = from;
                while at < bytes.len() {
                    let got = file.read_at((at - from) as u64, &mut bytes[at..]).unwrap();
                    assert!(got > 0, "{path} became shorter");
                    at += got;
                }
            }
            Err(_) => bytes.extend(all_bytes(files, &path)),
        }
    }
    bytes
}

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
    let checked = rules.check(&*server).unwrap();
    assert_eq!((checked.problems, checked.idle), (Vec::new(), Vec::new()));
    let mut told = Vec::new();
    let mut tick = |tables: &[MaskedTable]| {
        told = tables.to_vec();
        Ok(())
    };
    let done = rules.mask(&*server, &Secret::new(key), &mut tick).unwrap();
    assert_eq!((done.values, done.idle), (3, Vec::new()));
    assert!(
        !told.is_empty() && told.iter().all(|table| table.state == TableState::Done),
        "{told:?}"
    );
    assert_eq!(told, done.tables);
    assert!(server.stop(StopMode::Fast, PATIENCE).unwrap());
    let files = linked.spec(&clone).files;
    rules.finish(&files).unwrap();
    linked.connector.finish_image(&*files).unwrap();
    // What is left opens, and no byte of it shows what was masked.
    let shown = all_bytes(&*files, "");
    for name in NAMES {
        assert!(!shown.windows(name.len()).any(|window| window == name.as_bytes()), "{name}");
    }
    let server = linked.connector.start(linked.spec(&clone), Role::Private).unwrap();
    server.wait_ready(PATIENCE).unwrap();
    let content = harness.content(&linked.spec(&clone)).unwrap();
    assert!(server.stop(StopMode::Fast, PATIENCE).unwrap());
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
