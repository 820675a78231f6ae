use super::*;

fn asked(listen: &[&str], allow: &[&str]) -> Result<Option<Exposure>, Failure> {
    let listen = listen.iter().map(|one| one.parse().unwrap()).collect();
    Exposure::asked(listen, allow.iter().map(|one| one.parse().unwrap()).collect())
}

#[test]
fn an_address_needs_an_allow_list_and_the_other_way_round() {
    assert_eq!(asked(&[], &[]).unwrap(), None);
    assert!(asked(&["10.0.0.5"], &[]).unwrap_err().hint.contains("--allow"));
    assert!(asked(&[], &["10.0.0.0/8"]).unwrap_err().hint.contains("--listen"));
    assert!(asked(&["10.0.0.5"], &["10.0.0.0/8"]).unwrap().is_some());
}

#[test]
fn what_cannot_be_meant_is_refused() {
    assert!(asked(&["127.0.0.1"], &["10.0.0.0/8"]).is_err());
    assert!(asked(&["::1"], &["10.0.0.0/8"]).is_err());
    let host_bits = asked(&["10.0.0.5"], &["10.1.2.3/8"]).unwrap_err();
    assert_eq!(host_bits.hint, "write 10.0.0.0/8 for that network, or 10.1.2.3/32");
    assert!(asked(&["10.0.0.5"; 65], &["10.0.0.0/8"]).is_err());
}

#[test]
fn loopback_is_always_listened_on_and_nothing_twice() {
    let addresses = |listen: &[&str]| {
        let exposure = asked(listen, &["10.0.0.0/8"]).unwrap().unwrap();
        exposure.addresses().iter().map(IpAddr::to_string).collect::<Vec<_>>()
    };
    assert_eq!(addresses(&["10.0.0.5"]), ["127.0.0.1", "10.0.0.5"]);
    assert_eq!(addresses(&["0.0.0.0"]), ["0.0.0.0"]);
    assert_eq!(addresses(&["::"]), ["127.0.0.1", "::"]);
}
