//! A sparse file image.

use std::collections::BTreeMap;

/// Bytes of one page: the unit in which room is taken.
pub(super) const PAGE: u64 = 4096;

type Page = Box<[u8; PAGE as usize]>;

/// A file's content; pages that are missing read as zeros.
#[derive(Debug, Clone, Default)]
pub(super) struct Image {
    pub(super) len: u64,
    pages: BTreeMap<u64, Page>,
}

impl Image {
    pub(super) fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Pages that a write of the range would add.
    pub(super) fn missing_pages(&self, offset: u64, len: u64) -> u64 {
        if len == 0 {
            return 0;
        }
        let (first, last) = (offset / PAGE, (offset + len - 1) / PAGE);
        last - first + 1 - self.pages.range(first..=last).count() as u64
    }

    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let len = (buffer.len() as u64).min(self.len.saturating_sub(offset)) as usize;
        for (page, within, range) in parts(offset, len) {
            match self.pages.get(&page) {
                Some(bytes) => {
                    buffer[range.clone()].copy_from_slice(&bytes[within..within + range.len()]);
                }
                None => buffer[range].fill(0),
            }
        }
        len
    }

    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        for (page, within, range) in parts(offset, data.len()) {
            let bytes = self.page(page);
            bytes[within..within + range.len()].copy_from_slice(&data[range]);
        }
        self.len = self.len.max(offset + data.len() as u64);
    }

    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.punch(len, self.len - len);
            let first_gone = len.div_ceil(PAGE);
            self.pages.split_off(&first_gone);
        }
        self.len = len;
    }

    pub(super) fn allocate(&mut self, offset: u64, len: u64) {
        for (page, _, _) in parts(offset, len as usize) {
            self.page(page);
        }
        self.len = self.len.max(offset + len);
    }

    pub(super) fn punch(&mut self, offset: u64, len: u64) {
        let len = len.min(self.len.saturating_sub(offset)) as usize;
        for (page, within, range) in parts(offset, len) {
            if range.len() as u64 == PAGE {
                self.pages.remove(&page);
            } else if let Some(bytes) = self.pages.get_mut(&page) {
                bytes[within..within + range.len()].fill(0);
            }
        }
    }

    fn page(&mut self, page: u64) -> &mut Page {
        self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE as usize]))
    }
}

/// Splits a range at page boundaries: (page, offset within it, range of the caller's buffer).
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= len {
            return None;
        }
        let position = offset + at as u64;
        let within = (position % PAGE) as usize;
        let end = len.min(at + PAGE as usize - within);
        let part = (position / PAGE, within, at..end);
        at = end;
        Some(part)
    })
}
