use super::*;

const MAGIC_16: u16 = 0xD113;

/// A record of a manager with headers, block data and data of its own.
fn record(manager: u8, info: u8, headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut record = vec![0; RECORD_HEADER_BYTES];
    record[4..8].copy_from_slice(&77_u32.to_le_bytes());
    record[16] = info;
    record[17] = manager;
    record.extend_from_slice(headers);
    record.extend_from_slice(payload);
    record
}

fn block(id: u8, flags: u8, data: u16, file: Option<u32>) -> Vec<u8> {
    let mut header = vec![id, flags];
    header.extend(data.to_le_bytes());
    if let Some(file) = file {
        for number in [1663, 5, file] {
            header.extend(u32::to_le_bytes(number));
        }
    }
    header.extend(9_u32.to_le_bytes());
    header
}

#[test]
fn blocks_of_the_same_relation_are_told_once() {
    let headers = [block(0, 0, 2, Some(16400)), block(1, 0x80, 0, None), vec![255, 3]].concat();
    let read = written(&record(MANAGER_HEAP, 0x20, &headers, &[0; 5]), MAGIC_16).unwrap();
    assert_eq!((read.xid, read.files, read.rows), (77, vec![(5, 16400)], Some(Rows::Updated)));
}

#[test]
fn maps_of_free_space_are_no_contents() {
    let headers = [block(0, 0x01, 0, Some(16400)), vec![255, 0]].concat();
    let read = written(&record(MANAGER_HEAP2, 0x10, &headers, &[]), MAGIC_16).unwrap();
    assert!(read.files.is_empty());
}

#[test]
fn images_are_stepped_over() {
    // With a hole, compressed: two bytes more.
    let mut with_image = vec![0, 0x10, 0, 0, 4, 0, 8, 0, 0x01 | 0x04, 100, 0];
    for number in [1663_u32, 5, 16401] {
        with_image.extend(number.to_le_bytes());
    }
    with_image.extend(3_u32.to_le_bytes());
    let headers = [with_image, vec![255, 1]].concat();
    let record = record(MANAGER_HEAP, 0x00, &headers, &[0; 5]);
    assert_eq!(written(&record, MAGIC_16).unwrap().files, [(5, 16401)]);
    // In 14 this flag said something else, so the header was shorter.
    assert_ne!(written(&record, 0xD10D).map(|read| read.files), Some(vec![(5, 16401)]));
}

#[test]
fn a_commit_names_its_subtransactions() {
    let mut data = vec![0; 8];
    data.extend((1_u32 << 0 | 1 << 1 | 1 << 3).to_le_bytes());
    data.extend([5, 0, 0, 0, 0, 0, 0, 0]);
    data.extend([2, 0, 0, 0, 78, 0, 0, 0, 79, 0, 0, 0]);
    data.extend([1, 0, 0, 0]);
    data.extend([0; 16]);
    let headers = [255, data.len() as u8];
    let read = written(&record(MANAGER_TRANSACTION, 0x80, &headers, &data), MAGIC_16).unwrap();
    assert_eq!((read.subtransactions, read.changes_catalog), (vec![78, 79], true));
    assert_eq!(read.database, Some(5));
}

#[test]
fn what_is_cut_or_none_of_it_makes_no_sense() {
    let headers = [block(0, 0, 2, Some(16400)), vec![255, 3]].concat();
    let whole = record(MANAGER_HEAP, 0x00, &headers, &[0; 5]);
    // Within the header of the block, which has 20 bytes.
    for end in RECORD_HEADER_BYTES + 1..RECORD_HEADER_BYTES + 20 {
        assert_eq!(written(&whole[..end], MAGIC_16), None, "{end}");
    }
    assert_eq!(written(&whole[..whole.len() - 1], MAGIC_16), None);
    assert_eq!(written(&record(MANAGER_HEAP, 0, &[77], &[0; 9]), MAGIC_16), None);
    let endless = [&[255_u8, 12][..], &[0; 8], &2_u32.to_le_bytes()].concat();
    assert_eq!(written(&record(MANAGER_TRANSACTION, 0x80, &[], &endless), MAGIC_16), None);
}
