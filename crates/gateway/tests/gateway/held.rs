//! While the server is away, connections stay.

use super::cluster::{
    Cluster, Connected, Gateway, PATIENCE, bin_dirs, code, config, connect, connect_by, newest,
    start, text,
};
use offshoot_gateway::{Hold, Request, State, Why};
use std::io::{BufRead, BufReader};
use std::time::Duration;
use tokio::time::timeout;

/// Holds, restarts the server elsewhere, and serves again.
async fn restart(cluster: &mut Cluster, gateway: &Gateway) {
    let status = gateway.hold(2000, Why::Change);
    assert_eq!(status.state, State::Holding);
    cluster.stop();
    cluster.run().await;
    gateway.serve(cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quiet_session_goes_on_with_all_it_had() {
    for bin in bin_dirs() {
        let (mut cluster, gateway) = start(&bin).await;
        let mut config = config(gateway.port, "app");
        let Connected { client, mut heard, .. } =
            connect_by(config.application_name("first")).await;
        client
            .batch_execute(
                "SET search_path = public, pg_catalog; SET work_mem = '5MB'; SET DateStyle = 'German';
                 SET application_name = 'it''s \\ \"me\"'; SET TimeZone = 'Asia/Tokyo';
                 SET standard_conforming_strings = off; SET client_encoding = 'UTF8';
                 SET app.tenant = 'it''s 7'",
            )
            .await
            .unwrap();
        client
            .batch_execute("PREPARE shout(text) AS SELECT upper($1) || what FROM things")
            .await
            .unwrap();
        client.batch_execute("LISTEN \"odd \"\" channel\"; SET ROLE other").await.unwrap();
        let prepared = client.prepare("SELECT $1::int + id, 'ü' FROM things").await.unwrap();
        for _ in 0..2 {
            restart(&mut cluster, &gateway).await;
            assert_eq!(gateway.status().parked, 1);
            let row = client.query_one(&prepared, &[&41]).await.unwrap();
            assert_eq!((row.get::<_, i32>(0), row.get::<_, &str>(1)), (42, "ü"));
            assert_eq!(gateway.status().parked, 0);
            assert_eq!(text(&client, "EXECUTE shout('a ')").await, "A one");
            for (setting, value) in [
                ("work_mem", "5MB"),
                ("search_path", "public, pg_catalog"),
                ("DateStyle", "German, DMY"),
                ("application_name", "it's \\ \"me\""),
                ("TimeZone", "Asia/Tokyo"),
                ("standard_conforming_strings", "off"),
                ("role", "other"),
                ("app.tenant", "it's 7"),
            ] {
                assert_eq!(text(&client, &format!("SHOW {setting}")).await, value);
            }
            assert_eq!(text(&client, "SELECT session_user").await, "app");
            cluster
                .admin()
                .await
                .batch_execute("NOTIFY \"odd \"\" channel\", 'hello'")
                .await
                .unwrap();
            let notification = timeout(PATIENCE, heard.recv()).await.unwrap().unwrap();
            assert_eq!(notification.payload(), "hello");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_only_listens_hears_again_and_wakes_no_server() {
    let (mut cluster, gateway) = start(&newest()).await;
    let mut listeners = Vec::new();
    for _ in 0..20 {
        let listener = connect(gateway.port, "app").await;
        listener.client.batch_execute("LISTEN news").await.unwrap();
        listeners.push(listener);
    }
    let other = connect(gateway.port, "app").await;
    for why in [Why::Change, Why::Asleep] {
        let status = gateway.hold(1000, why);
        assert_eq!((status.parked, status.waiting), (21, 0));
        cluster.stop();
        cluster.run().await;
        assert_eq!(gateway.status().waiting, 0);
        gateway.serve(&cluster).await;
        gateway.wait_for("the listeners to be back", |status| status.parked == 1).await;
        cluster.admin().await.batch_execute("NOTIFY news, 'hello'").await.unwrap();
        for listener in &mut listeners {
            let heard = timeout(PATIENCE, listener.heard.recv()).await.unwrap().unwrap();
            assert_eq!(heard.payload(), "hello");
        }
    }
    assert_eq!(text(&listeners[0].client, "SELECT 1").await, "1");
    drop(other);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_was_sent_nothing_is_not_read() {
    let (mut cluster, gateway) = start(&newest()).await;
    let untouched = connect(gateway.port, "app").await.client;
    let touched = connect(gateway.port, "app").await;
    touched.client.batch_execute("SELECT 1").await.unwrap();
    // Neither can be read: whoever tries waits in vain.
    let admin = cluster.admin().await;
    admin
        .batch_execute("BEGIN; LOCK pg_catalog.pg_settings IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let status = gateway.hold(200, Why::Change);
    assert_eq!((status.sessions, status.parked), (1, 1));
    assert_eq!(touched.end().await.1, "the session's state is not read in time");
    drop(admin);
    cluster.stop();
    cluster.run().await;
    gateway.serve(&cluster).await;
    assert_eq!(text(&untouched, "SELECT session_user").await, "app");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_cannot_fool_what_reads_its_state() {
    let (mut cluster, gateway) = start(&newest()).await;
    cluster.admin().await.batch_execute("GRANT CREATE ON SCHEMA public TO app").await.unwrap();
    let client = connect(gateway.port, "app").await.client;
    client
        .batch_execute(
            "CREATE FUNCTION public.never(text, text) RETURNS bool LANGUAGE sql AS 'SELECT false';
             CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.never);
             CREATE FUNCTION public.current_setting(text) RETURNS text LANGUAGE sql AS $$SELECT 'boss'$$;
             SET search_path = public, pg_catalog; SET work_mem = '6MB'",
        )
        .await
        .unwrap();
    restart(&mut cluster, &gateway).await;
    assert_eq!(text(&client, "SHOW work_mem").await, "6MB");
    assert_eq!(text(&client, "SELECT current_user").await, "app");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_each_kind_of_login_go_on() {
    for bin in bin_dirs() {
        let (mut cluster, gateway) = start(&bin).await;
        let mut clients = Vec::new();
        for user in ["app", "md5er", "trusty", "boss"] {
            clients.push((user, connect(gateway.port, user).await.client));
        }
        restart(&mut cluster, &gateway).await;
        assert_eq!(gateway.status().parked_roles, ["app", "boss", "md5er", "trusty"]);
        for (user, client) in &clients {
            assert_eq!(text(client, "SELECT session_user").await, *user);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_a_session_became_it_stays() {
    for bin in bin_dirs() {
        let (mut cluster, gateway) = start(&bin).await;
        let client = connect(gateway.port, "boss").await.client;
        let become_app = "SET log_min_duration_statement = 7777; SET SESSION AUTHORIZATION app";
        client.batch_execute(become_app).await.unwrap();
        restart(&mut cluster, &gateway).await;
        let who = "SELECT session_user || ' ' || current_user";
        assert_eq!(text(&client, who).await, "app app");
        assert_eq!(text(&client, "SHOW log_min_duration_statement").await, "7777ms");
        client.batch_execute("SET ROLE other").await.unwrap();
        restart(&mut cluster, &gateway).await;
        assert_eq!(text(&client, who).await, "app other");
        client.batch_execute("RESET SESSION AUTHORIZATION").await.unwrap();
        assert_eq!(text(&client, who).await, "boss boss");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_password_ends_a_parked_session() {
    let (mut cluster, gateway) = start(&newest()).await;
    for user in ["app", "md5er"] {
        let client = connect(gateway.port, user).await.client;
        gateway.hold(1000, Why::Change);
        cluster.stop();
        cluster.run().await;
        let change = format!(
            "SET password_encryption = '{}'; ALTER ROLE {user} PASSWORD 'new'",
            if user == "app" { "scram-sha-256" } else { "md5" }
        );
        cluster.admin().await.batch_execute(&change).await.unwrap();
        gateway.serve(&cluster).await;
        let error = client.batch_execute("SELECT 1").await.unwrap_err();
        assert_eq!(code(&error), "57P01");
        let detail = error.as_db_error().unwrap().detail();
        assert_eq!(detail, Some("the password of the role was changed"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_is_rolled_back() {
    let (mut cluster, gateway) = start(&newest()).await;
    let connected = connect(gateway.port, "app").await;
    let begin = "BEGIN; INSERT INTO things VALUES (2, 'two')";
    connected.client.batch_execute(begin).await.unwrap();
    let status = gateway.hold(200, Why::Change);
    assert_eq!((status.sessions, status.parked), (0, 0));
    let (code, why) = connected.end().await;
    assert_eq!((&*code, &*why), ("57P01", "the session was at work when its time was over"));
    cluster.stop();
    cluster.run().await;
    assert_eq!(text(&cluster.admin().await, "SELECT count(*) FROM things").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ends_in_time_is_parked() {
    let (mut cluster, gateway) = start(&newest()).await;
    let short = connect(gateway.port, "app").await.client;
    let long = connect(gateway.port, "app").await.client;
    let open = connect(gateway.port, "app").await.client;
    open.batch_execute("BEGIN; INSERT INTO things VALUES (3, 'three')").await.unwrap();
    let (a, b, c, ()) = tokio::join!(
        async {
            let first = text(&short, "SELECT 'done' FROM pg_sleep(0.6)").await;
            // Begun while it holds: waits for the next server.
            (first, text(&short, "SELECT 'again'").await)
        },
        async { code(&long.batch_execute("SELECT pg_sleep(50)").await.unwrap_err()).to_owned() },
        async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            open.batch_execute("COMMIT").await
        },
        async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let mut control = gateway.control();
            let hold = Request::Hold(Hold { grace_ms: 1500, why: Why::Change });
            let held = tokio::task::spawn_blocking(move || control.ask(&hold, PATIENCE)).await;
            let status = held.unwrap().unwrap();
            assert_eq!((status.sessions, status.parked), (2, 2));
            cluster.stop();
            cluster.run().await;
            gateway.serve(&cluster).await;
        }
    );
    assert_eq!(a, ("done".to_owned(), "again".to_owned()));
    assert_eq!(b, "57P01");
    c.unwrap();
    assert_eq!(text(&open, "SELECT count(*) FROM things").await, "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_carried_over_is_said() {
    for bin in bin_dirs() {
        let (cluster, gateway) = start(&bin).await;
        for (sql, what) in [
            ("CREATE TEMP TABLE t ()", "temporary tables"),
            ("BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT 1; COMMIT", "cursors"),
            ("SELECT pg_advisory_lock(1)", "advisory locks"),
        ] {
            let connected = connect(gateway.port, "app").await;
            connected.client.batch_execute(sql).await.unwrap();
            gateway.hold(1000, Why::Change);
            let (code, detail) = connected.end().await;
            assert_eq!(code, "57P01");
            assert_eq!(detail, format!("the session has {what}, which cannot be carried over"));
            gateway.serve(&cluster).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_clients_wait_and_wake_whoever_watches() {
    let (mut cluster, gateway) = start(&newest()).await;
    let parked = connect(gateway.port, "app").await.client;
    let status = gateway.hold(1000, Why::Asleep);
    assert_eq!((status.state, status.parked, status.waiting), (State::Asleep, 1, 0));
    let watch = gateway.control().watch().unwrap();
    watch.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut watch = BufReader::new(watch);
    let mut line = String::new();
    watch.read_line(&mut line).unwrap_err();
    watch.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
    cluster.stop();
    let port = gateway.port;
    let fresh = tokio::spawn(async move { connect(port, "app").await });
    let woken = tokio::spawn(async move { text(&parked, "SELECT 'woken'").await });
    for _ in 0..2 {
        line.clear();
        watch.read_line(&mut line).unwrap();
        assert_eq!(line, "\"wanted\"\n");
    }
    gateway.wait_for("both to wait", |status| status.waiting == 2).await;
    cluster.run().await;
    gateway.serve(&cluster).await;
    assert_eq!(woken.await.unwrap(), "woken");
    assert_eq!(text(&fresh.await.unwrap().client, "SELECT 1").await, "1");
    assert_eq!(gateway.status().waiting, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parked_client_that_leaves_is_gone() {
    let (_cluster, gateway) = start(&newest()).await;
    let client = connect(gateway.port, "app").await.client;
    assert_eq!(gateway.hold(1000, Why::Change).parked, 1);
    drop(client);
    gateway.wait_for("the client to go", |status| status.sessions == 0).await;
    let status = gateway.status();
    assert_eq!((status.parked, status.waiting), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_is_no_longer_valid_ends_the_session() {
    let (mut cluster, gateway) = start(&newest()).await;
    let client = connect(gateway.port, "app").await.client;
    let _prepared = client.prepare("SELECT what FROM things").await.unwrap();
    gateway.hold(1000, Why::Change);
    cluster.stop();
    cluster.run().await;
    cluster.admin().await.batch_execute("DROP TABLE things").await.unwrap();
    gateway.serve(&cluster).await;
    let error = client.batch_execute("SELECT 1").await.unwrap_err();
    assert_eq!(code(&error), "57P01");
    let detail = error.as_db_error().unwrap().detail().unwrap().to_owned();
    assert!(detail.contains("\"things\" does not exist"), "{detail}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_is_said_to_everybody() {
    let (_cluster, gateway) = start(&newest()).await;
    let connected = connect(gateway.port, "app").await;
    drop(gateway);
    assert_eq!(connected.end().await.0, "57P01");
}
