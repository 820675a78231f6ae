use super::*;

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
