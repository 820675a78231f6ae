use super::{Lock, LockTable};
use offshoot_types::JobId;

#[test]
fn sharers_share_and_exclude_a_change() {
    let mut table = LockTable::default();
    table.hold(JobId(1), &[Lock::shared("dsource-1"), Lock::exclusive("vdb-1")]);
    table.hold(JobId(2), &[Lock::shared("dsource-1"), Lock::exclusive("vdb-2")]);
    let conflict = |table: &LockTable, lock: Lock| table.conflict(&[lock], |_| false);
    assert_eq!(conflict(&table, Lock::shared("dsource-1")), None);
    assert_eq!(conflict(&table, Lock::exclusive("dsource-1")), Some(JobId(1)));
    assert_eq!(conflict(&table, Lock::shared("vdb-2")), Some(JobId(2)));
    assert_eq!(conflict(&table, Lock::exclusive("vdb-3")), None);
    table.release(JobId(1));
    assert_eq!(conflict(&table, Lock::exclusive("dsource-1")), Some(JobId(2)));
    assert_eq!(table.conflict(&[Lock::exclusive("dsource-1")], |job| job == JobId(2)), None);
    table.release(JobId(2));
    assert_eq!(conflict(&table, Lock::exclusive("dsource-1")), None);
    assert!(table.held.is_empty(), "nothing stays behind");
}

#[test]
fn the_text_form_is_read_back() {
    for lock in [Lock::shared("dsource-1"), Lock::exclusive("vdb-3"), Lock::exclusive("name:dev")] {
        assert_eq!(Lock::from_text(&lock.to_string()), lock);
    }
}
