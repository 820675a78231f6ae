use super::*;

fn bytes_of(family: i32, port: u16, address: &[u8], before: usize) -> Vec<u8> {
    let mut bytes = (family as u16).to_ne_bytes().to_vec();
    bytes.extend(port.to_be_bytes());
    bytes.extend(vec![0; before]);
    bytes.extend(address);
    bytes
}

#[test]
fn addresses_are_read_as_the_kernel_writes_them() {
    let four = bytes_of(libc::AF_INET, 5432, &[10, 1, 0, 5], 0);
    assert_eq!(socket_address(&four), Some("10.1.0.5:5432".parse().unwrap()));
    let six: Ipv6Addr = "2001:db8::1".parse().unwrap();
    let six = bytes_of(libc::AF_INET6, 80, &six.octets(), 4);
    assert_eq!(socket_address(&six), Some("[2001:db8::1]:80".parse().unwrap()));
    for length in 0..8 {
        assert_eq!(socket_address(&four[..length]), None);
    }
    assert_eq!(socket_address(&bytes_of(libc::AF_UNIX, 80, &[0; 24], 0)), None);
}

#[test]
fn only_the_same_address_and_port_may_be_reached() {
    let same = |one: &str, other: &str| is_same(&one.parse().unwrap(), &other.parse().unwrap());
    assert!(same("10.1.0.5:5432", "10.1.0.5:5432"));
    assert!(same("10.1.0.5:5432", "[::ffff:10.1.0.5]:5432"));
    assert!(!same("10.1.0.5:5432", "10.1.0.5:5433"));
    assert!(!same("10.1.0.5:5432", "10.1.0.6:5432"));
}
