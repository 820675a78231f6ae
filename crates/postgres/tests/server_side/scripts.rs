//! Scripts of users in VDBs, on every major version at hand.

use std::path::PathBuf;
use std::time::Duration;

use offshoot_connector::{Script, ScriptCourse};
use offshoot_domain::Secret;
use offshoot_postgres::script::{self, Reach};
use offshoot_postgres::server::{self, StopMode};
use offshoot_postgres::session::Session;
use offshoot_types::{ErrorKind, Failure};

use crate::cluster::*;
use crate::rights::{NOTHING, Vdb, image};

/// Notes the course, and ends it where that is asked for.
#[derive(Default)]
struct Course {
    heard: Vec<String>,
    marks: Vec<String>,
    /// The script is to end before its transaction is committed.
    stops_at_commit: bool,
    /// The script is to end at the first look.
    stops: bool,
}

impl ScriptCourse for Course {
    fn check(&mut self) -> Result<(), Failure> {
        if self.stops { Err(stopped()) } else { Ok(()) }
    }

    fn heard(&mut self, message: String) {
        self.heard.push(message);
    }

    fn committing(&mut self, mark: &str) -> Result<(), Failure> {
        self.marks.push(mark.to_owned());
        if self.stops_at_commit { Err(stopped()) } else { Ok(()) }
    }
}

fn stopped() -> Failure {
    Failure::new(ErrorKind::Cancelled, "as asked for", "")
}

fn socket(vdb: &Vdb<'_>) -> PathBuf {
    let spec = vdb.server.spec();
    spec.socket_dir().join(format!(".s.PGSQL.{}", spec.socket_port()))
}

fn run(vdb: &Vdb<'_>, text: &str, course: &mut Course) -> Result<(), Failure> {
    let script = Script {
        text: Secret::new(text),
        database: Some("shop".to_owned()),
        time_limit: Duration::from_secs(60),
    };
    let engine = || vdb.server.connect();
    script::run(&Reach { socket: socket(vdb), engine: &engine }, &script, course)
}

fn session(vdb: &Vdb<'_>) -> Session {
    vdb.server.connect().unwrap()
}

#[test]
fn a_script_is_one_transaction_of_the_user() {
    for bin in bin_dirs() {
        let scratch = Scratch::new();
        let image = image(&scratch, &bin);
        let vdb = Vdb::of(&scratch, &bin, &scratch.copy(&image, "vdb"), false, NOTHING);
        let mut course = Course::default();
        let text = "CREATE TABLE one (who text); INSERT INTO one SELECT session_user || ' ' || current_user;
            SELECT count(*) FROM generate_series(1, 200000) i;
            DO $$ BEGIN FOR i IN 1..3 LOOP RAISE NOTICE E'at\\n%', i; END LOOP; END $$";
        run(&vdb, text, &mut course).unwrap();
        assert_eq!(vdb.sql("SELECT who FROM one").unwrap(), "offshoot offshoot");
        assert_eq!(course.heard, ["NOTICE: at 1", "NOTICE: at 2", "NOTICE: at 3"]);
        assert_eq!(course.marks.len(), 1);
        assert!(script::has_committed(&mut session(&vdb), &course.marks[0]).unwrap());

        // What only reads has nothing to be told by.
        let mut course = Course::default();
        run(&vdb, "SELECT 1; SHOW work_mem", &mut course).unwrap();
        assert_eq!(course.marks, [""; 0]);

        // What ends the transaction itself is as it wants.
        let mut course = Course::default();
        let refused = run(&vdb, "CREATE TABLE two (); COMMIT; SELECT 1/0", &mut course);
        assert!(refused.unwrap_err().message.contains("statement 3: division by zero"));
        assert_eq!(vdb.sql("SELECT count(*) FROM two").unwrap(), "0", "it is there");

        let mut course = Course::default();
        let refused =
            run(&vdb, "CREATE TABLE three ();\n\n SELECT nothing", &mut course).unwrap_err();
        assert!(refused.message.starts_with("line 3: column \"nothing\""), "{refused}");
        assert_eq!(vdb.sql("SELECT to_regclass('three') IS NULL").unwrap(), "t");
        assert_eq!(
            vdb.sql("SELECT count(*) FROM pg_stat_activity WHERE client_port = -1 AND usename = 'offshoot'").unwrap(),
            "0"
        );
        // 13 and 14 have no way for the user to keep a failed statement out of the log.
        let modern =
            vdb.sql("SELECT current_setting('server_version_num')::int >= 150000").unwrap();
        let logged = vdb.server.log_tail(1000).join("\n").contains("SELECT nothing");
        assert_eq!(logged, modern == "f", "{}", bin.display());
    }
}

#[test]
fn nothing_of_a_script_that_is_ended_stays() {
    for bin in bin_dirs() {
        let scratch = Scratch::new();
        let image = image(&scratch, &bin);
        let vdb = Vdb::of(&scratch, &bin, &scratch.copy(&image, "vdb"), false, NOTHING);
        let mut course = Course { stops: true, ..Course::default() };
        let text = "CREATE TABLE one (); SET statement_timeout = 0; SELECT pg_sleep(600)";
        assert_eq!(run(&vdb, text, &mut course).unwrap_err().code, ErrorKind::Cancelled);
        assert_eq!(vdb.sql("SELECT to_regclass('one') IS NULL").unwrap(), "t");
        assert_eq!(
            vdb.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'").unwrap(),
            "0"
        );

        // One that was about to be committed, and one whose server crashes then: its number is no other's later.
        let mut course = Course { stops_at_commit: true, ..Course::default() };
        run(&vdb, "CREATE TABLE one ()", &mut course).unwrap_err();
        let mark = course.marks.pop().unwrap();
        assert!(!script::has_committed(&mut session(&vdb), &mark).unwrap());
        let mut vdb = vdb;
        vdb.server.stop(StopMode::Immediate, DEADLINE).unwrap();
        let spec = vdb.server.spec().clone();
        vdb.server = server::start(spec).unwrap();
        drop(vdb.server.wait_ready(DEADLINE).unwrap());
        for number in 0..5 {
            vdb.sql(&format!("CREATE TABLE later{number} ()")).unwrap();
        }
        assert!(!script::has_committed(&mut session(&vdb), &mark).unwrap());
        assert!(!script::has_committed(&mut session(&vdb), "999999999").unwrap(), "to come");
    }
}
