//! The jobs.

use crate::bed::Bed;
use serde_json::Value;

/// A job whose steps are killed and fail.
#[derive(Clone, Copy)]
pub struct Case {
    /// What is done once.
    pub setup: &'static [&'static str],
    /// What is done before, each time.
    pub before: &'static [&'static str],
    pub action: &'static str,
    /// Makes a finished one undone, so that the next one begins as the first did.
    pub after: &'static [&'static str],
    /// Whether it was done, by what the engine then shows.
    pub is_done: fn(&Value) -> bool,
    /// What must work when it was done.
    pub works: &'static [&'static str],
    /// Whether the engine begins it by itself, again and again until it is done.
    pub by_itself: bool,
    /// Whether the pool is encrypted.
    pub encrypted: bool,
}

const PLAIN: Case = Case {
    setup: &["link shop", "provision dev shop", "put dev own change", "rest"],
    before: &[],
    action: "",
    after: &[],
    is_done: |_| true,
    works: &["put dev it lives"],
    by_itself: false,
    encrypted: false,
};

const REFRESHED: &[&str] = &["put dev more changes", "refresh dev", "same dev"];

fn is_running(shown: &Value) -> bool {
    shown["vdbs"]["dev"] == "Running"
}

fn is_active(shown: &Value) -> bool {
    shown["dsources"]["shop"] == "Active"
}

pub const LINK: Case = Case {
    setup: &[],
    action: "link shop",
    after: &["rest", "unlink shop"],
    is_done: is_active,
    works: &["sync shop", "provision probe shop", "same probe", "delete probe"],
    ..PLAIN
};

pub const UNLINK: Case = Case {
    setup: &[],
    before: &["link shop", "rest"],
    action: "unlink shop",
    is_done: |shown| shown["dsources"]["shop"].is_null(),
    works: &[],
    ..PLAIN
};

pub const RESYNC: Case = Case {
    before: &["break shop"],
    action: "sync shop",
    is_done: is_active,
    works: REFRESHED,
    ..PLAIN
};

pub const SYNC: Case = Case { action: "sync shop", works: REFRESHED, ..PLAIN };

pub const SNAPSHOT: Case = Case { action: "snapshot shop", works: REFRESHED, ..PLAIN };

pub const SNAPSHOT_OF_VDB: Case = Case { action: "snapshot dev", works: REFRESHED, ..PLAIN };

pub const SNAPSHOT_DELETE: Case = Case {
    before: &["snapshot shop", "snapshot shop"],
    action: "forget shop",
    works: REFRESHED,
    ..PLAIN
};

pub const PROOF: Case = Case { action: "prove shop", works: REFRESHED, by_itself: true, ..PLAIN };

pub const SET: Case = Case {
    action: "move shop",
    is_done: is_active,
    works: &["sync shop", "refresh dev", "same dev"],
    ..PLAIN
};

pub const PAUSE: Case = Case {
    action: "pause shop",
    after: &["resume shop", "sync shop"],
    is_done: |shown| !is_active(shown),
    ..PLAIN
};

pub const RESUME: Case = Case {
    before: &["pause shop"],
    action: "resume shop",
    is_done: is_active,
    works: &["sync shop", "refresh dev", "same dev"],
    ..PLAIN
};

pub const PROVISION: Case = Case {
    setup: &["link shop", "rest"],
    action: "provision dev shop",
    after: &["delete dev"],
    is_done: is_running,
    works: &["same dev"],
    ..PLAIN
};

pub const DELETE: Case = Case {
    setup: &["link shop", "rest"],
    before: &["provision dev shop"],
    action: "delete dev",
    is_done: |shown| shown["vdbs"]["dev"].is_null(),
    works: &[],
    ..PLAIN
};

pub const REFRESH: Case = Case {
    before: &["put dev own change"],
    action: "refresh dev",
    is_done: is_running,
    works: &["same dev"],
    ..PLAIN
};

pub const ADJUST: Case =
    Case { action: "adjust dev", is_done: is_running, works: REFRESHED, ..PLAIN };

pub const REPARENT: Case = Case {
    before: &["unlink shop", "link shop", "rest"],
    action: "adopt dev shop",
    is_done: is_running,
    works: REFRESHED,
    ..PLAIN
};

pub const REWIND: Case = Case {
    setup: &["link shop", "provision dev shop", "snapshot dev", "rest"],
    before: &["put dev own change"],
    action: "rewind dev",
    is_done: is_running,
    works: &["same dev"],
    ..PLAIN
};

pub const REWIND_UNDO: Case = Case {
    setup: &["link shop", "provision dev shop", "snapshot dev", "rest"],
    before: &["put dev own change", "rewind dev"],
    action: "unwind dev",
    is_done: is_running,
    works: REFRESHED,
    ..PLAIN
};

pub const STOP: Case = Case {
    action: "stop dev",
    after: &["start dev"],
    is_done: |shown| shown["vdbs"]["dev"] == "Stopped",
    works: &[],
    ..PLAIN
};

pub const RESET_PASSWORD: Case =
    Case { action: "password dev", is_done: is_running, works: REFRESHED, ..PLAIN };

pub const START: Case = Case {
    before: &["stop dev"],
    action: "start dev",
    is_done: is_running,
    works: REFRESHED,
    ..PLAIN
};

/// Killed, it dies as soon as an engine opens: that starts VDBs by the same job.
pub const REVIVE: Case =
    Case { action: "revive dev", is_done: is_running, works: REFRESHED, by_itself: true, ..PLAIN };

pub const BOOKMARK: Case = Case {
    before: &["grow"],
    action: "mark then shop",
    after: &["unmark then"],
    is_done: |shown| shown["bookmarks"][0] == "then",
    works: REFRESHED,
    ..PLAIN
};

pub const BOOKMARK_DELETE: Case = Case {
    before: &["grow", "mark then shop"],
    action: "unmark then",
    is_done: |shown| shown["bookmarks"][0].is_null(),
    works: REFRESHED,
    ..PLAIN
};

/// The key that is masked with stays when masking is undone.
const MASKED_BEFORE: &[&str] = &["link shop", "mask first shop", "unlink first", "rest"];

pub const MASK: Case = Case {
    setup: MASKED_BEFORE,
    action: "mask safe shop",
    after: &["unlink safe"],
    is_done: |shown| shown["dsources"]["safe"] == "Masked",
    works: &["provision probe safe", "masked probe", "delete probe"],
    ..PLAIN
};

pub const MASK_AGAIN: Case = Case {
    setup: &["link shop", "mask safe shop", "provision dev safe", "rest"],
    before: &["grow"],
    action: "mask safe shop",
    is_done: |shown| shown["dsources"]["safe"] == "Masked",
    works: &["refresh dev", "masked dev"],
    ..PLAIN
};

pub const MASK_CHECK: Case =
    Case { setup: MASKED_BEFORE, action: "mask-check shop", works: &["sync shop"], ..PLAIN };

/// One source under two names, and VDBs of both.
const PAIR: &[&str] =
    &["link shop", "link copy", "group pair shop copy", "provision-all all pair", "rest"];

const SAME_PAIR: &[&str] = &["same all-shop", "same all-copy"];

fn runs_pair(shown: &Value) -> bool {
    ["all-shop", "all-copy"].iter().all(|name| shown["vdbs"][name] == "Running")
}

pub const GROUP_PROVISION: Case = Case {
    setup: &["link shop", "link copy", "group pair shop copy", "rest"],
    action: "provision-all all pair",
    after: &["delete-all all"],
    is_done: runs_pair,
    works: SAME_PAIR,
    ..PLAIN
};

pub const GROUP_REFRESH: Case = Case {
    setup: PAIR,
    before: &["put all-shop own change", "put all-copy own change"],
    action: "refresh-all all",
    is_done: runs_pair,
    works: SAME_PAIR,
    ..PLAIN
};

pub const GROUP_REWIND: Case = Case {
    setup: &[
        "link shop",
        "link copy",
        "group pair shop copy",
        "provision-all all pair",
        "mark-all all then",
        "rest",
    ],
    before: &["put all-shop own change"],
    action: "rewind-all all then",
    is_done: runs_pair,
    works: SAME_PAIR,
    ..PLAIN
};

pub const GROUP_START: Case = Case {
    setup: PAIR,
    before: &["stop-all all"],
    action: "start-all all",
    is_done: runs_pair,
    works: SAME_PAIR,
    ..PLAIN
};

pub const GROUP_DELETE: Case = Case {
    setup: &["link shop", "link copy", "group pair shop copy", "rest"],
    before: &["provision-all all pair"],
    action: "delete-all all",
    is_done: |shown| shown["vdbs"]["all-shop"].is_null() && shown["vdbs"]["all-copy"].is_null(),
    works: &[],
    ..PLAIN
};
pub const MASK_DISCOVER: Case =
    Case { setup: MASKED_BEFORE, action: "mask-discover shop", works: &["sync shop"], ..PLAIN };

pub const MASK_PREVIEW: Case =
    Case { setup: MASKED_BEFORE, action: "mask-preview shop", works: &["sync shop"], ..PLAIN };

pub const BISECT: Case = Case {
    setup: &["link shop", "provision dev shop", "rest"],
    before: &["grow"],
    action: "bisect shop after bulk",
    works: REFRESHED,
    ..PLAIN
};

/// The engine takes in what it has exported itself, as another one's.
pub const IMPORT: Case = Case {
    setup: &["link shop", "rest", "export shop"],
    action: "import west",
    after: &["unlink west/shop"],
    is_done: |shown| shown["dsources"]["west/shop"] == "Replica",
    works: &["provision probe west/shop", "same probe", "delete probe"],
    ..PLAIN
};

pub const IMPORT_AGAIN: Case = Case {
    setup: &["link shop", "rest", "export shop", "import west", "provision dev west/shop", "rest"],
    before: &["grow", "snapshot shop", "rest", "export shop"],
    action: "import west",
    is_done: |shown| shown["dsources"]["west/shop"] == "Replica",
    works: &["refresh dev", "same dev"],
    ..PLAIN
};

/// It takes over from itself, as it were: the copy gets another name.
pub const FAILOVER: Case = Case {
    setup: &["link shop", "rest", "export shop"],
    before: &["import west", "rest"],
    action: "failover west shop=ours",
    after: &["unlink ours"],
    is_done: |shown| {
        shown["dsources"]["west/shop"].is_null() && shown["dsources"]["ours"] == "Failed"
    },
    works: &["provision probe ours", "same probe", "delete probe"],
    ..PLAIN
};

/// What was taken over is told how its source is reached, and goes on from there.
pub const TAKE_UP: Case = Case {
    setup: &["link shop", "rest"],
    before: &[
        "export shop",
        "import west",
        "failover west shop=ours",
        "provision dev ours",
        "rest",
    ],
    action: "move ours",
    after: &["delete dev", "unlink ours"],
    is_done: |shown| shown["dsources"]["ours"] == "Active",
    works: &["grow", "sync ours", "snapshot ours", "refresh dev", "same dev"],
    ..PLAIN
};

pub const RETENTION: Case =
    Case { before: &["keep shop"], action: "retain shop", works: REFRESHED, ..PLAIN };

pub const RETENTION_OF_VDB: Case =
    Case { before: &["keep dev"], action: "retain dev", ..RETENTION };

pub const RECLAIM: Case = Case { action: "reclaim", works: REFRESHED, ..PLAIN };

pub const SCRUB: Case = Case { action: "scrub", works: REFRESHED, ..PLAIN };

/// What was sealed with the old key opens: the password of the source, and that of a VDB.
const SECRETS: &[&str] =
    &["sync shop", "put dev more changes", "refresh dev", "password dev", "put dev it lives"];

pub const ROTATE: Case = Case { action: "rotate", works: SECRETS, ..PLAIN };

pub const ROTATE_AND_FORGET: Case =
    Case { action: "rotate forget", works: SECRETS, encrypted: true, ..PLAIN };

/// Puts everything in its place; the kind of the job, and its steps.
pub fn prepare(bed: &Bed, case: &Case) -> (String, Vec<String>) {
    let begin: Vec<&str> = [case.setup, case.before, &[case.action]].concat();
    let answers = bed.answers(&[&begin, case.after].concat());
    let job = &answers[begin.len() - 1];
    let steps = job["steps"].as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned());
    (job["job"].as_str().unwrap().to_owned(), steps.collect())
}

/// A test for each case, by a function that takes it.
macro_rules! each_case {
    ($run:ident) => {
        each_case! { $run:
            link: LINK,
            unlink: UNLINK,
            resync: RESYNC,
            sync: SYNC,
            snapshot: SNAPSHOT,
            snapshot_of_a_vdb: SNAPSHOT_OF_VDB,
            snapshot_deletion: SNAPSHOT_DELETE,
            proof: PROOF,
            set: SET,
            pause: PAUSE,
            resume: RESUME,
            provision: PROVISION,
            deletion: DELETE,
            refresh: REFRESH,
            adjustment: ADJUST,
            reparent: REPARENT,
            rewind: REWIND,
            rewind_taken_back: REWIND_UNDO,
            stop: STOP,
            password: RESET_PASSWORD,
            start: START,
            revival: REVIVE,
            bookmark: BOOKMARK,
            bookmark_deletion: BOOKMARK_DELETE,
            masking: MASK,
            masking_again: MASK_AGAIN,
            rules_held_against_a_dsource: MASK_CHECK,
            vdbs_of_a_group: GROUP_PROVISION,
            refresh_of_a_group: GROUP_REFRESH,
            rewind_of_a_group: GROUP_REWIND,
            start_of_a_group: GROUP_START,
            deletion_of_a_group: GROUP_DELETE,
            what_to_mask: MASK_DISCOVER,
            masked_rows_to_look_at: MASK_PREVIEW,
            commit_that_changed_an_answer: BISECT,
            import: IMPORT,
            import_again: IMPORT_AGAIN,
            failover: FAILOVER,
            following_after_a_failover: TAKE_UP,
            retention: RETENTION,
            retention_of_a_vdb: RETENTION_OF_VDB,
            reclaim: RECLAIM,
            scrub: SCRUB,
            another_key: ROTATE,
            another_key_alone: ROTATE_AND_FORGET,
        }
    };
    ($run:ident: $($name:ident: $case:ident,)+) => {
        $(
            #[test]
            fn $name() {
                $run(&$crate::case::$case);
            }
        )+
    };
}
pub(crate) use each_case;
