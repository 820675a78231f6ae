//! Walking paths within a dataset.

use crate::{Attr, Error, FileKind, FileSystem};
use offshoot_dataset::Dataset;
use offshoot_types::Ino;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// Most symbolic links followed on one path, as in Linux.
const LINKS_MAX: usize = 40;

/// The names on a path, from the root of the dataset; a leading `/` makes no difference.
pub(crate) fn names(path: &Path) -> Result<Vec<&[u8]>, Error> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.as_bytes()),
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir => return Err(Error::Invalid("'..' in a path of a dataset")),
            Component::Prefix(_) => return Err(Error::Invalid("a path with a prefix")),
        }
    }
    Ok(names)
}

/// Finds a name; `.` and `..` work.
pub(crate) fn lookup(dataset: &Dataset, parent: Ino, name: &[u8]) -> Result<Attr, Error> {
    match name {
        b"." => dataset.getattr(parent),
        b".." => dataset.getattr(dataset.parent(parent)?),
        _ => dataset.lookup(parent, name),
    }
}

impl FileSystem {
    /// What a path names; a symbolic link at its end is not followed, but those on the way are.
    pub(crate) fn resolve(&self, path: &Path) -> Result<Attr, Error> {
        let names = names(path)?;
        let Some((last, parents)) = names.split_last() else {
            return self.dataset().getattr(Ino::ROOT);
        };
        let parent = self.walk(Ino::ROOT, parents)?;
        self.dataset().lookup(parent, last)
    }

    /// The directory that holds a path's last name, and that name. The root has none.
    pub(crate) fn resolve_parent<'a>(&self, path: &'a Path) -> Result<(Ino, &'a [u8]), Error> {
        let names = names(path)?;
        let (last, parents) =
            names.split_last().ok_or(Error::Invalid("the root of a dataset is no entry"))?;
        Ok((self.walk(Ino::ROOT, parents)?, last))
    }

    fn walk(&self, from: Ino, names: &[&[u8]]) -> Result<Ino, Error> {
        let mut pending: Vec<Vec<u8>> = names.iter().rev().map(|name| name.to_vec()).collect();
        let (mut at, mut links) = (from, 0);
        while let Some(name) = pending.pop() {
            let attr = lookup(self.dataset(), at, &name)?;
            match attr.kind {
                FileKind::Directory => at = attr.ino,
                FileKind::Symlink => {
                    links += 1;
                    let target = self.dataset().readlink(attr.ino)?;
                    if target.starts_with(b"/") {
                        return Err(Error::Invalid("a symbolic link leads out of the dataset"));
                    }
                    if links > LINKS_MAX {
                        return Err(Error::Invalid("too many symbolic links on a path"));
                    }
                    let parts = target.split(|byte| *byte == b'/').rev();
                    pending.extend(parts.filter(|part| !part.is_empty()).map(<[u8]>::to_vec));
                }
                _ => return Err(Error::NotDirectory),
            }
        }
        Ok(at)
    }
}
