//! Steps that fail, before their work and after it, in an engine that lives on.

use crate::bed::Bed;
use crate::case::{Case, each_case, prepare};

/// Each step fails at both places; the engine then finds that nothing of the job is left (see the action `fail`), and
/// that it can be done.
fn fail_at_each_step(case: &Case) {
    let mut bed = Bed::new();
    bed.encrypted = case.encrypted;
    let (kind, steps) = prepare(&bed, case);
    let mut actions: Vec<String> = Vec::new();
    for step in &steps {
        for point in ["before", "after"] {
            actions.extend(case.before.iter().map(|&one| one.to_owned()));
            actions.push(format!("fail {kind}/{step}:{point} {}", case.action));
            let behind = case.works.iter().chain(case.after);
            actions.extend(behind.map(|&one| one.to_owned()));
        }
    }
    actions.push("empty".to_owned());
    let answers = bed.answers(&actions);
    let undone = answers.iter().filter(|one| one["done"] == false).count();
    println!("{kind}: {} steps failed twice, undone {undone} times, else done", steps.len());
    bed.check_closed();
}

each_case!(fail_at_each_step);
