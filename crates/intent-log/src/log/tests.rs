use super::*;
use offshoot_format::seal::DataKey;
use offshoot_os::disk::sim::SimDisk;

const FILE: u64 = 64 << 10;

fn new_disk(seed: u64) -> Arc<SimDisk> {
    let disk = SimDisk::new(seed);
    IntentLog::create(&*disk, FILE, 3).unwrap();
    disk
}

fn add(log: &IntentLog, payload: &[u8]) -> Result<u64> {
    let middle = payload.len() / 2;
    let position = log.next_sequence() * 10;
    log.append(7, position, &[IoSlice::new(&payload[..middle]), IoSlice::new(&payload[middle..])])
}

fn payload(number: u64) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(8 + (number as usize * 997) % 5000, number as u8);
    bytes
}

fn sequences(disk: &SimDisk) -> Vec<u64> {
    let replay = IntentLog::replay(disk).unwrap();
    assert_eq!((replay.damage, replay.mended), (vec![], 0), "nothing was damaged");
    replay.records.iter().map(|record| record.sequence).collect()
}

#[test]
fn synced_records_survive_a_loss_of_power_as_a_prefix() {
    for seed in 0..200 {
        let disk = new_disk(seed);
        let log = IntentLog::open(&*disk).unwrap();
        disk.crash_after(1 + seed % 23);
        let (mut synced, mut appended) = (0, 0);
        for number in 1.. {
            match add(&log, &payload(number)) {
                Ok(sequence) => assert_eq!(sequence, number),
                Err(Error::Full | Error::Failed(_)) => break,
                Err(error) => panic!("{error}"),
            }
            appended = number;
            if number % 3 == seed % 3 {
                if log.sync(number).is_err() {
                    break;
                }
                synced = number;
            }
        }
        drop(log);
        disk.crash();
        let replay = IntentLog::replay(&*disk).unwrap();
        assert_eq!(replay.damage, [], "seed {seed}: a torn tail is no damage");
        let records = replay.records;
        let end = records.len() as u64;
        assert!((synced..=appended).contains(&end), "seed {seed}: {synced} {end} {appended}");
        for (record, number) in records.iter().zip(1..) {
            assert_eq!((record.sequence, &record.payload), (number, &payload(number)));
        }
    }
}

#[test]
fn the_ring_turns_and_older_laps_are_never_read() {
    let disk = new_disk(1);
    let log = IntentLog::open(&*disk).unwrap();
    let mut kept = std::collections::VecDeque::new();
    for number in 1..500 {
        let sequence = add(&log, &payload(number)).unwrap();
        log.sync(sequence).unwrap();
        kept.push_back(sequence);
        if kept.len() > 12 {
            kept.pop_front();
            log.trim(kept[0]);
        }
        if number % 7 == 0 {
            let found = sequences(&disk);
            // The trim on disk is as old as the file being written; what is kept is there whole.
            assert!(found.ends_with(kept.make_contiguous()), "{found:?} {kept:?}");
            assert!(found.windows(2).all(|pair| pair[0] + 1 == pair[1]));
        }
    }
}

#[test]
fn a_full_log_refuses_until_it_is_trimmed() {
    let disk = new_disk(1);
    let log = IntentLog::open(&*disk).unwrap();
    let mut last = 0;
    let error = loop {
        match add(&log, &[1; 10_000]) {
            Ok(sequence) => last = sequence,
            Err(error) => break error,
        }
    };
    assert_eq!(error, Error::Full);
    assert!(last >= 12 && log.space().used > log.space().total / 2);
    log.sync(last).unwrap();
    log.trim(last);
    let next = add(&log, &[2; 10_000]).unwrap();
    log.sync(next).unwrap();
    assert!(sequences(&disk).ends_with(&[last, next]));
    let too_large = add(&log, &vec![0; FILE as usize]);
    assert!(matches!(too_large, Err(Error::TooLarge { .. })));
}

/// A log that grows to five files.
fn open_growing(disk: &Arc<SimDisk>) -> IntentLog {
    IntentLog::open(&**disk).unwrap().growing(Arc::clone(disk) as _, 5 * FILE, || u64::MAX)
}

#[test]
fn a_log_grows_only_while_none_of_its_files_is_free() {
    let disk = new_disk(1);
    let log = open_growing(&disk);
    let files = || disk.list("log").unwrap().len();
    // Each record takes most of a file, so there is one in each.
    let add_large = || add(&log, &[1; 50_000]);
    for number in 1..20 {
        log.sync(add_large().unwrap()).unwrap();
        log.trim(number);
    }
    assert_eq!(files(), 3);
    while add_large().is_ok() {}
    assert_eq!((files(), log.next_sequence() - 19), (5, 5));
    log.sync(u64::MAX).unwrap();
    assert_eq!(sequences(&disk), [19, 20, 21, 22, 23]);
    assert_eq!(log.space().used, log.space().total - (FILE - log.state.lock().offset));
    // Any of them may come next; their order on the disk means nothing.
    for first in 20..60 {
        log.trim(first);
        log.sync(add_large().unwrap()).unwrap();
        let found = sequences(&disk);
        assert!(found.ends_with(&[first, first + 1, first + 2, first + 3, first + 4]), "{found:?}");
    }
    drop(log);
    assert_eq!(open_growing(&disk).space().total, 5 * FILE);
}

#[test]
fn a_log_without_room_to_grow_is_full() {
    let disk = new_disk(1);
    let log =
        IntentLog::open(&*disk).unwrap().growing(Arc::clone(&disk) as _, 5 * FILE, || FILE - 1);
    assert_eq!(log.space().total, 5 * FILE);
    while add(&log, &[1; 50_000]).is_ok() {}
    assert_eq!((log.next_sequence(), disk.list("log").unwrap().len()), (4, 3));
    assert_eq!(log.space().total, 3 * FILE, "commits make room early enough");
}

#[test]
fn a_crash_while_a_log_grows_loses_nothing() {
    for seed in 0..400 {
        let disk = new_disk(seed);
        let log = open_growing(&disk);
        disk.crash_after(1 + seed % 40);
        let mut synced = 0;
        for number in 1..=5 {
            let appended = add(&log, &[number as u8; 50_000]);
            if appended.is_err() || log.sync(number).is_err() {
                break;
            }
            synced = number;
        }
        drop(log);
        disk.crash();
        let found = sequences(&disk);
        assert!((synced..=synced + 1).contains(&(found.len() as u64)), "seed {seed}: {found:?}");
        // It continues, and grows again.
        let log = open_growing(&disk);
        let first = log.next_sequence();
        while add(&log, &[9; 50_000]).is_ok() {}
        log.sync(u64::MAX).unwrap();
        assert_eq!(sequences(&disk), (first..first + 5).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn a_new_opening_never_continues_with_records_of_an_older_one() {
    for seed in 0..100 {
        let disk = new_disk(seed);
        for lap in 0..6u64 {
            let replayed = sequences(&disk);
            let log = IntentLog::open(&*disk).unwrap();
            let first = log.next_sequence();
            assert!(replayed.last().is_none_or(|last| last + 1 == first));
            assert_eq!(sequences(&disk), [], "an opening forgets what was replayed");
            // Equal lengths, so that stale records are exactly where new ones would be.
            for number in 0..4 {
                add(&log, &[lap as u8; 700]).unwrap();
                if number == 1 {
                    log.sync(first + 1).unwrap();
                }
            }
            if lap % 2 == 0 {
                // Torn: the last two may be half written.
                disk.crash_after(1);
                let _ = log.sync(first + 3);
            }
            drop(log);
            disk.crash();
            let records = IntentLog::replay(&*disk).unwrap().records;
            assert!(records.len() >= 2, "seed {seed} lap {lap}");
            for record in records {
                assert_eq!(record.payload, [lap as u8; 700], "seed {seed} lap {lap}");
            }
        }
    }
}

#[test]
fn one_flush_serves_all_who_wait() {
    let dir = tempfile::tempdir().unwrap();
    let disk = offshoot_os::disk::LinuxDisk::new(dir.path()).unwrap();
    IntentLog::create(&disk, 1 << 20, 3).unwrap();
    let log = IntentLog::open(&disk).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let log = &log;
            scope.spawn(move || {
                for number in 0..20 {
                    let sequence = add(log, &(thread << 32 | number).to_le_bytes()).unwrap();
                    log.sync(sequence).unwrap();
                }
            });
        }
    });
    let records = IntentLog::replay(&disk).unwrap().records;
    assert_eq!(records.len(), 160);
    for thread in 0..8u64 {
        let own = records.iter().filter_map(|record| {
            let number = u64::from_le_bytes(record.payload[..].try_into().unwrap());
            (number >> 32 == thread).then_some(number & 0xffff_ffff)
        });
        assert!(own.eq(0..20), "a thread's records are in its order");
    }
}

#[test]
fn after_a_failed_flush_nothing_is_taken() {
    let disk = new_disk(3);
    let log = IntentLog::open(&*disk).unwrap();
    add(&log, b"one").unwrap();
    disk.crash_after(1);
    assert!(log.sync(1).is_err());
    assert!(matches!(add(&log, b"two"), Err(Error::Failed(_))));
    assert!(matches!(log.sync(1), Err(Error::Failed(_))));
    assert!(log.has_failed());
}

#[test]
fn stale_records_with_the_next_sequence_in_the_right_place_are_refused() {
    for seed in 0..100 {
        let disk = new_disk(seed);
        let log = IntentLog::open(&*disk).unwrap();
        add(&log, &[1; 500]).unwrap();
        log.sync(1).unwrap();
        // 2 is usually torn; 3 and 4 are left over from what never counted.
        for number in [2, 3, 4] {
            add(&log, &[number; 2000]).unwrap();
        }
        disk.crash_after(2);
        assert!(log.sync(4).is_err());
        drop(log);
        disk.crash();
        let found = sequences(&disk);
        assert!([1, 2, 3, 4].starts_with(&found) && !found.is_empty(), "seed {seed}: {found:?}");
        // The new ones end exactly where old ones began.
        let log = IntentLog::open(&*disk).unwrap();
        let first = log.next_sequence();
        assert_eq!(first, found.len() as u64 + 1);
        for number in [5, 6] {
            add(&log, &[number; 2000]).unwrap();
        }
        log.sync(first + 1).unwrap();
        assert_eq!(sequences(&disk), [first, first + 1]);
    }
}

fn seals(byte: u8) -> Seals {
    Seals::new(Some(&DataKey::of([byte; 32]))).unwrap()
}

#[test]
fn sealed_records_are_read_with_their_key_and_tell_nothing() {
    let disk = new_disk(1);
    let log = IntentLog::open_sealed(&*disk, seals(1)).unwrap();
    for number in 1..=20 {
        add(&log, &payload(number)).unwrap();
    }
    log.sync(20).unwrap();
    let found = IntentLog::replay_sealed(&*disk, &seals(1)).unwrap();
    assert_eq!((found.records.len(), found.damage.len()), (20, 0));
    for (record, number) in found.records.iter().zip(1..) {
        assert_eq!((record.sequence, &record.payload), (number, &payload(number)));
    }
    let bytes = disk.content("log/00.log").unwrap();
    assert!(!bytes.windows(64).any(|window| window == [20; 64]));
    // With another key all of it is damaged, and what it belonged to is known.
    let found = IntentLog::replay_sealed(&*disk, &seals(2)).unwrap();
    assert!(found.records.is_empty());
    assert_eq!((found.damage[0].first, &found.damage[0].streams), (1, &[(7, 10)].into()));
}

#[test]
fn the_longest_sealed_record_fits() {
    let disk = new_disk(1);
    let log = IntentLog::open_sealed(&*disk, seals(1)).unwrap();
    let longest = vec![7; log.payload_max()];
    let last = add(&log, &longest).unwrap();
    log.sync(last).unwrap();
    assert!(matches!(add(&log, &vec![7; log.payload_max() + 1]), Err(Error::TooLarge { .. })));
    let found = IntentLog::replay_sealed(&*disk, &seals(1)).unwrap();
    assert!(found.records[0].payload == longest);
}

#[test]
fn a_flipped_bit_of_a_sealed_record_is_mended_as_any_other() {
    let disk = new_disk(1);
    let log = IntentLog::open_sealed(&*disk, seals(1)).unwrap();
    let last = add(&log, &payload(3)).unwrap();
    log.sync(last).unwrap();
    disk.flip_bit("log/01.log", LOG_HEADER_LEN + 100, 3);
    let found = IntentLog::replay_sealed(&*disk, &seals(1)).unwrap();
    assert_eq!((found.mended, found.damage.len()), (1, 0));
    assert_eq!(found.records[0].payload, payload(3));
}

#[test]
fn what_was_changed_with_right_checksums_is_damage() {
    let disk = new_disk(1);
    let log = IntentLog::open_sealed(&*disk, seals(1)).unwrap();
    let last = add(&log, b"short").unwrap();
    log.sync(last).unwrap();
    let bytes = disk.content("log/01.log").unwrap();
    let at = LOG_HEADER_LEN as usize;
    let header = SectorHeader::peek(&bytes[at..]).unwrap();
    let mut body = bytes[at + 48..at + 48 + header.length as usize].to_vec();
    body[40 % header.length as usize] ^= 1;
    let mut forged = Vec::new();
    header.encode_record(std::iter::once(&body[..]), &mut forged);
    disk.open("log/01.log").unwrap().write_at(LOG_HEADER_LEN, &forged).unwrap();
    let found = IntentLog::replay_sealed(&*disk, &seals(1)).unwrap();
    assert!(found.records.is_empty() && found.damage.len() == 1);
}
