//! What the engine does in a dataset by path.
//!
//! Paths are relative to the dataset's root (a leading `/` makes no difference) and contain no
//! `..`. Symbolic links on the way are followed as long as they are relative; one at the end is
//! not.

use crate::{
    Attr, Error, File, FileKind, FileSystem, NewInode, NewKind, PathError, RenameMode, Result,
    SetAttr, path,
};
use offshoot_types::Ino;
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Names read from a directory at a time.
const NAMES_MAX: usize = 1024;
/// Prefix of the files that replace others by renaming; a crash may leave one behind.
const TEMPORARY_PREFIX: &str = ".offshoot-new-";

/// Mode and owner of what is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewFile {
    /// Permission bits (`0o7777`).
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl NewFile {
    /// Database files: for the owner alone, 0600.
    pub fn private(uid: u32, gid: u32) -> NewFile {
        NewFile { mode: 0o600, uid, gid }
    }

    /// A directory for its owner alone, 0700.
    pub fn private_directory(uid: u32, gid: u32) -> NewFile {
        NewFile { mode: 0o700, uid, gid }
    }

    fn inode(&self, kind: NewKind) -> NewInode {
        NewInode { kind, mode: self.mode, uid: self.uid, gid: self.gid, rdev: 0 }
    }
}

/// One entry of a directory, as [`FileSystem::list`] returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its name.
    pub name: OsString,
    /// Its attributes.
    pub attr: Attr,
}

impl FileSystem {
    /// The attributes of what a path names.
    ///
    /// # Errors
    /// A [`PathError`], as everywhere here.
    pub fn stat(&self, path: impl AsRef<Path>) -> Result<Attr> {
        let path = path.as_ref();
        self.resolve(path).map_err(PathError::at("look up", path))
    }

    /// Whether a path names anything.
    ///
    /// # Errors
    /// Errors other than something missing on the path.
    pub fn exists(&self, path: impl AsRef<Path>) -> Result<bool> {
        match self.stat(path) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.source, Error::NotFound | Error::NotDirectory) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// The whole content of a file of at most so many bytes.
    ///
    /// # Errors
    /// A [`PathError`], `FileTooBig` for a longer one, of which nothing is read.
    pub fn read_file(&self, path: impl AsRef<Path>, bytes_max: u64) -> Result<Vec<u8>> {
        let path = path.as_ref();
        self.read_whole(path, bytes_max).map_err(PathError::at("read", path))
    }

    fn read_whole(&self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
        let attr = regular(self.resolve(path)?)?;
        let len = Some(attr.size).filter(|size| *size <= bytes_max);
        let len = len.and_then(|size| usize::try_from(size).ok()).ok_or(Error::FileTooBig)?;
        let mut content = vec![0; len];
        let read = self.dataset().read_into(attr.ino, 0, &mut content)?;
        content.truncate(read);
        Ok(content)
    }

    /// Makes a file with this content, or replaces an existing one: whatever happens, the path
    /// names either the whole old or the whole new content. Durable on return.
    ///
    /// # Errors
    /// A [`PathError`].
    pub fn write_file(&self, path: impl AsRef<Path>, data: &[u8], new: NewFile) -> Result<()> {
        let path = path.as_ref();
        self.put_file(path, data, new)?;
        self.sync().map_err(PathError::at("write", path))
    }

    /// The same, durable after the next [`FileSystem::sync`].
    ///
    /// # Errors
    /// A [`PathError`].
    pub fn put_file(&self, path: impl AsRef<Path>, data: &[u8], new: NewFile) -> Result<()> {
        let path = path.as_ref();
        self.replace(path, new, |ino| self.dataset().write(ino, 0, data))
            .map_err(PathError::at("write", path))
    }

    /// Makes `target` a copy of `source` (a path of `source_fs`, which may be another dataset of
    /// the same store) that shares its blocks: it takes no space and no copying. Mode and owner are
    /// copied. Replaces what is at `target` as [`FileSystem::write_file`] does; durable after the
    /// next [`FileSystem::sync`]. Returns the length in bytes.
    ///
    /// # Errors
    /// A [`PathError`].
    pub fn share_file(
        &self,
        source_fs: &FileSystem,
        source: impl AsRef<Path>,
        target: impl AsRef<Path>,
    ) -> Result<u64> {
        self.share(source_fs, source.as_ref(), target.as_ref(), None)
    }

    /// As [`FileSystem::share_file`], but with its own mode and owner from the start.
    ///
    /// # Errors
    /// A [`PathError`].
    pub fn share_file_as(
        &self,
        source_fs: &FileSystem,
        source: impl AsRef<Path>,
        target: impl AsRef<Path>,
        new: NewFile,
    ) -> Result<u64> {
        self.share(source_fs, source.as_ref(), target.as_ref(), Some(new))
    }

    fn share(
        &self,
        source_fs: &FileSystem,
        source: &Path,
        target: &Path,
        new: Option<NewFile>,
    ) -> Result<u64> {
        let from =
            source_fs.resolve(source).and_then(regular).map_err(PathError::at("share", source))?;
        let new = new.unwrap_or(NewFile { mode: from.mode, uid: from.uid, gid: from.gid });
        let dataset = self.dataset();
        self.replace(target, new, |ino| {
            let copied = dataset.copy_range(source_fs.dataset(), from.ino, 0, ino, 0, from.size)?;
            // A hole at the end is not copied.
            if copied < from.size {
                let change = SetAttr { size: Some(from.size), ..SetAttr::default() };
                dataset.setattr(ino, &change)?;
            }
            let change = SetAttr { mtime: Some(from.mtime), ..SetAttr::default() };
            dataset.setattr(ino, &change).map(drop)
        })
        .map_err(PathError::at("make", target))?;
        Ok(from.size)
    }

    /// Fills a new file under a temporary name, then renames it to its place.
    fn replace(
        &self,
        path: &Path,
        new: NewFile,
        fill: impl Fn(Ino) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (parent, name) = self.resolve_parent(path)?;
        let (temporary, attr) = loop {
            let number = self.temporary.fetch_add(1, Ordering::Relaxed);
            let temporary = format!("{TEMPORARY_PREFIX}{number}").into_bytes();
            match self.dataset().create(parent, &temporary, &new.inode(NewKind::File)) {
                Ok(attr) => break (temporary, attr),
                // Left by a crash, or by another FileSystem value: take the next number.
                Err(Error::Exists) => {}
                Err(error) => return Err(error),
            }
        };
        let done = fill(attr.ino).and_then(|()| {
            self.dataset().rename(parent, &temporary, parent, name, RenameMode::Replace)
        });
        if done.is_err() {
            let _ = self.dataset().unlink(parent, &temporary);
        }
        done?;
        self.watchers.entry_changed(parent, name);
        Ok(())
    }

    /// The blocks of a file that may differ from those of the file of the same path in `other`, another
    /// dataset of the same store: see [`offshoot_dataset::Dataset::differing_blocks`]. `None`: there is no such
    /// file in `other`.
    ///
    /// # Errors
    /// A [`PathError`].
    pub fn differing_blocks(
        &self,
        path: impl AsRef<Path>,
        other: &FileSystem,
    ) -> Result<Option<Vec<Range<u64>>>> {
        let path = path.as_ref();
        if !other.exists(path)? {
            return Ok(None);
        }
        let compare = || {
            let (ino, other_ino) = (self.resolve(path)?.ino, other.resolve(path)?.ino);
            self.dataset().differing_blocks(ino, other.dataset(), other_ino)
        };
        compare().map(Some).map_err(PathError::at("compare", path))
    }

    /// Opens an existing file.
    ///
    /// # Errors
    /// A [`PathError`].
    pub fn open_file(self: &Arc<Self>, path: impl AsRef<Path>) -> Result<File> {
        let path = path.as_ref();
        self.resolve(path)
            .and_then(regular)
            .and_then(|attr| File::open(self.clone(), attr.ino))
            .map_err(PathError::at("open", path))
    }

    /// Makes an empty file under a name that must not exist, and opens it.
    ///
    /// # Errors
    /// A [`PathError`].
    pub fn create_file(self: &Arc<Self>, path: impl AsRef<Path>, new: NewFile) -> Result<File> {
        let path = path.as_ref();
        self.create_entry(path, &new.inode(NewKind::File))
            .and_then(|attr| File::open(self.clone(), attr.ino))
            .map_err(PathError::at("create", path))
    }

    /// Makes a symbolic link under a name that must not exist.
    ///
    /// # Errors
    /// A [`PathError`].
    pub fn create_symlink(
        &self,
        path: impl AsRef<Path>,
        target: impl AsRef<Path>,
        new: NewFile,
    ) -> Result<()> {
        let (path, target) = (path.as_ref(), target.as_ref().as_os_str().as_bytes());
        let inode = NewInode { mode: 0o777, ..new.inode(NewKind::Symlink(target.to_vec())) };
        self.create_entry(path, &inode).map(drop).map_err(PathError::at("create", path))
    }

    /// Where a symbolic link leads.
    ///
    /// # Errors
    /// A [`PathError`].
    pub fn read_symlink(&self, path: impl AsRef<Path>) -> Result<PathBuf> {
        let path = path.as_ref();
        self.resolve(path)
            .and_then(|attr| self.dataset().readlink(attr.ino))
            .map(|target| PathBuf::from(OsString::from_vec(target)))
            .map_err(PathError::at("read the link", path))
    }

    fn create_entry(&self, path: &Path, new: &NewInode) -> Result<Attr, Error> {
        let (parent, name) = self.resolve_parent(path)?;
        let attr = self.dataset().create(parent, name, new)?;
        self.watchers.entry_changed(parent, name);
        Ok(attr)
    }

    /// Makes a directory and those above it that are missing. One that exists keeps its mode and
    /// owner.
    ///
    /// # Errors
    /// A [`PathError`]; also if a file is in the way.
    pub fn create_dirs(&self, path: impl AsRef<Path>, new: NewFile) -> Result<()> {
        let path = path.as_ref();
        self.make_directories(path, new).map_err(PathError::at("make the directory", path))
    }

    fn make_directories(&self, path: &Path, new: NewFile) -> Result<(), Error> {
        let names = path::names(path)?;
        let mut so_far = PathBuf::new();
        for name in names {
            so_far.push(OsStr::from_bytes(name));
            match self.create_entry(&so_far, &new.inode(NewKind::Directory)) {
                Ok(_) => {}
                Err(Error::Exists) => {
                    let kind = self.resolve(&so_far)?.kind;
                    if !matches!(kind, FileKind::Directory | FileKind::Symlink) {
                        return Err(Error::NotDirectory);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The entries of a directory, by name.
    ///
    /// # Errors
    /// A [`PathError`].
    pub fn list(&self, path: impl AsRef<Path>) -> Result<Vec<TreeEntry>> {
        let path = path.as_ref();
        let mut entries = self
            .resolve(path)
            .and_then(|attr| self.entries(attr.ino))
            .map_err(PathError::at("list", path))?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn entries(&self, directory: Ino) -> Result<Vec<TreeEntry>, Error> {
        let (mut entries, mut cookie) = (Vec::new(), 0);
        loop {
            let batch = self.dataset().readdir(directory, cookie, NAMES_MAX)?;
            let Some(last) = batch.last() else { return Ok(entries) };
            cookie = last.cookie;
            for entry in batch {
                match self.dataset().getattr(entry.ino) {
                    Ok(attr) => {
                        entries.push(TreeEntry { name: OsString::from_vec(entry.name), attr });
                    }
                    // Removed since the batch was read.
                    Err(Error::NotFound | Error::Stale) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// Renames within the dataset; replaces a file at `to`.
    ///
    /// # Errors
    /// A [`PathError`].
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
        let (from, to) = (from.as_ref(), to.as_ref());
        let (parent, name) = self.resolve_parent(from).map_err(PathError::at("rename", from))?;
        let (new_parent, new_name) =
            self.resolve_parent(to).map_err(PathError::at("rename to", to))?;
        self.dataset()
            .rename(parent, name, new_parent, new_name, RenameMode::Replace)
            .map_err(PathError::at("rename", from))?;
        self.watchers.entry_changed(parent, name);
        self.watchers.entry_changed(new_parent, new_name);
        Ok(())
    }

    /// Removes a file, or a directory with everything below it. A path that names nothing is no
    /// error; the empty path empties the dataset.
    ///
    /// # Errors
    /// A [`PathError`].
    pub fn remove_tree(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        match self.remove_at(path) {
            Ok(()) | Err(Error::NotFound) => Ok(()),
            Err(error) => Err(PathError::at("remove", path)(error)),
        }
    }

    fn remove_at(&self, path: &Path) -> Result<(), Error> {
        let attr = self.resolve(path)?;
        if attr.ino == Ino::ROOT {
            for entry in self.entries(Ino::ROOT)? {
                self.remove_entry(Ino::ROOT, entry.name.as_bytes(), &entry.attr)?;
                self.watchers.entry_changed(Ino::ROOT, entry.name.as_bytes());
            }
            return Ok(());
        }
        let (parent, name) = self.resolve_parent(path)?;
        self.remove_entry(parent, name, &attr)?;
        self.watchers.entry_changed(parent, name);
        Ok(())
    }

    /// Removes one entry, depth first, without recursion: trees of a user may be deep.
    fn remove_entry(&self, parent: Ino, name: &[u8], attr: &Attr) -> Result<(), Error> {
        if attr.kind != FileKind::Directory {
            return self.dataset().unlink(parent, name);
        }
        let mut stack = vec![(parent, name.to_vec(), attr.ino)];
        while let Some((above, name, directory)) = stack.last().cloned() {
            let mut deeper = false;
            for entry in self.dataset().readdir(directory, 0, NAMES_MAX)? {
                if entry.kind == FileKind::Directory {
                    stack.push((directory, entry.name, entry.ino));
                    deeper = true;
                    break;
                }
                self.dataset().unlink(directory, &entry.name)?;
            }
            if !deeper {
                match self.dataset().rmdir(above, &name) {
                    Ok(()) => drop(stack.pop()),
                    // More names than one batch, or new ones since: repeat.
                    Err(Error::NotEmpty) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Gives a path, and everything below it, to an owner. Symbolic links themselves are changed,
    /// not their targets.
    ///
    /// # Errors
    /// A [`PathError`].
    pub fn set_owner(&self, path: impl AsRef<Path>, uid: u32, gid: u32) -> Result<()> {
        let path = path.as_ref();
        let change = SetAttr { uid: Some(uid), gid: Some(gid), ..SetAttr::default() };
        self.resolve(path)
            .and_then(|attr| self.change_tree(attr, &change))
            .map_err(PathError::at("set the owner of", path))
    }

    fn change_tree(&self, top: Attr, change: &SetAttr) -> Result<(), Error> {
        let mut stack = vec![top];
        while let Some(attr) = stack.pop() {
            if change.uid != Some(attr.uid) || change.gid != Some(attr.gid) {
                self.dataset().setattr(attr.ino, change)?;
                self.watchers.inode_changed(attr.ino);
            }
            if attr.kind == FileKind::Directory {
                stack.extend(self.entries(attr.ino)?.into_iter().map(|entry| entry.attr));
            }
        }
        Ok(())
    }

    /// Sets the permission bits (`0o7777`) of one path.
    ///
    /// # Errors
    /// A [`PathError`].
    pub fn set_mode(&self, path: impl AsRef<Path>, mode: u32) -> Result<()> {
        let path = path.as_ref();
        let change = SetAttr { mode: Some(mode), ..SetAttr::default() };
        self.resolve(path)
            .and_then(|attr| self.dataset().setattr(attr.ino, &change))
            .map(|attr| self.watchers.inode_changed(attr.ino))
            .map_err(PathError::at("set the mode of", path))
    }
}

fn regular(attr: Attr) -> Result<Attr, Error> {
    match attr.kind {
        FileKind::File => Ok(attr),
        FileKind::Directory => Err(Error::IsDirectory),
        _ => Err(Error::Invalid("not a regular file")),
    }
}

#[cfg(test)]
mod tests;
