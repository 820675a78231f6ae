//! One tree of files.

use crate::{
    AllocateMode, Attr, DirEntry, NewInode, RenameMode, Result, SeekTarget, SetAttr, SpaceUse,
    XattrMode,
};
use bytes::Bytes;
use offshoot_types::{DatasetId, Ino};

/// One tree of files, addressed by inode number; [`Ino::ROOT`] is its root directory.
///
/// All methods may be called from any thread. Changes are in memory until [`Dataset::sync`] or a
/// commit; after a crash the dataset is a prefix of the sequence of operations that contains at
/// least everything that was synced.
pub struct Dataset {
    id: DatasetId,
}

/// The largest length of a file, in bytes: 16 TiB.
pub const FILE_SIZE_MAX: u64 = 1 << 44;

#[allow(unused_variables)]
impl Dataset {
    /// Which dataset this is.
    pub fn id(&self) -> DatasetId {
        self.id
    }

    /// Finds a name in a directory. (`.` and `..` are no names here; see [`Dataset::parent`].)
    pub fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Attr> {
        todo!()
    }

    /// The directory that holds this directory; the root's is the root.
    pub fn parent(&self, directory: Ino) -> Result<Ino> {
        todo!()
    }

    /// The attributes of an inode.
    pub fn getattr(&self, ino: Ino) -> Result<Attr> {
        todo!()
    }

    /// Changes attributes and answers the new ones.
    pub fn setattr(&self, ino: Ino, change: &SetAttr) -> Result<Attr> {
        todo!()
    }

    /// Makes an inode under a new name. The name must not exist.
    pub fn create(&self, parent: Ino, name: &[u8], new: &NewInode) -> Result<Attr> {
        todo!()
    }

    /// Gives an inode (no directory) one more name.
    pub fn link(&self, ino: Ino, parent: Ino, name: &[u8]) -> Result<Attr> {
        todo!()
    }

    /// Removes a name of anything but a directory. The inode lives on until its last name is gone
    /// and it is open nowhere.
    pub fn unlink(&self, parent: Ino, name: &[u8]) -> Result<()> {
        todo!()
    }

    /// Removes an empty directory.
    pub fn rmdir(&self, parent: Ino, name: &[u8]) -> Result<()> {
        todo!()
    }

    /// Renames with the semantics of `renameat2`.
    pub fn rename(
        &self,
        parent: Ino,
        name: &[u8],
        new_parent: Ino,
        new_name: &[u8],
        mode: RenameMode,
    ) -> Result<()> {
        todo!()
    }

    /// Reads up to `len` bytes; fewer at the end of the file.
    pub fn read(&self, ino: Ino, offset: u64, len: usize) -> Result<Bytes> {
        todo!()
    }

    /// Reads into a buffer; answers how many bytes, fewer than asked only at the end of the file.
    /// The way without an allocation.
    pub fn read_into(&self, ino: Ino, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        todo!()
    }

    /// Writes all of `data`. An aligned block of 8 KiB is never seen half written, also not after a
    /// crash. May wait for a commit when too much is unwritten.
    pub fn write(&self, ino: Ino, offset: u64, data: &[u8]) -> Result<()> {
        todo!()
    }

    /// Appends at the end of the file, whichever it is by then; answers the offset.
    pub fn append(&self, ino: Ino, data: &[u8]) -> Result<u64> {
        todo!()
    }

    /// `fallocate`.
    pub fn allocate(&self, ino: Ino, offset: u64, len: u64, mode: AllocateMode) -> Result<()> {
        todo!()
    }

    /// `lseek` with `SEEK_DATA` or `SEEK_HOLE`; [`crate::Error::NoSuchRange`] at or past the end.
    pub fn seek(&self, ino: Ino, offset: u64, target: SeekTarget) -> Result<u64> {
        todo!()
    }

    /// Copies a range, sharing blocks where offsets are aligned to 8 KiB. `source` may be this
    /// dataset. Answers the bytes copied: fewer than `len` only at the end of the source.
    #[allow(clippy::too_many_arguments)] // the six numbers of copy_file_range
    pub fn copy_range(
        &self,
        source: &Dataset,
        source_ino: Ino,
        source_offset: u64,
        target_ino: Ino,
        target_offset: u64,
        len: u64,
    ) -> Result<u64> {
        todo!()
    }

    /// Up to `max` names of a directory behind `cookie` (0 = from the start), without `.` and
    /// `..`. Empty at the end. Names present throughout are answered exactly once.
    pub fn readdir(&self, directory: Ino, cookie: u64, max: usize) -> Result<Vec<DirEntry>> {
        todo!()
    }

    /// The target of a symbolic link.
    pub fn readlink(&self, ino: Ino) -> Result<Vec<u8>> {
        todo!()
    }

    /// Sets an extended attribute (name up to 255 bytes, value up to 64 KiB).
    pub fn set_xattr(&self, ino: Ino, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()> {
        todo!()
    }

    /// The value of an extended attribute.
    pub fn get_xattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        todo!()
    }

    /// The names of the extended attributes.
    pub fn list_xattrs(&self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        todo!()
    }

    /// Removes an extended attribute.
    pub fn remove_xattr(&self, ino: Ino, name: &[u8]) -> Result<()> {
        todo!()
    }

    /// Counts one more user of an inode, so that it outlives its last name. Balance with
    /// [`Dataset::close`].
    pub fn open(&self, ino: Ino) -> Result<()> {
        todo!()
    }

    /// Gives back one [`Dataset::open`]; frees the inode when it was the last and no name is left.
    pub fn close(&self, ino: Ino) {
        todo!()
    }

    /// Makes everything done so far to this dataset durable (`fsync`, `fdatasync`, `syncfs`).
    pub fn sync(&self) -> Result<()> {
        todo!()
    }

    /// Writes everything changed into the pool. Nobody needs to call this for durability.
    pub fn commit(&self) -> Result<()> {
        todo!()
    }

    /// Room and use.
    pub fn space(&self) -> Result<SpaceUse> {
        todo!()
    }
}
