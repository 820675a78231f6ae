//! What the user of a VDB tries who runs programs in its server. Each attempt succeeds where servers are
//! not confined, and fails in a cell.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_os::process::{ProcessId, Sink, Spec, User, run};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{Database, EngineOptions, SourceOptions, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, binary, wait_until, with_log};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// An attempt: what it is, and a script that prints `reached` where it succeeds.
type Attempt = (&'static str, String);

fn attempts(bed: &Testbed) -> Result<Vec<Attempt>> {
    let pid = bed.engine.pid().context("the engine runs")?;
    let source = bed.source.port();
    let source_data = bed.source.data_dir();
    let other = bed.vdb("other")?.port;
    let socket = bed.open("other")?.text("SHOW unix_socket_directories")?;
    let data = bed.open("other")?.text("SHOW data_directory")?;
    let reach = |test: String| format!("if {test}; then echo reached; fi");
    let tcp_of = |host: &str, port: u16| reach(format!("(exec 3<>/dev/tcp/{host}/{port})"));
    // A stream of a protocol, and what is done with it and the address.
    let perl = |port: u16, protocol: u32, does: &str| {
        let begin = format!("socket(my $s, AF_INET, SOCK_STREAM, {protocol}) or exit 1;");
        let to = format!("my $to = pack_sockaddr_in({port}, inet_aton(q(127.0.0.1)));");
        reach(format!("perl -MSocket -e \"{begin} {to} exit !({does})\"").replace('$', "\\$"))
    };
    let tcp = |port: u16| tcp_of("127.0.0.1", port);
    let own = bed.vdb("dev")?.port;
    // Another host's, as far as the server can tell.
    static ELSEWHERE: OnceLock<Option<TcpListener>> = OnceLock::new();
    let elsewhere = ELSEWHERE.get_or_init(|| TcpListener::bind(("127.0.0.2", own)).ok());
    ensure!(elsewhere.is_some(), "something listens on 127.0.0.2 at port {own}");
    Ok(vec![
        ("production by TCP", tcp(source)),
        ("production by TCP Fast Open", perl(source, 0, "defined send($s, q(x), 0x20000000, $to)")),
        ("production by MPTCP", perl(source, 262, "connect($s, $to)")),
        ("another VDB by TCP", tcp(other)),
        ("another host at its own port", tcp_of("127.0.0.2", own)),
        ("another server's socket", reach(format!("ls {socket}"))),
        ("production's files", reach(format!("ls {}", source_data.display()))),
        ("another VDB's files", reach(format!("cat {data}/PG_VERSION"))),
        ("the engine as a process", reach(format!("ls /proc/{pid}/cmdline"))),
        (
            "the engine's socket",
            reach(format!("test -S {}/engine.socket", bed.engine.pool().display())),
        ),
        ("UDP", reach("(exec 3<>/dev/udp/127.0.0.1/53)".into())),
        ("files of others", reach("cat /etc/shells".into())),
        ("a file outside", reach("touch /var/tmp/offshoot-was-here".into())),
        ("a place for tablespaces", reach("mkdir /var/tmp/offshoot-tablespace".into())),
        ("a signal to another server", reach(format!("kill -0 {}", first_process(bed, "other")?))),
    ])
}

/// The first process of a VDB's server.
fn first_process(bed: &Testbed, name: &str) -> Result<i32> {
    let first_line = "split_part(pg_read_file('postmaster.pid'), E'\\n', 1)";
    let pid = bed.open(name)?.number(&format!("SELECT {first_line}"))?;
    i32::try_from(pid).context("a process")
}

/// What a program prints that the server runs.
fn program(vdb: &Database, script: &str) -> Result<String> {
    let script = format!("({script}) 2>&1; true").replace('\'', "''");
    vdb.execute("CREATE TEMP TABLE IF NOT EXISTS printed (line text)")?;
    vdb.execute("TRUNCATE printed")?;
    vdb.execute(&format!(
        "COPY printed FROM PROGRAM 'bash -c ''{}'''",
        script.replace('\'', "''")
    ))?;
    vdb.text("SELECT coalesce(string_agg(line, E'\\n'), '') FROM printed")
}

/// A source, and two VDBs of superusers; the engine gets these arguments.
fn bed(bin_dir: PathBuf, arguments: &[&str]) -> Result<Testbed> {
    let mut options = EngineOptions::new(binary());
    options.cache_size = "64MiB".into();
    options.arguments = arguments.iter().map(|one| (*one).to_owned()).collect();
    let source = SourceOptions { bin_dir, scale: 1, settings: vec![] };
    let bed = Testbed::with_engine(source, options)?;
    bed.link("prod")?;
    for name in ["dev", "other"] {
        // Only a superuser runs programs at all.
        bed.provision(name, "prod", &["--superuser"])?;
    }
    Ok(bed)
}

fn succeeding(bed: &Testbed) -> Result<Vec<&'static str>> {
    let vdb = bed.open("dev")?;
    ensure!(program(&vdb, "echo alive")? == "alive", "programs run at all");
    let mut succeeding = Vec::new();
    for (name, script) in attempts(bed)? {
        if program(&vdb, &script)?.contains("reached") {
            succeeding.push(name);
        }
    }
    Ok(succeeding)
}

fn sweep() {
    let _ = std::fs::remove_file("/var/tmp/offshoot-was-here");
    let _ = std::fs::remove_dir("/var/tmp/offshoot-tablespace");
}

#[test]
fn programs_of_a_vdb_reach_nothing_but_it() -> Result<()> {
    reach_nothing(bed(find_newest()?, &[])?)
}

mod needs_postgres_18 {
    use super::*;

    #[test]
    #[ignore = "needs PostgreSQL 18 in OFFSHOOT_TEST_PG_BINS"]
    fn programs_of_a_vdb_reach_nothing_but_it() -> Result<()> {
        let bins = std::env::var_os("OFFSHOOT_TEST_PG_BINS").unwrap_or_default();
        let bin_dir = std::env::split_paths(&bins)
            .find(|bin| offshoot_rig::major_version(bin).is_ok_and(|major| major == 18))
            .context("PostgreSQL 18")?;
        let scratch = offshoot_rig::Scratch::new("config")?;
        let config = scratch.path().join("offshoot.conf");
        std::fs::write(&config, format!("postgres_bin_dir = {}\n", bin_dir.display()))?;
        reach_nothing(bed(bin_dir, &["--config", config.to_str().unwrap()])?)
    }
}

fn reach_nothing(mut bed: Testbed) -> Result<()> {
    let result = succeeding(&bed);
    sweep();
    with_log(
        &bed.engine,
        result.and_then(|reached| {
            ensure!(reached.is_empty(), "reached: {reached:?}");
            works(&bed)
        }),
    )?;
    ensure!(nothing_outlives_its_server(&bed)?, "a program outlives its server");
    // An engine that is killed finds what runs in cells, and starts what does not.
    bed.engine.kill()?;
    bed.engine.restart()?;
    ensure!(bed.open("dev")?.text("SELECT 1")? == "1");
    ensure!(succeeding(&bed)?.is_empty());
    sweep();
    Ok(())
}

/// Without `--superuser` nobody runs a program to begin with; a password that was replaced opens nothing.
#[test]
fn the_login_handed_out_is_an_owner_with_one_password() -> Result<()> {
    let bed = bed(find_newest()?, &[])?;
    let own = bed.provision("own", "prod", &[])?;
    ensure!(!own.superuser && bed.vdb("dev")?.superuser);
    let vdb = bed.open("own")?;
    // What pgbench made belongs to the source's superuser; its own run truncates and vacuums that.
    vdb.execute("TRUNCATE pgbench_history; ALTER TABLE pgbench_branches ADD COLUMN note text")?;
    vdb.execute("VACUUM pgbench_branches")?;
    let refused = vdb.execute("COPY pgbench_history FROM PROGRAM 'id'");
    let words = format!("{:#}", refused.err().context("a program ran")?);
    ensure!(words.contains("42501"), "not for lack of rights: {words}");
    bed.provision("branch", "own", &["--superuser"])?;
    ensure!(program(&bed.open("branch")?, "echo alive")? == "alive", "a branch asked for more");

    bed.engine.command(["vdb", "reset-password", "own"])?;
    ensure!(vdb.text("SELECT 1")? == "1", "sessions stay");
    ensure!(Database::connect(&own.uri).is_err(), "the old password still opens it");
    ensure!(bed.open("own")?.text("SELECT 1")? == "1");
    bed.engine.command(["vdb", "refresh", "own"])?;
    ensure!(bed.open("own")?.text("SELECT 1")? == "1", "a refresh keeps the new one");
    bed.engine.command(["vdb", "stop", "own"])?;
    let refused = bed.engine.command(["vdb", "reset-password", "own"]).unwrap_err();
    ensure!(refused.code == "wrong_state" && refused.hint.contains("start"), "{refused:?}");
    Ok(())
}

/// A program that leaves the server's session and tree ends with the server all the same.
fn nothing_outlives_its_server(bed: &Testbed) -> Result<bool> {
    let vdb = bed.open("dev")?;
    // Other tests run such programs at the same time.
    let seconds = format!("{}", 1_000_000 + std::process::id());
    program(&vdb, &format!("setsid nohup sleep {seconds} >/dev/null 2>&1 & sleep 0.2"))?;
    let sleeps = || ProcessId::all().any(|process| process.arguments() == ["sleep", &seconds]);
    wait_until("the program runs", PATIENCE, || Ok(sleeps()))?;
    bed.engine.command(["vdb", "stop", "dev"])?;
    let outlives = sleeps();
    bed.engine.command(["vdb", "start", "dev"])?;
    Ok(!outlives)
}

/// What a server needs of its host is in the cell.
fn works(bed: &Testbed) -> Result<()> {
    let vdb = bed.open("dev")?;
    // Some builds of PostgreSQL come without its extensions.
    let crypto = "SELECT count(*) FROM pg_available_extensions WHERE name = 'pgcrypto'";
    if vdb.number(crypto)? > 0 {
        vdb.execute("CREATE EXTENSION IF NOT EXISTS pgcrypto")?;
    }
    vdb.execute(
        "CREATE TABLE big AS SELECT n, md5(n::text) AS text FROM generate_series(1, 200000) n",
    )?;
    // Parallel workers share memory by files in /dev/shm; sorts that do not fit write temporary files.
    vdb.execute(
        "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
         SET min_parallel_table_scan_size = 0; SET work_mem = '64kB'",
    )?;
    ensure!(
        vdb.number("SELECT count(*) FROM (SELECT text FROM big ORDER BY text) AS sorted")?
            == 200_000
    );
    vdb.execute("CREATE INDEX ON big (text)")?;
    vdb.execute("SET TIME ZONE 'Europe/Zurich'; SELECT to_char(now(), 'TZ')")?;
    ensure!(!program(&vdb, "id -un")?.is_empty(), "the user has a name");
    ensure!(program(&vdb, "echo x > /tmp/x && cat /tmp/x")? == "x");
    Ok(())
}

/// What a server cannot reach as it runs as a user of its own, which only root can give it.
const OF_OTHER_USERS: [&str; 4] = [
    "another server's socket",
    "production's files",
    "another VDB's files",
    "a signal to another server",
];

#[test]
fn without_cells_every_attempt_succeeds_but_on_what_other_users_have() -> Result<()> {
    let bed = bed(find_newest()?, &["--unconfined"])?;
    let own_users = User::own_is_root();
    let expected = |name: &&str| !(own_users && OF_OTHER_USERS.contains(name));
    let all: Vec<_> = attempts(&bed)?.into_iter().map(|(name, _)| name).filter(expected).collect();
    let reached = succeeding(&bed);
    sweep();
    with_log(
        &bed.engine,
        reached.and_then(|reached| {
            ensure!(
                reached == all,
                "an attempt that never succeeds shows nothing: {reached:?} of {all:?}"
            );
            Ok(())
        }),
    )
}

/// Runs a script in a cell as a user.
fn in_cell(user: Option<User>, program: &Path, own: &Path, script: &str) -> Result<String> {
    let cell = serde_json::json!({
        "user": null, "read_only": [], "own": [own], "port": 4, "udp": false,
    });
    let spec = Spec::new(program)
        .args(["cell", &cell.to_string(), "--", "/bin/bash", "-c", script])
        .env("MALLOC_CONF", "background_thread:false")
        .user(user)
        .stdout(Sink::Pipe)
        .stderr(Sink::Pipe);
    let output = run(&spec, Duration::from_secs(60))?;
    Ok(output.stdout_text() + &output.stderr_text())
}

/// Also without root: an ordinary user's engine confines its servers by a user namespace.
#[test]
fn an_ordinary_user_confines_too() -> Result<()> {
    let scratch = offshoot_rig::Scratch::new("cell")?;
    let (program, own) = (scratch.path().join("offshoot"), scratch.path().join("own"));
    std::fs::copy(binary(), &program)?;
    std::fs::create_dir(&own)?;
    std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o755))?;
    let user = if User::own_is_root() { User::lookup("nobody")? } else { None };
    if let Some(user) = &user {
        chown(&own, Some(user.uid), Some(user.gid))?;
    }
    let script = "touch own-file; cd \"$0\"; touch mine && echo wrote; ls /proc; ls /home; \
                  unshare -U true && echo namespace; echo done";
    let script = script.replace("$0", &own.display().to_string());
    let printed = in_cell(user, &program, &own, &script)?;
    ensure!(printed.contains("wrote") && printed.contains("done"), "{printed}");
    ensure!(own.join("mine").exists());
    for absent in ["/proc", "/home"] {
        ensure!(printed.contains(&format!("cannot access '{absent}'")), "{printed}");
    }
    ensure!(!printed.contains("namespace\n"), "{printed}");
    Ok(())
}

/// It must end even though it starts processes as fast as they are killed.
#[test]
fn a_fork_bomb_harms_only_its_own_server() -> Result<()> {
    let bed = bed(find_newest()?, &[])?;
    let vdb = bed.open("dev")?;
    let bombs = || {
        let is_one = |process: &ProcessId| process.arguments().iter().any(|one| one == "bomb");
        ProcessId::all().filter(is_one).count()
    };
    let bomb = "b() { b | b & }; b; sleep 1000";
    // It reads what it is sent: the server finds a pipe that nobody reads a failure.
    vdb.execute(&format!(
        "COPY (SELECT) TO PROGRAM 'setsid bash -c ''{bomb}'' bomb >/dev/null 2>&1 & cat >/dev/null'"
    ))?;
    wait_until("the bomb goes off", Duration::from_secs(60), || Ok(bombs() > 300))?;
    let began = SystemClock.elapsed();
    ensure!(bed.open("other")?.text("SELECT 1")? == "1");
    bed.provision("third", "prod", &[])?;
    ensure!(bed.open("third")?.text("SELECT 1")? == "1");
    println!("{} bombs; a VDB after {:?}", bombs(), SystemClock.elapsed() - began);
    // As many as the settings allow sessions, and 512.
    ensure!(bombs() < 1000, "{} of them", bombs());
    bed.engine.command(["vdb", "stop", "dev"])?;
    wait_until("what was killed is gone", Duration::from_secs(10), || Ok(bombs() == 0))?;
    bed.engine.command(["vdb", "start", "dev"])?;
    ensure!(program(&bed.open("dev")?, "echo alive")? == "alive");
    Ok(())
}

mod needs_process_groups {
    use super::*;
    use offshoot_os::cgroup::Group;

    /// Sessions of a VDB, each with a statement that never ends by itself.
    const AT_WORK: u32 = 20;
    const LIMIT: Duration = Duration::from_secs(60);

    /// The share of a VDB's server of the processors, in percent of the usual one.
    fn share(bed: &Testbed, name: &str) -> Result<u64> {
        let group = Group::holding(first_process(bed, name)?, |name| name.starts_with("offshoot-"));
        Ok(group.context("its control group")?.processor_share()?)
    }

    /// Only while they are at work.
    #[test]
    #[ignore = "needs root and control groups of processors"]
    fn a_vdb_with_many_sessions_at_work_has_a_smaller_share() -> Result<()> {
        let bed = bed(find_newest()?, &[])?;
        ensure!(share(&bed, "dev")? == 100);
        std::thread::scope(|scope| {
            let work = || {
                let session = bed.open("dev")?;
                session.execute("SET application_name = 'at work'")?;
                // It is ended from outside.
                let _ = session.execute("DO $$ BEGIN LOOP END LOOP; END $$");
                Ok(())
            };
            let sessions: Vec<_> = (0..AT_WORK).map(|_| scope.spawn(work)).collect();
            let smaller = wait_until("a smaller share", LIMIT, || Ok(share(&bed, "dev")? < 50));
            let other = share(&bed, "other");
            bed.open("dev")?.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE application_name = 'at work'",
            )?;
            for session in sessions {
                let ended: Result<()> =
                    session.join().unwrap_or_else(|_| anyhow::bail!("a session panicked"));
                ended?;
            }
            smaller?;
            ensure!(other? == 100, "the other VDB pays for it");
            wait_until("its whole share", LIMIT, || Ok(share(&bed, "dev")? == 100))
        })
    }
}

/// Also at another address of the same port, which Landlock alone could not tell apart.
#[test]
fn a_port_that_was_named_is_reached_and_no_other() -> Result<()> {
    let mut bed = bed(find_newest()?, &[])?;
    let other = bed.vdb("other")?;
    let elsewhere = TcpListener::bind(("127.0.0.2", other.port))?;
    let named = format!("localhost:{}", other.port);
    let wishes = ["--superuser", "--allow-network", &named, "--allow-network", "127.0.0.1:9"];
    let vdb = bed.provision("reaching", "prod", &wishes)?;
    ensure!(vdb.allow_network.iter().map(ToString::to_string).eq([named.as_str(), "127.0.0.1:9"]));
    let reaches = |bed: &Testbed, host: &str, port: u16| -> Result<bool> {
        let script = format!("(exec 3<>/dev/tcp/{host}/{port}) && echo reached");
        Ok(program(&bed.open("reaching")?, &script)?.contains("reached"))
    };
    let held = |bed: &Testbed| -> Result<()> {
        for host in ["127.0.0.1", "localhost"] {
            ensure!(reaches(bed, host, other.port)?, "{host} is not reached");
        }
        ensure!(!reaches(bed, "127.0.0.2", other.port)?, "another address is reached");
        ensure!(!reaches(bed, "127.0.0.1", bed.source.port())?, "production is reached");
        ensure!(
            !program(&bed.open("dev")?, &format!("exec 3<>/dev/tcp/127.0.0.1/{}", other.port))?
                .is_empty()
        );
        Ok(())
    };
    with_log(&bed.engine, held(&bed))?;
    // libpq connects without waiting, and polls.
    let linked = bed.open("reaching")?;
    linked.execute("CREATE EXTENSION dblink")?;
    let asked = format!("SELECT * FROM dblink('{}', 'SELECT 42') AS answer (text text)", other.uri);
    ensure!(linked.text(&asked)? == "42");
    // Whoever answers for the kernel outlives the engine, and ends with the server.
    bed.engine.kill()?;
    bed.engine.restart()?;
    held(&bed)?;
    // Other tests have theirs.
    let scratch = bed.scratch.path().display().to_string();
    let builders = || {
        let is_one = |process: &ProcessId| {
            let arguments = process.arguments();
            arguments.iter().any(|one| one == "cell")
                && arguments.iter().any(|one| one.contains(&scratch))
        };
        ProcessId::all().filter(is_one).count()
    };
    ensure!(builders() == 1, "{} doormen", builders());
    bed.engine.command(["vdb", "stop", "reaching"])?;
    ensure!(builders() == 0, "{} doormen outlive their servers", builders());
    bed.engine.command(["vdb", "start", "reaching"])?;
    held(&bed)?;
    drop(elsewhere);
    let refused = bed.refused(&[
        "vdb",
        "provision",
        "lost",
        "--from",
        "prod",
        "--allow-network",
        "no-such-host.invalid:80",
    ]);
    ensure!(refused.code == "invalid_input", "{refused}");
    Ok(())
}

mod needs_root {
    use super::*;

    /// The user of each process that works in a data directory of the engine's servers.
    fn users(bed: &Testbed) -> Result<Vec<(String, u32)>> {
        let mut users = Vec::new();
        for name in ["dev", "other"] {
            let data = bed.open(name)?.text("SHOW data_directory")?;
            let pid = first_process(bed, name)?;
            users.push((data, std::fs::metadata(format!("/proc/{pid}"))?.uid()));
        }
        Ok(users)
    }

    /// The same attacks on the engine of an ordinary user, who confines by a user namespace.
    #[test]
    #[ignore = "needs root"]
    fn an_ordinary_user_s_engine_holds_too() -> Result<()> {
        const ATTACKS: [&str; 4] = [
            "a_port_that_was_named_is_reached_and_no_other",
            "a_fork_bomb_harms_only_its_own_server",
            "programs_of_a_vdb_reach_nothing_but_it",
            "the_login_handed_out_is_an_owner_with_one_password",
        ];
        let scratch = offshoot_rig::Scratch::new("u")?;
        let at = |name: &str| scratch.path().join(name);
        std::fs::copy(std::env::current_exe()?, at("attacks"))?;
        std::fs::copy(binary(), at("offshoot"))?;
        std::fs::create_dir(at("s"))?;
        std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o755))?;
        let user = User::lookup("nobody")?.context("the user nobody")?;
        chown(at("s"), Some(user.uid), Some(user.gid))?;
        // Whatever this host has set up, in the test's own mount namespace everybody may use FUSE.
        let script = "set -eu; mknod fuse c 10 229; chmod 666 fuse; mount --bind fuse /dev/fuse; cd s; \
                      exec setpriv --reuid=\"$1\" --regid=\"$1\" --clear-groups ../attacks --exact \
                      --test-threads=1 \"$2\" \"$3\" \"$4\" \"$5\"";
        let spec = Spec::new("unshare")
            .args(["--mount", "sh", "-c", script, "sh"])
            .arg(user.uid.to_string())
            .args(ATTACKS)
            .env("OFFSHOOT_BIN", at("offshoot"))
            .env("OFFSHOOT_SCRATCH_DIR", at("s"))
            // Those of the other tests are not that user's.
            .env_remove("OFFSHOOT_TEST_CLUSTERS")
            .env("TMPDIR", at("s"))
            .env("HOME", at("s"))
            .cwd(scratch.path())
            .stdout(Sink::Pipe)
            .stderr(Sink::Pipe);
        let output = run(&spec, Duration::from_secs(400))?;
        let text = output.stdout_text() + &output.stderr_text();
        ensure!(output.success() && text.contains("4 passed"), "{text}");
        Ok(())
    }

    /// Also once the engine was killed, and after a restart of the server.
    #[test]
    #[ignore = "needs root"]
    fn each_server_has_a_user_of_its_own_that_owns_its_files_alone() -> Result<()> {
        let mut bed = bed(find_newest()?, &[])?;
        let postgres = User::lookup("postgres")?.context("the user of PostgreSQL")?.uid;
        let before = users(&bed)?;
        for (data, uid) in &before {
            ensure!(*uid > 1 << 30, "{data}: the user {uid}");
            ensure!(std::fs::metadata(data)?.uid() == *uid, "{data} is another's");
        }
        ensure!(before[0].1 != before[1].1, "one user for two servers");
        for other in [postgres, before[1].1] {
            let other = User { name: "other".into(), uid: other, gid: other, groups: vec![other] };
            let cat = Spec::new("cat").arg(format!("{}/PG_VERSION", before[0].0)).user(Some(other));
            ensure!(!run(&cat, Duration::from_secs(20))?.success(), "another user reads it");
        }
        bed.engine.kill()?;
        bed.engine.restart()?;
        ensure!(users(&bed)? == before, "after a kill: {:?}, not {before:?}", users(&bed)?);
        bed.engine.command(["vdb", "stop", "dev"])?;
        bed.engine.command(["vdb", "start", "dev"])?;
        ensure!(users(&bed)? == before, "after a restart: {:?}, not {before:?}", users(&bed)?);
        // A branch shares the files, but not the user.
        bed.provision("branch", "dev", &["--superuser"])?;
        let data = bed.open("branch")?.text("SHOW data_directory")?;
        let uid = std::fs::metadata(&data)?.uid();
        ensure!(before.iter().all(|(_, one)| *one != uid), "the branch's user is another's");
        Ok(())
    }
}

/// What the logs of servers take on disk, in bytes.
fn logs(bed: &Testbed) -> u64 {
    let entries = std::fs::read_dir(bed.engine.pool().join("run/log")).into_iter().flatten();
    let sizes = entries.flatten().filter_map(|entry| entry.metadata().ok());
    sizes.map(|file| file.blocks() * 512).sum()
}

/// The users of a VDB decide what its server writes into its log.
#[test]
fn a_log_stays_within_its_bounds() -> Result<()> {
    const SECONDS: u64 = 5;
    // Two parts of 8 MiB for this server, and what the others wrote.
    const BOUND: u64 = 20 << 20;
    let bed = bed(find_newest()?, &[])?;
    let flood = format!("timeout {SECONDS} yes $(printf %0200d 0) >&2");
    let vdb = bed.open("dev")?;
    let began = SystemClock.elapsed();
    vdb.execute(&format!("COPY (SELECT) TO PROGRAM '{flood}; true'"))?;
    ensure!(SystemClock.elapsed() - began >= Duration::from_secs(SECONDS), "the flood flows");
    wait_until("the log is cut", Duration::from_secs(30), || Ok(logs(&bed) < BOUND))?;
    // Sessions can write, too.
    vdb.execute(
        "DO $$ BEGIN FOR n IN 1..3000 LOOP RAISE LOG '%', repeat('x', 20000); END LOOP; END $$",
    )?;
    wait_until("the log is cut again", Duration::from_secs(30), || Ok(logs(&bed) < BOUND))?;
    // Why a server does not start is still found in it.
    vdb.execute("ALTER SYSTEM SET shared_preload_libraries = 'no_such_library'")?;
    bed.engine.command(["vdb", "stop", "dev"])?;
    let refused = bed.engine.command(["vdb", "start", "dev"]).unwrap_err().to_string();
    ensure!(refused.contains("no_such_library"), "{refused}");
    ensure!(bed.open("other")?.text("SELECT 1")? == "1");
    Ok(())
}
