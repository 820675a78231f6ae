use super::*;
use offshoot_connector::PlainDir;

/// Committed, and not deleted.
const LIVE: u16 = XMIN_COMMITTED | XMAX_INVALID;

/// A row with its marks, as a page has it.
fn row(xmin: u32, xmax: u32, marks: u16, value: &[u8]) -> Vec<u8> {
    let mut row = vec![0; ROW_HEADER];
    row[0..4].copy_from_slice(&xmin.to_le_bytes());
    row[4..8].copy_from_slice(&xmax.to_le_bytes());
    row[18..20].copy_from_slice(&2_u16.to_le_bytes());
    row[20..22].copy_from_slice(&marks.to_le_bytes());
    row[22] = 24;
    row.push(0);
    row.extend_from_slice(value);
    row
}

fn page(rows: &[Vec<u8>]) -> Vec<u8> {
    let mut page = vec![0; PAGE_BYTES];
    let mut upper = PAGE_BYTES;
    for (at, row) in rows.iter().enumerate() {
        upper -= row.len().next_multiple_of(8);
        page[upper..upper + row.len()].copy_from_slice(row);
        // An empty one stands for a pointer that is not used.
        let state = if row.is_empty() { 0 } else { NORMAL };
        let pointer = upper as u32 | state << 15 | (row.len() as u32) << 17;
        page[PAGE_HEADER + 4 * at..][..4].copy_from_slice(&pointer.to_le_bytes());
    }
    let lower = (PAGE_HEADER + 4 * rows.len()) as u16;
    page[12..14].copy_from_slice(&lower.to_le_bytes());
    page
}

/// How transactions ended: by their numbers.
const COMMITTED: [u32; 4] = [500, 501, 600, 2000];
const ROLLED_BACK: u32 = 700;
const UNDER_WAY: u32 = 800;
const OF_PARENT: u32 = 850;
const SHARED: u64 = 590;

fn copy() -> (tempfile::TempDir, PlainDir) {
    let directory = tempfile::tempdir().unwrap();
    let mut bytes = vec![0_u8; 1000];
    let mut put =
        |number: u32, bits: u8| bytes[(number / 4) as usize] |= bits << (2 * (number % 4));
    COMMITTED.into_iter().for_each(|number| put(number, 1));
    put(ROLLED_BACK, 2);
    put(OF_PARENT, 3);
    std::fs::create_dir(directory.path().join("pg_xact")).unwrap();
    std::fs::write(directory.path().join("pg_xact/0000"), bytes).unwrap();
    let files = PlainDir::new(directory.path());
    (directory, files)
}

fn found(left: &[u8], right: &[u8]) -> Vec<u16> {
    let (_directory, files) = copy();
    let (left_ones, right_ones) = (Outcomes::new(&files), Outcomes::new(&files));
    let mut known = Transactions { left: left_ones, right: right_ones, shared: SHARED };
    let mut items = Vec::new();
    of_page(left, right, &mut known, &mut |item| items.push(item));
    items
}

/// Whether these two are told apart at the same place.
fn differ(left: &[u8], right: &[u8]) -> bool {
    let (left, right) = (page(&[left.to_vec()]), page(&[right.to_vec()]));
    let one_way = found(&left, &right);
    assert_eq!(one_way, found(&right, &left));
    !one_way.is_empty()
}

#[test]
fn the_same_row_in_both_is_left_out() {
    let live = row(500, 0, LIVE, b"a");
    for same in [
        // Without its marks, frozen, written again, or locked.
        row(500, 0, 0, b"a"),
        row(2, 0, 0, b"a"),
        row(7, 0, XMIN_COMMITTED | XMIN_INVALID, b"a"),
        row(501, 0, 0, b"a"),
        row(500, UNDER_WAY, XMIN_COMMITTED | LOCK_ONLY | XMAX_IS_MULTI, b"a"),
        // Not deleted after all.
        row(500, ROLLED_BACK, 0, b"a"),
        row(500, UNDER_WAY, XMIN_COMMITTED, b"a"),
        row(500, 600, LIVE, b"a"),
        row(500, 600, XMIN_COMMITTED | LOCKED_BY_ONE, b"a"),
    ] {
        assert!(!differ(&live, &same), "{same:?}");
        let other = [&same[..], b"b"].concat();
        assert!(differ(&live, &other), "{same:?}");
    }
    assert!(differ(&live, &row(500, 0, LIVE, b"b")));
    // Another null bitmap, or count of columns.
    let mut fewer = live.clone();
    fewer[18] = 1;
    assert!(differ(&live, &fewer));
}

#[test]
fn no_row_in_both_is_left_out() {
    let none = [
        Vec::new(),
        row(500, 600, XMIN_COMMITTED | XMAX_COMMITTED, b"a"),
        row(500, 600, 0, b"b"),
        row(ROLLED_BACK, 0, XMAX_INVALID, b"c"),
        row(0, 0, XMAX_INVALID, b"c"),
        row(UNDER_WAY, 0, XMAX_INVALID, b"d"),
        row(500, 0, XMIN_INVALID | XMAX_INVALID, b"e"),
    ];
    for one in &none {
        for other in &none {
            assert!(!differ(one, other), "{one:?} {other:?}");
        }
        assert!(differ(one, &row(500, 0, LIVE, b"a")));
    }
}

#[test]
fn whatever_is_not_known_is_asked_for() {
    for unknown in [
        row(OF_PARENT, 0, XMAX_INVALID, b"a"),
        // Beyond what the copy knows.
        row(400_000, 0, XMAX_INVALID, b"a"),
        row(500, OF_PARENT, 0, b"a"),
        row(500, 600, XMIN_COMMITTED | XMAX_COMMITTED | XMAX_IS_MULTI, b"a"),
        row(500, 0, LIVE | 0x4000, b"a"),
    ] {
        assert!(differ(&unknown, &unknown), "{unknown:?}");
        assert!(differ(&unknown, &[]), "{unknown:?}");
    }
    // Values out of line: numbers that are the same by chance.
    let external = |xmin| row(xmin, 0, LIVE | HAS_EXTERNAL, b"a");
    assert!(!differ(&external(589), &external(589)));
    assert!(differ(&external(590), &external(590)));
    assert!(differ(&external(500), &external(501)));
    // Numbers begin again.
    assert!(is_before(u32::MAX - 5, (1 << 32) + 10) && !is_before(11, (1 << 32) + 10));
}

#[test]
fn places_are_found_in_their_order() {
    let rows = |middle: &[u8]| [row(5, 0, LIVE, b"a"), row(5, 0, LIVE, middle), Vec::new()];
    let longer = [rows(b"y").to_vec(), vec![row(5, 0, LIVE, b"new")]].concat();
    assert_eq!(found(&page(&rows(b"x")), &page(&longer)), [2, 4]);
    // One copy has no such page.
    assert_eq!(found(&[], &page(&rows(b"x"))), [1, 2]);
    assert_eq!(found(&vec![0; PAGE_BYTES], &page(&rows(b"x"))), [1, 2]);
    assert_eq!(found(&page(&rows(b"x")), &page(&rows(b"x"))), [0; 0]);
}

/// Files may hold anything.
#[test]
fn what_is_no_page_is_asked_for_whole() {
    let good = page(&[row(5, 0, LIVE, b"a")]);
    let everything: Vec<u16> = (1..=ITEMS_MAX).collect();
    for length in [PAGE_BYTES, PAGE_BYTES, 100, 13, 1] {
        let mut bytes: Vec<u8> = (0..length).map(|at| (at * 37 + 11) as u8 | 1).collect();
        assert_eq!(found(&good, &bytes), everything, "{length} bytes");
        // A pointer to beyond the end.
        if length == PAGE_BYTES {
            bytes[12..14].copy_from_slice(&28_u16.to_le_bytes());
            bytes[24..28].copy_from_slice(&[0xFF; 4]);
            let _ = found(&good, &bytes);
            bytes[24..28].copy_from_slice(&(0x7FF0 | NORMAL << 15 | 100 << 17).to_le_bytes());
            assert_eq!(found(&bytes, &bytes), [1]);
        }
    }
}
