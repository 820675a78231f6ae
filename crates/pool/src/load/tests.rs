use super::*;
use crate::table::Entry;
use offshoot_format::segment::{BlockKind, Codec};
use offshoot_format::table::{TableEntry, encode_chunk_header};
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use offshoot_types::BlockHash;

/// Names spread over the parts; every twelfth is repeated.
fn name(number: u32) -> BlockHash {
    let mut name = [0; 32];
    let mut random = u64::from(number - number % 12 / 11 * 11);
    for part in name.chunks_exact_mut(8) {
        random = (random + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        part.copy_from_slice(&random.to_le_bytes());
    }
    BlockHash(name)
}

fn entry(number: u32) -> TableEntry {
    let (kind, codec) = (BlockKind::Data, Codec::Raw);
    TableEntry { segment: number, offset: 64, stored_len: 9, raw_len: 9, kind, codec, refs: number }
}

/// Records in which later ones replace and remove earlier ones, in chunks of many lengths.
fn chunks(disk: &dyn Disk, count: u32) -> Vec<Chunks> {
    let mut files = Vec::new();
    for (path, numbers) in [("one", 0..count / 2), ("two", count / 2..count)] {
        let file = disk.create(path).unwrap();
        let mut len = 0;
        let mut payload = Vec::new();
        let last = numbers.end - 1;
        for number in numbers {
            let record = match number % 5 {
                4 => Record::Gone(name(number - 24 * (number > 100) as u32)),
                _ => Record::Put(name(number), entry(number)),
            };
            record.encode(&mut payload);
            if number % 7001 == 0 || number == last {
                let header = encode_chunk_header(7, &payload);
                file.write_at(len, &[&header[..], &payload].concat()).unwrap();
                len += (header.len() + payload.len()) as u64;
                payload.clear();
            }
        }
        files.push(Chunks { path: path.to_owned(), file, len });
    }
    files
}

fn content(table: &Table) -> Vec<(BlockHash, Entry)> {
    let mut all = Vec::new();
    table.visit(|hash, entry| all.push((*hash, *entry)));
    all.sort_by_key(|(hash, _)| *hash);
    all
}

#[test]
fn several_threads_load_what_one_does() {
    let disk = SimDisk::new(1);
    let files = chunks(&*disk, 250_000);
    assert!(files.iter().all(|file| file.len > BATCH_LEN as u64), "more than one batch each");
    let alone = Table::new();
    let mut worker = Worker::new(&alone, 0, 1);
    read(&Seals::default(), &files, |batch| worker.apply(&batch)).unwrap();
    let wanted = content(&alone);
    assert!(wanted.len() > 100_000);
    for threads in [2, 3] {
        let table = Table::new();
        load_on(threads, &Seals::default(), &files, &table).unwrap();
        assert!(content(&table) == wanted, "{threads} threads");
    }
}

#[test]
fn damage_is_an_error_whoever_meets_it() {
    let disk = SimDisk::new(1);
    let file = disk.create("log").unwrap();
    // The checksum is right: only the thread that applies the record sees what it is.
    let payload = [9; 40];
    let header = encode_chunk_header(1, &payload);
    file.write_at(0, &[&header[..], &payload].concat()).unwrap();
    let chunks = |len| [Chunks { path: "log".to_owned(), file: file.clone(), len }];
    for len in [header.len() + payload.len(), 30] {
        for threads in [1, 2] {
            let result = load_on(threads, &Seals::default(), &chunks(len as u64), &Table::new());
            assert!(matches!(result, Err(Error::DamagedStructure { .. })), "{result:?}");
        }
    }
}
