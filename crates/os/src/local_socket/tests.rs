use super::*;
use crate::descriptors::peer;
use crate::process::User;
use std::io::{Read, Write};

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn both_ends_know_each_other_and_the_file_has_its_mode() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let listener = LocalListener::bind(&path, 0o660, None).unwrap();
    assert_eq!(mode(&path), 0o660, "whatever the umask");
    let mut client = connect(&path).unwrap();
    let accepting = listener.socket().unwrap();
    accepting.set_nonblocking(false).unwrap();
    let (mut server, _) = accepting.accept().unwrap();
    assert_eq!(peer(&server).unwrap().uid, User::own_uid());
    assert_eq!(peer(&client).unwrap().uid, User::own_uid());
    client.write_all(b"hello").unwrap();
    server.set_nonblocking(false).unwrap();
    let mut told = [0; 5];
    server.read_exact(&mut told).unwrap();
    assert_eq!(&told, b"hello");
    drop(listener);
    assert!(!path.exists());
}

#[test]
fn a_path_may_be_longer_than_an_address() {
    let dir = tempfile::tempdir().unwrap();
    let long = dir.path().join("x".repeat(120));
    std::fs::create_dir(&long).unwrap();
    let path = long.join("socket");
    let _listener = LocalListener::bind(&path, 0o600, None).unwrap();
    connect(&path).unwrap();
}

#[test]
fn a_stale_file_is_replaced_and_one_of_somebody_else_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    // As a killed process leaves it.
    drop(UnixListener::bind(&path).unwrap());
    assert_eq!(connect(&path).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    let first = LocalListener::bind(&path, 0o600, None).unwrap();
    connect(&path).unwrap();
    let second = LocalListener::bind(&path, 0o600, None).unwrap();
    drop(first);
    connect(&path).unwrap();
    drop(second);
    assert_eq!(connect(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_link_in_the_place_of_the_file_is_replaced_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    std::fs::write(&victim, "mine").unwrap();
    std::fs::set_permissions(&victim, Permissions::from_mode(0o640)).unwrap();
    for name in ["socket", "socket.new"] {
        std::os::unix::fs::symlink(&victim, dir.path().join(name)).unwrap();
    }
    let path = dir.path().join("socket");
    let _listener = LocalListener::bind(&path, 0o600, None).unwrap();
    assert_eq!(
        (mode(&victim), std::fs::read_to_string(&victim).unwrap().as_str()),
        (0o640, "mine")
    );
    connect(&path).unwrap();
}
