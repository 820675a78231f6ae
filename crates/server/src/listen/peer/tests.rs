use super::*;

fn remote(text: &str) -> Peer {
    Peer::Remote(text.parse().unwrap())
}

#[test]
fn addresses_of_one_network_share_a_bound_and_others_do_not() {
    assert_eq!(remote("[2001:db8::1]:1").share(), remote("[2001:db8::ffff:2]:9").share());
    assert_ne!(remote("[2001:db8::1]:1").share(), remote("[2001:db8:0:1::1]:1").share());
    assert_ne!(remote("192.0.2.1:1").share(), remote("192.0.2.2:1").share());
    assert_eq!(remote("[::ffff:192.0.2.1]:1").share(), remote("192.0.2.1:2").share());
    assert_ne!(remote("[::1]:1").share(), remote("[::2]:1").share());
}

#[test]
fn only_the_engine_s_user_and_root_own_it() {
    let local = |uid| Peer::Local { uid, pid: 1 };
    assert!(local(0).is_owner() && local(User::own_uid()).is_owner());
    assert!(!local(User::own_uid() + 1).is_owner());
    assert!(!remote("127.0.0.1:1").is_owner());
}
