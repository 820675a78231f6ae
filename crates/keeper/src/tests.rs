use crate::{Keeper, run};
use offshoot_os::{Clock, SystemClock};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

fn started(socket: &Path) -> (JoinHandle<std::io::Result<()>>, Keeper) {
    let path = socket.to_owned();
    let thread = std::thread::spawn(move || run(&path, |_| {}));
    let deadline = SystemClock.elapsed() + Duration::from_secs(20);
    loop {
        match Keeper::connect(socket) {
            Ok(keeper) => return (thread, keeper),
            Err(error) if SystemClock.elapsed() >= deadline => panic!("no keeper: {error}"),
            Err(_) => SystemClock.sleep(Duration::from_millis(2)),
        }
    }
}

#[test]
fn the_next_engine_gets_what_the_one_before_left() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("keeper");
    let (thread, first) = started(&socket);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let other = File::open("/dev/null").unwrap();
    first.hold(7, &[reader.as_fd(), other.as_fd()]).unwrap();
    first.hold(8, &[other.as_fd(), other.as_fd()]).unwrap();
    first.drop_held(8).unwrap();
    assert_eq!(first.engine().unwrap(), Some(std::process::id() as i32));
    drop((first, reader));
    let second = Keeper::connect(&socket).unwrap();
    let mut held = second.list().unwrap();
    assert_eq!(held.iter().map(|one| one.key).collect::<Vec<_>>(), [7]);
    writer.write_all(b"still there").unwrap();
    drop(writer);
    let mut text = String::new();
    File::from(held.remove(0).descriptors.remove(0)).read_to_string(&mut text).unwrap();
    assert_eq!(text, "still there");
    // Holding nothing and without an engine it is of no use.
    second.drop_held(7).unwrap();
    drop(second);
    thread.join().unwrap().unwrap();
    assert!(Keeper::connect(&socket).is_err());
}

#[test]
fn who_only_asks_is_no_engine() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("keeper");
    let (thread, engine) = started(&socket);
    let other = File::open("/dev/null").unwrap();
    engine.hold(1, &[other.as_fd(), other.as_fd()]).unwrap();
    let asking = Keeper::connect(&socket).unwrap();
    assert!(asking.engine().unwrap().is_some());
    engine.drop_held(1).unwrap();
    drop(engine);
    // The engine is gone and nothing is held: the keeper ends although somebody is connected.
    thread.join().unwrap().unwrap();
    drop(asking);
}

#[test]
fn the_socket_of_a_killed_keeper_is_removed_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("keeper");
    let listener = UnixListener::bind(&socket).unwrap();
    let keeper = Keeper::connect(&socket).unwrap();
    drop(listener);
    keeper.end(&socket);
    assert!(!socket.exists());
}

#[test]
fn any_small_number_of_descriptors_is_held_in_its_order() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("keeper");
    let (thread, engine) = started(&socket);
    let files = [3, 1, 4].map(|length: u64| {
        let file = tempfile::tempfile().unwrap();
        file.set_len(length).unwrap();
        file
    });
    let fds: Vec<_> = files.iter().map(AsFd::as_fd).collect();
    for count in [1, 3] {
        engine.hold(9, &fds[..count]).unwrap();
        let held = engine.list().unwrap().remove(0).descriptors;
        let lengths = held.into_iter().map(|fd| File::from(fd).metadata().unwrap().len());
        assert_eq!(lengths.collect::<Vec<_>>(), [3, 1, 4][..count]);
    }
    assert!(engine.hold(9, &[]).is_err());
    assert!(engine.hold(9, &[fds[0]; 5]).is_err());
    engine.drop_held(9).unwrap();
    drop(engine);
    thread.join().unwrap().unwrap();
}

/// An engine of another release speaks with this keeper, and this engine with an older keeper.
#[test]
#[cfg(target_endian = "little")]
fn messages_are_as_they_always_were() {
    let bytes = crate::protocol::message(crate::protocol::HOLD, 0x0102_0304_0506_0708);
    assert_eq!(bytes[..8], [1, 0, 0, 0, 1, 0, 0, 0], "what, version");
    assert_eq!(bytes[8..], [8, 7, 6, 5, 4, 3, 2, 1]);
    use crate::protocol::{DONE, DROP, ENGINE, HELD, HOLD, LIST};
    assert_eq!([HOLD, DROP, LIST, ENGINE, DONE, HELD], [1, 2, 3, 4, 16, 17]);
}
