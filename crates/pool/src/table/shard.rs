//! One part of the table: a map from names to entries with little slack.
//!
//! Entries are side by side in a vector that grows by an eighth, and a hash table of their 4-byte positions finds
//! them: 58 to 70 bytes for each entry of 52. A hash table of the entries themselves takes up to 120, as it
//! doubles.

use super::Entry;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;
use offshoot_cache::BlockHashBuilder;
use offshoot_types::BlockHash;
use std::hash::BuildHasher;

/// Entries a part keeps room for.
const SHRINK_MIN: usize = 64;

#[derive(Default)]
pub(super) struct Shard {
    entries: Vec<(BlockHash, Entry)>,
    positions: HashTable<u32>,
}

/// The last byte of a name selects the part, so the first ones are free for the hash.
fn hash_of(name: &BlockHash) -> u64 {
    BlockHashBuilder.hash_one(name)
}

impl Shard {
    fn position(&self, name: &BlockHash) -> Option<usize> {
        let same = |position: &u32| self.entries[*position as usize].0 == *name;
        self.positions.find(hash_of(name), same).map(|position| *position as usize)
    }

    pub(super) fn get(&self, name: &BlockHash) -> Option<&Entry> {
        self.position(name).map(|position| &self.entries[position].1)
    }

    pub(super) fn get_mut(&mut self, name: &BlockHash) -> Option<&mut Entry> {
        let position = self.position(name)?;
        Some(&mut self.entries[position].1)
    }

    /// Puts an entry in, instead of the one that was there.
    pub(super) fn insert(&mut self, name: BlockHash, entry: Entry) {
        let entries = &self.entries;
        let slot = self.positions.entry(
            hash_of(&name),
            |position| entries[*position as usize].0 == name,
            |position| hash_of(&entries[*position as usize].0),
        );
        match slot {
            Slot::Occupied(there) => self.entries[*there.get() as usize].1 = entry,
            Slot::Vacant(free) => {
                free.insert(self.entries.len() as u32);
                if self.entries.len() == self.entries.capacity() {
                    self.entries.reserve_exact((self.entries.len() / 8).max(16));
                }
                self.entries.push((name, entry));
            }
        }
    }

    pub(super) fn remove(&mut self, name: &BlockHash) {
        let entries = &self.entries;
        let same = |position: &u32| entries[*position as usize].0 == *name;
        let Ok(found) = self.positions.find_entry(hash_of(name), same) else { return };
        let (gone, _) = found.remove();
        // The last one takes its place.
        let last = self.entries.len() as u32 - 1;
        if gone != last {
            let moved = hash_of(&self.entries[last as usize].0);
            if let Some(position) = self.positions.find_mut(moved, |position| *position == last) {
                *position = gone;
            }
        }
        self.entries.swap_remove(gone as usize);
        if self.entries.capacity() > SHRINK_MIN && self.entries.len() < self.entries.capacity() / 4
        {
            self.shrink();
        }
    }

    /// Gives memory back.
    fn shrink(&mut self) {
        let entries = &mut self.entries;
        entries.shrink_to(entries.len() + entries.len() / 8);
        let entries = &self.entries;
        self.positions.shrink_to_fit(|position| hash_of(&entries[*position as usize].0));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(BlockHash, Entry)> {
        self.entries.iter()
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&BlockHash, &Entry) -> bool) {
        let before = self.entries.len();
        self.entries.retain(|(name, entry)| keep(name, entry));
        if self.entries.len() == before {
            return;
        }
        self.positions.clear();
        let entries = &self.entries;
        for (position, (name, _)) in (0..).zip(entries) {
            self.positions.insert_unique(hash_of(name), position, |position| {
                hash_of(&entries[*position as usize].0)
            });
        }
    }

    /// Makes room for so many entries.
    pub(super) fn reserve(&mut self, entries: usize) {
        self.entries.reserve_exact(entries);
        let there = &self.entries;
        self.positions.reserve(entries, |position| hash_of(&there[*position as usize].0));
    }

    /// Entries there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of memory.
    pub(super) fn allocation_size(&self) -> usize {
        self.entries.capacity() * size_of::<(BlockHash, Entry)>() + self.positions.allocation_size()
    }
}
