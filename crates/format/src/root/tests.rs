use super::*;

fn slot() -> RootSlot {
    RootSlot {
        txg: Txg(9),
        hash: BlockHash([3; 32]),
        checkpoint: 4,
        logs: vec![LogExtent { number: 5, len: 600 }, LogExtent { number: 7, len: 0 }],
        zero_saved: 10,
        dedup_saved: 11,
        extra: vec![1; EXTRA_LEN_MAX],
    }
}

#[test]
fn what_is_written_is_read() {
    let bytes = slot().encode().unwrap();
    assert_eq!(bytes.len(), LEN);
    assert_eq!(RootSlot::decode(&bytes), Ok(slot()));
    let full = RootSlot { logs: vec![LogExtent { number: 1, len: 1 }; LOGS_MAX], ..slot() };
    assert_eq!(RootSlot::decode(&full.encode().unwrap()), Ok(full));
}

#[test]
fn the_places_of_the_fields_stay() {
    let bytes = slot().encode().unwrap();
    assert_eq!(&bytes[..8], b"OFSROOT1");
    assert_eq!(bytes[12..20], 9u64.to_le_bytes());
    assert_eq!(bytes[20..52], [3; 32]);
    assert_eq!(bytes[52..60], 4u64.to_le_bytes());
    assert_eq!(bytes[80..96], [5, 0, 0, 0, 0, 0, 0, 0, 0x58, 2, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn damage_is_noticed() {
    let good = slot().encode().unwrap();
    for byte in (0..LEN).step_by(7).chain(0..100) {
        let mut bytes = good.clone();
        bytes[byte] ^= 0x10;
        assert!(RootSlot::decode(&bytes).is_err(), "a flip in byte {byte}");
    }
    assert!(RootSlot::decode(&good[..512]).is_err());
    let long = RootSlot { extra: vec![0; EXTRA_LEN_MAX + 1], ..slot() };
    assert!(long.encode().is_err());
}
