//! TLS between clients and the gateway.

use super::cluster::{Cluster, Gateway, code, config, newest, text};
use offshoot_gateway::{Tls, Why};
use rcgen::{CertificateParams, KeyPair};
use std::sync::Arc;
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What a gateway shows, and a client that trusts it.
fn certified() -> (Tls, rustls::ClientConfig) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let certificate = certificate.self_signed(&key).unwrap();
    let tls = Tls { certificate: certificate.pem(), key: key.serialize_pem() };
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let trusting = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (tls, trusting)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_may_begin_with_tls_at_once() {
    let cluster = Cluster::start(&newest()).await;
    let gateway = Gateway::start(&cluster.scratch);
    let (tls, trusting) = certified();
    let mut at_once = config(gateway.port, "app");
    at_once.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
    let naming = |protocol: &[u8]| {
        let mut naming = trusting.clone();
        naming.alpn_protocols = vec![protocol.to_vec()];
        MakeRustlsConnect::new(naming)
    };
    let named = naming(b"postgresql");

    let early = tokio::spawn({
        let (at_once, named) = (at_once.clone(), named.clone());
        async move {
            let (client, connection) = at_once.connect(named).await.unwrap();
            tokio::spawn(connection);
            text(&client, "SELECT 1").await
        }
    });
    gateway.wait_for("a client to wait", |status| status.waiting == 1).await;
    gateway.serve_by(&cluster, Some(tls)).await;
    assert_eq!(early.await.unwrap(), "1");

    // Who does not say which protocol it speaks may have been led here, and so may who speaks another one.
    assert!(at_once.connect(MakeRustlsConnect::new(trusting.clone())).await.is_err());
    assert!(at_once.connect(naming(b"h2")).await.is_err());
    gateway.serve(&cluster).await;
    assert!(at_once.connect(named).await.is_err(), "there is no certificate");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_is_spoken_and_survives_a_change_of_servers() {
    let mut cluster = Cluster::start(&newest()).await;
    let gateway = Gateway::start(&cluster.scratch);
    let (tls, trusting) = certified();
    assert!(!format!("{tls:?}").contains("PRIVATE"));
    let by_tls = MakeRustlsConnect::new(trusting);
    let mut required = config(gateway.port, "app");
    required.ssl_mode(SslMode::Require);

    // Before it first serves, it does not know whether there is TLS: the client waits.
    let early = tokio::spawn({
        let (required, by_tls) = (required.clone(), by_tls.clone());
        async move {
            let (client, connection) = required.connect(by_tls).await.unwrap();
            tokio::spawn(connection);
            text(&client, "SELECT 1").await
        }
    });
    gateway.wait_for("a client to wait", |status| status.waiting == 1).await;
    gateway.serve_by(&cluster, Some(tls.clone())).await;
    assert_eq!(early.await.unwrap(), "1");

    let (client, connection) = required.connect(by_tls.clone()).await.unwrap();
    tokio::spawn(connection);
    assert_eq!(text(&client, "SELECT length(repeat('x', 3000000))").await, "3000000");
    gateway.wait_for("the first client to go", |status| status.sessions == 1).await;
    assert_eq!(gateway.hold(1000, Why::Change).parked, 1);
    cluster.stop();
    cluster.run().await;
    gateway.serve_by(&cluster, Some(tls)).await;
    assert_eq!(text(&client, "SELECT repeat('x', 300000)").await.len(), 300_000);

    // Without a certificate it says so, as a server does.
    gateway.serve(&cluster).await;
    assert!(required.connect(by_tls).await.is_err());
    let wrong = config(gateway.port, "app").password("wrong").connect(tokio_postgres::NoTls).await;
    assert_eq!(code(&wrong.err().unwrap()), "28P01");
}
