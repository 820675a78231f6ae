use super::*;

#[test]
fn progress_lines_are_parsed() {
    let first = parse_progress("    12/30721 kB (0%), 0/1 tablespace (/x/backup_label           )");
    assert_eq!(first, Some(BackupProgress { done_bytes: 12 << 10, total_bytes: 30721 << 10 }));
    assert_eq!(
        parse_progress("30731/30731 kB (100%), 1/1 tablespace").unwrap().total_bytes,
        31468544
    );
    assert_eq!(parse_progress("pg_basebackup: base backup completed"), None);
    assert_eq!(parse_progress("pg_basebackup: checkpoint 0/2000028 kB"), None);
}

#[test]
fn mappings_are_escaped() {
    assert_eq!(escape_mapping("/a=b"), "/a\\=b");
}
