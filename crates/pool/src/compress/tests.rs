use super::*;

fn random(len: usize, seed: u64) -> Vec<u8> {
    let mut z = seed | 1;
    let next = || {
        z ^= z << 13;
        z ^= z >> 7;
        z ^= z << 17;
        (z >> 32) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

#[test]
fn what_goes_in_comes_out() {
    let text = b"the quick brown fox ".repeat(410);
    for content in [text, random(8192, 5), vec![7; 65_536], vec![1], random(100, 3)] {
        let (codec, stored) = compress(&content);
        let stored = stored.unwrap_or_else(|| content.clone());
        assert!(stored.len() <= content.len());
        assert_eq!(decompress(codec, stored, content.len() as u32), Ok(content));
    }
    let stored = lz4_flex::block::compress(&[3; 500]);
    assert_eq!(decompress(Codec::Lz4, stored, 500), Ok(vec![3; 500]));
}

#[test]
fn random_content_is_not_tried_and_database_like_content_is() {
    for seed in 1..200 {
        assert!(looks_random(&random(8192, seed)), "seed {seed}");
    }
    // Rows of a counter, a small number and half random bytes.
    let rows: Vec<u8> = (0..256u32)
        .flat_map(|row| [row.to_le_bytes().to_vec(), vec![0; 12], random(16, row.into())].concat())
        .collect();
    assert!(!looks_random(&rows));
    assert_eq!(compress(&rows).0, Codec::Zstd);
    assert_eq!(compress(&random(8192, 9)).0, Codec::Raw);
}

#[test]
fn damaged_content_is_an_error() {
    let (_, stored) = compress(&[7; 8192]);
    let stored = stored.unwrap();
    assert!(decompress(Codec::Zstd, stored.clone(), 8191).is_err());
    assert!(decompress(Codec::Zstd, stored.clone(), 8193).is_err());
    assert!(decompress(Codec::Zstd, random(40, 2), 8192).is_err());
    assert!(decompress(Codec::Lz4, random(40, 2), 8192).is_err());
    assert!(decompress(Codec::Raw, stored, 8192).is_err());
}
