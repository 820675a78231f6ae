use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_places_of_the_fields_stay() {
    let header = LogFileHeader { generation: 1, first_sequence: 2, trimmed: 3 };
    let bytes = header.encode();
    assert_eq!(hex(&bytes[..12]), "4f53494e544c4f4701000000");
    assert_eq!(hex(&bytes[16..40]), "010000000000000002000000000000000300000000000000");
    assert_eq!(LogFileHeader::decode(&bytes).unwrap(), header);
    let record = LogRecordHeader { length: 3, sequence: 4, generation: 5 };
    let checksum = crc32c::crc32c_append(record.checksum_seed(), b"abc");
    let mut bytes = record.encode(checksum).to_vec();
    assert_eq!(hex(&bytes[..4]), "4f534c52");
    assert_eq!(hex(&bytes[8..]), "030000000000000004000000000000000500000000000000");
    bytes.extend_from_slice(b"abc");
    assert_eq!(LogRecordHeader::decode(&bytes).unwrap(), (record, &b"abc"[..]));
    assert_eq!(LogRecordHeader::stored_len(480), 512);
    assert_eq!(LogRecordHeader::stored_len(481), 1024);
}

#[test]
fn damage_is_noticed() {
    let bytes = LogFileHeader { generation: 1, first_sequence: 2, trimmed: 3 }.encode();
    let record = LogRecordHeader { length: 3, sequence: 4, generation: 5 };
    let checksum = crc32c::crc32c_append(record.checksum_seed(), b"abc");
    let mut stored = record.encode(checksum).to_vec();
    stored.extend_from_slice(b"abc");
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes;
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(LogFileHeader::decode(&damaged).is_err(), "bit {bit}");
    }
    for bit in 0..stored.len() * 8 {
        let mut damaged = stored.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(LogRecordHeader::decode(&damaged).is_err(), "bit {bit}");
    }
    assert!((0..stored.len()).all(|len| LogRecordHeader::decode(&stored[..len]).is_err()));
}
