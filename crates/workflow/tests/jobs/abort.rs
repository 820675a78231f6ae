//! A process that truly dies, at every step, and its successor.

use offshoot_catalog::{Catalog, JobState, Subject};
use offshoot_os::SystemClock;
use offshoot_types::Failure;
use offshoot_workflow::{AbortAt, Runner, StepContext, Submission, Workflow};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::world::{PATIENCE, keys, scratch};

/// Tells the process where to die: `KIND/STEP:POINT`.
const CRASH_AT: &str = "OFFSHOOT_TEST_CRASH_AT";
const DIRECTORY: &str = "OFFSHOOT_TEST_DIRECTORY";

/// The application: a directory in which each step makes a file.
struct Files(PathBuf);

fn make(ctx: &StepContext<Files>, name: &str) -> Result<(), Failure> {
    std::fs::write(ctx.app().0.join(name), b"").map_err(|e| Failure::internal(e.to_string()))
}

fn remove(ctx: &StepContext<Files>, name: &str) -> Result<(), Failure> {
    match std::fs::remove_file(ctx.app().0.join(name)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::internal(error.to_string()))
        }
        _ => Ok(()),
    }
}

fn workflow() -> Workflow<Files> {
    Workflow::new("make")
        .step("one", |ctx| make(ctx, "1"), |ctx| remove(ctx, "1"))
        .step("two", |ctx| make(ctx, "2"), |ctx| remove(ctx, "2"))
        .point_of_no_return()
        .step("three", |ctx| make(ctx, "3"), |_| Ok(()))
}

fn files(dir: &Path) -> usize {
    std::fs::read_dir(dir.join("files")).expect("listed").count()
}

#[test]
fn a_killed_process_leaves_all_or_nothing() {
    if let Ok(at) = std::env::var(CRASH_AT) {
        die(&at);
    }
    for (at, state, left) in [
        ("make/one:before", JobState::Failed, 0),
        ("make/one:after", JobState::Failed, 0),
        ("make/two:before", JobState::Failed, 0),
        ("make/two:after", JobState::Failed, 0),
        ("make/three:before", JobState::Done, 3),
        ("make/three:after", JobState::Done, 3),
    ] {
        let dir = scratch();
        std::fs::create_dir(dir.path().join("files")).expect("a directory");
        let child = Command::new(std::env::current_exe().expect("this test"))
            .args(["abort::a_killed_process_leaves_all_or_nothing", "--exact", "--test-threads=1"])
            .env(CRASH_AT, at)
            .env(DIRECTORY, dir.path())
            .output()
            .expect("it ran");
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(child.status.signal(), Some(6), "{at}: {child:?}");

        let catalog =
            Catalog::open(&dir.path().join("catalog.db"), keys()).expect("the catalog opens");
        let app = Arc::new(Files(dir.path().join("files")));
        let runner = Runner::new(Arc::new(catalog), Arc::new(SystemClock), vec![workflow()]);
        let ids = runner.resume(&app).expect("resumed");
        assert_eq!(ids.len(), 1, "{at}");
        let job = runner.wait(ids[0], PATIENCE).expect("known");
        assert_eq!((job.state, job.settled), (state, true), "{at}");
        assert_eq!(files(dir.path()), left, "{at}");
    }
}

/// Runs the job until it dies; returns only if it does not.
fn die(at: &str) {
    let dir = PathBuf::from(std::env::var(DIRECTORY).expect("a directory is named"));
    let catalog = Catalog::open(&dir.join("catalog.db"), keys()).expect("the catalog opens");
    let app = Arc::new(Files(dir.join("files")));
    let runner = Runner::with_crash_points(
        Arc::new(catalog),
        Arc::new(SystemClock),
        vec![workflow()],
        Arc::new(AbortAt::parse(at).expect("a crash point")),
    );
    let id = runner
        .submit(&app, Submission::new("make", Subject::named("files"), &()).exclusive("files"))
        .expect("submitted");
    let job = runner.wait(id, PATIENCE);
    panic!("it lives on: {job:?}");
}
