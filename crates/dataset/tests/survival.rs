//! A store whose process is killed, opened by the next one with the volatile logs that outlived it.
#![allow(clippy::unwrap_used)]

mod support;

use offshoot_dataset::{Dataset, DatasetId, Error, Ino, RenameMode, Store, VolatileLog};
use offshoot_os::SystemClock;
use std::os::fd::AsFd;
use std::sync::Arc;
use support::{TestStore, make_file, small_options};

/// A dataset with a volatile log that is complete.
fn surviving(test: &TestStore) -> (DatasetId, Arc<Dataset>, Arc<VolatileLog>) {
    let id = test.store.create_dataset().unwrap();
    let dataset = test.store.dataset(id).unwrap();
    let log = Arc::new(VolatileLog::create().unwrap());
    dataset.survive(log.clone());
    (id, dataset, log)
}

/// The store and the logs as the next engine finds them after SIGKILL.
fn taken_over(test: TestStore, logs: &[(DatasetId, &VolatileLog)]) -> TestStore {
    let TestStore { disk, options, store, dir } = test;
    drop(store);
    let again = |log: &VolatileLog| VolatileLog::open(log.as_fd().try_clone_to_owned().unwrap());
    let logs: Vec<_> = logs.iter().map(|(id, log)| (*id, Arc::new(again(log).unwrap()))).collect();
    let store =
        Store::take_over(Arc::clone(&disk), &options, Arc::new(SystemClock), &logs).unwrap();
    TestStore { disk, options, store, dir }
}

fn content(dataset: &Dataset, name: &[u8]) -> Vec<u8> {
    let attr = dataset.lookup(Ino::ROOT, name).unwrap();
    dataset.read(attr.ino, 0, attr.size as usize).unwrap().to_vec()
}

#[test]
fn what_nobody_synced_is_there_with_the_log_and_lost_without() {
    for with_log in [true, false] {
        let test = TestStore::new(small_options());
        let (id, dataset, log) = surviving(&test);
        let kept = make_file(&dataset, b"kept");
        dataset.write(kept, 0, &[1; 20_000]).unwrap();
        dataset.commit().unwrap();
        dataset.write(kept, 8192, &[2; 8192]).unwrap();
        dataset.rename(Ino::ROOT, b"kept", Ino::ROOT, b"renamed", RenameMode::Replace).unwrap();
        dataset.sync().unwrap();
        dataset.write(kept, 100, &[3; 50]).unwrap();
        make_file(&dataset, b"new");
        drop(dataset);
        let logs = if with_log { vec![(id, &*log)] } else { vec![] };
        let test = taken_over(test, &logs);
        let dataset = test.store.dataset(id).unwrap();
        let mut wanted = vec![1; 20_000];
        wanted[8192..16384].fill(2);
        if with_log {
            wanted[100..150].fill(3);
        }
        assert_eq!(content(&dataset, b"renamed"), wanted);
        assert_eq!(dataset.lookup(Ino::ROOT, b"new").is_ok(), with_log);
        assert_eq!(dataset.volatile().is_some(), with_log);
    }
}

#[test]
fn a_log_is_good_for_one_engine_after_the_other() {
    let mut test = TestStore::new(small_options());
    let (id, dataset, log) = surviving(&test);
    let ino = make_file(&dataset, b"file");
    drop(dataset);
    for round in 0..5_u8 {
        let dataset = test.store.dataset(id).unwrap();
        dataset.write(ino, u64::from(round) * 10, &[round; 10]).unwrap();
        if round == 3 {
            dataset.commit().unwrap();
        }
        drop(dataset);
        test = taken_over(test, &[(id, &log)]);
    }
    let dataset = test.store.dataset(id).unwrap();
    let wanted: Vec<u8> = (0..5).flat_map(|round| [round; 10]).collect();
    assert_eq!(content(&dataset, b"file"), wanted);
}

#[test]
fn a_file_in_use_keeps_its_content_without_a_name() {
    let test = TestStore::new(small_options());
    let (id, dataset, log) = surviving(&test);
    let (used, unused) = (make_file(&dataset, b"used"), make_file(&dataset, b"unused"));
    for ino in [used, unused] {
        dataset.write(ino, 0, b"content").unwrap();
        dataset.open(ino).unwrap();
    }
    log.opened(used.0, false);
    dataset.unlink(Ino::ROOT, b"used").unwrap();
    dataset.unlink(Ino::ROOT, b"unused").unwrap();
    dataset.commit().unwrap();
    drop(dataset);
    let test = taken_over(test, &[(id, &log)]);
    let dataset = test.store.dataset(id).unwrap();
    assert_eq!(&dataset.read(used, 0, 7).unwrap()[..], b"content");
    assert!(matches!(dataset.getattr(unused), Err(Error::NotFound)));
    dataset.let_go();
    assert!(matches!(dataset.getattr(used), Err(Error::NotFound)));
}

#[test]
fn an_incomplete_log_is_not_gone_on_with() {
    let test = TestStore::new(small_options());
    let id = test.store.create_dataset().unwrap();
    let dataset = test.store.dataset(id).unwrap();
    make_file(&dataset, b"before");
    let log = Arc::new(VolatileLog::create().unwrap());
    // What was done before is in no log and not committed yet.
    dataset.survive(log.clone());
    make_file(&dataset, b"after");
    drop(dataset);
    let test = taken_over(test, &[(id, &log)]);
    let dataset = test.store.dataset(id).unwrap();
    assert!(dataset.volatile().is_none());
    assert!(dataset.lookup(Ino::ROOT, b"after").is_err(), "no operation without those before it");
}
