//! What happens to dead space: holes given back to the device, or pages to be overwritten.

use super::files::{Files, path_of};
use super::reading::Reading;
use super::spare::Spares;
use crate::table::Place;
use crate::{Error, Result};
use offshoot_format::segment::Layout;
use offshoot_os::disk::{Disk, DiskFile};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The dead space of sealed segments.
pub(super) struct DeadSpace {
    disk: Arc<dyn Disk>,
    segment_size: u32,
    /// Dead ranges whose pages can be given back: (segment, begin, end), merged and aligned. None of them is
    /// among the spare pages.
    punches: Mutex<Vec<(u32, u32, u32)>>,
    /// Dead pages that may be overwritten, and how many bytes of them are kept for that.
    spares: Mutex<Spares>,
    spare_max: AtomicU64,
    /// The device makes no holes.
    no_holes: AtomicBool,
    /// Nothing is given back to the device now, as the newest root may need it.
    held: AtomicBool,
    /// Bytes of pages that were written over dead ones since the pool was opened.
    written_over: AtomicU64,
}

impl DeadSpace {
    pub(super) fn new(disk: Arc<dyn Disk>, segment_size: u32) -> DeadSpace {
        DeadSpace {
            disk,
            segment_size,
            punches: Mutex::default(),
            spares: Mutex::default(),
            spare_max: AtomicU64::new(0),
            no_holes: AtomicBool::new(false),
            held: AtomicBool::new(false),
            written_over: AtomicU64::new(0),
        }
    }

    /// See [`super::Segments::hold_dead`].
    pub(super) fn hold(&self, yes: bool) {
        self.held.store(yes, Ordering::Release);
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire)
    }

    pub(super) fn can_punch(&self) -> bool {
        !self.no_holes.load(Ordering::Relaxed)
    }

    /// The dead space of a sealed segment, in whole pages of the device: to be overwritten, or given
    /// back.
    pub(super) fn offer(&self, number: u32, layout: Layout, begin: u32, end: u32) {
        match layout {
            Layout::Frames => self.give_back(number, begin, end),
            Layout::Pages => self.spares.lock().add(number, begin, end, self.segment_size),
        }
    }

    /// The same for what must not be overwritten.
    pub(super) fn give_back(&self, number: u32, begin: u32, end: u32) {
        self.punches.lock().push((number, begin, end));
    }

    /// Gives dead pages back to the device, at most `max` ranges. Returns whether more are left.
    pub(super) fn punch(&self, files: &Files, reading: &Reading, max: usize) -> Result<bool> {
        let (mut batch, more) = {
            let mut punches = self.punches.lock();
            let keep = punches.len().saturating_sub(max);
            (punches.split_off(keep), keep > 0)
        };
        // Asked only now: what is released later is not in the batch.
        if self.is_held() {
            self.punches.lock().append(&mut batch);
        }
        batch.sort_unstable();
        // Each range is there once; those that touch are one hole.
        batch.dedup_by(|next, hole| {
            let touches = next.0 == hole.0 && next.1 == hole.2;
            if touches {
                hole.2 = next.2;
            }
            touches
        });
        let mut first_failure = Ok(());
        for (number, begin, end) in batch {
            let Some(segment) = files.get(number) else { continue };
            if !segment.has_written(end) {
                // Not in the file yet; it will be after the next flush.
                self.punches.lock().push((number, begin, end));
                continue;
            }
            // What is here is not among the spare pages, so nothing came to life again; if it ever did, it must not be
            // lost.
            if segment.state.lock().dead.end_at(begin).is_none_or(|to| to < end) {
                tracing::error!(number, begin, end, "not made a hole: something lives there");
                continue;
            }
            let len = u64::from(end - begin);
            let file = reading.file(files, &segment);
            match file.and_then(|file| file.punch_hole(u64::from(begin), len)) {
                Ok(()) => segment.state.lock().punched += len,
                // Compaction and deletion of whole segments still give space back.
                Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
                    self.no_holes.store(true, Ordering::Relaxed);
                }
                Err(error) => {
                    // A hole may itself need room, on a device that has none.
                    self.punches.lock().push((number, begin, end));
                    let action = format!("punch a hole into '{}'", path_of(number));
                    first_failure = first_failure.and(Err(Error::io(action, &error)));
                }
            }
        }
        first_failure.map(|()| more)
    }

    /// Keeps at most so many bytes of dead pages to be overwritten, and gives the rest back to the device. With 0
    /// none is overwritten.
    pub(super) fn limit_spares(&self, max: u64) {
        self.spare_max.store(max, Ordering::Relaxed);
        let taken = self.spares.lock().shrink(max);
        self.punches.lock().extend(taken);
    }

    /// Hands out a dead page, live from now on, and its file.
    ///
    /// ORDER 4 holds as for holes: what is here was released. What is released while it is unknown which root the
    /// device has is not handed out.
    pub(super) fn take_spare(&self, files: &Files) -> Option<(Place, Arc<dyn DiskFile>)> {
        if self.spare_max.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut refused = Vec::new();
        let mut spares = self.spares.lock();
        let found = loop {
            let next = spares.take(&*self.disk, || !self.is_held(), &mut refused);
            let Some((place, file)) = next else { break None };
            if files.revive(place) {
                break Some((place, file));
            }
            refused.push((place.segment, place.offset, place.end()));
        };
        if !refused.is_empty() {
            self.punches.lock().append(&mut refused);
        }
        found
    }

    /// Counts a page that was written over a dead one.
    pub(super) fn count_written_over(&self, place: Place) {
        self.written_over.fetch_add(u64::from(place.room()), Ordering::Relaxed);
    }

    pub(super) fn written_over(&self) -> u64 {
        self.written_over.load(Ordering::Relaxed)
    }

    /// Lets the spare pages be looked at while none is taken.
    pub(super) fn with_spares<T>(&self, look: impl FnOnce(&Spares) -> T) -> T {
        look(&self.spares.lock())
    }
}
