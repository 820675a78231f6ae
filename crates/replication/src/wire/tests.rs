use super::*;
use offshoot_types::BlockHash;
use proptest::prelude::*;

fn decode(bytes: &[u8]) -> Result<Frame, DecodeError> {
    let mut header = [0; HEADER_LEN];
    header.copy_from_slice(&bytes[..HEADER_LEN]);
    Header::decode(&header)?.frame(&header, bytes[HEADER_LEN..].to_vec())
}

fn numbers(most: usize) -> impl Strategy<Value = Vec<u16>> {
    proptest::collection::vec(any::<u16>(), 0..=most)
}

fn frames() -> impl Strategy<Value = Frame> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..300);
    let state = (any::<[u8; 32]>(), 0..1u64 << 40, 0..1u64 << 40, 0..1u64 << 40).prop_map(
        |(mut root, next_ino, inodes, blocks)| {
            root[0] |= 1;
            TreeState { root: BlockHash(root), next_ino, inodes, blocks }
        },
    );
    let kinds = prop_oneof![Just(BlockKind::Data), Just(BlockKind::Node)];
    let codecs = prop_oneof![Just(Codec::Raw), Just(Codec::Zstd), Just(Codec::Lz4)];
    prop_oneof![
        bytes().prop_map(Frame::Manifest),
        proptest::collection::vec(state, 0..5).prop_map(Frame::States),
        (kinds, codecs, any::<u32>(), bytes()).prop_map(|(kind, codec, raw_len, stored)| {
            Frame::Block(PassingBlock { kind, codec, raw_len, stored })
        }),
        any::<[u8; 32]>().prop_map(Frame::End),
        (any::<u32>(), numbers(PATH_MAX), numbers(300))
            .prop_map(|(state, path, children)| { Frame::Want(Want { state, path, children }) }),
    ]
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(frame in frames()) {
        prop_assert_eq!(decode(&frame.encode()).unwrap(), frame);
    }

    #[test]
    fn a_flipped_bit_is_seen(frame in frames(), at in any::<proptest::sample::Index>(), bit in 0..8u32) {
        let mut bytes = frame.encode();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(decode(&bytes).is_err());
    }
}

#[test]
fn no_length_is_believed_that_the_type_cannot_have() {
    for kind in FrameType::ALL {
        let mut header = [0; HEADER_LEN];
        header[4] = kind as u8;
        header[8..12].copy_from_slice(&(kind.payload_max() as u32 + 1).to_le_bytes());
        assert!(Header::decode(&header).is_err(), "{kind:?}");
    }
}
