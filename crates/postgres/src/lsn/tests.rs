use super::*;

#[test]
fn text_and_back() {
    for text in ["0/0", "0/3A2B1C0", "16/B374D848", "FFFFFFFF/FFFFFFFF"] {
        assert_eq!(text.parse::<Lsn>().unwrap().to_string(), text);
    }
}

#[test]
fn refuses_what_is_no_lsn() {
    for text in ["", "/", "0", "0/", "/0", "0/100000000", "-1/0", "+1/0", "0/G", "0/1/2"] {
        assert!(text.parse::<Lsn>().is_err(), "{text}");
    }
}
