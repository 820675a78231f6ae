//! Reading blocks back, with a bounded number of open files.

use super::files::{Files, Segment, path_of};
use offshoot_os::disk::{Disk, DiskFile, read_exact_at};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// The open reading handles.
pub(super) struct Reading {
    disk: Arc<dyn Disk>,
    /// Segments that have one, oldest first.
    open: Mutex<VecDeque<u32>>,
    open_max: usize,
}

impl Reading {
    pub(super) fn new(disk: Arc<dyn Disk>, open_max: usize) -> Reading {
        Reading { disk, open: Mutex::default(), open_max }
    }

    /// Reads bytes of a segment's file.
    pub(super) fn read(
        &self,
        files: &Files,
        segment: &Segment,
        from: u32,
        buffer: &mut [u8],
    ) -> std::io::Result<()> {
        let file = self.file(files, segment)?;
        read_exact_at(&*file, u64::from(from), buffer)
    }

    /// Reads a range of a file whose blocks are all written; `None` if they are not, or on errors.
    pub(super) fn read_run(
        &self,
        files: &Files,
        number: u32,
        begin: u32,
        end: u32,
    ) -> Option<Vec<u8>> {
        let segment = files.get(number)?;
        if !segment.has_written(end) {
            return None;
        }
        let mut buffer = vec![0; (end - begin) as usize];
        let file = self.file(files, &segment).ok()?;
        read_exact_at(&*file, u64::from(begin), &mut buffer).ok()?;
        Some(buffer)
    }

    /// Hands a range of a file whose blocks are all written to `take`, which must not read others.
    /// Does nothing if they are not all written, or on errors.
    pub(super) fn with_run(
        &self,
        files: &Files,
        (number, begin, end): (u32, u32, u32),
        take: &mut dyn FnMut(&[u8]),
    ) {
        let Some(segment) = files.get(number) else { return };
        if segment.has_written(end)
            && let Ok(file) = self.file(files, &segment)
        {
            // Reading the blocks one by one reports the error.
            let _ = file.read_with(u64::from(begin), (end - begin) as usize, take);
        }
    }

    /// The open file of a segment.
    pub(super) fn file(
        &self,
        files: &Files,
        segment: &Segment,
    ) -> std::io::Result<Arc<dyn DiskFile>> {
        if let Some(reader) = &segment.state.lock().reader {
            return Ok(reader.clone());
        }
        let reader = self.disk.open_uncached(&path_of(segment.number))?;
        segment.state.lock().reader = Some(reader.clone());
        let oldest = {
            let mut readers = self.open.lock();
            readers.push_back(segment.number);
            if readers.len() > self.open_max { readers.pop_front() } else { None }
        };
        if let Some(oldest) = oldest.and_then(|number| files.get(number)) {
            oldest.state.lock().reader = None;
        }
        Ok(reader)
    }

    /// Forgets a deleted segment.
    pub(super) fn forget(&self, number: u32) {
        self.open.lock().retain(|&open| open != number);
    }
}
