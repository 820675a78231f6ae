//! Which block is in which frame, and who reads it there.

use crate::layout::{BLOCK, Entry, Mark, UNIT};
use crate::memory::{HUGE_PAGE, Memory};
use crate::protocol::{self, Real};
use crate::table_memory::TableMemory;
use hashbrown::HashMap;
use offshoot_types::BlockHash;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How many frames are looked at for one that was not read lately.
const LOOKS_MAX: u32 = 512;

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
    frames: Vec<Frame>,
    by_name: HashMap<BlockHash, u32>,
    /// Frames that were used before.
    free: Vec<u32>,
    /// The first that was never used.
    unused: u32,
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

impl Frames {
    pub(crate) fn new(memory: Arc<Memory>) -> Frames {
        let count = memory.len() / BLOCK;
        let mut frames = Vec::new();
        frames.resize_with(count, Frame::default);
        Frames {
            memory,
            frames,
            by_name: HashMap::new(),
            free: Vec::new(),
            unused: 0,
            hand: 0,
            tables: BTreeMap::new(),
            next_table: 0,
            evicted: 0,
        }
    }

    pub(crate) fn used(&self) -> usize {
        self.unused as usize - self.free.len()
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
        let frame = known.unwrap_or_else(|| self.new_frame(name, content));
        self.lead(id, frame);
        true
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

    fn new_frame(&mut self, name: Option<BlockHash>, content: &[u8; BLOCK]) -> u32 {
        let frame = self.take();
        // SAFETY: a frame of ours that no entry leads to (D2); readers that still copy it find out.
        unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), self.content(frame), BLOCK) };
        if let Some(name) = name {
            self.by_name.insert(name, frame);
        }
        self.frames[frame as usize].name = name;
        frame
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
    pub(crate) fn clean(&mut self, table: u32, numbers: std::ops::Range<u32>) {
        let Some(entries) = self.tables.get_mut(&table) else { return };
        for number in numbers {
            entries.shared.entry(number).store(0, Ordering::Relaxed);
            entries.set(number, Entry(0));
        }
    }

    /// A frame that nothing leads to.
    fn take(&mut self) -> u32 {
        if let Some(frame) = self.free.pop() {
            return frame;
        }
        if (self.unused as usize) < self.frames.len() {
            let frame = self.unused;
            self.unused += 1;
            let offset = frame as usize * BLOCK;
            if offset.is_multiple_of(HUGE_PAGE) {
                self.memory.use_huge_page(offset);
            }
            return frame;
        }
        // The clock: whoever was read since the hand last passed stays for one more round. Others wait meanwhile, so it
        // does not look for long.
        let mut looks = 1;
        while self.was_read(self.hand) && looks < LOOKS_MAX {
            self.hand = self.after(self.hand);
            looks += 1;
        }
        let frame = self.hand;
        self.hand = self.after(frame);
        self.evict(frame);
        frame
    }

    fn after(&self, frame: u32) -> u32 {
        (frame + 1) % self.frames.len() as u32
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
