use super::*;

#[test]
fn logs_are_bounded_and_other_files_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (log, other) = (dir.path().join("vdb-1.log"), dir.path().join("notes"));
    let large = vec![b'x'; LOG_BYTES_MAX as usize + 1];
    std::fs::write(&log, &large).unwrap();
    std::fs::write(&other, &large).unwrap();
    assert!(cut_all(dir.path()) && !cut_all(dir.path()));
    assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
    let earlier = bounded_log::earlier(&log);
    assert_eq!(std::fs::metadata(earlier).unwrap().len(), LOG_BYTES_MAX);
    assert_eq!(std::fs::metadata(&other).unwrap().len(), LOG_BYTES_MAX + 1);
}

#[test]
fn old_logs_go_unless_their_server_may_run_again() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["job-1.log", "job-1.log.old", "vdb-1.log", "notes"] {
        std::fs::write(dir.path().join(name), "text").unwrap();
    }
    let kept = |key: &str| (key != "vdb-1").then_some(KEPT);
    let written = std::fs::metadata(dir.path().join("job-1.log")).unwrap().modified().unwrap();
    let names = || {
        let entries = std::fs::read_dir(dir.path()).unwrap().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        names
    };
    remove_old(dir.path(), &kept, written + KEPT);
    assert_eq!(names().len(), 4);
    remove_old(dir.path(), &kept, written + KEPT + Duration::from_secs(1));
    assert_eq!(names(), ["notes", "vdb-1.log"]);
}
