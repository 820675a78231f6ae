use super::*;

fn code(address: &str, tls: bool) -> &'static str {
    let allow = ["10.1.0.0/16".parse().unwrap(), "fd00::/8".parse().unwrap()];
    admit(address.parse().unwrap(), tls, &allow).map_or_else(|fatal| fatal.code, |()| "")
}

#[test]
fn others_need_an_allowed_network_and_tls() {
    assert_eq!(code("10.1.2.3", true), "");
    assert_eq!(code("::ffff:10.1.2.3", true), "");
    assert_eq!(code("fd00::1", true), "");
    assert_eq!(code("10.1.2.3", false), "28000");
    assert_eq!(code("10.2.2.3", true), "28000");
    assert_eq!(code("::1.2.3.4", true), "28000");
}

#[test]
fn this_host_always_may() {
    for address in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
        assert_eq!(code(address, false), "");
    }
}
