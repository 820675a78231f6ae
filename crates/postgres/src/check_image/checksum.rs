//! The checksum of a data page.
//!
//! PostgreSQL's format, as `src/include/storage/checksum_impl.h` describes it for programs that check
//! pages: the page is a table of 32 columns of 32-bit words; each column is hashed by a variant of
//! FNV-1a from its own basis, two words of zero are added, and the columns are joined by XOR with
//! each other and with the number of the page in its relation.

use std::array::from_fn;

/// Bytes of a page: only servers with this size can be linked.
pub(super) const PAGE_LEN: usize = 8192;
/// Where a page's header has its checksum, 16 bits; it counts as zero.
const CHECKSUM_AT: usize = 8;
/// Where it has the end of its free space, 16 bits; 0 in a page that was never written.
const UPPER_AT: usize = 14;

const COLUMNS: usize = 32;
const ROW_LEN: usize = COLUMNS * 4;
const FNV_PRIME: u32 = 16_777_619;
#[rustfmt::skip]
const BASES: [u32; COLUMNS] = [
    0x5b1f_36e9, 0xb852_5960, 0x02ab_50aa, 0x1de6_6d2a, 0x79ff_467a, 0x9bb9_f8a3, 0x217e_7cd2, 0x83e1_3d2c,
    0xf8d4_474f, 0xe39e_b970, 0x42c6_ae16, 0x9932_16fa, 0x7b09_3b5d, 0x98da_ff3c, 0xf718_902a, 0x0b1c_9cdb,
    0xe58f_764b, 0x1876_36bc, 0x5d7b_3bb1, 0xe73d_e7de, 0x92be_c979, 0xcca6_c0b2, 0x304a_0979, 0x85aa_43d4,
    0x7831_25bb, 0x6ca8_eaa2, 0xe407_eac6, 0x4b5c_fc3e, 0x9fbf_8c76, 0x15ca_20be, 0xf2ca_9fd3, 0x959b_d756,
];

/// Whether a page, the `number`th of its relation, matches its checksum; one that was never written
/// has none. The page has [`PAGE_LEN`] bytes.
pub(super) fn is_sound(page: &[u8], number: u64) -> bool {
    let field = |at: usize| match page.get(at..at + 2) {
        Some(&[low, high]) => u16::from_ne_bytes([low, high]),
        _ => 0,
    };
    field(UPPER_AT) == 0 || field(CHECKSUM_AT) == checksum(page, number)
}

fn checksum(page: &[u8], number: u64) -> u16 {
    let mut header = [0; ROW_LEN];
    let (first, rows) = page.split_at(ROW_LEN.min(page.len()));
    header[..first.len()].copy_from_slice(first);
    header[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
    let mut sums = BASES;
    mix(&mut sums, &header);
    rows.chunks_exact(ROW_LEN).for_each(|row| mix(&mut sums, row));
    (0..2).for_each(|_| mix(&mut sums, &[0; ROW_LEN]));
    let sum = sums.into_iter().fold(number as u32, |all, one| all ^ one);
    // Never zero.
    (sum % 65_535 + 1) as u16
}

/// Adds a row: a word to each column.
fn mix(sums: &mut [u32; COLUMNS], row: &[u8]) {
    let words: [u32; COLUMNS] =
        from_fn(|at| u32::from_ne_bytes(from_fn(|byte| row[at * 4 + byte])));
    for (sum, word) in sums.iter_mut().zip(words) {
        let mixed = *sum ^ word;
        *sum = mixed.wrapping_mul(FNV_PRIME) ^ (mixed >> 17);
    }
}
