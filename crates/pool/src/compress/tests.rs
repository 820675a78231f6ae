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
        let (codec, stored) = compress(BlockKind::Data, &content, true);
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
    assert_eq!(compress(BlockKind::Data, &rows, true).0, Codec::Zstd);
    let page = random(8192, 9);
    assert_eq!(compress(BlockKind::Data, &page, true).0, Codec::Page);
    assert_eq!(compress(BlockKind::Node, &page, true).0, Codec::Raw);
    assert_eq!(compress(BlockKind::Data, &page[1..], true).0, Codec::Raw);
}

#[test]
fn damaged_content_is_an_error() {
    let (_, stored) = compress(BlockKind::Data, &[7; 8192], true);
    let stored = stored.unwrap();
    assert!(decompress(Codec::Zstd, stored.clone(), 8191).is_err());
    assert!(decompress(Codec::Zstd, stored.clone(), 8193).is_err());
    assert!(decompress(Codec::Zstd, random(40, 2), 8192).is_err());
    assert!(decompress(Codec::Lz4, random(40, 2), 8192).is_err());
    assert!(decompress(Codec::Raw, stored, 8192).is_err());
}

/// What the choice of the codec rests on: run with OFFSHOOT_SAMPLE naming a directory of database
/// files to see the ratios of real pages.
#[test]
#[ignore = "prints figures of files that OFFSHOOT_SAMPLE names, checks nothing"]
fn ratios_of_a_sample() {
    fn visit(dir: &std::path::Path, pages: &mut Vec<Vec<u8>>) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                visit(&path, pages);
            } else if let Ok(content) = std::fs::read(&path) {
                pages.extend(content.chunks_exact(8192).map(<[u8]>::to_vec));
            }
        }
    }
    let dir = std::env::var("OFFSHOOT_SAMPLE").expect("OFFSHOOT_SAMPLE names a directory");
    let mut pages = Vec::new();
    visit(dir.as_ref(), &mut pages);
    pages.retain(|page| page.iter().any(|byte| *byte != 0));
    let raw: usize = pages.iter().map(Vec::len).sum();
    let sum = |stored: &dyn Fn(&Vec<u8>) -> usize| {
        raw as f64 / pages.iter().map(stored).sum::<usize>() as f64
    };
    let zstd = sum(&|page| {
        compress(BlockKind::Data, page, true).1.map_or(page.len(), |bytes| bytes.len())
    });
    let forced = sum(&|page| zstd::bulk::compress(page, LEVEL).unwrap().len().min(page.len()));
    let lz4 = sum(&|page| lz4_flex::block::compress(page).len().min(page.len()));
    let skipped = pages.iter().filter(|page| looks_random(page)).count();
    println!(
        "{} pages: zstd-1 {zstd:.2} (without the early skip {forced:.2}), LZ4 {lz4:.2}; {skipped} skipped",
        pages.len()
    );
}
