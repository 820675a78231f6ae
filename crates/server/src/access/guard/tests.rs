use super::*;

#[test]
fn a_uri_loses_its_password_and_nothing_else() {
    for (whole, rest) in [
        (
            "postgresql://offshoot:s%40cret@127.0.0.1:6001/shop",
            "postgresql://offshoot@127.0.0.1:6001/shop",
        ),
        (
            "postgresql://offshoot:a:b@c@127.0.0.1/x?y=a:b@c",
            "postgresql://offshoot@127.0.0.1/x?y=a:b@c",
        ),
        ("postgresql://offshoot@127.0.0.1/x", "postgresql://offshoot@127.0.0.1/x"),
        ("toy://127.0.0.1:1", "toy://127.0.0.1:1"),
        ("", ""),
        ("user:secret@host", ""),
    ] {
        assert_eq!(without_password(whole), rest);
    }
}
