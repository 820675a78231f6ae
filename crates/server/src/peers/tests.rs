use super::*;
use offshoot_domain::Secret;
use std::io::{Read, Write};
use std::net::TcpListener;

fn key() -> PeerKey {
    let made = rcgen::generate_simple_self_signed(vec![HOST.to_owned()]).unwrap();
    let key = Secret::new(made.signing_key.serialize_pem());
    PeerKey { certificate: made.cert.pem(), key }
}

/// Answers one call as an engine with this certificate would, as far as the handshake.
fn answering(own: &PeerKey) -> (String, std::thread::JoinHandle<io::Result<usize>>) {
    let (certificate, secret) = read(own).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_client_cert_verifier(Arc::new(AnyPeer::new(provider)))
        .with_single_cert(vec![certificate], secret)
        .unwrap();
    config.alpn_protocols = vec![ALPN.to_vec()];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answer = move || {
        let mut stream = listener.accept()?.0;
        let mut connection =
            rustls::ServerConnection::new(Arc::new(config)).map_err(io::Error::other)?;
        let mut stream = rustls::Stream::new(&mut connection, &mut stream);
        let mut said = [0; 64];
        let count = stream.read(&mut said)?;
        stream.write_all(&said[..count])?;
        Ok(count)
    };
    (address, std::thread::spawn(answer))
}

#[test]
fn the_engine_of_the_fingerprint_is_spoken_with_and_nobody_else() {
    let (own, theirs) = (key(), key());
    let fingerprint = PeerNetwork.fingerprint(&theirs.certificate).unwrap();
    let (address, answered) = answering(&theirs);
    let mut wire = PeerNetwork.call(&address, &[&fingerprint], &own).unwrap().wire;
    wire.write_all(b"hello").unwrap();
    wire.flush().unwrap();
    let mut heard = [0; 5];
    let mut done = 0;
    while done < 5 {
        match wire.read(&mut heard[done..]) {
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(&heard, b"hello");
    assert!(wire.sent_bytes() > 5 && wire.received_bytes() > 5);
    assert_eq!(answered.join().unwrap().unwrap(), 5);

    // Somebody in between has another certificate: it is told nothing.
    let (address, answered) = answering(&key());
    let refused = PeerNetwork.call(&address, &[&fingerprint], &own).err().unwrap();
    assert_eq!(refused.code, ErrorKind::Forbidden, "{refused:?}");
    assert!(refused.message.contains("sha256:"), "{refused:?}");
    assert!(answered.join().unwrap().is_err());
}

#[test]
fn an_engine_is_known_by_two_certificates_while_it_changes_them() {
    let (own, new, old) = (key(), key(), key());
    let of = |key: &PeerKey| PeerNetwork.fingerprint(&key.certificate).unwrap();
    for shown in [&new, &old] {
        let (address, answered) = answering(shown);
        let reached = PeerNetwork.call(&address, &[&of(&new), &of(&old)], &own).unwrap();
        assert_eq!(reached.fingerprint, of(shown));
        let mut wire = reached.wire;
        wire.write_all(b"hello").unwrap();
        wire.flush().unwrap();
        assert_eq!(answered.join().unwrap().unwrap(), 5);
    }
    // The one that is asked for is named to it.
    let digits = of(&new).trim_start_matches(FINGERPRINT).to_owned();
    let config = calling(&[&of(&new), &of(&old)], &own).unwrap();
    let protocols = config.alpn_protocols.iter().map(Vec::as_slice);
    assert_eq!(asked_for(protocols), Some(format!("{FINGERPRINT}{digits}")));
    assert_eq!(asked_for([ALPN].into_iter()), None);
}

#[test]
fn what_does_not_answer_as_an_engine_is_said_to() {
    let own = key();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answered = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        let _ = stream.read(&mut [0; 1024]);
    });
    let refused = PeerNetwork.call(&address, &["sha256:00"], &own).err().unwrap();
    assert_eq!(refused.code, ErrorKind::EngineUnreachable);
    assert!(refused.hint.contains("--listen"), "{refused:?}");
    answered.join().unwrap();
    // Nobody is there any more.
    let refused = PeerNetwork.call(&address, &["sha256:00"], &own).err().unwrap();
    assert_eq!(refused.code, ErrorKind::EngineUnreachable);
    for wrong in ["", "nowhere", "127.0.0.1", "127.0.0.1:port"] {
        let refused = PeerNetwork.call(wrong, &["sha256:00"], &own).err().unwrap();
        assert_eq!(refused.code, ErrorKind::EngineUnreachable, "{wrong}");
    }
}
