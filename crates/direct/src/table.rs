//! One mount's view of the frames of its group: which block of which file is where.

use crate::group::Group;
use crate::layout::{
    BLOCK, ENTRIES_LEN, ENTRIES_MAX, PROBES, Place, SLOTS, Slot, UNIT, first_slot, table_len,
};
use crate::memory::Memory;
use crate::table_memory::{TableMemory, random};
use offshoot_types::BlockHash;
use parking_lot::Mutex;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A table of files, for the mount of one dataset.
#[derive(Debug)]
pub struct Table {
    group: Arc<Group>,
    shared: Arc<TableMemory>,
    id: u32,
    slots: Mutex<Slots>,
}

/// Which slots and entries are given away.
#[derive(Debug)]
struct Slots {
    /// By slot, whether a file has it.
    taken: Vec<bool>,
    /// Tells one file that has a slot from the next.
    generation: u32,
    /// Tells one place of a file's entries from the next.
    turn: u32,
    /// The first unit of entries that was never used.
    unused: usize,
    /// Units of entries that were used before, by the logarithm of their number.
    free: [Vec<u32>; 18],
}

impl Slots {
    fn new() -> Slots {
        Slots {
            taken: vec![false; SLOTS + PROBES],
            generation: random() as u32,
            turn: 0,
            unused: 0,
            free: Default::default(),
        }
    }

    /// Room for `2^log` entries.
    fn entries(&mut self, log: u8) -> Option<Place> {
        let units = (1_usize << log) / UNIT;
        let unit = match self.free.get_mut(usize::from(log))?.pop() {
            Some(unit) => unit,
            None if self.unused + units <= ENTRIES_LEN / 8 / UNIT => {
                self.unused += units;
                (self.unused - units) as u32
            }
            None => return None,
        };
        self.turn = self.turn.wrapping_add(1);
        Some(Place { unit, log, turn: self.turn & 0x1FF_FFFF })
    }
}

impl Table {
    /// A table of the group without files.
    ///
    /// # Errors
    /// The system's.
    pub fn create(group: &Arc<Group>) -> io::Result<Arc<Table>> {
        Table::of(group, Memory::create("offshoot-table", table_len(group.count()))?)
    }

    /// The table that servers of an earlier engine have mapped; from now on it has no files (D4).
    ///
    /// # Errors
    /// `InvalidData` for anything else; the system's. Then those servers MUST NOT go on: they would read what was.
    pub fn adopt(group: &Arc<Group>, table: OwnedFd) -> io::Result<Arc<Table>> {
        Table::of(group, Memory::open(table, table_len(group.count()))?)
    }

    fn of(group: &Arc<Group>, memory: Memory) -> io::Result<Arc<Table>> {
        let shared = Arc::new(TableMemory::new(memory, group.count())?);
        let id = group.lock().add_table(shared.clone());
        let group = group.clone();
        Ok(Arc::new(Table { group, shared, id, slots: Mutex::new(Slots::new()) }))
    }

    /// Its group.
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// What the keeper holds of it, and its server gets.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.as_fd()
    }

    /// How many blocks were read directly, as its servers say.
    pub fn reads(&self) -> u64 {
        self.shared.reads(self.group.count())
    }

    /// Lets a file be read directly; none: the table is full.
    pub fn file(self: &Arc<Table>, ino: u64, size: u64) -> Option<File> {
        let first = first_slot(ino);
        let mut slots = self.slots.lock();
        let index = (first..first + PROBES).find(|index| !slots.taken[*index])?;
        slots.taken[index] = true;
        slots.generation = slots.generation.wrapping_add(1);
        let slot = self.shared.slot(index);
        slot.generation.store(slots.generation, Ordering::Relaxed);
        slot.place.store(0, Ordering::Relaxed);
        slot.size.store(size, Ordering::Relaxed);
        slot.ino.store(ino, Ordering::Release);
        let place = Mutex::new(None);
        Some(File { table: self.clone(), index, place, filled: AtomicBool::new(false) })
    }

    fn give_back(&self, place: Place) {
        self.slots.lock().free[usize::from(place.log)].push(place.unit);
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.group.lock().remove_table(self.id);
    }
}

/// A file that can be read directly. Dropping it ends that.
///
/// The caller changes the file under a lock of its own, and calls [`File::publish`] under it, too: see D1.
#[derive(Debug)]
pub struct File {
    table: Arc<Table>,
    index: usize,
    place: Mutex<Option<Place>>,
    /// Whether entries may lead somewhere.
    filled: AtomicBool,
}

impl File {
    fn slot(&self) -> &Slot {
        self.table.shared.slot(self.index)
    }

    /// The group whose frames it is read from.
    pub fn group(&self) -> &Group {
        &self.table.group
    }

    /// The file has this length now. What was cut off is withdrawn first.
    pub fn set_size(&self, size: u64) {
        self.slot().size.store(size, Ordering::Release);
    }

    /// Lets a block be read directly; `name` is its hash, where it has one.
    pub fn publish(&self, block: u64, name: Option<BlockHash>, content: &[u8; BLOCK]) {
        let mut place = self.place.lock();
        let Some(first) = self.entry_for(&mut place, block) else { return };
        let entry = (self.table.id, first + block as u32);
        if self.table.group.lock().publish(entry, name, content) {
            self.filled.store(true, Ordering::Relaxed);
        }
    }

    /// Lets those blocks from `first` on be read directly that frames have already. Of the names (zeros are none) those stay
    /// whose blocks cannot be.
    pub fn publish_known(&self, first: u64, names: &mut [BlockHash]) {
        let mut place = self.place.lock();
        let Some(last) = names.iter().rposition(|name| !name.is_zero()) else { return };
        let Some(entries) = self.entry_for(&mut place, first + last as u64) else { return };
        let mut frames = self.table.group.lock();
        for (index, name) in names.iter_mut().enumerate().filter(|(_, name)| !name.is_zero()) {
            let entry = (self.table.id, entries + (first + index as u64) as u32);
            if frames.publish_known(entry, name) {
                *name = BlockHash::ZERO;
                self.filled.store(true, Ordering::Relaxed);
            }
        }
    }

    /// The first entry, with room made for this block's.
    fn entry_for(&self, place: &mut Option<Place>, block: u64) -> Option<u32> {
        let needed = usize::try_from(block).ok()?.checked_add(1)?;
        if needed > ENTRIES_MAX {
            return None;
        }
        let old = place.and_then(Place::entries);
        if let Some((first, count)) = old
            && needed <= count
        {
            return Some(first as u32);
        }
        let log = needed.next_power_of_two().max(UNIT).trailing_zeros() as u8;
        let new = self.table.slots.lock().entries(log)?;
        let (first, count) = new.entries()?;
        let mut frames = self.table.group.lock();
        let id = self.table.id;
        frames.clean(id, first as u32..(first + count) as u32);
        if let Some((from, count)) = old {
            for number in 0..count as u32 {
                frames.move_entry(id, from as u32 + number, first as u32 + number);
            }
        }
        self.slot().place.store(new.word(), Ordering::Release);
        // Readers of the old place see the new one before another file gets its entries: their last load is after this.
        std::sync::atomic::fence(Ordering::SeqCst);
        drop(frames);
        if let Some(old) = place.replace(new) {
            self.table.give_back(old);
        }
        Some(first as u32)
    }

    /// Blocks are about to change: from now on they are not read directly. Whether one was.
    pub fn withdraw(&self, from: u64, end: u64) -> bool {
        if !self.filled.load(Ordering::Relaxed) || from >= end {
            return false;
        }
        let place = self.place.lock();
        let Some((first, count)) = place.and_then(Place::entries) else { return false };
        let end = end.min(count as u64);
        let mut frames = self.table.group.lock();
        let mut withdrawn = false;
        for block in from..end {
            withdrawn |= frames.withdraw((self.table.id, first as u32 + block as u32));
        }
        if from == 0 && end == count as u64 {
            self.filled.store(false, Ordering::Relaxed);
        }
        withdrawn
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.withdraw(0, u64::MAX);
        let slot = self.slot();
        slot.ino.store(0, Ordering::Relaxed);
        slot.place.store(0, Ordering::Release);
        std::sync::atomic::fence(Ordering::SeqCst);
        if let Some(place) = self.place.lock().take() {
            self.table.give_back(place);
        }
        self.table.slots.lock().taken[self.index] = false;
    }
}
