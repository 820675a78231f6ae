use super::*;
use std::io::Read;

#[test]
fn the_user_s_own_programs_are_spoken_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    LocalConnector::new(&path).connect().unwrap();
}

mod needs_root {
    use super::*;
    use rustix::process::Uid;
    use rustix::thread::set_thread_res_uid;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    /// A listener of another user. The kernel notes who begins to listen; a thread can be somebody else.
    fn listen_as(uid: u32, path: &Path) -> UnixListener {
        let path = path.to_owned();
        let listen = move || {
            let other = Uid::from_raw(uid);
            set_thread_res_uid(other, other, other).unwrap();
            UnixListener::bind(path).unwrap()
        };
        std::thread::spawn(listen).join().unwrap()
    }

    #[test]
    #[ignore = "needs root"]
    fn a_program_of_a_user_who_does_not_own_the_pool_is_sent_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let path = dir.path().join("socket");
        let listener = listen_as(54_321, &path);
        let error = LocalConnector::new(&path).connect().unwrap_err();
        assert!(error.get_ref().unwrap().is::<Stranger>(), "{error}");
        let (mut stream, _) = listener.accept().unwrap();
        let mut sent = Vec::new();
        stream.read_to_end(&mut sent).unwrap();
        assert_eq!(sent, b"");

        std::os::unix::fs::chown(dir.path(), Some(54_321), None).unwrap();
        LocalConnector::new(&path).connect().unwrap();
    }
}
