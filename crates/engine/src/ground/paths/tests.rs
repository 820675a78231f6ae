use super::*;
use std::os::unix::net::UnixListener;

#[test]
fn sockets_of_a_pool_with_a_long_path_lie_elsewhere_and_go_with_the_engine() {
    let dir = tempfile::tempdir().unwrap();
    let long = dir.path().join("x".repeat(RUNTIME_BASE_MAX));
    let paths = Paths::prepare(&long).unwrap();
    assert!(!paths.runtime().starts_with(paths.pool()));
    assert!(paths.runtime().as_os_str().len() <= RUNTIME_BASE_MAX);
    assert!(!paths.runtime().exists(), "nothing is made before the pool is ours");
    paths.make_runtime().unwrap();
    paths.make_runtime().unwrap();
    let socket = paths.server("vdb-1").join("s/socket");
    for server in ["vdb-1", "vdb-2"] {
        std::fs::create_dir_all(paths.server(server).join("s")).unwrap();
    }
    std::fs::write(&socket, "").unwrap();
    paths.remove_runtime();
    assert!(socket.exists(), "a server that is left keeps its directory");
    assert!(!paths.server("vdb-2").exists());
    std::fs::remove_file(&socket).unwrap();
    paths.remove_runtime();
    assert!(!paths.runtime().exists());
}

#[test]
fn only_old_runtime_directories_of_ours_where_nobody_listens_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let bound = |name: &str| {
        let runtime = dir.path().join(name);
        std::fs::create_dir(&runtime).unwrap();
        let listener = UnixListener::bind(keeper_socket(&runtime)).unwrap();
        (runtime, listener)
    };
    let prefix = runtime_prefix();
    let [deserted, own, answering] =
        ["1", "2", "3"].map(|number| bound(&format!("{prefix}{number}")));
    let others = bound("others-1");
    // The keepers of all but one are killed.
    for listener in [deserted.1, own.1, others.1] {
        drop(listener);
    }
    let left = [&own.0, &answering.0, &others.0];
    remove_deserted(dir.path(), &own.0, Duration::from_secs(3_600));
    assert!(keeper_socket(&deserted.0).exists(), "a keeper may be starting there");
    remove_deserted(dir.path(), &own.0, Duration::ZERO);
    assert!(!deserted.0.exists());
    assert!(left.iter().all(|runtime| keeper_socket(runtime).exists()), "{left:?}");
}

#[test]
fn a_directory_that_is_there_keeps_its_mode() {
    let dir = tempfile::tempdir().unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o7777;
    let [given, above] = ["given", "above"].map(|name| dir.path().join(name));
    for path in [&given, &above] {
        std::fs::create_dir(path).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o700)).unwrap();
    }
    let paths = Paths::prepare(&given).unwrap();
    Paths::prepare(&above.join("new/pool")).unwrap();
    assert_eq!((mode(&given), mode(&above)), (0o700, 0o700));
    assert_eq!((mode(&above.join("new")), mode(&above.join("new/pool"))), (0o711, 0o711));
    // The engine's own are opened to the servers again.
    std::fs::set_permissions(given.join("run"), PermissionsExt::from_mode(0o700)).unwrap();
    Paths::prepare(&given).unwrap();
    assert_eq!(mode(&given.join("run")), 0o711);

    let user = |uid| User { name: "other".to_owned(), uid, gid: uid, groups: Vec::new() };
    let refused = paths.check_way(&user(User::own_uid() + 1)).unwrap_err();
    assert!(refused.hint.starts_with("chmod o+x"), "{}", refused.hint);
    paths.check_way(&user(User::own_uid())).unwrap();
    std::fs::set_permissions(&given, PermissionsExt::from_mode(0o711)).unwrap();
    paths.check_way(&user(User::own_uid() + 1)).unwrap();
}

#[test]
fn a_link_where_the_runtime_directory_should_be_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let paths = Paths::prepare(&dir.path().join("x".repeat(RUNTIME_BASE_MAX))).unwrap();
    let theirs = dir.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::fs::set_permissions(&theirs, PermissionsExt::from_mode(0o700)).unwrap();
    std::os::unix::fs::symlink(&theirs, paths.runtime()).unwrap();
    let refused = paths.make_runtime();
    std::fs::remove_file(paths.runtime()).unwrap();
    assert!(refused.is_err());
    assert_eq!(std::fs::metadata(&theirs).unwrap().mode() & 0o777, 0o700);
}
