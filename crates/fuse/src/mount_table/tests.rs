use super::*;
use offshoot_os::process::{Child, ProcessId, Spec};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;

#[test]
fn reads_a_line_with_escapes_and_optional_fields() {
    let line = b"36 35 0:52 / /mnt/a\\040b rw,nosuid shared:1 master:2 - fuse off\\134shoot rw";
    let entry = parse(line).unwrap();
    assert_eq!(entry.path, Path::new("/mnt/a b"));
    assert_eq!((entry.major, entry.minor), (0, 52));
    assert_eq!((entry.kind.as_str(), entry.source.as_str()), ("fuse", "off\\shoot"));
    assert!(!entry.is_ours());
}

#[test]
fn tells_as_whose_files_are_shown() {
    let shown = Ids { uid: 70_000, gid: 7 };
    let entry = |source: &str| parse(format!("1 2 0:1 / /m rw - fuse {source} rw").as_bytes());
    for (source, expected) in [(source(Some(shown)), Some(shown)), (source(None), None)] {
        let entry = entry(&source).unwrap();
        assert!(entry.is_ours(), "{source}");
        assert_eq!(entry.shown(), expected, "{source}");
    }
    assert!(!entry("offshoots:1:1").unwrap().is_ours());
    assert_eq!(entry("offshoot:1:x").unwrap().shown(), None);
}

#[test]
fn leaves_out_lines_of_an_unknown_form() {
    for line in ["", "36", "36 35 x / /mnt rw - fuse offshoot rw", "1 2 0:1 / /mnt rw fuse"] {
        assert_eq!(parse(line.as_bytes()), None, "{line}");
    }
}

#[test]
fn reads_the_table_of_this_host() {
    assert!(read().unwrap().iter().any(|entry| entry.path == Path::new("/proc")));
}

#[test]
fn a_missing_directory_has_nothing_to_clean() {
    let dir = tempfile::tempdir().unwrap();
    assert!(clean_stale_mounts(dir.path().join("missing/deeper"), &[]).unwrap().is_empty());
}

/// Set for a process that mounts there, and waits for itself.
const WAITS_AT: &str = "OFFSHOOT_TEST_WAITS_AT";

/// Says that it waits.
fn mark(mountpoint: &Path) -> PathBuf {
    mountpoint.with_extension("waits")
}

#[test]
fn who_was_killed_while_it_waited_for_itself_ends_once_its_mount_fails() {
    if let Some(mountpoint) = std::env::var_os(WAITS_AT) {
        wait_for_oneself(Path::new(&mountpoint));
    }
    // SAFETY: a plain system call.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mountpoint = dir.path().join("m");
    std::fs::create_dir(&mountpoint).unwrap();
    let name =
        "mount_table::tests::who_was_killed_while_it_waited_for_itself_ends_once_its_mount_fails";
    let spec = Spec::new(std::env::current_exe().unwrap()).args(["--exact", name]);
    let mut child: Child = spec.env(WAITS_AT, &mountpoint).spawn().unwrap();
    let mut looks = 0;
    while !mark(&mountpoint).exists() {
        looks += 1;
        assert!(looks < 1500, "it does not get to wait");
        std::thread::sleep(Duration::from_millis(20));
    }
    let id = ProcessId::of(child.pid()).unwrap();
    id.kill_group().unwrap();
    assert!(!id.wait_end(Duration::from_millis(500)), "it waits for an answer that nobody gives");
    assert!(id.is_dying());
    assert_eq!(
        abort_mounts(dir.path(), std::slice::from_ref(&mountpoint)).unwrap(),
        Vec::<PathBuf>::new()
    );
    assert!(!id.wait_end(Duration::from_millis(200)), "its mount was to be kept");
    let canonical = dir.path().canonicalize().unwrap();
    assert_eq!(abort_mounts(dir.path(), &[]).unwrap(), [canonical.join("m")]);
    assert!(id.wait_end(Duration::from_secs(30)), "it got an error, and could end");
    detach(&mountpoint).unwrap();
    child.kill_group();
}

/// Mounts, and answers nothing but the greeting; another thread asks it something.
fn wait_for_oneself(mountpoint: &Path) -> ! {
    let mut device = File::options().read(true).write(true).open("/dev/fuse").unwrap();
    let data = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
    let text = |text: &[u8]| CString::new(text).unwrap();
    let (source, target) = (text(SOURCE.as_bytes()), text(mountpoint.as_os_str().as_bytes()));
    let (kind, data) = (text(b"fuse"), text(data.as_bytes()));
    // SAFETY: valid C strings for the whole call.
    let mounted = unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, data.as_ptr().cast())
    };
    assert_eq!(mounted, 0, "{}", io::Error::last_os_error());
    let asked = mountpoint.to_owned();
    std::thread::spawn(move || std::fs::metadata(asked));
    let mut request = vec![0; 1 << 20];
    assert!(device.read(&mut request).unwrap() > 16);
    // fuse_out_header with the request's number, then fuse_init_out of version 7.31.
    let mut answer = [0u8; 80];
    answer[..4].copy_from_slice(&80u32.to_le_bytes());
    answer[8..16].copy_from_slice(&request[8..16]);
    answer[16..20].copy_from_slice(&7u32.to_le_bytes());
    answer[20..24].copy_from_slice(&31u32.to_le_bytes());
    answer[36..40].copy_from_slice(&4096u32.to_le_bytes());
    device.write_all(&answer).unwrap();
    assert!(device.read(&mut request).unwrap() > 16);
    File::create(mark(mountpoint)).unwrap();
    loop {
        std::thread::park();
    }
}
