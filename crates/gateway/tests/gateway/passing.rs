//! While it serves, a gateway is not noticed.

use super::cluster::{PASSWORD, bin_dirs, code, config, connect, newest, start, text};
use std::time::Duration;
use tokio_postgres::NoTls;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_errors_and_pipelines_pass() {
    for bin in bin_dirs() {
        let (_cluster, gateway) = start(&bin).await;
        let client = connect(gateway.port, "app").await.client;
        let large = text(&client, "SELECT repeat('x', 20000000)").await;
        assert_eq!(large.len(), 20_000_000);
        let error = client.query("SELECT 1/$1::int", &[&0]).await.unwrap_err();
        assert_eq!(code(&error), "22012");
        let ask = async |number: i32| {
            let row = client.query_one("SELECT $1::int + 1", &[&number]).await.unwrap();
            row.get::<_, i32>(0)
        };
        let (a, b, c) = tokio::join!(ask(1), ask(2), ask(3));
        assert_eq!((a, b, c), (2, 3, 4));
        let status = gateway.status();
        assert_eq!((status.sessions, status.parked, status.waiting), (1, 0, 0));
        drop(client);
        gateway.wait_for("the session to end", |status| status.sessions == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_passes_both_ways() {
    use futures_util::{SinkExt, StreamExt};
    let (_cluster, gateway) = start(&newest()).await;
    let client = connect(gateway.port, "app").await.client;
    client.batch_execute("DELETE FROM things").await.unwrap();
    let sink = client.copy_in("COPY things FROM STDIN").await.unwrap();
    let mut sink = std::pin::pin!(sink);
    let lines = 200_000;
    for start in (0..lines).step_by(1000) {
        let text: String = (start..start + 1000).map(|id| format!("{id}\tthing {id}\n")).collect();
        sink.send(bytes::Bytes::from(text)).await.unwrap();
    }
    assert_eq!(sink.finish().await.unwrap(), lines);
    let stream = client.copy_out("COPY things TO STDOUT").await.unwrap();
    let mut stream = std::pin::pin!(stream);
    let mut bytes = 0;
    while let Some(chunk) = stream.next().await {
        bytes += chunk.unwrap().len();
    }
    assert!(bytes > 3_000_000, "{bytes}");
    // Each way leaves the session at rest, a COPY that fails too.
    let failing = client.copy_in::<_, bytes::Bytes>("COPY things FROM STDIN").await.unwrap();
    let mut failing = std::pin::pin!(failing);
    failing.send(bytes::Bytes::from_static(b"nonsense\n")).await.unwrap();
    failing.finish().await.unwrap_err();
    assert_eq!(text(&client, "SELECT count(*) FROM things").await, lines.to_string());
    assert_eq!(gateway.hold(2000, offshoot_gateway::Why::Change).parked, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_is_cancelled() {
    for bin in bin_dirs() {
        let (_cluster, gateway) = start(&bin).await;
        let client = connect(gateway.port, "app").await.client;
        let token = client.cancel_token();
        let (error, cancelled) = tokio::join!(client.batch_execute("SELECT pg_sleep(50)"), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            token.cancel_query(NoTls).await
        });
        cancelled.unwrap();
        assert_eq!(code(&error.unwrap_err()), "57014");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_decides_who_may_log_in() {
    for bin in bin_dirs() {
        let (_cluster, gateway) = start(&bin).await;
        for (user, password, refused) in [
            ("app", PASSWORD, ""),
            ("md5er", PASSWORD, ""),
            ("trusty", "", ""),
            ("app", "wrong", "28P01"),
            ("md5er", "wrong", "28P01"),
            ("nobody", PASSWORD, "28P01"),
            ("plain", PASSWORD, "28000"),
        ] {
            let connected = config(gateway.port, user).password(password).connect(NoTls).await;
            let error = connected.err().map(|error| code(&error).to_owned());
            assert_eq!(error.as_deref().unwrap_or_default(), refused, "{user} {password}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_ends_with_its_server_and_with_its_words() {
    let (cluster, gateway) = start(&newest()).await;
    let client = connect(gateway.port, "app").await.client;
    let pid = text(&client, "SELECT pg_backend_pid()").await;
    let (error, ended) = tokio::join!(client.batch_execute("SELECT pg_sleep(50)"), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let admin = cluster.admin().await;
        admin.batch_execute(&format!("SELECT pg_terminate_backend({pid})")).await
    });
    ended.unwrap();
    assert_eq!(code(&error.unwrap_err()), "57P01");
    gateway.wait_for("the session to end", |status| status.sessions == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_starts_is_waited_for() {
    let (mut cluster, gateway) = start(&newest()).await;
    cluster.stop();
    let logins = std::collections::BTreeMap::new();
    gateway.ask(&offshoot_gateway::Request::Serve(offshoot_gateway::Backend {
        port: cluster.port,
        tls: None,
        allow: vec![],
        logins,
    }));
    let port = gateway.port;
    let waiting = tokio::spawn(async move { connect(port, "app").await });
    gateway.wait_for("a client to wait", |status| status.waiting == 1).await;
    cluster.run().await;
    assert_eq!(text(&waiting.await.unwrap().client, "SELECT 1").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_says_since_when_nothing_happened() {
    let (_cluster, gateway) = start(&newest()).await;
    let client = connect(gateway.port, "app").await.client;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(gateway.status().idle_ms >= 290);
    client.batch_execute("BEGIN").await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(gateway.status().idle_ms, 0);
    client.batch_execute("COMMIT").await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!((90..250).contains(&gateway.status().idle_ms));
}
