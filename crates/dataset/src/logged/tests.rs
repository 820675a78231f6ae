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

#[test]
fn one_dataset_leaves_room_in_the_log_for_others() {
    let (log, records) = (log(), LoggedRecords::default());
    let (large, small) = (vec![1; 4000], [IoSlice::new(b"record")]);
    let refused = (1..1000).find_map(|last| {
        let appended = records.append(&log, DatasetId(1), last, &[IoSlice::new(&large)]);
        appended.err().map(|error| (last, error))
    });
    let (last, error) = refused.unwrap();
    assert!(matches!(error, offshoot_intent_log::Error::Full) && last > 20, "{last}: {error}");
    let space = log.space();
    assert!(space.used < space.total * 7 / 8, "{} of {}", space.used, space.total);
    records.append(&log, DatasetId(2), 1, &small).unwrap();
    records.commit_done(Some(&log), DatasetId(1), Some(last));
    records.append(&log, DatasetId(1), last + 1, &small).unwrap();
}
