//! Engines that die while VDBs serve: the next one continues with them.

use crate::bed::{Bed, told};
use crate::case::{self, Case, prepare};
use crate::killed::kill_twice;
use offshoot_toy::Client;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often the engine dies in a row.
const DEATHS: usize = 5;

#[test]
fn a_vdb_serves_on_while_engine_after_engine_dies() {
    let mut bed = Bed::new();
    bed.keeper = true;
    let begin = ["link shop", "provision dev shop", "rest", "remember", "uri dev", "abort"];
    let uri = told(&bed.run(None, &begin)).pop().unwrap();
    let uri = uri.as_str().unwrap();
    let server = bed.server_of("dev");
    let stop = AtomicBool::new(false);
    let commits = std::thread::scope(|scope| {
        // One client, whose commits wait while there is no engine; none of them fails.
        let client = scope.spawn(|| {
            let (mut client, mut number) = (Client::open(uri).unwrap(), 0);
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                client.ask(&format!("SET last {number}")).unwrap();
            }
            number
        });
        for death in 0..DEATHS {
            // Some die as soon as they are open, others once all is at rest.
            let actions = if death % 2 == 0 { &["abort"][..] } else { &["rest", "abort"] };
            assert!(!bed.run(None, actions).success());
            assert_eq!(bed.server_of("dev"), server, "it was started again");
        }
        stop.store(true, Ordering::Relaxed);
        // Its last commit is answered by this one.
        let answers = bed.answers(&["rest", "show dev last"]);
        let commits = client.join().unwrap();
        assert_eq!(answers[1], commits.to_string());
        commits
    });
    println!("{commits} commits while {DEATHS} engines died");
    bed.check_closed();
}

/// While jobs of another VDB die at each step, and the engines that take them up, a VDB serves on.
fn go_on_beside(case: &Case) {
    let mut bed = Bed::new();
    let (kind, steps) = prepare(&bed, case);
    bed.keeper = true;
    assert!(!bed.run(None, &["provision other shop", "rest", "abort"]).success());
    let server = bed.server_of("other");
    for (at, step) in steps.iter().enumerate() {
        let (place, undo) =
            (format!("{kind}/{step}:after"), format!("{kind}/{}:after-undo", steps[at / 2]));
        kill_twice(&bed, case, [&place, &undo], &["put other step done", "abort"]);
        assert_eq!(bed.server_of("other"), server, "{place}: it was started again");
    }
    bed.answers(&["rest"]);
    bed.check_closed();
}

#[test]
fn a_vdb_serves_on_beside_provisions_that_die() {
    go_on_beside(&case::PROVISION);
}

#[test]
fn a_vdb_serves_on_beside_refreshes_that_die() {
    go_on_beside(&case::REFRESH);
}

#[test]
fn a_vdb_serves_on_beside_copies_that_die() {
    go_on_beside(&case::RESYNC);
}
