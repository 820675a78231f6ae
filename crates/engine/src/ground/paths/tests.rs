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
