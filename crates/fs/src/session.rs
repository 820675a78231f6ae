//! One client's view of a file system, by inode number: what a protocol adapter calls.

use crate::open_files::OpenFiles;
use crate::path::lookup;
use crate::{
    AllocateMode, Attr, DirEntry, Error, FileKind, FileSystem, NewInode, NewKind, RenameMode,
    Request, RequestId, SeekTarget, SetAttr, SpaceUse, VolatileLog, XattrMode,
};
use offshoot_dataset::{Dataset, Requested};
use offshoot_types::Ino;
use std::collections::HashMap;
use std::sync::Arc;

const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
const GROUP_EXECUTE: u32 = 0o0010;

/// A client's session: a mount of the kernel, or a host on the network.
///
/// Its changes are not announced to watchers: the client asked for them. Dropping a session closes what its client
/// left open.
pub struct Session {
    dataset: Arc<Dataset>,
    open: OpenFiles,
    /// Requests that an earlier engine finished and may not have answered, with the inode to answer.
    finished: HashMap<RequestId, Ino>,
}

/// A request for a change that must be done exactly once, though its client may send it again. Drop it when its
/// answer has been given.
#[derive(Debug)]
pub enum Asked<'a> {
    /// It never comes again.
    Once,
    /// To be done, and from then on known as done.
    New(Request<'a>),
    /// An earlier engine did it, and only its answer was lost. With the inode that got a name by it.
    Done(Ino),
}

impl Session {
    /// The session of a client that has nothing open yet.
    pub fn new(fs: &FileSystem) -> Self {
        let dataset = fs.dataset().clone();
        let open = OpenFiles::new(dataset.clone());
        Session { dataset, open, finished: HashMap::new() }
    }

    /// Resumes a client of an earlier engine from the dataset's volatile log: what it has open, and what was done for
    /// it.
    pub fn taken_over(fs: &FileSystem) -> Self {
        let dataset = fs.dataset().clone();
        let finished = dataset.finished_requests();
        let open = OpenFiles::taken_over(dataset.clone());
        Session { dataset, open, finished }
    }

    /// From now on the dataset and what its client has open here outlive this process, once the next commit
    /// is done.
    pub fn survive(&self, volatile: Arc<VolatileLog>) {
        self.open.survive(volatile);
    }

    /// Begins a request; `again` says that the client may have sent it before. Waits while very many are in flight.
    pub fn ask(&self, id: RequestId, again: bool) -> Asked<'_> {
        match self.finished.get(&id) {
            Some(ino) if again => Asked::Done(*ino),
            _ => Asked::New(self.dataset.begin(id)),
        }
    }

    fn on<'a>(&'a self, request: Option<&'a Request<'a>>) -> Requested<'a> {
        self.dataset.on(request)
    }

    /// Counts one more user of an inode, which now outlives its last name. Returns whether a user has
    /// opened it for synchronous writes since it was last closed by all.
    ///
    /// # Errors
    /// Where the inode is gone.
    pub fn open(&self, ino: Ino, synchronous: bool) -> Result<bool, Error> {
        self.open.open(ino, synchronous)
    }

    /// Ends one [`Session::open`]. An extra call is ignored, as calls come from outside.
    pub fn close(&self, ino: Ino) {
        self.open.close(ino);
    }

    /// Finds a name; `.` and `..` work.
    ///
    /// # Errors
    /// `NotFound`, `NotDirectory`, `NameTooLong`.
    pub fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Attr, Error> {
        lookup(&self.dataset, parent, name)
    }

    /// The attributes of an inode.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn attributes(&self, ino: Ino) -> Result<Attr, Error> {
        self.dataset.getattr(ino)
    }

    /// Changes attributes for a user. A new owner or group, and a new length given by anybody but root, drop
    /// the set-uid bit and the set-gid bit of group-executable files.
    ///
    /// # Errors
    /// `NotFound`, `FileTooBig`; no room.
    pub fn set_attributes(&self, uid: u32, ino: Ino, change: &SetAttr) -> Result<Attr, Error> {
        let mut change = *change;
        let owner = change.uid.is_some() || change.gid.is_some();
        if change.mode.is_none() && (owner || (change.size.is_some() && uid != 0)) {
            let attr = self.dataset.getattr(ino)?;
            change.mode = without_privileges(&attr);
        }
        self.dataset.setattr(ino, &change)
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for anything but a link.
    pub fn read_link(&self, ino: Ino) -> Result<Vec<u8>, Error> {
        self.dataset.readlink(ino)
    }

    /// Makes an inode. In a set-gid directory it gets the directory's group, and a directory made there
    /// is set-gid too.
    ///
    /// # Errors
    /// `Exists`, `NotFound`, `NotDirectory`; no room.
    pub fn create(
        &self,
        asked: &Asked<'_>,
        parent: Ino,
        name: &[u8],
        mut new: NewInode,
    ) -> Result<Attr, Error> {
        let request = match asked.to_do() {
            Ok(request) => request,
            Err(done) => return self.attributes(done),
        };
        let directory = self.dataset.getattr(parent)?;
        if directory.mode & SET_GID != 0 {
            new.gid = directory.gid;
            if new.kind == NewKind::Directory {
                new.mode |= SET_GID;
            }
        }
        self.on(request).create(parent, name, &new)
    }

    /// Gives an inode (no directory) one more name.
    ///
    /// # Errors
    /// `Exists`, `NotFound`, `TooManyLinks`; no room.
    pub fn link(
        &self,
        asked: &Asked<'_>,
        ino: Ino,
        parent: Ino,
        name: &[u8],
    ) -> Result<Attr, Error> {
        match asked.to_do() {
            Ok(request) => self.on(request).link(ino, parent, name),
            Err(done) => self.attributes(done),
        }
    }

    /// Removes a name of anything but a directory.
    ///
    /// # Errors
    /// `NotFound`, `IsDirectory`.
    pub fn unlink(&self, asked: &Asked<'_>, parent: Ino, name: &[u8]) -> Result<(), Error> {
        asked.to_do().map_or(Ok(()), |request| self.on(request).unlink(parent, name))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotFound`, `NotDirectory`, `NotEmpty`.
    pub fn rmdir(&self, asked: &Asked<'_>, parent: Ino, name: &[u8]) -> Result<(), Error> {
        asked.to_do().map_or(Ok(()), |request| self.on(request).rmdir(parent, name))
    }

    /// Renames with the semantics of `renameat2`; each name with its directory.
    ///
    /// # Errors
    /// Those of `renameat2`.
    pub fn rename(
        &self,
        asked: &Asked<'_>,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        mode: RenameMode,
    ) -> Result<(), Error> {
        let rename = |request| self.on(request).rename(from.0, from.1, to.0, to.1, mode);
        asked.to_do().map_or(Ok(()), rename)
    }

    /// Reads into `buffer`; returns how many bytes, fewer than asked only at the end of the file.
    ///
    /// # Errors
    /// `NotFound`, `IsDirectory`; damage of the pool.
    pub fn read_into(&self, ino: Ino, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        self.dataset.read_into(ino, offset, buffer)
    }

    /// Lets servers read a file directly from now on, if the dataset has a table for that; whether they may.
    pub fn read_directly(&self, ino: Ino) -> bool {
        self.dataset.read_directly(ino)
    }

    /// Writes. `drop_privileges` says that the writer may not keep set-uid and set-gid bits.
    ///
    /// # Errors
    /// `NotFound`, `FileTooBig`; no room.
    pub fn write(
        &self,
        ino: Ino,
        offset: u64,
        data: &[u8],
        drop_privileges: bool,
    ) -> Result<(), Error> {
        if drop_privileges {
            let mode = without_privileges(&self.dataset.getattr(ino)?);
            if mode.is_some() {
                self.dataset.setattr(ino, &SetAttr { mode, ..SetAttr::default() })?;
            }
        }
        self.dataset.write(ino, offset, data)
    }

    /// Reserves, punches or zeroes part of a file.
    ///
    /// # Errors
    /// `NotFound`, `FileTooBig`; no room.
    pub fn allocate(
        &self,
        ino: Ino,
        offset: u64,
        length: u64,
        mode: AllocateMode,
    ) -> Result<(), Error> {
        self.dataset.allocate(ino, offset, length, mode)
    }

    /// The next data or hole from `offset` on.
    ///
    /// # Errors
    /// `NotFound`; that there is none.
    pub fn seek(&self, ino: Ino, offset: u64, target: SeekTarget) -> Result<u64, Error> {
        self.dataset.seek(ino, offset, target)
    }

    /// Copies a part of a file into another or the same, sharing blocks; each inode with its offset. Returns how
    /// many bytes.
    ///
    /// # Errors
    /// `NotFound`; no room.
    pub fn copy_range(&self, from: (Ino, u64), to: (Ino, u64), len: u64) -> Result<u64, Error> {
        self.dataset.copy_range(&self.dataset, from.0, from.1, to.0, to.1, len)
    }

    /// Up to `max` names after `cookie` (0 = from the start), `.` and `..` first. Empty at the end.
    ///
    /// # Errors
    /// `NotFound`, `NotDirectory`.
    pub fn read_directory(
        &self,
        directory: Ino,
        cookie: u64,
        max: usize,
    ) -> Result<Vec<DirEntry>, Error> {
        if cookie >= 2 {
            let from = if cookie == 2 { 0 } else { cookie };
            return self.dataset.readdir(directory, from, max);
        }
        let dot = |name: &[u8], ino, cookie| DirEntry {
            name: name.to_vec(),
            ino,
            kind: FileKind::Directory,
            cookie,
        };
        let mut entries = Vec::new();
        if cookie == 0 {
            entries.push(dot(b".", directory, 1));
        }
        entries.push(dot(b"..", self.dataset.parent(directory)?, 2));
        if max > entries.len() {
            entries.extend(self.dataset.readdir(directory, 0, max - entries.len())?);
        }
        Ok(entries)
    }

    /// Sets an extended attribute (name up to 255 bytes, value up to 64 KiB).
    ///
    /// # Errors
    /// `AttributeTooBig`, `Exists`, `NoAttribute`; no room.
    pub fn set_xattr(
        &self,
        asked: &Asked<'_>,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        mode: XattrMode,
    ) -> Result<(), Error> {
        let set = |request| self.on(request).set_xattr(ino, name, value, mode);
        asked.to_do().map_or(Ok(()), set)
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// `NoAttribute`.
    pub fn remove_xattr(&self, asked: &Asked<'_>, ino: Ino, name: &[u8]) -> Result<(), Error> {
        asked.to_do().map_or(Ok(()), |request| self.on(request).remove_xattr(ino, name))
    }

    /// The value of an extended attribute.
    ///
    /// # Errors
    /// `NoAttribute`.
    pub fn xattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>, Error> {
        self.dataset.get_xattr(ino, name)
    }

    /// The names of the extended attributes.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn xattr_names(&self, ino: Ino) -> Result<Vec<Vec<u8>>, Error> {
        self.dataset.list_xattrs(ino)
    }

    /// Room and use.
    ///
    /// # Errors
    /// That the dataset is gone.
    pub fn space(&self) -> Result<SpaceUse, Error> {
        self.dataset.space()
    }

    /// Makes everything done so far durable.
    ///
    /// # Errors
    /// That it is not.
    pub fn sync(&self) -> Result<(), Error> {
        self.dataset.sync()
    }

    /// Whether the files are fed by a stream: see [`Dataset::mark_stream`].
    pub fn is_stream(&self) -> bool {
        self.dataset.is_stream()
    }
}

impl Asked<'_> {
    /// The request to act for; the error is a request that is already done.
    fn to_do(&self) -> Result<Option<&Request<'_>>, Ino> {
        match self {
            Asked::Once => Ok(None),
            Asked::New(request) => Ok(Some(request)),
            Asked::Done(ino) => Err(*ino),
        }
    }
}

/// The mode that is left when privileges are dropped; `None` if there are none to drop.
fn without_privileges(attr: &Attr) -> Option<u32> {
    if attr.kind == FileKind::Directory {
        return None;
    }
    let mut mode = attr.mode & !SET_UID;
    // Without the execute bit, set-gid meant mandatory locking, no privilege (inode(7)).
    if mode & GROUP_EXECUTE != 0 {
        mode &= !SET_GID;
    }
    (mode != attr.mode).then_some(mode)
}

#[cfg(test)]
mod tests;
