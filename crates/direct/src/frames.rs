//! Which block is in which frame, and who reads it there.

use crate::budget::Budget;
use crate::layout::{BLOCK, Entry, Mark, UNIT};
use crate::memory::{HUGE_PAGE, Memory};
use crate::protocol::{self, Real};
use crate::table_memory::TableMemory;
use hashbrown::HashMap;
use offshoot_types::BlockHash;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How many frames are looked at for one that was not read lately.
const LOOKS_MAX: u32 = 512;

/// Frames of a huge page.
const PAGE_FRAMES: u32 = (HUGE_PAGE / BLOCK) as u32;
/// A page of whose frames more than one in so many were read lately stays.
const READ_PART: u32 = 4;

fn frames_of(page: u32) -> Range<u32> {
    page * PAGE_FRAMES..(page + 1) * PAGE_FRAMES
}

/// An entry, by the table it is in and its number there.
pub(crate) type EntryId = (u32, u32);

/// What is in a frame.
#[derive(Debug, Default)]
struct Frame {
    /// The block's name; none: content that has no name yet.
    name: Option<BlockHash>,
    /// The entries that lead to it.
    users: Vec<EntryId>,
}

/// The frames of a group. INVARIANT: `by_name` has exactly the frames with a name, and an entry of a table leads to a
/// frame exactly if it is among the frame's users. Whoever has this has the group's lock.
#[derive(Debug)]
pub(crate) struct Frames {
    memory: Arc<Memory>,
    /// What is in them, up to the last page that was ever present.
    frames: Vec<Frame>,
    by_name: HashMap<BlockHash, u32>,
    budget: Arc<Budget>,
    /// The pages of frames that are in use, and those that are not: they have no memory.
    present: BTreeSet<u32>,
    absent: Vec<u32>,
    /// Frames of present pages with nothing in them.
    free: Vec<u32>,
    /// Frames that were taken away since another group was last asked for a page.
    since_asked: u32,
    /// Where the next frame to be taken away is looked for.
    hand: u32,
    tables: BTreeMap<u32, Entries>,
    next_table: u32,
    pub(crate) evicted: u64,
}

/// The entries of a table: what they are, and where clients read them.
#[derive(Debug)]
struct Entries {
    shared: Arc<TableMemory>,
    /// What was last stored in each: what clients could have written there is not believed (D3).
    own: Vec<u64>,
}

impl Entries {
    fn get(&self, number: u32) -> Entry {
        Entry(self.own.get(number as usize).copied().unwrap_or_default())
    }

    fn set(&mut self, number: u32, entry: Entry) {
        let at = number as usize;
        if at >= self.own.len() {
            self.own.resize((at + 1).next_multiple_of(UNIT), 0);
        }
        self.own[at] = entry.0;
    }

    /// Takes the frame from whoever reads by this entry.
    fn empty(&mut self, number: u32) -> Option<u32> {
        let present = self.get(number);
        let frame = present.frame()?;
        let next = present.next(None);
        protocol::withdraw::<_, Real>(self.shared.entry(number), next.0);
        self.set(number, next);
        Some(frame)
    }

    fn fill(&mut self, number: u32, frame: u32) {
        let next = self.get(number).next(Some(frame));
        self.set(number, next);
        protocol::publish(self.shared.entry(number), next.0);
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.budget.give_back(self.present.len());
    }
}

impl Frames {
    pub(crate) fn new(memory: Arc<Memory>, budget: Arc<Budget>) -> Frames {
        let pages = (memory.len() / HUGE_PAGE) as u32;
        Frames {
            memory,
            frames: Vec::new(),
            by_name: HashMap::new(),
            budget,
            present: BTreeSet::new(),
            absent: (0..pages).rev().collect(),
            free: Vec::new(),
            since_asked: 0,
            hand: 0,
            tables: BTreeMap::new(),
            next_table: 0,
            evicted: 0,
        }
    }

    pub(crate) fn used(&self) -> usize {
        self.present.len() * PAGE_FRAMES as usize - self.free.len()
    }

    /// How many blocks come in without taking the place of others.
    pub(crate) fn room(&self) -> usize {
        self.free.len() + self.absent.len().min(self.budget.left()) * PAGE_FRAMES as usize
    }

    /// Huge pages that it has.
    pub(crate) fn pages(&self) -> usize {
        self.present.len()
    }

    pub(crate) fn add_table(&mut self, shared: Arc<TableMemory>) -> u32 {
        let id = self.next_table;
        self.next_table += 1;
        self.tables.insert(id, Entries { shared, own: Vec::new() });
        id
    }

    pub(crate) fn remove_table(&mut self, id: u32) {
        self.tables.remove(&id);
    }

    /// Copies a block out, if a frame has it.
    pub(crate) fn copy(&self, name: &BlockHash, target: &mut [u8; BLOCK]) -> bool {
        let Some(frame) = self.by_name.get(name) else { return false };
        // SAFETY: a frame of ours, which only the holder of the lock writes.
        unsafe {
            std::ptr::copy_nonoverlapping(self.content(*frame), target.as_mut_ptr(), BLOCK);
        }
        true
    }

    fn content(&self, frame: u32) -> *mut u8 {
        self.memory.at(frame as usize * BLOCK)
    }

    /// Lets an entry lead to a block, unless it leads to one.
    pub(crate) fn publish(
        &mut self,
        id: EntryId,
        name: Option<BlockHash>,
        content: &[u8; BLOCK],
    ) -> bool {
        if !self.is_empty(id) {
            return false;
        }
        let known = name.and_then(|name| self.by_name.get(&name).copied());
        let frame = known.or_else(|| self.new_frame(name, content));
        frame.inspect(|frame| self.lead(id, *frame)).is_some()
    }

    /// The same for a block that a frame has already, and only then. Whether the entry leads anywhere now.
    pub(crate) fn publish_known(&mut self, id: EntryId, name: &BlockHash) -> bool {
        if !self.is_empty(id) {
            return true;
        }
        let Some(frame) = self.by_name.get(name).copied() else { return false };
        self.lead(id, frame);
        true
    }

    /// Whether a frame has this block.
    pub(crate) fn has(&self, name: &BlockHash) -> bool {
        self.by_name.contains_key(name)
    }

    /// Whether an entry that there is leads nowhere.
    fn is_empty(&self, (table, number): EntryId) -> bool {
        self.tables.get(&table).is_some_and(|entries| entries.get(number).frame().is_none())
    }

    fn lead(&mut self, (table, number): EntryId, frame: u32) {
        if let Some(entries) = self.tables.get_mut(&table) {
            self.frames[frame as usize].users.push((table, number));
            entries.fill(number, frame);
        }
    }

    fn new_frame(&mut self, name: Option<BlockHash>, content: &[u8; BLOCK]) -> Option<u32> {
        let frame = self.take()?;
        // SAFETY: a frame of ours that no entry leads to (D2); readers that still copy it find out.
        unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), self.content(frame), BLOCK) };
        if let Some(name) = name {
            self.by_name.insert(name, frame);
        }
        self.frames[frame as usize].name = name;
        Some(frame)
    }

    /// Empties an entry; whether it led anywhere. A frame whose block has a name stays for others.
    pub(crate) fn withdraw(&mut self, id: EntryId) -> bool {
        let emptied = self.tables.get_mut(&id.0).and_then(|entries| entries.empty(id.1));
        let Some(frame) = emptied else { return false };
        let found = &mut self.frames[frame as usize];
        found.users.retain(|user| *user != id);
        if found.users.is_empty() && found.name.is_none() {
            self.free.push(frame);
        }
        true
    }

    /// An entry has moved within its table, as the file has got more of them.
    pub(crate) fn move_entry(&mut self, table: u32, from: u32, to: u32) {
        let Some(entries) = self.tables.get_mut(&table) else { return };
        let Some(frame) = entries.get(from).frame() else { return };
        // Not emptied: whoever reads by it may go on until the file's place has changed.
        let users = &mut self.frames[frame as usize].users;
        users.iter_mut().filter(|user| **user == (table, from)).for_each(|user| user.1 = to);
        entries.fill(to, frame);
        entries.own[from as usize] = 0;
    }

    /// Makes entries that another file had those of a new one: all empty.
    pub(crate) fn clean(&mut self, table: u32, numbers: Range<u32>) {
        let Some(entries) = self.tables.get_mut(&table) else { return };
        for number in numbers {
            entries.shared.entry(number).store(0, Ordering::Relaxed);
            entries.set(number, Entry(0));
        }
    }

    /// A frame that nothing leads to; none where it has no memory, and others have all.
    fn take(&mut self) -> Option<u32> {
        if self.free.is_empty() && self.may_grow() {
            self.add_page();
        }
        self.free.pop().or_else(|| self.take_away())
    }

    fn may_grow(&mut self) -> bool {
        if self.absent.is_empty() || self.budget.take() {
            return !self.absent.is_empty();
        }
        self.since_asked += 1;
        if self.since_asked < PAGE_FRAMES && !self.present.is_empty() {
            return false;
        }
        self.since_asked = 0;
        self.budget.take_from_others(self.present.len())
    }

    fn add_page(&mut self) {
        let Some(page) = self.absent.pop() else { return };
        self.present.insert(page);
        let end = frames_of(page).end as usize;
        self.frames.resize_with(self.frames.len().max(end), Frame::default);
        self.memory.use_huge_page(page as usize * HUGE_PAGE);
        self.free.extend(frames_of(page).rev());
    }

    /// The clock: whoever was read since the hand last passed stays for one more round. Others wait meanwhile, so it does not
    /// look for long.
    fn take_away(&mut self) -> Option<u32> {
        if self.present.is_empty() {
            return None;
        }
        if !self.present.contains(&(self.hand / PAGE_FRAMES)) {
            self.hand = self.first_from(self.hand / PAGE_FRAMES);
        }
        let mut looks = 1;
        while self.was_read(self.hand) && looks < LOOKS_MAX {
            self.hand = self.after(self.hand);
            looks += 1;
        }
        let frame = self.hand;
        self.hand = self.after(frame);
        self.evict(frame);
        Some(frame)
    }

    /// The next frame of a present page.
    fn after(&self, frame: u32) -> u32 {
        let next = frame + 1;
        if !next.is_multiple_of(PAGE_FRAMES) {
            return next;
        }
        self.first_from(next / PAGE_FRAMES)
    }

    /// The first frame of the next present page, this one included, and from the beginning on where there is none.
    fn first_from(&self, page: u32) -> u32 {
        let next = self.present.range(page..).next().or(self.present.first());
        next.map_or(0, |page| page * PAGE_FRAMES)
    }

    /// Gives the page at the hand to another group; not if much of it was read lately, unless it must.
    pub(crate) fn give_page(&mut self, must: bool) -> bool {
        let page = self.first_from(self.hand / PAGE_FRAMES) / PAGE_FRAMES;
        if !self.present.contains(&page) {
            return false;
        }
        let read = frames_of(page).filter(|frame| self.was_read(*frame)).count() as u32;
        if !must && read > PAGE_FRAMES / READ_PART {
            self.hand = self.first_from(page + 1);
            return false;
        }
        frames_of(page).for_each(|frame| self.evict(frame));
        self.free.retain(|frame| frame / PAGE_FRAMES != page);
        self.present.remove(&page);
        self.absent.push(page);
        self.hand = self.first_from(page + 1);
        // Whoever still copies from it finds out, as with a frame that is used again (D2). Memory that stays is used again later.
        let _ = self.memory.clear(page as usize * HUGE_PAGE, HUGE_PAGE);
        true
    }

    fn was_read(&self, frame: u32) -> bool {
        let mut read = false;
        for (table, _) in &self.frames[frame as usize].users {
            let Some(table) = self.tables.get(table) else { continue };
            let mark: &Mark = table.shared.mark(frame);
            if mark.load(Ordering::Relaxed) != 0 {
                mark.store(0, Ordering::Relaxed);
                read = true;
            }
        }
        read
    }

    fn evict(&mut self, frame: u32) {
        let Frame { name, users } = std::mem::take(&mut self.frames[frame as usize]);
        if name.is_none() && users.is_empty() {
            return;
        }
        for (table, number) in users {
            if let Some(entries) = self.tables.get_mut(&table) {
                entries.empty(number);
            }
        }
        if let Some(name) = name {
            self.by_name.remove(&name);
        }
        self.evicted += 1;
    }

    /// Whether all that is said here fits together, and (`check`) clients see it so; for tests.
    #[cfg(test)]
    pub(crate) fn check_own(&self) {
        for (name, frame) in &self.by_name {
            assert_eq!(self.frames[*frame as usize].name.as_ref(), Some(name));
        }
        for (number, frame) in self.frames.iter().enumerate() {
            assert!(frame.name.is_none_or(|name| self.by_name[&name] as usize == number));
            for (table, entry) in &frame.users {
                assert_eq!(self.tables[table].get(*entry).frame(), Some(number as u32));
            }
        }
        let free = |frame: &u32| self.frames[*frame as usize].users.is_empty();
        assert!(self.free.iter().all(free));
        let present = |frame: &u32| self.present.contains(&(frame / PAGE_FRAMES));
        assert!(self.free.iter().all(present) && self.by_name.values().all(present));
        assert_eq!(self.present.len() + self.absent.len(), self.memory.len() / HUGE_PAGE);
    }

    #[cfg(test)]
    pub(crate) fn check(&self) {
        self.check_own();
        for (table, entry) in self.frames.iter().flat_map(|frame| &frame.users) {
            let entries = &self.tables[table];
            let seen = entries.shared.entry(*entry).load(Ordering::Relaxed);
            assert_eq!(Entry(seen), entries.get(*entry));
        }
    }
}
