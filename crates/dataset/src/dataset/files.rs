//! Content of files.

use super::{Dataset, FILE_SIZE_MAX};
use crate::block_map::BlockMap;
use crate::blocks::PoolReader;
use crate::inode::{Inode, InodeState, Place};
use crate::layer::Slot;
use crate::prefetch::Request;
use crate::queue::Piece;
use crate::{Error, Result};
use bytes::Bytes;
use offshoot_direct::File;
use offshoot_format::inode::Timestamp;
use offshoot_format::operation::Operation;
use offshoot_pool::BlockData;
use offshoot_types::{BLOCK_SIZE, BlockHash, Ino};
use std::sync::Arc;

const BLOCK: u64 = BLOCK_SIZE as u64;
/// Blocks looked up at a time by a read: what the kernel asks for at most, aligned.
const READ_BLOCKS: usize = 128;
/// The same for a short read, which should not pay for that much room.
const SHORT_READ_BLOCKS: usize = 4;
/// From a slow device, and where there is memory for all of it, a single block is read together with this aligned piece of
/// the file.
const AROUND_BLOCKS: usize = 16;
/// Blocks of a sequential read that are read together: about 700 KiB compressed, below the longest read
/// of the pool.
const GROUP_BLOCKS: u64 = 256;
/// Bytes of one operation; longer writes are several.
const WRITE_LEN_MAX: usize = 1 << 20;
/// Of this aligned piece of the file, a server that asked for a block reads directly what frames have: half of what one
/// lowest node of the map says.
const NEAR_BLOCKS: usize = 64;
/// How often a read looks again for a block that was replaced in the meantime.
const MISSING_MAX: u32 = 8;
/// How far to read ahead of a sequential reader, in blocks.
const AHEAD_BLOCKS_MAX: u64 = 128;

/// What a read found under the inode's lock.
struct Seen {
    /// How many bytes can be read.
    len: usize,
    /// The committed map, and which of the blocks to look up in it (as bits).
    map: BlockMap,
    committed: u128,
    /// How often the content had changed.
    changes: u64,
    /// Where servers read the file without asking.
    direct: Option<Arc<File>>,
}

impl Seen {
    /// Whether the content is still what was seen, and servers still read it by this.
    fn is_present(&self, state: &InodeState, direct: &Arc<File>) -> bool {
        let is_his = state.direct.as_ref().is_some_and(|present| Arc::ptr_eq(present, direct));
        state.changes == self.changes && !state.gone && is_his
    }
}

/// The content of blocks that an operation changes in part, read before it takes any lock.
#[derive(Default)]
pub(super) struct Bases(Vec<Base>);

struct Base {
    block: u64,
    source: BaseSource,
    /// `None`: zeros.
    content: Option<BlockData>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BaseSource {
    Committed(BlockMap),
    Shared(BlockHash),
}

impl Bases {
    fn find(&self, block: u64, source: BaseSource) -> Option<&Base> {
        self.0.iter().find(|base| base.block == block && base.source == source)
    }

    /// What must be read before a block can be changed in part.
    fn missing(&self, state: &InodeState, block: u64) -> Option<BaseSource> {
        // Past the end there are only zeros.
        if block >= state.size.div_ceil(BLOCK) {
            return None;
        }
        let source = match state.place(block) {
            Place::Data(_) | Place::Hole => return None,
            Place::Committed => BaseSource::Committed(state.map),
            Place::Shared(_, hash) => BaseSource::Shared(hash),
        };
        self.find(block, source).is_none().then_some(source)
    }
}

impl InodeState {
    /// Replaces part of a block; `bytes` of `None` are zeros. The block's content is in `bases`.
    fn patch(&mut self, block: u64, at: usize, len: usize, bytes: Option<&[u8]>, bases: &Bases) {
        let fill = |target: &mut [u8]| match bytes {
            Some(bytes) => target[at..at + len].copy_from_slice(bytes),
            None => target[at..at + len].fill(0),
        };
        self.changing(block, block + 1);
        if let Some(Slot::Data(data)) = self.dirty.blocks.get_mut(&block)
            && let Some(data) = data.get_mut()
        {
            return fill(data);
        }
        let find = |source| bases.find(block, source).and_then(|base| base.content.as_deref());
        let mut content = match self.place(block) {
            Place::Data(data) => data.to_vec(),
            Place::Hole if bytes.is_none() => return,
            Place::Hole => vec![0; BLOCK_SIZE],
            Place::Committed => {
                find(BaseSource::Committed(self.map)).unwrap_or(&[0; BLOCK_SIZE]).to_vec()
            }
            Place::Shared(_, hash) => {
                find(BaseSource::Shared(hash)).unwrap_or(&[0; BLOCK_SIZE]).to_vec()
            }
        };
        content.resize(BLOCK_SIZE, 0);
        fill(&mut content);
        self.put_block(block, Slot::Data(BlockData::new(content)));
    }

    /// Truncates or extends a file. Bytes past the end of a file are always zeros in its last
    /// block.
    pub(super) fn resize(&mut self, size: u64, bases: &Bases) {
        if size < self.size {
            let tail = (size % BLOCK) as usize;
            if tail > 0 {
                self.patch(size / BLOCK, tail, BLOCK_SIZE - tail, None, bases);
            }
            self.clear_blocks(size.div_ceil(BLOCK), u64::MAX);
        }
        self.set_size(size);
    }

    /// Zeroes a range.
    pub(super) fn clear(&mut self, offset: u64, end: u64, bases: &Bases) {
        if offset >= self.size {
            return;
        }
        // Past the end everything is already zeros, so the last block counts as a whole.
        let end = if end >= self.size { end.max(self.size).next_multiple_of(BLOCK) } else { end };
        let (first, last) = (offset / BLOCK, end / BLOCK);
        let (head, tail) = ((offset % BLOCK) as usize, (end % BLOCK) as usize);
        if first == last {
            return self.patch(first, head, tail - head, None, bases);
        }
        if head > 0 {
            self.patch(first, head, BLOCK_SIZE - head, None, bases);
        }
        if tail > 0 {
            self.patch(last, 0, tail, None, bases);
        }
        self.clear_blocks(offset.div_ceil(BLOCK), last);
    }

    /// Returns the operation's data, and the whole blocks that servers have read directly so far.
    fn write(&mut self, offset: u64, data: &[u8], bases: &Bases) -> (Vec<Piece>, Vec<u64>) {
        let mut pieces = Vec::with_capacity(data.len() / BLOCK_SIZE + 2);
        let mut read = Vec::new();
        let (mut rest, mut at) = (data, offset);
        while !rest.is_empty() {
            let (block, start) = (at / BLOCK, (at % BLOCK) as usize);
            let (now, later) = rest.split_at(rest.len().min(BLOCK_SIZE - start));
            if now.len() == BLOCK_SIZE {
                let whole = BlockData::new(now);
                if self.put_block(block, Slot::Data(whole.clone())) {
                    read.push(block);
                }
                pieces.push(Piece::Block(whole));
            } else {
                self.patch(block, start, now.len(), Some(now), bases);
                pieces.push(Piece::Part(now.into()));
            }
            at += now.len() as u64;
            rest = later;
        }
        self.set_size(self.size.max(at));
        (pieces, read)
    }
}

/// Bytes of a block that may be shorter than a block on disk.
fn copy_out(content: &[u8], at: usize, target: &mut [u8]) {
    let have = content.get(at..).unwrap_or(&[]);
    let len = have.len().min(target.len());
    target[..len].copy_from_slice(&have[..len]);
    target[len..].fill(0);
}

impl Dataset {
    /// Reads up to `len` bytes; fewer at the end of the file.
    pub fn read(&self, ino: Ino, offset: u64, len: usize) -> Result<Bytes> {
        let size = self.getattr(ino)?.size;
        let len = len.min(usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX));
        let mut buffer = vec![0; len];
        let read = self.read_into(ino, offset, &mut buffer)?;
        buffer.truncate(read);
        Ok(buffer.into())
    }

    /// Reads into a buffer without allocating. Returns how many bytes: fewer than asked only at the
    /// end of the file.
    pub fn read_into(&self, ino: Ino, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let inode = self.inode(ino)?;
        inode.expect_file()?;
        let (mut done, mut is_direct) = (0, false);
        while done < buffer.len() {
            let at = offset + done as u64;
            let room = |blocks| blocks * BLOCK_SIZE - (at % BLOCK) as usize;
            let end = buffer.len().min(done + room(READ_BLOCKS));
            let part = &mut buffer[done..end];
            let (read, direct) = if part.len() <= room(SHORT_READ_BLOCKS) {
                self.read_part::<SHORT_READ_BLOCKS>(&inode, at, part)?
            } else {
                self.read_part::<READ_BLOCKS>(&inode, at, part)?
            };
            (done, is_direct) = (done + read, direct);
            if read < end - (done - read) {
                break;
            }
        }
        if done > 0 {
            let end = (offset + done as u64).div_ceil(BLOCK);
            match is_direct {
                true => self.publish_ahead(&inode, offset / BLOCK, end),
                false => self.read_ahead(&inode, offset / BLOCK, end),
            }
        }
        Ok(done)
    }

    /// Reads what is in at most `N` blocks (128 at most). Returns how many bytes, and whether servers read the file
    /// directly.
    fn read_part<const N: usize>(
        &self,
        inode: &Inode,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<(usize, bool)> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let mut wanted = [BlockHash::ZERO; N];
            let seen = self.read_memory(inode, offset, buffer, &mut wanted)?;
            let Seen { len, map, .. } = seen;
            let outcome = self.read_pool(&seen, &mut wanted, offset, &mut buffer[..len]);
            match outcome {
                Err(Error::Missing(hash)) => {
                    // A commit may have replaced the map, or a write the shared block. Looking
                    // again finds what is there now.
                    self.wait_for_commit()?;
                    if attempts > MISSING_MAX && inode.state.read().map == map {
                        return Err(Error::Missing(hash));
                    }
                }
                Ok(()) => {
                    publish(inode, &seen, &wanted, offset, &buffer[..len]);
                    if N == SHORT_READ_BLOCKS && seen.committed != 0 {
                        self.publish_near(inode, &seen, offset / BLOCK);
                    }
                    return Ok((len, seen.direct.is_some()));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Copies what is in memory and zeroes holes. `wanted` gets the hashes of shared blocks.
    fn read_memory(
        &self,
        inode: &Inode,
        offset: u64,
        buffer: &mut [u8],
        wanted: &mut [BlockHash],
    ) -> Result<Seen> {
        let state = inode.state.read();
        if state.gone {
            return Err(Error::Stale);
        }
        let left = usize::try_from(state.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = buffer.len().min(left);
        let direct = state.direct.clone();
        let mut seen = Seen { len, map: state.map, committed: 0, changes: state.changes, direct };
        if len == 0 {
            return Ok(seen);
        }
        let first = offset / BLOCK;
        let count = ((offset + len as u64).div_ceil(BLOCK) - first) as u32;
        let all = u128::MAX >> (128 - count);
        if state.is_all_committed() {
            seen.committed = all;
            return Ok(seen);
        }
        for (index, wanted) in wanted.iter_mut().enumerate().take(count as usize) {
            let (at, part) = part_of(index, offset, &mut buffer[..len]);
            match state.place(first + index as u64) {
                Place::Data(data) => copy_out(&data, at, part),
                Place::Hole => part.fill(0),
                Place::Shared(_, hash) => *wanted = hash,
                Place::Committed => seen.committed |= 1 << index,
            }
        }
        Ok(seen)
    }

    fn read_pool<const N: usize>(
        &self,
        seen: &Seen,
        wanted: &mut [BlockHash; N],
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<()> {
        let (map, committed) = (seen.map, seen.committed);
        if buffer.is_empty() {
            return Ok(());
        }
        let first = offset / BLOCK;
        let count = ((offset + buffer.len() as u64).div_ceil(BLOCK) - first) as usize;
        if committed != 0 {
            let mut found = [BlockHash::ZERO; N];
            map.lookup(&self.reader, first, &mut found[..count])?;
            for index in (0..count).filter(|index| committed & (1 << index) != 0) {
                wanted[index] = found[index];
            }
        }
        for index in (0..count).filter(|index| committed & (1 << index) != 0) {
            if wanted[index].is_zero() {
                part_of(index, offset, buffer).1.fill(0);
            }
        }
        let mut missing;
        let wanted = match &seen.direct {
            None => &wanted[..count],
            Some(direct) => {
                missing = *wanted;
                take_frames(direct, &mut missing[..count], offset, buffer);
                &missing[..count]
            }
        };
        let pool = &self.reader.pool;
        let mut take = |index, content: &[u8]| {
            let (at, part) = part_of(index, offset, buffer);
            copy_out(content, at, part);
        };
        if seen.direct.is_some() && wanted.iter().all(BlockHash::is_zero) {
            return Ok(());
        }
        let fills = || seen.direct.as_ref().is_some_and(|direct| direct.group().has_room());
        if committed != 0 && count == 1 && pool.is_worth_its_neighbours(&wanted[0], fills()) {
            let mut near = [BlockHash::ZERO; AROUND_BLOCKS];
            map.lookup(&self.reader, first - first % AROUND_BLOCKS as u64, &mut near)?;
            if let Some(direct) = &seen.direct {
                direct.group().leave_missing(&mut near);
            }
            if pool.read_around(&wanted[0], &near, self.id.0, &mut |content| take(0, content)) {
                return Ok(());
            }
        }
        if committed != 0 && count >= READ_BLOCKS / 2 && pool.misses(wanted) {
            self.read_groups(map, first, first + count as u64)?;
        }
        pool.read_many(wanted, self.id.0, &|blocks| self.offer(blocks), take)?;
        Ok(())
    }

    /// Has others bring blocks into the cache.
    fn offer(&self, blocks: Vec<BlockHash>) {
        self.ground.prefetch.request(Request::Blocks(blocks));
    }

    /// Brings all of the groups into the cache that blocks of a sequential read are in. Groups begin at
    /// fixed blocks: of several concurrent requests, the first in a group reads it for the others.
    fn read_groups(&self, map: BlockMap, first: u64, end: u64) -> Result<()> {
        for group in first / GROUP_BLOCKS..end.div_ceil(GROUP_BLOCKS) {
            let mut hashes = [BlockHash::ZERO; GROUP_BLOCKS as usize];
            map.lookup(&self.reader, group * GROUP_BLOCKS, &mut hashes)?;
            self.reader.pool.prefetch_with(&hashes, &|blocks| self.offer(blocks));
        }
        Ok(())
    }

    /// Writes all of `data`. An aligned block of 8 KiB is never seen half written, not even after a
    /// crash. May wait for a commit when too much is unwritten.
    pub fn write(&self, ino: Ino, offset: u64, data: &[u8]) -> Result<()> {
        if offset.checked_add(data.len() as u64).is_none_or(|end| end > FILE_SIZE_MAX) {
            return Err(Error::FileTooBig);
        }
        let inode = self.inode(ino)?;
        inode.expect_file()?;
        let (mut rest, mut at) = (data, offset);
        while !rest.is_empty() {
            // Split at block boundaries, so that no block is written by two operations.
            let room = WRITE_LEN_MAX - (at % BLOCK) as usize;
            let (now, later) = rest.split_at(rest.len().min(room));
            let replaces = at + now.len() as u64 <= inode.state.read().size;
            let purpose = self.purpose_of(&inode, replaces);
            self.admit((now.len() as u64).next_multiple_of(BLOCK), purpose)?;
            self.write_at(&inode, Some(at), now, self.now())?;
            self.count_promise(purpose, now);
            at += now.len() as u64;
            rest = later;
        }
        Ok(())
    }

    /// Appends at the end of the file as it is by then; returns the offset.
    pub fn append(&self, ino: Ino, data: &[u8]) -> Result<u64> {
        let inode = self.inode(ino)?;
        inode.expect_file()?;
        let purpose = self.purpose_of(&inode, false);
        self.admit((data.len() as u64).next_multiple_of(BLOCK), purpose)?;
        let offset = self.write_at(&inode, None, data, self.now())?;
        self.count_promise(purpose, data);
        Ok(offset)
    }

    /// One write operation, without an offset at the end of the file; returns where it went.
    pub(super) fn write_at(
        &self,
        inode: &Arc<Inode>,
        offset: Option<u64>,
        data: &[u8],
        time: Timestamp,
    ) -> Result<u64> {
        let mut bases = Bases::default();
        loop {
            let gate = self.enter()?;
            let mut state = inode.state.write();
            if state.gone {
                return Err(Error::Stale);
            }
            let offset = offset.unwrap_or(state.size);
            let end = offset + data.len() as u64;
            if end > FILE_SIZE_MAX {
                return Err(Error::FileTooBig);
            }
            let edges = [edge(offset), edge(end)];
            if let Some((block, source)) = missing_base(&state, &bases, edges) {
                drop((state, gate));
                self.read_base(inode, block, source, &mut bases)?;
                continue;
            }
            self.change(*gate, inode, &mut state, |state| {
                let (pieces, read) = state.write(offset, data, &bases);
                (state.mtime, state.ctime) = (time, time);
                let ino = inode.ino;
                let operation = Operation::Write { ino, offset, time, data: &[] };
                self.queue.lock().push(&operation, pieces);
                // Not before it is sure to survive: who reads it may tell others of it.
                publish_written(state, offset, data, &read);
            });
            return Ok(offset);
        }
    }

    /// Changes an inode in one operation that may cut blocks at these offsets. `apply` must queue
    /// the operation.
    pub(super) fn change_blocks<R>(
        &self,
        inode: &Arc<Inode>,
        cuts: [Option<u64>; 2],
        apply: impl FnOnce(&mut InodeState, &Bases) -> R,
    ) -> Result<R> {
        let mut bases = Bases::default();
        loop {
            let gate = self.enter()?;
            let mut state = inode.state.write();
            if state.gone {
                return Err(Error::Stale);
            }
            let edges = cuts.map(|cut| cut.filter(|cut| *cut < state.size).and_then(edge));
            if let Some((block, source)) = missing_base(&state, &bases, edges) {
                drop((state, gate));
                self.read_base(inode, block, source, &mut bases)?;
                continue;
            }
            return Ok(self.change(*gate, inode, &mut state, |state| apply(state, &bases)));
        }
    }

    /// Reads a block that is about to be changed in part.
    fn read_base(
        &self,
        inode: &Inode,
        block: u64,
        source: BaseSource,
        bases: &mut Bases,
    ) -> Result<()> {
        let read = |reader: &PoolReader| {
            let mut hash = [BlockHash::ZERO];
            match source {
                BaseSource::Shared(shared) => hash[0] = shared,
                BaseSource::Committed(map) => map.lookup(reader, block, &mut hash)?,
            }
            if hash[0].is_zero() { Ok(None) } else { reader.read(&hash[0]).map(Some) }
        };
        match read(&self.reader) {
            Ok(content) => bases.0.push(Base { block, source, content }),
            Err(Error::Missing(hash)) => {
                // The caller looks again; it finds another source when a commit was the reason.
                self.wait_for_commit()?;
                if bases.missing(&inode.state.read(), block) == Some(source) {
                    return Err(Error::Missing(hash));
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Has blocks read into the cache ahead of a sequential reader that has read `first..end`.
    fn read_ahead(&self, inode: &Inode, first: u64, end: u64) {
        if end - first >= AHEAD_BLOCKS_MAX / 2 {
            // A caller that asks for so much at a time, as the kernel does, has several requests in
            // flight.
            return;
        }
        let Some(mut stream) = inode.stream.try_lock() else { return };
        let follows = first == stream.next || first + 1 == stream.next;
        if !follows {
            *stream = crate::inode::Stream { next: end, run: end - first, ahead: end };
            return;
        }
        stream.run += end - stream.next.min(end);
        stream.next = end;
        stream.ahead = stream.ahead.max(end);
        let window = (2 * stream.run).min(AHEAD_BLOCKS_MAX);
        // Ask when half the window is used up, so that the reader never waits for it.
        if stream.run < 2 || stream.ahead - end > window / 2 {
            return;
        }
        let from = stream.ahead;
        stream.ahead = end + window;
        self.ground.prefetch.request(Request::Range(self.id, inode.ino, from, end + window));
    }

    /// Lets a server read directly what comes after `first..end`, if it goes through the file in sequence: each of its
    /// reads that comes here costs more than one block.
    fn publish_ahead(&self, inode: &Inode, first: u64, end: u64) {
        let Some(mut stream) = inode.stream.try_lock() else { return };
        if first != stream.next {
            *stream = crate::inode::Stream { next: end, run: end - first, ahead: end };
            return;
        }
        stream.run += end - first;
        let window = stream.run.min(AHEAD_BLOCKS_MAX);
        let mut buffer = vec![0; window as usize * BLOCK_SIZE];
        // What cannot be read is found by whoever asks for it.
        let read = self.read_part::<READ_BLOCKS>(inode, end * BLOCK, &mut buffer);
        let (read, _) = read.unwrap_or_default();
        stream.run += read as u64 / BLOCK;
        stream.next = end + read as u64 / BLOCK;
        if stream.run >= AHEAD_BLOCKS_MAX / 2 && read == buffer.len() {
            let next = stream.next;
            self.ground.prefetch.request(Request::Range(self.id, inode.ino, next, next + window));
        }
    }

    /// Lets a server read directly what is in memory of the blocks near one that it asked for: what frames of its group
    /// have, so that a clone's server asks once for much of what others have read, and, while there is room, what the cache has.
    fn publish_near(&self, inode: &Inode, seen: &Seen, block: u64) {
        let Some(direct) = &seen.direct else { return };
        let first = block - block % NEAR_BLOCKS as u64;
        let mut near = [BlockHash::ZERO; NEAR_BLOCKS];
        // What cannot be looked up is found by whoever asks for it.
        if seen.map.lookup(&self.reader, first, &mut near).is_err() {
            return;
        }
        let state = inode.state.read();
        // In the map of another commit a block may have got another name, though no content has changed since.
        if !seen.is_present(&state, direct) || state.map != seen.map {
            return;
        }
        if !state.is_all_committed() {
            for (block, name) in (first..).zip(&mut near).filter(|(_, name)| !name.is_zero()) {
                if !matches!(state.place(block), Place::Committed) {
                    *name = BlockHash::ZERO;
                }
            }
        }
        direct.publish_known(first, &mut near);
        if !direct.group().has_room() {
            return;
        }
        for (block, name) in (first..).zip(&near).filter(|(_, name)| !name.is_zero()) {
            let cached = self.reader.pool.in_memory(name);
            if let Some(content) = cached.as_deref().and_then(<[u8]>::first_chunk) {
                direct.publish(block, Some(*name), content);
            }
        }
    }

    /// Brings committed blocks of a file into the cache.
    pub(crate) fn prefetch(&self, ino: Ino, from: u64, end: u64) -> Result<()> {
        let inode = self.inode(ino)?;
        let (map, size) = {
            let state = inode.state.read();
            (state.map, state.size.div_ceil(BLOCK))
        };
        let mut hashes = vec![BlockHash::ZERO; end.min(size).saturating_sub(from) as usize];
        map.lookup(&self.reader, from, &mut hashes)?;
        self.reader.pool.prefetch(&hashes);
        Ok(())
    }
}

/// The block that a boundary at this offset would split, if any.
fn edge(offset: u64) -> Option<u64> {
    (!offset.is_multiple_of(BLOCK)).then_some(offset / BLOCK)
}

fn missing_base(
    state: &InodeState,
    bases: &Bases,
    edges: [Option<u64>; 2],
) -> Option<(u64, BaseSource)> {
    edges
        .into_iter()
        .flatten()
        .find_map(|block| bases.missing(state, block).map(|source| (block, source)))
}

/// Lets servers read directly what one of them has just read, unless it has changed since (D1 of `crates/direct`).
fn publish(inode: &Inode, seen: &Seen, wanted: &[BlockHash], offset: u64, buffer: &[u8]) {
    let Some(direct) = &seen.direct else { return };
    let state = inode.state.read();
    if !seen.is_present(&state, direct) {
        return;
    }
    let mut at = offset.next_multiple_of(BLOCK);
    while let Some(content) = buffer.get((at - offset) as usize..).and_then(<[u8]>::first_chunk) {
        let name = wanted[(at / BLOCK - offset / BLOCK) as usize];
        direct.publish(at / BLOCK, (!name.is_zero()).then_some(name), content);
        at += BLOCK;
    }
}

/// Lets servers go on reading blocks directly that one of them has just written.
fn publish_written(state: &InodeState, offset: u64, data: &[u8], blocks: &[u64]) {
    let Some(direct) = &state.direct else { return };
    for block in blocks {
        let content = data.get((block * BLOCK - offset) as usize..).and_then(<[u8]>::first_chunk);
        if let Some(content) = content {
            direct.publish(*block, None, content);
        }
    }
}

/// Copies blocks that servers of the group read directly already; those are not wanted any more.
fn take_frames(direct: &File, wanted: &mut [BlockHash], offset: u64, buffer: &mut [u8]) {
    for (index, hash) in wanted.iter_mut().enumerate().filter(|(_, hash)| !hash.is_zero()) {
        let (_, part) = part_of(index, offset, buffer);
        if let Ok(part) = part.try_into()
            && direct.group().copy(hash, part)
        {
            *hash = BlockHash::ZERO;
        }
    }
}

/// Where in its block, and where in the buffer, the `index`-th block of a read goes.
fn part_of(index: usize, offset: u64, buffer: &mut [u8]) -> (usize, &mut [u8]) {
    let head = (offset % BLOCK) as usize;
    let start = (index * BLOCK_SIZE).saturating_sub(head);
    let end = buffer.len().min((index + 1) * BLOCK_SIZE - head);
    (if index == 0 { head } else { 0 }, &mut buffer[start..end])
}
