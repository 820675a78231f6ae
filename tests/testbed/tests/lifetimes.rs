//! What a VDB's users say about it, how long it stays, and what of its server can be changed.
#![allow(clippy::unwrap_used)]

use offshoot_api::Vdb;
use offshoot_os::process::{Sink, Spec};
use offshoot_rig::Database;
use offshoot_testbed::{PATIENCE, Testbed, binary, wait_until};

fn set(bed: &Testbed, line: &str) -> Vdb {
    let words = ["vdb", "set"].into_iter().chain(line.split(' '));
    serde_json::from_value(bed.engine.command(words).unwrap()).unwrap()
}

fn refused(bed: &Testbed, line: &str) -> String {
    bed.refused(&line.split(' ').collect::<Vec<_>>()).code
}

#[test]
fn vdbs_say_what_they_are_for_and_expire() {
    let bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    let dev = bed.provision("dev", "shop", &["--label", "pr=17", "--expires", "1h"]).unwrap();
    assert_eq!(dev.labels["pr"], "17");
    assert!(dev.expires_at.is_some() && dev.memory_bytes.is_none());

    // Nothing of this ends a session.
    let session = Database::connect(&dev.uri).unwrap();
    let dev = set(&bed, "dev --expires never --label team=qa --unlabel pr --protect");
    assert_eq!((dev.labels.len(), dev.labels["team"].as_str()), (1, "qa"));
    assert!(dev.protected && dev.expires_at.is_none());
    assert_eq!(session.number("SELECT 1").unwrap(), 1);
    for what in ["vdb delete dev --yes", "vdb refresh dev", "vdb rewind dev --undo"] {
        assert_eq!(refused(&bed, what), "wrong_state", "{what}");
    }
    assert_eq!(refused(&bed, "vdb set dev --expires 1h"), "invalid_input");
    assert_eq!(refused(&bed, "vdb set nobody --expires 1h"), "not_found");
    set(&bed, "dev --unprotect");
    bed.engine.command(["vdb", "refresh", "dev"]).unwrap();
    assert_eq!(bed.vdb("dev").unwrap().labels["team"], "qa", "a refresh leaves it");

    // Its time is kept over a restart of the engine.
    bed.provision("brief", "shop", &["--expires", "3s"]).unwrap();
    wait_until("its end", PATIENCE, || Ok(bed.vdb("brief").is_err())).unwrap();
    assert_eq!(bed.vdb("dev").unwrap().name, "dev");
}

#[test]
fn settings_and_memory_change_with_a_restart_or_not_at_all() {
    let mut bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    bed.provision("dev", "shop", &["--set", "work_mem=5MB"]).unwrap();
    let shown = |name: &str| bed.open("dev").unwrap().text(&format!("SHOW {name}")).unwrap();
    bed.open("dev").unwrap().execute("CREATE TABLE kept AS SELECT 1 AS n").unwrap();
    assert_eq!(shown("work_mem"), "5MB");
    let dev = set(&bed, "dev --set work_mem=6MB --set statement_timeout=77s --memory 512MiB");
    assert_eq!(dev.memory_bytes, Some(512 << 20));
    assert_eq!((shown("work_mem").as_str(), shown("statement_timeout").as_str()), ("6MB", "77s"));
    set(&bed, "dev --unset work_mem --memory none");
    assert_ne!(shown("work_mem"), "6MB");

    // What its server does not start with leaves it as it was.
    for bad in ["work_mem=lots", "no_such_thing=1", "port=1"] {
        let refusal = refused(&bed, &format!("vdb set dev --set {bad}"));
        assert_eq!(refusal, "invalid_input", "{bad}");
    }
    assert_eq!(refused(&bed, "vdb set dev --memory 1KiB"), "invalid_input");
    let dev = bed.vdb("dev").unwrap();
    assert_eq!(
        dev.settings.into_iter().collect::<Vec<_>>(),
        [("statement_timeout".to_owned(), "77s".to_owned())]
    );

    // A stopped one starts with what was set meanwhile; all of it is there after a kill.
    bed.engine.command(["vdb", "stop", "dev"]).unwrap();
    set(&bed, "dev --set work_mem=7MB");
    bed.engine.command(["vdb", "start", "dev"]).unwrap();
    assert_eq!(shown("work_mem"), "7MB");
    bed.engine.kill_and_restart().unwrap();
    let shown = |name: &str| bed.open("dev").unwrap().text(&format!("SHOW {name}")).unwrap();
    assert_eq!(shown("work_mem"), "7MB");
    assert_eq!(bed.open("dev").unwrap().number("SELECT n FROM kept").unwrap(), 1);

    // Its log has what its users did.
    let marked = bed.open("dev").unwrap().execute("SELECT 'said to the log'::int");
    assert!(marked.is_err());
    let log = bed.engine.command(["vdb", "logs", "dev", "--tail", "20"]).unwrap();
    let text = log["text"].as_str().unwrap();
    assert!(text.contains("said to the log") && text.lines().count() <= 20, "{text}");
}

#[test]
fn a_log_is_followed_over_the_engine_s_death() {
    let mut bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    bed.provision("dev", "shop", &[]).unwrap();
    let seen = bed.scratch.path().join("seen");
    let follow = ["vdb", "logs", "dev", "--follow", "--tail", "0", "--pool"];
    let spec = Spec::new(binary()).args(follow).arg(bed.engine.pool());
    let mut reader = spec.stdout(Sink::File(seen.clone())).die_with_parent(true).spawn().unwrap();
    let mut said = String::new();
    for number in 0..3 {
        let mark = format!("mark {number} of the log");
        assert!(bed.open("dev").unwrap().execute(&format!("SELECT '{mark}'::int")).is_err());
        wait_until("it is followed", PATIENCE, || {
            said = std::fs::read_to_string(&seen)?;
            Ok(said.contains(&mark))
        })
        .unwrap();
        bed.engine.kill_and_restart().unwrap();
    }
    // The error, and the statement: each once.
    for number in 0..3 {
        assert_eq!(said.matches(&format!("mark {number} of the log")).count(), 2, "{said}");
    }
    let log = bed.engine.command(["vdb", "logs", "dev"]).unwrap().to_string();
    assert!(log.contains("mark 0") && !log.contains("external PID file"), "{log}");
    assert_eq!(refused(&bed, "vdb logs dev --follow"), "invalid_input", "one document of JSON");
    bed.engine.command(["vdb", "delete", "dev", "--yes"]).unwrap();
    let ended = reader.wait_timeout(PATIENCE).unwrap().expect("a log that is gone has an end");
    assert_eq!(ended.code(), Some(1));
}

#[test]
fn lists_are_chosen_from_and_ordered() {
    let bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    bed.provision("a", "shop", &["--label", "team=qa"]).unwrap();
    bed.provision("b", "shop", &["--label", "team=dev", "--label", "pr=1"]).unwrap();
    bed.provision("c", "a", &[]).unwrap();
    bed.engine.command(["vdb", "stop", "b"]).unwrap();
    bed.engine.command(["bookmark", "create", "mark", "--on", "a"]).unwrap();
    let names = |line: &str, of: &str, field: &str| {
        let list = bed.engine.command(line.split(' ')).unwrap();
        let all = list[of].as_array().unwrap().iter();
        all.map(|one| one[field].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    for (options, wanted) in [
        ("", "a b c"),
        (" --label team", "a b"),
        (" --label team=dev --label pr", "b"),
        (" --label team=ops", ""),
        (" --parent a", "c"),
        (" --owner nobody", ""),
        (" --state stopped", "b"),
        (" --state stopped,running --sort -name --limit 2", "c b"),
        (" --sort created-at --limit 1 --columns name,labels", "a"),
    ] {
        assert_eq!(names(&format!("vdb list{options}"), "vdbs", "name"), wanted, "{options}");
    }
    assert_eq!(names("dsource list --state active", "dsources", "name"), "shop");
    assert_eq!(names("dsource list --state paused", "dsources", "name"), "");
    assert_eq!(names("job list --on b --state done --kind vdb_stop", "jobs", "object"), "b");
    assert_eq!(names("bookmark list --on a", "bookmarks", "name"), "mark");
    assert_eq!(names("bookmark list --on shop", "bookmarks", "name"), "");
    assert_eq!(names("snapshot list shop --kind link --limit 1", "snapshots", "object"), "shop");
    assert_eq!(refused(&bed, "vdb list --sort age"), "invalid_input");
    assert_eq!(refused(&bed, "job list --columns job,age"), "invalid_input");
}

#[test]
fn a_vdb_gets_another_name_and_another_port() {
    let bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    bed.link("other").unwrap();
    let dev = bed.provision("dev", "shop", &["--gateway"]).unwrap();
    bed.provision("child", "dev", &[]).unwrap();
    bed.engine.command(["template", "create", "of-dev", "--from", "dev"]).unwrap();

    // Its sessions stay, also those that its gateway parks afterwards; what comes from it knows it by the new name.
    let session = Database::connect(&dev.uri).unwrap();
    session.execute("SET work_mem = '7MB'").unwrap();
    let main = set(&bed, "dev --name main");
    assert_eq!((main.name.as_str(), main.id, main.port), ("main", dev.id, dev.port));
    assert_eq!(refused(&bed, "vdb show dev"), "not_found");
    bed.engine.command(["vdb", "refresh", "main"]).unwrap();
    assert_eq!(session.text("SHOW work_mem").unwrap(), "7MB");
    assert_eq!(bed.vdb("child").unwrap().parent, "main");
    bed.engine.command(["vdb", "refresh", "child"]).unwrap();
    let made = bed.engine.command(["vdb", "provision", "more", "--template", "of-dev"]).unwrap();
    assert_eq!(made["parent"], "main");
    bed.provision("dev", "shop", &[]).unwrap();

    // A name that is taken, one that is none, and one that stands for the VDB elsewhere.
    assert_eq!(refused(&bed, "vdb set main --name dev"), "already_exists");
    assert_eq!(refused(&bed, "vdb set main --name shop"), "already_exists");
    assert_eq!(refused(&bed, "vdb set main --name A/b"), "invalid_input");
    bed.engine.command(["group", "create", "both", "--members", "shop,other"]).unwrap();
    bed.engine.command(["group", "provision", "trial", "--group", "both"]).unwrap();
    assert_eq!(refused(&bed, "vdb set trial-shop --name alone"), "wrong_state");
    set(&bed, "main --name main");

    // The port: that of nobody else.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for name in ["main", "child"] {
        let before = bed.vdb(name).unwrap().port;
        let taken = bed.vdb("more").unwrap().port;
        let line = format!("vdb set {name} --port {taken}");
        assert_eq!(refused(&bed, &line), "already_exists");
        let moved = set(&bed, &format!("{name} --port {free}"));
        assert_eq!(moved.port, free);
        assert_eq!(Database::connect(&moved.uri).unwrap().number("SELECT 1").unwrap(), 1);
        assert!(
            std::net::TcpStream::connect(("127.0.0.1", before)).is_err(),
            "nobody is left there"
        );
        assert_eq!(set(&bed, &format!("{name} --port {before}")).port, before);
    }
    bed.engine.command(["vdb", "stop", "child"]).unwrap();
    set(&bed, &format!("child --port {free}"));
    bed.engine.command(["vdb", "start", "child"]).unwrap();
    assert!(Database::connect(&bed.vdb("child").unwrap().uri).is_ok());
}
