//! Whatever a damaged disk holds, the pool's decoders return an error or a value.

use offshoot_format::label::Label;
use offshoot_format::root::RootSlot;
use offshoot_format::segment::{Frame, decode_segment_header};
use offshoot_format::table::{Record, check_chunk, decode_chunk_header};
use offshoot_format::{Reader, segment};
use proptest::prelude::*;

fn decode_all(bytes: &[u8]) {
    let _ = Label::decode(bytes);
    let _ = RootSlot::decode(bytes);
    let _ = Frame::decode(bytes);
    let _ = decode_segment_header(bytes);
    let _ = check_chunk(bytes, bytes, 0);
    let _ = decode_chunk_header(bytes);
    let _ = Record::decode(&mut Reader::new("test", bytes));
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        decode_all(&bytes);
    }

    /// A correct checksum over nonsense, as an older or hostile writer may leave.
    #[test]
    fn nonsense_with_the_right_checksum(body in prop::collection::vec(any::<u8>(), 4084)) {
        let mut slot = b"OFSROOT1".to_vec();
        slot.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
        slot.extend_from_slice(&body);
        let _ = RootSlot::decode(&slot);
        let mut frame = body[..segment::FRAME_LEN as usize].to_vec();
        frame[4..6].copy_from_slice(&0x0FB1u16.to_le_bytes());
        let crc = crc32c::crc32c(&frame[4..]);
        frame[..4].copy_from_slice(&crc.to_le_bytes());
        let _ = Frame::decode(&frame);
        let mut record = vec![1];
        record.extend_from_slice(&body[..60]);
        let _ = Record::decode(&mut Reader::new("test", &record));
    }
}
