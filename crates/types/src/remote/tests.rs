use super::*;

#[test]
fn names_and_addresses_are_ports_of_hosts() {
    for text in ["db.example.com:5432", "10.1.0.5:1", "[2001:db8::1]:65535", "a_b-c:80"] {
        assert_eq!(text.parse::<Remote>().unwrap().to_string(), text);
    }
}

#[test]
fn what_names_no_port_of_a_host_is_refused() {
    // A line break would be a line of its own in a file of hosts.
    for text in [
        "",
        "host",
        "host:",
        "host:0",
        "host:70000",
        ":80",
        "::1:80",
        "[x]:80",
        "a b:80",
        "a\nb:80",
    ] {
        assert!(text.parse::<Remote>().is_err(), "{text:?}");
    }
}
