//! Masked dSources: what VDBs of them show, and that nothing else of what they come from is reached.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // COPY PROGRAM's work is done by the test itself

use anyhow::Result;
use memchr::memmem;
use offshoot_api::{Mask, MaskMode, MaskState, MaskTableState, Vdb};
use offshoot_rig::{CommandError, Database};
use offshoot_testbed::{Testbed, wait_until, with_log};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(180);

/// Values that no mask, dictionary or setting contains.
const CANARIES: [&str; 5] =
    ["Zyxwilliam", "zyx.secret@", "+41 44 999 77", "4111-1111-1111-1111", "Qwxyz Lane"];

const RULES: &str = r#"
version: 1
key: main
tables:
  "public.customers":
    columns:
      name: full-name
      email: email
      phone: phone
      card: payment-card
      street: {algorithm: character-mapping}
      born: {algorithm: date-shift, min: -30d, max: 30d}
      notes: {algorithm: constant, value: removed}
  "public.orders":
    columns:
      customer_email: email
  "public.visits": {empty: true}
"#;

fn fill(source: &Database) -> Result<()> {
    source.execute(
        "CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, email text UNIQUE, \
           phone text, card text, street text, born date, notes text);
         CREATE TABLE orders (id int PRIMARY KEY, customer_email text REFERENCES customers (email), total int);
         CREATE TABLE visits (id int PRIMARY KEY, who text);
         CREATE INDEX ON customers (lower(name));
         INSERT INTO customers SELECT n, 'Zyxwilliam Canary' || n, 'zyx.secret@' || n || '.test', \
           '+41 44 999 77 ' || n, '4111-1111-1111-1111', n || ' Qwxyz Lane', date '1980-01-01' + n, \
           CASE WHEN n % 3 = 0 THEN NULL ELSE repeat('Zyxwilliam was here. ', n) END \
           FROM generate_series(1, 500) n;
         INSERT INTO orders SELECT n, 'zyx.secret@' || (n % 500 + 1) || '.test', n FROM generate_series(1, 2000) n;
         INSERT INTO visits SELECT n, 'Zyxwilliam' FROM generate_series(1, 100) n;
         UPDATE customers SET street = street || ' old';
         COMMENT ON TABLE customers IS 'Zyxwilliam asked for it';
         ANALYZE; CHECKPOINT",
    )
}

fn started() -> Testbed {
    let bed = Testbed::start().unwrap();
    fill(&bed.source.connect("postgres").unwrap()).unwrap();
    bed.link("shop").unwrap();
    std::fs::write(rules(&bed), RULES).unwrap();
    bed
}

fn rules(bed: &Testbed) -> std::path::PathBuf {
    bed.scratch.path().join("rules.yaml")
}

fn run(bed: &Testbed, line: &str) -> Result<Value, CommandError> {
    let file = rules(bed).display().to_string();
    let words: Vec<String> = line.split(' ').map(|word| word.replace("RULES", &file)).collect();
    bed.engine.command_within(&words, &[], PATIENCE)
}

fn mask(bed: &Testbed, line: &str) -> Mask {
    serde_json::from_value(run(bed, line).unwrap()).unwrap()
}

#[track_caller]
fn is_refused(bed: &Testbed, line: &str, code: &str) -> CommandError {
    let refused = run(bed, line).expect_err(line);
    assert_eq!(refused.code, code, "{line}: {refused}");
    refused
}

/// No byte of a directory has a canary; returns how many bytes were looked at.
fn search(directory: &Path) -> usize {
    let mut looked = 0;
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            looked += search(&entry.path());
        } else if kind.is_file() {
            let bytes = std::fs::read(entry.path()).unwrap();
            for canary in CANARIES {
                let found = memmem::find(&bytes, canary.as_bytes());
                assert!(found.is_none(), "{canary} is in {}", entry.path().display());
            }
            looked += bytes.len();
        }
    }
    looked
}

fn check_vdb(db: &Database) {
    let number = |sql: &str| db.number(sql).unwrap();
    assert_eq!(number("SELECT count(*) FROM customers"), 500);
    assert_eq!(number("SELECT count(DISTINCT email) FROM customers"), 500);
    let joined = "SELECT count(*) FROM orders o JOIN customers c ON c.email = o.customer_email";
    assert_eq!(number(joined), 2000);
    assert_eq!(number("SELECT sum(total) FROM orders"), 2_001_000);
    assert_eq!(number("SELECT count(*) FROM visits"), 0);
    assert_eq!(number("SELECT count(*) FROM customers WHERE notes IS NULL"), 166);
    let shifted = "SELECT count(*) FROM customers WHERE born <> date '1980-01-01' + id \
                   AND born BETWEEN date '1980-01-01' + id - 30 AND date '1980-01-01' + id + 30";
    assert_eq!(number(shifted), 500);
    // The names are masked in what indexes say, too.
    let indexed =
        "SET enable_seqscan = off; SELECT count(*) FROM customers WHERE lower(name) LIKE 'zyx%'";
    db.execute("SET enable_seqscan = off").unwrap();
    assert_eq!(number(indexed.split_once("; ").unwrap().1), 0);
    for canary in CANARIES {
        let whole = format!("SELECT count(*) FROM customers c WHERE c::text LIKE '%{canary}%'");
        assert_eq!(number(&whole), 0, "{canary}");
    }
}

#[test]
fn vdbs_of_a_masked_dsource_hold_nothing_that_was_masked() {
    let bed = started();
    with_log(&bed.engine, inspect(&bed)).unwrap();
}

fn inspect(bed: &Testbed) -> Result<()> {
    run(bed, "mask check RULES --from shop").unwrap();
    let made = mask(bed, "mask apply RULES --from shop --as safe");
    assert_eq!((made.state, made.source.as_str()), (MaskState::Masked, "shop"));
    assert_eq!(made.rows_masked, 2500, "{made:?}");
    assert!(made.tables.iter().all(|table| table.state == MaskTableState::Done), "{made:?}");
    let qa = bed.provision("qa", "safe", &[])?;
    let db = Database::connect(&qa.uri)?;
    check_vdb(&db);
    let first = db.rows("SELECT * FROM customers ORDER BY id")?;
    drop(db);

    // Every byte of its files, also when it is stopped, and of a branch.
    let snapshot = run(bed, "snapshot take qa").unwrap();
    assert!(snapshot["id"].is_string(), "{snapshot}");
    bed.provision("branch", "qa", &[])?;
    for name in ["qa", "branch"] {
        let db = bed.open(name)?;
        let directory = db.text("SHOW data_directory")?;
        drop(db);
        assert!(search(Path::new(&directory)) > 10 << 20);
    }

    // No way leads to what was masked.
    for line in [
        "vdb refresh qa --at 2026-01-01T00:00:00Z",
        "vdb provision other --from safe --at 2026-01-01T00:00:00Z",
        "vdb provision other --from safe --lsn 0/3000000",
    ] {
        is_refused(bed, line, "moment_unavailable");
    }
    let of_source = run(bed, "dsource show shop").unwrap()["snapshots"][0]["id"].clone();
    let of_source = of_source.as_str().unwrap();
    is_refused(bed, &format!("vdb refresh qa --snapshot {of_source}"), "not_found");
    is_refused(bed, &format!("vdb rewind qa --snapshot {of_source}"), "not_found");
    is_refused(
        bed,
        &format!("vdb provision other --from safe --snapshot {of_source}"),
        "not_found",
    );
    is_refused(bed, "vdb reparent qa --to shop", "invalid_input");
    for verb in ["sync", "pause", "resume"] {
        is_refused(bed, &format!("dsource {verb} safe"), "wrong_state");
    }
    is_refused(bed, "mask apply RULES --from safe", "invalid_input");
    is_refused(bed, "mask apply RULES --from shop --as shop", "already_exists");
    is_refused(bed, "mask apply RULES --from shop --as qa", "already_exists");

    // Renewed, it shows what production has now, and equal values by equal masks.
    bed.source.connect("postgres")?.execute(
        "INSERT INTO customers VALUES (501, 'Zyxwilliam New', 'zyx.secret@new.test', NULL, NULL, '', NULL, NULL)",
    )?;
    let again = mask(bed, "mask apply RULES --from shop --as safe");
    assert!(again.snapshot != made.snapshot && again.rows_masked < 1000, "{again:?}");
    assert_eq!((again.mode, again.full_because.as_ref()), (MaskMode::Incremental, None));
    run(bed, "vdb refresh qa").unwrap();
    let db = bed.open("qa")?;
    assert_eq!(db.rows("SELECT * FROM customers WHERE id <= 500 ORDER BY id")?, first);
    assert_eq!(db.text("SELECT street FROM customers WHERE id = 501")?, "");
    drop(db);
    let shown = run(bed, "dsource show safe").unwrap();
    assert_eq!(shown["state"], "masked");
    assert_eq!(shown["snapshots"].as_array().unwrap().len(), 2, "{shown}");
    let earlier = made.snapshot.unwrap();
    let old: Vdb = serde_json::from_value(
        run(bed, &format!("vdb provision old --from safe --snapshot {earlier}")).unwrap(),
    )?;
    assert_eq!(Database::connect(&old.uri)?.number("SELECT count(*) FROM customers")?, 500);
    run(bed, "timeflow show safe").unwrap();
    run(bed, "dsource unlink safe --yes").unwrap();
    is_refused(bed, "mask status safe", "not_found");
    Ok(())
}

/// Rules that cannot be applied are refused before anything is there, with the table and the column; what fails
/// leaves nothing that can be provisioned.
#[test]
fn rules_that_do_not_fit_leave_nothing_behind() {
    let bed = started();
    let write = |text: &str| std::fs::write(rules(&bed), text).unwrap();
    let table = |columns: &str| {
        format!(
            "version: 1\nkey: main\ntables:\n  \"public.customers\":\n    columns:\n      {columns}\n"
        )
    };
    write("nonsense: [");
    is_refused(&bed, "mask apply RULES --from shop", "invalid_input");
    write(&table("name: no-such-algorithm"));
    let refused = is_refused(&bed, "mask apply RULES --from shop", "invalid_input");
    assert!(refused.message.contains("customers") && refused.message.contains("name"), "{refused}");
    for (columns, named) in [
        ("nowhere: email", "nowhere"),
        ("name: \"null\"", "name"),
        ("born: email", "born"),
        ("email: {algorithm: constant, value: same}", "email"),
    ] {
        write(&table(columns));
        let refused = is_refused(&bed, "mask check RULES --from shop --strict", "invalid_input");
        assert!(refused.message.contains(named), "{columns}: {refused}");
        let refused = is_refused(&bed, "mask apply RULES --from shop", "invalid_input");
        assert!(refused.message.contains(named), "{columns}: {refused}");
        for canary in CANARIES {
            assert!(!refused.message.contains(canary), "{refused}");
        }
        is_refused(&bed, "dsource show shop-masked", "not_found");
        is_refused(&bed, "vdb provision qa --from shop-masked", "not_found");
    }
    // A column that looks sensitive has no rule.
    write(&table("name: full-name"));
    let refused = is_refused(&bed, "mask check RULES --from shop --strict", "invalid_input");
    assert!(refused.message.contains("email"), "{refused}");
    let shown = mask(&bed, "mask apply RULES --from shop");
    assert!(shown.columns_without_rule.iter().any(|one| one.contains("email")), "{shown:?}");
}

/// A kill in the middle, and a cancel: the same again gives all of it, and nothing is left behind.
#[test]
fn masking_survives_a_kill_and_can_be_cancelled() {
    let mut bed = started();
    bed.source
        .connect("postgres")
        .unwrap()
        .execute("INSERT INTO customers SELECT n, 'Zyxwilliam', 'zyx.secret@' || n, NULL, NULL, NULL, NULL, NULL \
                  FROM generate_series(1000, 300000) n")
        .unwrap();
    let begin = |bed: &Testbed| {
        let job = run(bed, "mask apply RULES --from shop --as safe --detach").unwrap();
        let job = job["job"].as_str().unwrap().to_owned();
        wait_until("masking runs", PATIENCE, || {
            let shown = run(bed, "mask status safe")?;
            Ok(shown["tables"].as_array().is_some_and(|tables| !tables.is_empty()))
        })
        .unwrap();
        job
    };
    let job = begin(&bed);
    is_refused(&bed, "vdb provision qa --from safe", "not_found");
    run(&bed, &format!("job cancel {job}")).unwrap();
    run(&bed, &format!("job watch {job}")).unwrap_err();
    is_refused(&bed, "dsource show safe", "not_found");

    let job = begin(&bed);
    bed.engine.kill_and_restart().unwrap();
    // It was undone, and nothing of it is left; begun again, it begins from the start.
    let ended = run(&bed, &format!("job watch {job}")).unwrap_err();
    assert!(ended.hint.contains("run it again"), "{ended}");
    is_refused(&bed, "dsource show safe", "not_found");
    assert_eq!(mask(&bed, "mask status safe").state, MaskState::Failed);
    run(&bed, "mask apply RULES --from shop --as safe").unwrap();
    assert_eq!(mask(&bed, "mask status safe").state, MaskState::Masked);
    let qa = bed.provision("qa", "safe", &[]).unwrap();
    let db = Database::connect(&qa.uri).unwrap();
    assert_eq!(db.number("SELECT count(*) FROM customers").unwrap(), 299_501);
    let left = "SELECT count(*) FROM customers WHERE name LIKE 'Zyx%' OR email LIKE 'zyx%'";
    assert_eq!(db.number(left).unwrap(), 0);
}

/// What happens at the source between two runs, in turn.
const CHANGES: [&str; 3] = [
    "UPDATE customers SET name = 'Zyxwilliam Renamed', born = NULL WHERE id IN (7, 20007);
     INSERT INTO customers VALUES (40001, 'Zyxwilliam Late', 'zyx.secret@late.test', NULL, NULL, '', NULL, 'Zyxwilliam');
     INSERT INTO orders VALUES (40001, 'zyx.secret@late.test', 5); UPDATE orders SET total = 0 WHERE id = 3;
     DELETE FROM customers WHERE id = 30000; INSERT INTO visits VALUES (101, 'Zyxwilliam')",
    "UPDATE orders SET customer_email = NULL WHERE id = 40001;
     UPDATE customers SET email = 'zyx.secret@moved.test' WHERE id = 40001",
    "DELETE FROM customers WHERE id BETWEEN 20000 AND 20020; UPDATE loose SET at = at + 1 WHERE who LIKE '%17';
     UPDATE customers SET name = 'Zyxwilliam Anywhere' WHERE id % 100 = 7; UPDATE plain SET t = 'q' WHERE id % 200 = 3",
];

/// All that a VDB of a masked dSource shows.
fn shown(bed: &Testbed, of: &str) -> Result<Vec<String>> {
    let vdb = bed.provision(&format!("of-{of}"), of, &[])?;
    let db = Database::connect(&vdb.uri)?;
    let digest = |table: &str| {
        let sql = format!(
            "SELECT count(*) || ' ' || md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM {table} t"
        );
        db.text(&sql)
    };
    let tables = ["customers", "orders", "loose", "plain"];
    let mut all = tables.into_iter().map(digest).collect::<Result<Vec<_>>>()?;
    all.push(db.text("SELECT count(*)::text FROM visits")?);
    all.push(db.text("SELECT last_value::text FROM plain_id_seq")?);
    let directory = db.text("SHOW data_directory")?;
    drop(db);
    assert!(search(Path::new(&directory)) > 10 << 20);
    run(bed, &format!("vdb delete of-{of} --yes")).unwrap();
    Ok(all)
}

/// Masking what has changed gives what masking everything gives, with a transaction open meanwhile, after a kill in the
/// middle, and time after time; nothing is left behind.
#[test]
fn a_renewal_shows_what_masking_everything_shows() {
    let mut bed = started();
    let source = bed.source.connect("postgres").unwrap();
    source
        .execute(
            "INSERT INTO customers SELECT n, 'Zyxwilliam ' || n, 'zyx.secret@' || n || '.test', '+41 44 999 77 ' || n, \
               NULL, n || ' Qwxyz Lane', date '1980-01-01' + n % 999, NULL FROM generate_series(501, 40000) n;
             CREATE TABLE loose (who text, at int); INSERT INTO loose SELECT 'Zyxwilliam ' || n, n \
               FROM generate_series(1, 5000) n;
             CREATE TABLE plain (id serial PRIMARY KEY, t text); INSERT INTO plain (t) SELECT 'p' \
               FROM generate_series(1, 20000)",
        )
        .unwrap();
    source.execute("VACUUM ANALYZE").unwrap();
    // A state before the transaction that is open meanwhile: the pages that it wrote are known by it.
    bed.wait_ready(&bed.snapshot("shop").unwrap()).unwrap();
    let rules_now = format!("{RULES}  public.loose:\n    columns: {{who: character-mapping}}\n");
    std::fs::write(rules(&bed), rules_now).unwrap();
    let open = bed.source.connect("postgres").unwrap();
    open.execute("BEGIN; INSERT INTO plain (t) VALUES ('open'); UPDATE customers SET phone = 'Qwxyz Lane' WHERE id = 9").unwrap();
    mask(&bed, "mask apply RULES --from shop --as safe");
    for (number, changes) in CHANGES.into_iter().enumerate() {
        source.execute(changes).unwrap();
        if number == 1 {
            open.execute("COMMIT").unwrap();
        }
        let taken = run(&bed, "snapshot take shop").unwrap()["id"].as_str().unwrap().to_owned();
        let apply = format!("mask apply RULES --from shop --snapshot {taken}");
        if number == 1 {
            run(&bed, &format!("{apply} --as safe --detach")).unwrap();
            bed.engine.kill_and_restart().unwrap();
            assert_eq!(mask(&bed, "mask status safe").state, MaskState::Failed);
        }
        let renewed = mask(&bed, &format!("{apply} --as safe"));
        assert_eq!((renewed.mode, renewed.full_because.as_ref()), (MaskMode::Incremental, None));
        assert!(renewed.rows_masked < 6000, "{renewed:?}\n{}", bed.engine.log_end(40));
        let whole = mask(&bed, &format!("{apply} --as whole --full"));
        assert_eq!(whole.mode, MaskMode::Full);
        assert_eq!(shown(&bed, "safe").unwrap(), shown(&bed, "whole").unwrap(), "round {number}");
        let report = |name: &str| {
            run(&bed, &format!("mask report {name}")).unwrap()["report"]["tables"].clone()
        };
        assert_eq!(report("safe"), report("whole"));
    }
    source.execute("ALTER TABLE plain ADD more int").unwrap();
    let full = mask(&bed, "mask apply RULES --from shop --as safe");
    assert!(full.full_because.as_ref().is_some_and(|why| why.contains("schema")), "{full:?}");
    assert_eq!(full.mode, MaskMode::Full);
    run(&bed, "dsource unlink safe --yes").unwrap();
    run(&bed, "dsource unlink whole --yes").unwrap();
}

/// Proposed rules are a start that can be applied; nothing that is shown before somebody asks for it is of production.
#[test]
fn what_to_mask_is_found_and_shown_masked() {
    let bed = started();
    bed.source
        .connect("postgres")
        .unwrap()
        .execute(
            "CREATE TABLE payments (id int PRIMARY KEY, a text, b text, c text, d text, code text);
             INSERT INTO payments SELECT n, 'zyx.secret@' || n || '.test', \
               '+41 44 999 77 ' || (10 + n % 90), \
               (ARRAY['4111111111111111', '5500005555555559', '340000000000009', '30000000000004', \
                 '6011000000000004', '4012888888881881'])[1 + n % 6], \
               (ARRAY['DE89370400440532013000', 'CH9300762011623852957', 'GB29NWBK60161331926819', \
                 'FR1420041010050500013M02606', 'AT611904300234573201'])[1 + n % 5], \
               'A-' || n FROM generate_series(1, 400) n",
        )
        .unwrap();
    let found = run(&bed, "mask discover shop").unwrap();
    let kind = |table: &str, column: &str| {
        let all = found["findings"].as_array().unwrap();
        let one = |one: &&Value| one["table"] == table && one["column"] == column;
        all.iter().find(one).map(|one| one["kind"].as_str().unwrap().to_owned())
    };
    for (column, expected) in
        [("a", "e-mail"), ("b", "telephone number"), ("c", "payment card"), ("d", "IBAN")]
    {
        assert_eq!(kind("public.payments", column).as_deref(), Some(expected), "{found}");
    }
    assert_eq!(kind("public.payments", "code"), None);
    assert_eq!(kind("public.customers", "email").as_deref(), Some("e-mail"), "{found}");
    for canary in CANARIES.iter().chain(&["DE8937", "411111"]) {
        assert!(!found.to_string().contains(canary), "{canary}: {found}");
    }
    // By names alone the columns without one are not found.
    let named = run(&bed, "mask discover shop --sample 0").unwrap();
    assert!(!named.to_string().contains("public.payments"), "{named}");

    let shown = run(&bed, "mask preview RULES --from shop --table customers --rows 3").unwrap();
    assert_eq!(shown["rows"].as_array().unwrap().len(), 3, "{shown}");
    for canary in CANARIES {
        assert!(!shown.to_string().contains(canary), "{canary}: {shown}");
    }
    let line = "mask preview RULES --from shop --table public.customers --rows 3 --show-originals";
    let both = run(&bed, line).unwrap();
    assert!(both.to_string().contains("zyx.secret@"), "{both}");
    for (masked, both) in
        shown["rows"].as_array().unwrap().iter().zip(both["rows"].as_array().unwrap())
    {
        assert_eq!(masked[0]["after"], both[0]["after"]);
    }
    is_refused(&bed, "mask preview RULES --from shop --table nowhere", "not_found");
    is_refused(&bed, "mask preview RULES --from shop --table visits", "invalid_input");

    let proposed = found["rules"].as_str().unwrap();
    std::fs::write(rules(&bed), proposed).unwrap();
    run(&bed, "mask check RULES --from shop").unwrap();
    // What is there to begin with is a ruleset, too.
    run(&bed, "mask init RULES --force").unwrap();
    run(&bed, "mask preview RULES --from shop --table customers").unwrap();
}
