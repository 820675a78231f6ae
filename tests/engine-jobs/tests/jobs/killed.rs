//! Engines that die at a step.

use crate::bed::{Bed, answers, told};
use crate::case::{Case, each_case, prepare};

/// Each step is killed when it has run and that is not recorded yet, the first one also before it, and so is the engine that finishes
/// or undoes it. With `OFFSHOOT_TEST_CRASHES=all` each one also before it, which takes twice as long.
fn kill_at_each_step(case: &Case) {
    let mut bed = Bed::new();
    bed.encrypted = case.encrypted;
    let (kind, steps) = prepare(&bed, case);
    bed.check_closed();
    let all = std::env::var("OFFSHOOT_TEST_CRASHES").is_ok_and(|text| text == "all");
    let mut done = 0;
    for (at, step) in steps.iter().enumerate() {
        let before = (all || at == 0).then_some("before");
        for point in before.into_iter().chain(["after"]) {
            // The next engine dies, too, where it undoes that: a step that was begun, or one before.
            let undo = format!("{kind}/{}:{point}-undo", steps[at / 2]);
            let place = format!("{kind}/{step}:{point}");
            done += usize::from(kill_twice(&bed, case, [&place, &undo], &[]));
            bed.check_closed();
        }
    }
    println!("{kind}: {} steps, done in the end {done} times, else undone", steps.len());
}

/// Has the job die at one place, and the engine that takes it up at another one; whether the job was done then, or undone,
/// in which case it is done again. The last engine ends with more actions.
pub fn kill_twice(bed: &Bed, case: &Case, places: [&str; 2], more: &[&str]) -> bool {
    let [first, second] = places;
    let kind = first.split('/').next().unwrap();
    let begin = [case.before, &["remember", case.action]].concat();
    let output = bed.run(Some(first), &begin);
    let (text, log) = (output.stdout_text(), output.stderr_text());
    assert!(!output.success() && !text.contains("failed"), "{first}: {text}\n{log}");
    let again = match case.by_itself {
        true => format!("await {kind}"),
        false => format!("again {kind} {}", case.action),
    };
    let finish = [&[again.as_str()], case.works, case.after, more].concat();
    let mut output = bed.run(Some(second), &finish);
    if !output.success() && output.stdout_text().is_empty() {
        bed.check_store();
        output = bed.run(None, &finish);
    }
    println!("{first}");
    let answers = match more.last() {
        Some(&"abort") => told(&output),
        _ => answers(&output),
    };
    assert!(answers.len() + usize::from(!output.success()) == finish.len(), "{first}: {answers:?}");
    assert!((case.is_done)(&answers[0]), "{first}: {}", answers[0]);
    answers[0]["done"].as_bool().unwrap()
}

each_case!(kill_at_each_step);
