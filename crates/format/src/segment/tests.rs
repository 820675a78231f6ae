use super::*;

fn frame() -> Frame {
    Frame {
        hash: BlockHash([9; 32]),
        kind: BlockKind::Node,
        codec: Codec::Zstd,
        stored_len: 100,
        raw_len: 1 << 16,
    }
}

#[test]
fn what_is_written_is_read() {
    assert_eq!(Frame::decode(&frame().encode()), Ok(frame()));
    for (layout, len) in [(Layout::Frames, 64), (Layout::Pages, 4096)] {
        let header = encode_segment_header(&[5; 16], 77, layout);
        assert_eq!((header.len(), layout.begin()), (len, len as u32));
        assert_eq!(decode_segment_header(&header), Ok(([5; 16], 77, layout)));
    }
    assert_eq!([1, 8, 9].map(|stored_len| Layout::Frames.room(stored_len)), [56, 56, 64]);
    assert_eq!(Layout::Pages.room(PAGE_LEN), 8192, "nothing between two pages");
}

#[test]
fn damage_is_noticed() {
    for byte in 0..FRAME_LEN as usize {
        let mut bytes = frame().encode();
        bytes[byte] ^= 1;
        assert!(Frame::decode(&bytes).is_err(), "a flip in byte {byte}");
        assert!(Frame::decode(&bytes[..byte]).is_err());
    }
    assert!(Frame::decode(&[0; 48]).is_err(), "a hole is no frame");
    let mut header = encode_segment_header(&[5; 16], 77, Layout::Frames);
    header[9] ^= 1;
    assert!(decode_segment_header(&header).is_err());
    assert!(decode_segment_header(&header[..20]).is_err());
    let empty = Frame { stored_len: 0, ..frame() };
    assert!(Frame::decode(&empty.encode()).is_err());
    let page = Frame { codec: Codec::Page, ..frame() };
    assert!(Frame::decode(&page.encode()).is_err(), "a page has no frame");
}
