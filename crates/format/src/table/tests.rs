use super::*;

fn entry() -> TableEntry {
    TableEntry {
        segment: 3,
        offset: 64,
        stored_len: 1 << 16,
        raw_len: 1 << 16,
        kind: BlockKind::Node,
        codec: Codec::Lz4,
        refs: 12,
    }
}

#[test]
fn what_is_written_is_read() {
    let records = [Record::Put(BlockHash([1; 32]), entry()), Record::Gone(BlockHash([2; 32]))];
    let mut payload = Vec::new();
    records.iter().for_each(|record| record.encode(&mut payload));
    assert_eq!(payload.len(), 54 + 33);
    let mut reader = Reader::new("test", &payload);
    assert_eq!(Record::decode(&mut reader), Ok(records[0]));
    assert_eq!(Record::decode(&mut reader), Ok(records[1]));
    assert!(reader.is_empty());
    let header = encode_chunk_header(8, &payload);
    let (sequence, len, checksum) = decode_chunk_header(&header).unwrap();
    assert_eq!((sequence, len), (8, payload.len()));
    check_chunk(&header, &payload, checksum).unwrap();
    payload[3] ^= 1;
    assert!(check_chunk(&header, &payload, checksum).is_err());
}

#[test]
fn impossible_records_are_refused() {
    let mut bytes = Vec::new();
    let beyond = TableEntry { segment: u32::MAX, ..entry() };
    let in_header = TableEntry { offset: 8, ..entry() };
    for impossible in [TableEntry { offset: 1 << 26, ..entry() }, beyond, in_header] {
        bytes.clear();
        Record::Put(BlockHash([1; 32]), impossible).encode(&mut bytes);
        assert!(Record::decode(&mut Reader::new("test", &bytes)).is_err());
    }
    bytes[0] = 9;
    assert!(Record::decode(&mut Reader::new("test", &bytes)).is_err());
    for len in 0..33 {
        assert!(Record::decode(&mut Reader::new("test", &bytes[..len])).is_err());
    }
}
