use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const HEADER: SectorHeader = SectorHeader {
    length: 3,
    index: 0,
    sequence: 4,
    generation: 5,
    unsynced: 6,
    stream: 7,
    position: 8,
};

fn record(payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = SectorHeader { length: payload.len() as u32, ..HEADER };
    header.encode_record(payload.chunks(700), &mut bytes);
    bytes
}

#[test]
fn the_places_of_the_fields_stay() {
    let header = LogFileHeader { generation: 1, first_sequence: 2, trimmed: 3 };
    let bytes = header.encode();
    for copy in bytes.chunks(SECTOR_LEN) {
        assert_eq!(hex(&copy[..12]), "4f53494e544c4f4702000000");
        assert_eq!(hex(&copy[16..40]), "010000000000000002000000000000000300000000000000");
    }
    assert_eq!(LogFileHeader::decode(&bytes), FileHeaderState::Begun(header));
    let bytes = record(b"abc");
    assert_eq!(
        hex(&bytes[8..52]),
        "0300000000000000040000000000000005000000060000000700000000000000080000000000000061626300"
    );
    assert_eq!(hex(&bytes[..8]), "a14c9897a11a9ece");
    assert_eq!(SectorHeader::stored_len(464), 512);
    assert_eq!(SectorHeader::stored_len(465), 1024);
    assert_eq!(SectorHeader::stored_len(0), 512);
}

#[test]
fn a_record_is_read_as_it_was_written() {
    for len in [0, 1, 463, 464, 465, 928, 5000] {
        let payload: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let mut bytes = record(&payload);
        assert_eq!(bytes.len() as u64, SectorHeader::stored_len(len));
        let mut read = Vec::new();
        for (index, sector) in bytes.chunks_exact_mut(SECTOR_LEN).enumerate() {
            let header = SectorHeader { length: len as u32, index: index as u32, ..HEADER };
            assert_eq!(Sector::read(sector), Sector::Whole { header, mended: false });
            read.extend_from_slice(Sector::body(sector));
        }
        assert_eq!(&read[..len], payload);
        assert!(read[len..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn one_flipped_bit_is_turned_back_and_more_are_noticed() {
    let whole = record(b"abc");
    for bit in 0..SECTOR_LEN * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(matches!(Sector::read(&mut damaged), Sector::Whole { mended: true, .. }), "{bit}");
        assert_eq!(damaged, whole, "bit {bit}");
        // Two in the same part are too many.
        let second = if bit / 8 == 60 { 61 } else { 60 };
        let (mut damaged, in_body) = (whole.clone(), (4..8).contains(&(bit / 8)) || bit / 8 >= 48);
        damaged[bit / 8] ^= 1 << (bit % 8);
        damaged[if in_body { second } else { 3 - bit / 8 % 2 }] ^= 0x10;
        let again = damaged == whole;
        match Sector::read(&mut damaged) {
            Sector::Damaged(header) => assert_eq!(header.is_some(), in_body, "bit {bit}"),
            _ => assert!(again || damaged == whole, "bit {bit}"),
        }
    }
}

#[test]
fn what_was_never_written_is_blank_also_with_a_flipped_bit() {
    let mut sector = [0; SECTOR_LEN];
    assert_eq!(Sector::read(&mut sector), Sector::Blank);
    sector[99] = 0x10;
    assert_eq!(Sector::read(&mut sector), Sector::Blank);
    assert_eq!(Sector::read(&mut [0x55; SECTOR_LEN]), Sector::Damaged(None));
}

#[test]
fn a_file_header_is_there_twice() {
    let old = LogFileHeader { generation: 1, first_sequence: 2, trimmed: 3 };
    let new = LogFileHeader { generation: 1, first_sequence: 9, trimmed: 5 };
    for damage in [0..SECTOR_LEN, SECTOR_LEN..2 * SECTOR_LEN] {
        let mut bytes = new.encode();
        bytes[damage.start + 30] ^= 1;
        assert_eq!(LogFileHeader::decode(&bytes), FileHeaderState::Begun(new));
        bytes[damage.clone()].copy_from_slice(&old.encode()[damage]);
        assert_eq!(LogFileHeader::decode(&bytes), FileHeaderState::Begun(new));
    }
    let mut bytes = new.encode();
    (bytes[30], bytes[600]) = (0xFF, 0xFF);
    assert_eq!(LogFileHeader::decode(&bytes), FileHeaderState::Damaged);
    assert_eq!(LogFileHeader::decode(&[0; 2 * SECTOR_LEN]), FileHeaderState::Blank);
}
