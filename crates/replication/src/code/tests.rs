use super::*;

#[test]
fn a_code_is_read_as_it_was_written() {
    let fingerprint = format!("sha256:{}", "0f".repeat(32));
    let code = Code::new(&fingerprint, [7; SECRET_BYTES]);
    let text = code.text();
    assert_eq!(
        Code::parse(&format!(" {} \n", text.to_uppercase().replace("PEER", "peer"))).unwrap(),
        code
    );
    assert!(!format!("{code:?}").contains(&code.secret), "{code:?}");
    for wrong in ["", "peer1-", &text[1..], &text[..text.len() - 1], &text.replace('7', "g")] {
        assert!(Code::parse(wrong).is_err(), "{wrong}");
    }
    assert_ne!(hash(&code.secret), hash("another"));
}
