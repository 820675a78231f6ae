use super::*;

fn read(body: &[u8], code: u32) -> Result<Startup, &'static str> {
    let packet = [&[0; 8][..], body].concat();
    let peer = ([127, 0, 0, 1], 5).into();
    read_startup(&packet, code, false, peer).map_err(|fatal| fatal.code)
}

#[test]
fn the_role_is_found() {
    let startup = read(b"database\0a\0user\0app\0\0", 3 << 16).unwrap();
    assert_eq!((startup.role(), startup.replication), ("app".to_owned(), false));
    assert!(read(b"user\0app\0replication\0database\0\0", 3 << 16 | 2).unwrap().replication);
    assert!(!read(b"user\0app\0replication\0off\0\0", 3 << 16).unwrap().replication);
}

#[test]
fn what_is_no_startup_is_refused() {
    for body in [&b""[..], b"\0", b"user", b"user\0\0\0", b"database\0app\0\0", b"\0user\0app\0\0"]
    {
        assert_eq!(read(body, 3 << 16), Err(NOT_ALLOWED), "{body:?}");
    }
    assert_eq!(read(b"user\0app\0\0", 2 << 16), Err(PROTOCOL_VIOLATION));
}
