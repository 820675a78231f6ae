use super::*;
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;

fn log() -> IntentLog {
    let disk = SimDisk::new(1);
    let disk: &dyn Disk = &*disk;
    IntentLog::create(disk, 64 << 10, 3).unwrap();
    IntentLog::open(disk).unwrap()
}

#[test]
fn the_dataset_with_the_oldest_record_holds_the_log_back() {
    let (log, records) = (log(), LoggedRecords::default());
    let bytes = [IoSlice::new(b"record")];
    for (dataset, last) in [(2, 1), (1, 1), (2, 2)] {
        records.append(&log, DatasetId(dataset), last, &bytes).unwrap();
    }
    assert_eq!(records.oldest(), [DatasetId(2), DatasetId(1)]);
    records.commit_done(Some(&log), DatasetId(2), Some(1));
    assert_eq!(records.oldest(), [DatasetId(1), DatasetId(2)]);
    records.commit_done(Some(&log), DatasetId(1), None);
    assert_eq!(records.oldest(), [DatasetId(2)]);
}

#[test]
#[should_panic(expected = "dataset-1 logs 7 again")]
fn operations_are_not_logged_again() {
    let (log, records) = (log(), LoggedRecords::default());
    let bytes = [IoSlice::new(b"record")];
    records.append(&log, DatasetId(1), 7, &bytes).unwrap();
    let _ = records.append(&log, DatasetId(1), 7, &bytes);
}
