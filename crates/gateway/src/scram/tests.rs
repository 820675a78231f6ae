use super::*;
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};

const STORED: &str = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$\
WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";

/// The example of RFC 7677, section 3.
fn example() -> Exchange {
    let mut exchange = Exchange::default();
    exchange.client_first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
    let server_first: &[u8] = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    exchange.server_first(server_first).unwrap();
    let client_final: &[u8] = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    exchange.client_final(client_final).unwrap();
    exchange
}

#[test]
fn the_rfcs_example_gives_the_rfcs_verifier() {
    let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
    assert_eq!(verifier("pencil", &salt.try_into().unwrap()), STORED);
}

#[test]
fn the_proof_and_the_verifier_give_the_key() {
    let verifier = Verifier::parse(STORED).unwrap();
    assert_eq!(sha256(&*example().key(&verifier).unwrap()), *verifier.stored);
    let other = super::verifier("pen", &[7; 16]);
    assert!(example().key(&Verifier::parse(&other).unwrap()).is_none());
    assert!(Exchange::default().key(&verifier).is_none());
}

/// Plays a server for a login of the gateway's own.
fn play(login: &mut Login) -> (String, String) {
    let bare = login.first().strip_prefix("n,,").unwrap().to_owned();
    let nonce = format!("{}more", bare.strip_prefix("n=,r=").unwrap());
    let first = format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
    let answer = login.answer(first.as_bytes()).unwrap();
    let (without, proof) = answer.rsplit_once(",p=").unwrap();
    let said = format!("{bare},{first},{without}");
    let verifier = Verifier::parse(STORED).unwrap();
    let mut key = hmac(&*verifier.stored, said.as_bytes());
    let proof: Zeroizing<[u8; 32]> = decode(proof).unwrap();
    key.iter_mut().zip(proof.iter()).for_each(|(byte, proof)| *byte ^= proof);
    assert_eq!(sha256(&*key), *verifier.stored, "the server would refuse it");
    (said.clone(), format!("v={}", STANDARD.encode(*hmac(&*verifier.server, said.as_bytes()))))
}

#[test]
fn the_gateway_logs_in_by_the_key() {
    let mut login = Login::new(&example(), Verifier::parse(STORED).unwrap()).unwrap();
    assert!(!login.is_server(b"v="), "before anything was asked");
    let (_, last) = play(&mut login);
    assert!(login.is_server(last.as_bytes()));
    for wrong in [&b"v=AAAA"[..], b"", b"e=other-error", b"\xff", &last.as_bytes()[..20]] {
        assert!(!login.is_server(wrong));
    }
}

#[test]
fn a_server_that_does_not_repeat_the_nonce_is_not_answered() {
    let mut login = Login::new(&example(), Verifier::parse(STORED).unwrap()).unwrap();
    let own = login.first().strip_prefix("n,,n=,r=").unwrap().to_owned();
    for first in [String::new(), format!("r={own},s=,i=1"), "r=other,s=,i=1".to_owned()] {
        assert!(login.answer(first.as_bytes()).is_none(), "{first}");
    }
}

#[test]
fn what_others_make_is_understood() {
    let stored = postgres_protocol::password::scram_sha_256(b"s3cret");
    let mut client = ScramSha256::new(b"s3cret", ChannelBinding::unsupported());
    let mut exchange = Exchange::default();
    exchange.client_first(client.message()).unwrap();
    let bare = std::str::from_utf8(client.message()).unwrap().splitn(3, ',').nth(2).unwrap();
    let nonce = bare.rsplit_once("r=").unwrap().1;
    let salt = stored.split(['$', ':']).nth(2).unwrap();
    let first = format!("r={nonce}more,s={salt},i=4096");
    exchange.server_first(first.as_bytes()).unwrap();
    client.update(first.as_bytes()).unwrap();
    exchange.client_final(client.message()).unwrap();
    assert!(exchange.key(&Verifier::parse(&stored).unwrap()).is_some());
}

#[test]
fn gibberish_is_no_message() {
    let mut exchange = Exchange::default();
    assert!(exchange.client_first(b"n,").is_none());
    assert!(exchange.client_final(b"c=biws").is_none());
    assert!(exchange.client_final(b",p=****").is_none());
    assert!(exchange.server_first(&[b'x'; MESSAGE_BYTES_MAX + 1]).is_none());
    for text in ["", "md5abc", "SCRAM-SHA-256$", "SCRAM-SHA-256$4096:a$b:c", "SCRAM-SHA-256$$"] {
        assert!(Verifier::parse(text).is_none(), "{text}");
    }
}

#[test]
fn md5_is_answered_by_what_is_stored() {
    let stored = postgres_protocol::password::md5(b"secret", "role");
    let expected = postgres_protocol::authentication::md5_hash(b"role", b"secret", *b"salt");
    assert_eq!(*md5_answer(&stored, b"salt").unwrap(), expected);
    assert!(md5_answer("md5", b"salt").is_none());
    assert!(md5_answer(STORED, b"salt").is_none());
}
