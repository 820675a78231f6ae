use super::*;

#[test]
fn what_is_written_is_read() {
    let label = Label::new([7; 16]);
    assert_eq!(label.encode().len(), LEN);
    assert_eq!(Label::decode(&label.encode()), Ok(label));
    assert_eq!(label.refusal(), None);
}

#[test]
fn a_version_one_label_stays_readable() {
    let mut bytes = b"OFFSHOOT\x01\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    bytes.extend_from_slice(&[0xAB; 16]);
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    let label = Label::decode(&bytes).unwrap();
    assert_eq!((label.pool_id, label.features, label.refusal()), ([0xAB; 16], 0, None));
}

#[test]
fn damage_and_the_future_are_refused() {
    let label = Label::new([7; 16]);
    for byte in 0..LEN {
        let mut bytes = label.encode();
        bytes[byte] ^= 1;
        let refused = match Label::decode(&bytes) {
            Ok(read) => read.refusal().is_some(),
            Err(_) => true,
        };
        assert!(refused, "a flip in byte {byte} is noticed");
        assert!(Label::decode(&bytes[..byte]).is_err());
    }
    let newer = Label { version: 2, ..label };
    assert!(Label::decode(&newer.encode()).unwrap().refusal().unwrap().contains("version 2"));
    let featured = Label { features: 8, ..label };
    assert!(Label::decode(&featured.encode()).unwrap().refusal().unwrap().contains("0x8"));
    assert!(!label.is_encrypted() && label.features == 3, "a plain pool's label is as it was");
    let encrypted = Label::new_encrypted([7; 16]);
    assert!(encrypted.is_encrypted() && encrypted.refusal().is_none());
}
