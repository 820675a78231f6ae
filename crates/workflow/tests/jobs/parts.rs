//! Several objects that a job does the same to.

use crate::world::{PATIENCE, scratch};
use offshoot_catalog::{Catalog, JobState, Keyring, SecretKey, Subject};
use offshoot_os::SystemClock;
use offshoot_types::Failure;
use offshoot_workflow::{Key, Runner, StepContext, Submission, Workflow};
use std::sync::Arc;

const SEEN: Key<String> = Key::new("seen");

type Context = StepContext<()>;

/// The step for one: what it has seen is its own.
fn see(context: &Context) -> Result<(), Failure> {
    assert_eq!(context.get(SEEN)?, None, "of another one");
    context.set(SEEN, &context.input::<String>()?)
}

fn each(context: &Context, run: fn(&Context) -> Result<(), Failure>) -> Result<(), Failure> {
    let all: Vec<String> = context.input()?;
    all.iter().try_for_each(|one| run(&context.part(one, one)?))
}

fn check(context: &Context) -> Result<(), Failure> {
    assert_eq!(context.get(SEEN)?, None, "nothing of all");
    each(context, |part| {
        assert_eq!(part.need(SEEN)?, part.input::<String>()?);
        let below = part.part("below", &7)?;
        assert_eq!((below.input::<u32>()?, below.get(SEEN)?), (7, None));
        Ok(())
    })
}

#[test]
fn each_has_an_input_and_what_it_stores_to_itself() {
    let dir = scratch();
    let keys = Keyring::from(SecretKey::random());
    let catalog = Arc::new(Catalog::open(&dir.path().join("catalog.db"), keys).expect("open"));
    let workflow = Workflow::new("several")
        .step_without_undo("see", |context| each(context, see))
        .step_without_undo("check", check);
    let runner = Runner::new(catalog, Arc::new(SystemClock), vec![workflow]);
    let input = vec!["shop".to_owned(), "orders".to_owned()];
    let submission = Submission::new("several", Subject::named("both"), &input);
    let id = runner.submit(&Arc::new(()), submission).expect("submitted");
    let job = runner.wait(id, PATIENCE).expect("known");
    assert_eq!(job.state, JobState::Done, "{job:?}");
    assert_eq!(job.bag["orders/seen"], "orders");
}
