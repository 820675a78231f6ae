//! Changes that must be done exactly once, although a request for them may come again.
//!
//! Where the dataset outlives its engine (`survival.rs`), what such a request did is recorded together with its
//! operation, so an engine that takes over knows what is already done.

use super::Dataset;
use super::names::Creation;
use super::occasion::Occasion;
use super::xattrs::VALUE_LEN_MAX;
use crate::attributes::{Attr, NewInode, RenameMode, XattrMode};
use crate::{Error, Result};
use offshoot_intent_log::{Request, RequestId};
use offshoot_types::Ino;
use std::collections::HashMap;

/// A dataset, for changes that a request asks for.
#[derive(Clone, Copy)]
pub struct Requested<'a> {
    dataset: &'a Dataset,
    request: Option<&'a Request<'a>>,
}

impl Dataset {
    /// Begins a request; it ends when the returned value is dropped: after its answer was given. Waits while very
    /// many are in flight.
    pub fn begin(&self, id: RequestId) -> Request<'_> {
        self.slots.begin(id)
    }

    /// For the changes that a request asks for; `None`: one that never comes again.
    pub fn on<'a>(&'a self, request: Option<&'a Request<'a>>) -> Requested<'a> {
        Requested { dataset: self, request }
    }

    /// The requests that an earlier engine finished and may not have answered, each with the inode that got a name
    /// by it (0: none did).
    pub fn finished_requests(&self) -> HashMap<RequestId, Ino> {
        let finished = self.volatile().map(|volatile| volatile.finished()).unwrap_or_default();
        finished.into_iter().map(|(request, ino)| (request, Ino(ino))).collect()
    }

    /// Makes an inode under a new name. The name must not exist.
    pub fn create(&self, parent: Ino, name: &[u8], new: &NewInode) -> Result<Attr> {
        self.on(None).create(parent, name, new)
    }

    /// Gives an inode (no directory) one more name.
    pub fn link(&self, ino: Ino, parent: Ino, name: &[u8]) -> Result<Attr> {
        self.on(None).link(ino, parent, name)
    }

    /// Removes a name of anything but a directory. The inode stays until its last name is gone and
    /// nobody has it open.
    pub fn unlink(&self, parent: Ino, name: &[u8]) -> Result<()> {
        self.on(None).unlink(parent, name)
    }

    /// Removes an empty directory.
    pub fn rmdir(&self, parent: Ino, name: &[u8]) -> Result<()> {
        self.on(None).rmdir(parent, name)
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
        self.on(None).rename(parent, name, new_parent, new_name, mode)
    }

    /// Sets an extended attribute (name up to 255 bytes, value up to 64 KiB).
    pub fn set_xattr(&self, ino: Ino, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()> {
        self.on(None).set_xattr(ino, name, value, mode)
    }

    /// Removes an extended attribute.
    pub fn remove_xattr(&self, ino: Ino, name: &[u8]) -> Result<()> {
        self.on(None).remove_xattr(ino, name)
    }
}

impl Requested<'_> {
    fn occasion(&self) -> Occasion<'_> {
        Occasion { time: self.dataset.now(), request: self.request }
    }

    /// As [`Dataset::create`].
    ///
    /// # Errors
    /// `Exists`, `NotFound`, `NotDirectory`; no room.
    pub fn create(&self, parent: Ino, name: &[u8], new: &NewInode) -> Result<Attr> {
        let creation = Creation::of(new)?;
        let dataset = self.dataset;
        let directory = dataset.inode(parent)?;
        dataset.admit(4096, dataset.purpose_of(&directory, false))?;
        let attr = dataset.create_at(parent, name, &creation, self.occasion())?;
        dataset.pass_favour(&directory, attr.ino)?;
        Ok(attr)
    }

    /// As [`Dataset::link`].
    ///
    /// # Errors
    /// `Exists`, `NotFound`, `TooManyLinks`; no room.
    pub fn link(&self, ino: Ino, parent: Ino, name: &[u8]) -> Result<Attr> {
        let dataset = self.dataset;
        dataset.admit(4096, dataset.purpose_of(&*dataset.inode(parent)?, false))?;
        dataset.link_at(ino, parent, name, self.occasion())
    }

    /// As [`Dataset::unlink`].
    ///
    /// # Errors
    /// `NotFound`, `IsDirectory`.
    pub fn unlink(&self, parent: Ino, name: &[u8]) -> Result<()> {
        self.dataset.remove_at(parent, name, Some(false), self.occasion())
    }

    /// As [`Dataset::rmdir`].
    ///
    /// # Errors
    /// `NotFound`, `NotDirectory`, `NotEmpty`.
    pub fn rmdir(&self, parent: Ino, name: &[u8]) -> Result<()> {
        self.dataset.remove_at(parent, name, Some(true), self.occasion())
    }

    /// As [`Dataset::rename`].
    ///
    /// # Errors
    /// Those of `renameat2`.
    pub fn rename(
        &self,
        parent: Ino,
        name: &[u8],
        new_parent: Ino,
        new_name: &[u8],
        mode: RenameMode,
    ) -> Result<()> {
        let occasion = self.occasion();
        self.dataset.rename_at(parent, name, new_parent, new_name, mode, occasion)
    }

    /// As [`Dataset::set_xattr`].
    ///
    /// # Errors
    /// `AttributeTooBig`, `Exists`, `NoAttribute`; no room.
    pub fn set_xattr(&self, ino: Ino, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()> {
        if value.len() > VALUE_LEN_MAX {
            return Err(Error::AttributeTooBig);
        }
        let dataset = self.dataset;
        let purpose = dataset.purpose_of(&*dataset.inode(ino)?, false);
        dataset.admit(4096 + value.len() as u64, purpose)?;
        dataset.xattr_at(ino, name, Some(value), mode, self.occasion())
    }

    /// As [`Dataset::remove_xattr`].
    ///
    /// # Errors
    /// `NoAttribute`.
    pub fn remove_xattr(&self, ino: Ino, name: &[u8]) -> Result<()> {
        self.dataset.xattr_at(ino, name, None, XattrMode::Replace, self.occasion())
    }
}
