//! The report of a masked image: what it counts, that it tells no value, and that nobody can change it unnoticed.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // a test

use offshoot_testbed::{Testbed, wait_until};
use serde_json::Value;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(180);

/// Values of the source and of its rules that no report may have.
const CANARIES: [&str; 4] = ["Zyxwilliam", "zyx.secret", "Qwxyz", "Zyxnote"];

const RULES: &str = r#"
version: 1
key: main
k_anonymity: 3
tables:
  public.people:
    quasi_identifiers: [[born, zip], [zip]]
    where: "note <> 'Zyxnote'"
    columns:
      name: full-name
      email: {algorithm: email, domain: masked.test}
      zip: keep
  public.visits: {empty: true}
  public.nowhere: {empty: true}
"#;

/// Of 12 people two have a zip of their own, four share one, six another.
fn started() -> Testbed {
    let bed = Testbed::start().unwrap();
    let source = bed.source.connect("postgres").unwrap();
    source
        .execute(
            "CREATE TABLE people (id int PRIMARY KEY, name text, email text UNIQUE, zip text, born date, \
               note text, phone text);
             CREATE TABLE visits (id int);
             INSERT INTO people SELECT n, 'Zyxwilliam ' || n, 'zyx.secret@' || n, \
               CASE WHEN n <= 2 THEN 'Qwxyz' || n WHEN n <= 6 THEN 'Qwxyz-b' ELSE 'Qwxyz-c' END, \
               date '1990-01-01', 'note ' || n, '+41 44 1' FROM generate_series(1, 12) n;
             INSERT INTO visits SELECT generate_series(1, 40);
             COMMENT ON TABLE people IS 'Zyxwilliam';
             COMMENT ON COLUMN people.name IS 'Zyxwilliam';
             SELECT lo_create(0); ANALYZE; CHECKPOINT",
        )
        .unwrap();
    drop(source);
    bed.link("shop").unwrap();
    std::fs::write(file(&bed, "rules.yaml"), RULES).unwrap();
    bed
}

fn file(bed: &Testbed, name: &str) -> String {
    bed.scratch.path().join(name).display().to_string()
}

fn run(bed: &Testbed, words: &[&str]) -> Result<Value, offshoot_rig::CommandError> {
    bed.engine.command_within(words, &[], PATIENCE)
}

#[test]
fn a_report_tells_what_was_masked_and_no_value() {
    let bed = started();
    let rules = file(&bed, "rules.yaml");
    run(&bed, &["mask", "apply", &rules, "--from", "shop"]).unwrap();
    let document = run(&bed, &["mask", "report", "shop-masked"]).unwrap();
    for canary in CANARIES {
        assert!(!document.to_string().contains(canary), "{canary}: {document}");
    }
    let report = &document["report"];
    assert_eq!(report["source"], "shop");
    assert_eq!(report["rules_sha256"], offshoot_domain::signed::sha256(RULES));
    assert!(report["accepted_by"].as_str().is_some_and(|by| !by.is_empty()), "{report}");
    let of = |list: &str, name: &str| {
        let list = report[list].as_array().unwrap();
        list.iter().find(|one| one["name"] == name).unwrap_or(&Value::Null).clone()
    };
    let people = of("tables", "public.people");
    assert_eq!((&people["rows_before"], &people["rows_after"]), (&12.into(), &12.into()));
    assert_eq!((&people["emptied"], &people["conditional"]), (&false.into(), &true.into()));
    let visits = of("tables", "public.visits");
    assert_eq!((&visits["rows_before"], &visits["rows_after"]), (&40.into(), &0.into()));
    assert_eq!(visits["emptied"], true);
    let columns = report["columns"].as_array().unwrap();
    let email = columns.iter().find(|one| one["column"] == "email").unwrap();
    assert_eq!((&email["algorithm"], &email["uniqueness"]), (&"email".into(), &"distinct".into()));
    assert_eq!(email["learned"], "which rows had equal values; with `keep: domain`, the domain");
    assert_eq!(report["columns_kept"], serde_json::json!(["public.people.zip"]));
    let unruled = report["columns_without_rule"].to_string();
    assert!(unruled.contains("public.people.phone") && !unruled.contains("email"), "{unruled}");
    // The sample source has other tables, too.
    let unmasked = report["columns_unmasked"].as_array().unwrap().iter().filter_map(Value::as_str);
    let unmasked: Vec<&str> =
        unmasked.filter_map(|name| name.strip_prefix("public.people.")).collect();
    assert_eq!(unmasked, ["id", "zip", "born", "note", "phone"]);
    assert!(!report["columns_unmasked"].to_string().contains("visits"), "{report}");
    assert!(report["idle_rules"].to_string().contains("nowhere"), "{report}");
    let removed = report["removed"].as_array().unwrap();
    let removed =
        |what: &str| removed.iter().find(|one| one["what"] == what).unwrap()["count"].clone();
    assert!(removed("comments").as_u64().is_some_and(|count| count >= 2), "{report}");
    assert_eq!(removed("large objects"), 1);
    let anonymity = report["anonymity"].as_array().unwrap();
    assert_eq!(anonymity.len(), 2, "{report}");
    for one in anonymity {
        let number = |name: &str| one[name].as_u64().unwrap();
        assert_eq!((number("rows"), number("combinations"), number("unique")), (12, 4, 2), "{one}");
        assert_eq!((number("smallest"), number("k"), number("rows_below")), (1, 3, 2), "{one}");
    }

    // An earlier image keeps its report; it goes with the masked dSource.
    let first = report["snapshot"].as_str().unwrap().to_owned();
    run(&bed, &["mask", "apply", &rules, "--from", "shop"]).unwrap();
    let second = run(&bed, &["mask", "report", "shop-masked"]).unwrap();
    assert_ne!(second["report"]["snapshot"], first.as_str());
    let again = run(&bed, &["mask", "report", "shop-masked", "--snapshot", &first]).unwrap();
    assert_eq!(again, document);
    run(&bed, &["dsource", "unlink", "shop-masked", "--yes"]).unwrap();
    let gone = run(&bed, &["mask", "report", "shop-masked"]).unwrap_err();
    assert_eq!(gone.code, "not_found");
}

#[test]
fn a_saved_report_is_checked_byte_by_byte() {
    let mut bed = started();
    run(&bed, &["mask", "apply", &file(&bed, "rules.yaml"), "--from", "shop"]).unwrap();
    let key = run(&bed, &["mask", "report", "--public-key"]).unwrap()["public_key"].clone();
    let key = key.as_str().unwrap();
    for name in ["report.json", "report.html"] {
        let path = file(&bed, name);
        run(&bed, &["mask", "report", "shop-masked", "--output", &path]).unwrap();
        let twice = run(&bed, &["mask", "report", "shop-masked", "--output", &path]).unwrap_err();
        assert_eq!(twice.code, "already_exists");
        let checked = run(&bed, &["mask", "report", "--verify", &path]).unwrap();
        assert_eq!((&checked["verified"], &checked["public_key"]), (&true.into(), &key.into()));
        run(&bed, &["mask", "report", "--verify", &path, "--key", key]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for canary in CANARIES {
            assert!(!text.contains(canary), "{canary} is in {name}");
        }
        let rows = if name.ends_with("json") { "\"rows_before\": 40" } else { ">40<" };
        let changed = text.replacen(rows, &rows.replace("40", "41"), 1);
        assert_ne!(changed, text);
        for changed in [changed, format!("{text} "), text[1..].to_owned()] {
            std::fs::write(&path, changed).unwrap();
            for more in [&[][..], &["--key", key]] {
                let words = [&["mask", "report", "--verify", &path], more].concat();
                assert_eq!(run(&bed, &words).unwrap_err().code, "invalid_input");
            }
        }
    }
    // The key stays with the pool, and another pool has another.
    bed.engine.kill_and_restart().unwrap();
    let again = run(&bed, &["mask", "report", "--public-key"]).unwrap();
    assert_eq!(again["public_key"], key);
}

/// Rules in TOML, with a list in a file beside them and the name of a database.
#[test]
fn rules_may_be_toml_with_lists_in_files() {
    let bed = started();
    std::fs::create_dir(bed.scratch.path().join("lists")).unwrap();
    std::fs::write(file(&bed, "lists/zips.txt"), "00001\n\n00002\n").unwrap();
    let rules = r#"
version = 1
key = "main"
[tables."postgres.public.people".columns]
name = "full-name"
zip = {algorithm = "secure-lookup", values = {file = "lists/zips.txt"}}
[tables.lists.columns]
mails = {algorithm = "array", rule = "email"}
born = {algorithm = "array", rule = {algorithm = "date-shift", min = "-9d", max = "9d"}}
[tables."other.public.people"]
empty = true
"#;
    let source = bed.source.connect("postgres").unwrap();
    source
        .execute(
            "CREATE TABLE lists (id int PRIMARY KEY, mails varchar(60)[] UNIQUE, born date[]);
             INSERT INTO lists SELECT n, ARRAY['zyx.secret@' || n, NULL, '', 'zyx.secret@\"\\,{x}'], \
               ARRAY[[date '2000-01-01', date '2000-01-02']] FROM generate_series(1, 9) n",
        )
        .unwrap();
    drop(source);
    let path = file(&bed, "masking.toml");
    std::fs::write(&path, rules).unwrap();
    run(&bed, &["mask", "check", &path, "--from", "shop"]).unwrap();
    run(&bed, &["mask", "apply", &path, "--from", "shop", "--as", "safe"]).unwrap();
    bed.provision("qa", "safe", &[]).unwrap();
    let db = bed.open("qa").unwrap();
    let masked =
        "SELECT count(*) FROM people WHERE zip IN ('00001', '00002') AND name NOT LIKE 'Zyx%'";
    assert_eq!(db.number(masked).unwrap(), 12);
    let lists = "SELECT count(*) FROM lists WHERE mails::text NOT LIKE '%zyx%' AND mails[2] IS NULL \
                 AND mails[3] = '' AND mails[1] LIKE '%@example.com' AND array_dims(born) = '[1:1][1:2]' \
                 AND born[1][1] <> date '2000-01-01' \
                 AND abs(born[1][2] - date '2000-01-02') BETWEEN 1 AND 9";
    assert_eq!(db.number(lists).unwrap(), 9);
    assert_eq!(db.number("SELECT count(DISTINCT mails[4]) FROM lists").unwrap(), 1);
    drop(db);
    std::fs::remove_file(file(&bed, "lists/zips.txt")).unwrap();
    let refused = run(&bed, &["mask", "check", &path, "--from", "shop"]).unwrap_err();
    assert_eq!(refused.code, "invalid_input");
    assert!(refused.message.contains("zips.txt"), "{refused}");
    let schema = run(&bed, &["mask", "schema"]).unwrap();
    assert!(schema["$defs"]["algorithm"]["anyOf"].as_array().unwrap().len() >= 30, "{schema}");
}

/// Another key gives other masks, the same one the same; a masked image has passed its checks.
#[test]
fn a_rotated_key_gives_other_masks() {
    let bed = started();
    let rules = file(&bed, "rules.yaml");
    let names = |name: &str| -> Vec<String> {
        run(&bed, &["mask", "apply", &rules, "--from", "shop", "--as", name]).unwrap();
        bed.provision(&format!("of-{name}"), name, &[]).unwrap();
        let db = bed.open(&format!("of-{name}")).unwrap();
        db.rows("SELECT email FROM people ORDER BY id").unwrap().concat()
    };
    let refused = run(&bed, &["mask", "key", "rotate", "main", "--yes"]).unwrap_err();
    assert_eq!(refused.code, "not_found");
    let (first, again) = (names("one"), names("two"));
    assert_eq!(first, again);
    let listed = run(&bed, &["mask", "key", "list"]).unwrap();
    assert_eq!(listed["keys"][0]["used_by"], serde_json::json!(["one", "two"]));
    let rotated = run(&bed, &["mask", "key", "rotate", "main", "--yes"]).unwrap();
    assert_eq!((&rotated["version"], &rotated["name"]), (&2.into(), &"main".into()));
    let after = names("three");
    assert!(after.iter().all(|one| !first.contains(one)), "{after:?}");
    let version =
        |name: &str| run(&bed, &["mask", "report", name]).unwrap()["report"]["key_version"].clone();
    assert_eq!((version("one"), version("three")), (1.into(), 2.into()));

    let image = run(&bed, &["mask", "status", "three"]).unwrap()["snapshot"].clone();
    let image = image.as_str().unwrap();
    let log = std::fs::read_to_string(bed.engine.log()).unwrap();
    let of = format!("snapshot={image} ");
    let checked =
        |line: &&str| line.contains("checked what no earlier check has seen") && line.contains(&of);
    assert_eq!(log.lines().filter(checked).count(), 1, "{image} was checked once");
    let shown = run(&bed, &["snapshot", "show", image]).unwrap();
    assert_eq!(
        (&shown["ready"], &shown["unchecked"]),
        (&true.into(), &serde_json::json!([])),
        "{shown}"
    );
}

/// A renewal that fails is a fault, until one succeeds.
#[test]
fn a_renewal_that_fails_is_a_fault() {
    let bed = started();
    let rules = file(&bed, "rules.yaml");
    run(&bed, &["mask", "apply", &rules, "--from", "shop", "--every", "1s"]).unwrap();
    let source = bed.source.connect("postgres").unwrap();
    source.execute("ALTER TABLE people RENAME COLUMN email TO mail").unwrap();
    let faults = || -> anyhow::Result<String> { Ok(run(&bed, &["status"])?["faults"].to_string()) };
    wait_until("the failed renewal is a fault", PATIENCE, || {
        Ok(faults()?.contains("'shop-masked' is not renewed"))
    })
    .unwrap();
    source.execute("ALTER TABLE people RENAME COLUMN mail TO email").unwrap();
    run(&bed, &["dsource", "sync", "shop"]).unwrap();
    run(&bed, &["mask", "apply", &rules, "--from", "shop"]).unwrap();
    assert!(!faults().unwrap().contains("renewed"), "{}", faults().unwrap());
}
