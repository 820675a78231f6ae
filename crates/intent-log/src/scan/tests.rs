use super::*;
use crate::IntentLog;
use offshoot_os::disk::sim::SimDisk;
use std::io::IoSlice;
use std::sync::Arc;

const FILE: u64 = 64 << 10;

/// A log of synced records with payloads of these lengths; record n is of stream n, up to n * 10.
fn log_of(lengths: &[usize]) -> Arc<SimDisk> {
    let disk = SimDisk::new(1);
    IntentLog::create(&*disk, FILE, 3).unwrap();
    let log = IntentLog::open(&*disk).unwrap();
    add(&log, lengths);
    disk
}

fn add(log: &IntentLog, lengths: &[usize]) {
    for length in lengths {
        let number = log.next_sequence();
        let payload = vec![number as u8; *length];
        let sequence = log.append(number, number * 10, &[IoSlice::new(&payload)]).unwrap();
        log.sync(sequence).unwrap();
    }
}

fn replay(disk: &SimDisk) -> (Vec<u64>, Vec<Damage>) {
    let replay = IntentLog::replay(disk).unwrap();
    for record in &replay.records {
        assert!(record.payload.iter().all(|byte| *byte == record.sequence as u8));
    }
    (replay.records.iter().map(|record| record.sequence).collect(), replay.damage)
}

/// The file of a record and where it begins there.
fn place_of(disk: &SimDisk, sequence: u64) -> (String, u64) {
    for number in 0..3 {
        let bytes = disk.content(&file_path(number)).unwrap();
        for (index, sector) in bytes.chunks(SECTOR_LEN).enumerate() {
            let found = SectorHeader::peek(sector);
            if found.is_some_and(|header| header.sequence == sequence && header.index == 0) {
                return (file_path(number), (index * SECTOR_LEN) as u64);
            }
        }
    }
    panic!("record {sequence} is not there");
}

fn flip(disk: &SimDisk, sequence: u64, offset: u64, bits: u8) {
    let (path, begin) = place_of(disk, sequence);
    (0..bits).for_each(|bit| disk.flip_bit(&path, begin + offset, bit));
}

fn of_stream(first: u64, last: u64, streams: &[u64], all_known: bool) -> Damage {
    let streams = streams.iter().map(|stream| (*stream, stream * 10)).collect();
    Damage { first, last, streams, all_known }
}

#[test]
fn one_flipped_bit_loses_nothing_wherever_it_is() {
    let disk = log_of(&[10, 3000, 500]);
    let (path, begin) = place_of(&disk, 2);
    let (_, end) = place_of(&disk, 3);
    for offset in (begin..end + 3000).step_by(37) {
        disk.flip_bit(&path, offset, (offset % 8) as u8);
        let replay = IntentLog::replay(&*disk).unwrap();
        assert_eq!((replay.records.len(), &replay.damage[..]), (3, &[][..]), "byte {offset}");
        let in_record = offset < end + SectorHeader::stored_len(500);
        assert_eq!(replay.mended, u64::from(in_record), "byte {offset}");
        disk.flip_bit(&path, offset, (offset % 8) as u8);
    }
    // Of the header there are two.
    for offset in 0..1024 {
        disk.flip_bit(&path, offset, 3);
        assert_eq!(replay(&disk), (vec![1, 2, 3], vec![]), "byte {offset} of the header");
        disk.flip_bit(&path, offset, 3);
    }
}

#[test]
fn a_damaged_record_is_told_and_those_behind_it_are_found() {
    let disk = log_of(&[10, 3000, 500]);
    flip(&disk, 2, 1500, 3);
    assert_eq!(replay(&disk), (vec![1, 3], vec![of_stream(2, 2, &[2], true)]));
    // Its first sector cannot be read at all: the others still say whose it is.
    flip(&disk, 2, 20, 3);
    assert_eq!(replay(&disk), (vec![1, 3], vec![of_stream(2, 2, &[2], true)]));
    // A record of a single sector then says nothing.
    flip(&disk, 1, 20, 3);
    assert_eq!(replay(&disk), (vec![3], vec![of_stream(1, 2, &[2], false)]));
}

#[test]
fn the_last_record_is_damaged_and_not_torn() {
    let disk = log_of(&[10, 3000]);
    flip(&disk, 2, 1500, 3);
    assert_eq!(replay(&disk), (vec![1], vec![of_stream(2, 2, &[2], true)]));
    // The next opening no longer knows it, and does not reuse its number.
    let log = IntentLog::open(&*disk).unwrap();
    assert_eq!(log.next_sequence(), 3);
    assert_eq!(replay(&disk), (vec![], vec![]));
    add(&log, &[100]);
    assert_eq!(replay(&disk), (vec![3], vec![]));
}

#[test]
fn sectors_that_were_put_back_are_noticed_by_what_is_behind_them() {
    let disk = log_of(&[10, 500, 3000, 500]);
    let (path, begin) = place_of(&disk, 2);
    let file = disk.open(&path).unwrap();
    file.write_at(begin, &[0; 1024]).unwrap();
    assert_eq!(replay(&disk), (vec![1, 3, 4], vec![of_stream(2, 2, &[], false)]));
    // In part: it is known whose it was.
    let (_, begin) = place_of(&disk, 3);
    file.write_at(begin + 1024, &[0; 512]).unwrap();
    let expected = [of_stream(2, 2, &[], false), of_stream(3, 3, &[3], true)];
    assert_eq!(replay(&disk), (vec![1, 4], expected.to_vec()));
}

#[test]
fn the_end_of_a_file_is_missed_by_the_next_file() {
    let disk = log_of(&[20_000, 20_000, 5000, 40_000, 100]);
    let (first, begin) = place_of(&disk, 3);
    assert_ne!(place_of(&disk, 4).0, first);
    disk.open(&first).unwrap().write_at(begin, &[0; 6000]).unwrap();
    assert_eq!(replay(&disk), (vec![1, 2, 4, 5], vec![of_stream(3, 3, &[], false)]));
}

#[test]
fn a_file_without_a_readable_header_is_damage_once() {
    let disk = log_of(&[20_000, 20_000, 5000, 40_000, 100]);
    let (path, _) = place_of(&disk, 4);
    for copy in [0, 512] {
        disk.flip_bit(&path, copy + 17, 0);
    }
    let (found, damage) = replay(&disk);
    assert_eq!((found, damage.len(), damage[0].all_known), (vec![1, 2, 3], 1, false));
    let log = IntentLog::open(&*disk).unwrap();
    assert_eq!(replay(&disk), (vec![], vec![]));
    let next = log.next_sequence();
    add(&log, &[100]);
    assert_eq!(replay(&disk), (vec![next], vec![]));
}

/// What an engine wrote before there were sectors.
fn old_log() -> Arc<SimDisk> {
    let disk = SimDisk::new(1);
    IntentLog::create(&*disk, FILE, 3).unwrap();
    let mut header = [0; 512];
    header[..12].copy_from_slice(b"OSINTLOG\x01\0\0\0");
    (header[16], header[24], header[32]) = (4, 7, 7);
    let checksum = crc32c::crc32c(&header);
    header[12..16].copy_from_slice(&checksum.to_le_bytes());
    let file = disk.open(&file_path(1)).unwrap();
    file.write_at(0, &header).unwrap();
    for (place, sequence) in [(4096, 7), (5120, 8)] {
        let mut record = vec![0; 32];
        record.extend_from_slice(&[sequence; 600]);
        record[8..10].copy_from_slice(&600u16.to_le_bytes());
        (record[16], record[24]) = (sequence, 4);
        let checksum = crc32c::crc32c(&record[8..]);
        record[..4].copy_from_slice(b"OSLR");
        record[4..8].copy_from_slice(&checksum.to_le_bytes());
        file.write_at(place, &record).unwrap();
    }
    (0..3).for_each(|number| disk.open(&file_path(number)).unwrap().sync_data().unwrap());
    disk
}

#[test]
fn a_log_of_the_first_version_is_read_and_made_one_of_this() {
    let disk = old_log();
    let found = IntentLog::replay(&*disk).unwrap();
    assert!(found.is_old);
    assert_eq!(replay(&disk), (vec![7, 8], vec![]));
    let log = IntentLog::open(&*disk).unwrap();
    assert_eq!(log.next_sequence(), 9);
    assert!(!IntentLog::replay(&*disk).unwrap().is_old);
    add(&log, &[100, 2000]);
    assert_eq!(replay(&disk), (vec![9, 10], vec![]));
    // Power lost anywhere in between: the old ones, some of them, or none.
    for at in 1..12 {
        let disk = old_log();
        disk.crash_after(at);
        let opened = IntentLog::open(&*disk).is_ok();
        disk.crash();
        let (found, damage) = replay(&disk);
        assert!([7, 8].starts_with(&found) && damage.is_empty(), "{at}: {found:?} {damage:?}");
        assert!(!opened || found.is_empty());
        let log = IntentLog::open(&*disk).unwrap();
        let next = log.next_sequence();
        add(&log, &[100]);
        assert_eq!(replay(&disk), (vec![next], vec![]));
    }
}

#[test]
fn every_damaged_record_at_the_end_is_known() {
    // The last one has a damaged body, and a header that is damaged but can be corrected.
    let disk = log_of(&[10, 700, 500]);
    flip(&disk, 2, 60, 2);
    flip(&disk, 3, 60, 2);
    flip(&disk, 3, 16, 1);
    let damage = vec![of_stream(2, 2, &[2], true), of_stream(3, 3, &[3], true)];
    assert_eq!(replay(&disk), (vec![1], damage));
    // A header beyond repair: whose record it was is not known.
    let disk = log_of(&[10, 700, 10]);
    flip(&disk, 2, 60, 2);
    flip(&disk, 3, 16, 3);
    let damage = vec![of_stream(2, 2, &[2], true), of_stream(3, 3, &[], false)];
    assert_eq!(replay(&disk), (vec![1], damage));
}
