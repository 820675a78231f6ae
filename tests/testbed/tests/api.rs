//! How clients of the same host reach a real engine, and who does not.
#![allow(clippy::unwrap_used)]

use offshoot_api::Status;
use offshoot_os::process::{Spec, User, run};
use offshoot_rig::{Engine, EngineOptions, Scratch};
use offshoot_testbed::binary;
use serde_json::Value;
use std::net::TcpListener;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn start(scratch: &Scratch, arguments: &[&str]) -> Engine {
    let mut options = EngineOptions::new(binary());
    options.cache_size = "64MiB".into();
    options.arguments = arguments.iter().map(|one| (*one).to_owned()).collect();
    Engine::start(scratch, options).unwrap()
}

fn mode(path: &Path) -> u32 {
    let found = std::fs::symlink_metadata(path).unwrap();
    assert!(found.file_type().is_socket());
    found.permissions().mode() & 0o7777
}

/// What `offshoot status` says, run by a user.
fn status_of(user: Option<User>, arguments: &[&str]) -> Value {
    let spec = Spec::new(binary()).args(["status", "--json"]).args(arguments).user(user);
    let output = run(&spec, PATIENCE).unwrap();
    serde_json::from_str(&output.stdout_text())
        .unwrap_or_else(|error| panic!("{error}: {}", output.stderr_text()))
}

#[test]
fn the_socket_serves_its_pool_for_as_long_as_the_engine_runs() {
    let scratch = Scratch::new("socket").unwrap();
    let mut engine = start(&scratch, &[]);
    let socket = engine.pool().join("engine.socket");
    assert_eq!(mode(&socket), 0o600);
    let status: Status = engine.ask(["status"]).unwrap();
    assert_eq!(Path::new(&status.socket), socket);

    // The token is for TCP; a client of the socket neither reads nor sends it.
    let token = engine.pool().join("token");
    let aside = scratch.path().join("token");
    std::fs::rename(&token, &aside).unwrap();
    engine.command(["status"]).unwrap();
    let by_tcp = ["--server", &status.listen, "--token-file", aside.to_str().unwrap()];
    assert_eq!(status_of(None, &by_tcp)["pid"], status.pid);
    std::fs::rename(&aside, &token).unwrap();

    // One that was killed leaves its socket; the next engine's takes its place.
    engine.kill().unwrap();
    assert!(socket.exists());
    assert_eq!(engine.command(["status"]).unwrap_err().code, "engine_unreachable");
    let stranger = TcpListener::bind(&status.listen).unwrap();
    stranger.set_nonblocking(true).unwrap();
    assert_eq!(engine.command(["status"]).unwrap_err().code, "engine_unreachable");
    assert!(stranger.accept().is_err(), "the program on the engine's old port is sent nothing");
    engine.restart().unwrap();
    engine.command(["status"]).unwrap();

    // The one that takes over has the socket, also after the other's end.
    engine.take_over().unwrap();
    let now: Status = engine.ask(["status"]).unwrap();
    assert_eq!(Some(now.pid as i32), engine.pid());
    assert_eq!(engine.stop().unwrap(), 0);
    assert!(!socket.exists());
    assert_eq!(engine.command(["status"]).unwrap_err().code, "engine_unreachable");
}

#[test]
fn a_second_engine_leaves_the_first_one_s_socket_alone() {
    let scratch = Scratch::new("second").unwrap();
    let engine = start(&scratch, &[]);
    let status: Status = engine.ask(["status"]).unwrap();
    let pool = engine.pool().to_str().unwrap();
    let spec = Spec::new(binary()).args(["serve", "--pool", pool, "--listen", "127.0.0.1:0"]);
    let output = run(&spec, PATIENCE).unwrap();
    assert!(!output.status.success(), "{}", output.stderr_text());
    let again: Status = engine.ask(["status"]).unwrap();
    assert_eq!(again.pid, status.pid);
}

mod needs_root {
    use super::*;

    fn nobody() -> User {
        User::lookup("nobody").unwrap().unwrap()
    }

    #[test]
    #[ignore = "needs root"]
    fn another_user_is_let_in_neither_without_the_group_nor_without_a_token() {
        let scratch = Scratch::new("another").unwrap();
        std::fs::set_permissions(scratch.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let mut engine = start(&scratch, &[]);
        let pool = engine.pool().to_str().unwrap().to_owned();
        let by_socket = ["--pool", pool.as_str()];
        let refused = status_of(Some(nobody()), &by_socket);
        assert_eq!(refused["error"]["code"], "unauthorized", "{refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("does not let this user connect"), "{message}");
        assert_eq!(engine.stop().unwrap(), 0);

        let group = nobody().gid.to_string();
        engine.options.arguments = vec!["--socket-group".into(), group];
        engine.restart().unwrap();
        assert_eq!(mode(&engine.pool().join("engine.socket")), 0o660);
        let refused = status_of(Some(nobody()), &by_socket);
        assert_eq!(refused["error"]["code"], "unauthorized", "{refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("shows no token"), "{message}");
        let token = scratch.path().join("copy");
        std::fs::copy(engine.pool().join("token"), &token).unwrap();
        std::fs::set_permissions(&token, PermissionsExt::from_mode(0o644)).unwrap();
        let with_token = ["--pool", pool.as_str(), "--token-file", token.to_str().unwrap()];
        assert_eq!(status_of(Some(nobody()), &with_token)["pid"], engine.pid().unwrap());
    }
}
