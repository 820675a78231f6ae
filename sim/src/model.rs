//! What a dataset should be: plain maps.

use offshoot_dataset::{
    AllocateMode, Attr, Dataset, Error, FileKind, Ino, NewInode, NewKind, RenameMode, SetAttr,
    XattrMode,
};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// One operation on a dataset.
#[derive(Debug, Clone)]
pub enum Op {
    Write { ino: u64, offset: u64, data: Vec<u8> },
    Append { ino: u64, data: Vec<u8> },
    Resize { ino: u64, size: u64 },
    Allocate { ino: u64, offset: u64, len: u64, mode: AllocateMode },
    Create { parent: u64, name: Vec<u8>, kind: NewKind },
    Link { ino: u64, parent: u64, name: Vec<u8> },
    Unlink { parent: u64, name: Vec<u8> },
    Rmdir { parent: u64, name: Vec<u8> },
    Rename { parent: u64, name: Vec<u8>, new_parent: u64, new_name: Vec<u8>, mode: RenameMode },
    SetMode { ino: u64, mode: u32, mtime_s: u64 },
    SetXattr { ino: u64, name: Vec<u8>, value: Vec<u8> },
    RemoveXattr { ino: u64, name: Vec<u8> },
    Copy { from: u64, offset: u64, to: u64, to_offset: u64, len: u64 },
    Open { ino: u64 },
    Close { ino: u64 },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    File(Vec<u8>),
    Directory(BTreeMap<Vec<u8>, u64>),
    Other(Vec<u8>),
}

#[derive(Debug, Clone)]
pub struct Node {
    pub content: Content,
    pub mode: u32,
    pub nlink: u32,
    pub parent: u64,
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

#[derive(Debug, Clone)]
pub struct Model {
    pub nodes: BTreeMap<u64, Arc<Node>>,
    pub open: BTreeMap<u64, u32>,
}

type Outcome = Result<(), ()>;

impl Model {
    pub fn new() -> Model {
        let root = Node {
            content: Content::Directory(BTreeMap::new()),
            mode: 0o755,
            nlink: 2,
            parent: 1,
            xattrs: BTreeMap::new(),
        };
        Model { nodes: BTreeMap::from([(1, Arc::new(root))]), open: BTreeMap::new() }
    }

    fn node(&self, ino: u64) -> Result<&Node, ()> {
        self.nodes.get(&ino).map(|node| &**node).ok_or(())
    }

    fn node_mut(&mut self, ino: u64) -> Result<&mut Node, ()> {
        self.nodes.get_mut(&ino).map(Arc::make_mut).ok_or(())
    }

    fn file(&mut self, ino: u64) -> Result<&mut Vec<u8>, ()> {
        match &mut self.node_mut(ino)?.content {
            Content::File(bytes) => Ok(bytes),
            _ => Err(()),
        }
    }

    fn names(&self, ino: u64) -> Result<&BTreeMap<Vec<u8>, u64>, ()> {
        match &self.node(ino)?.content {
            Content::Directory(names) => Ok(names),
            _ => Err(()),
        }
    }

    fn names_mut(&mut self, ino: u64) -> Result<&mut BTreeMap<Vec<u8>, u64>, ()> {
        match &mut self.node_mut(ino)?.content {
            Content::Directory(names) => Ok(names),
            _ => Err(()),
        }
    }

    pub fn is_dir(&self, ino: u64) -> bool {
        self.names(ino).is_ok()
    }

    pub fn is_file(&self, ino: u64) -> bool {
        matches!(self.node(ino).map(|node| &node.content), Ok(Content::File(_)))
    }

    pub fn size(&self, ino: u64) -> u64 {
        match self.node(ino).map(|node| &node.content) {
            Ok(Content::File(bytes)) => bytes.len() as u64,
            _ => 0,
        }
    }

    fn drop_name(&mut self, ino: u64) {
        let dir = self.is_dir(ino);
        let open = self.open.contains_key(&ino);
        let Ok(node) = self.node_mut(ino) else { return };
        node.nlink = if dir { 0 } else { node.nlink - 1 };
        if node.nlink == 0 && !open {
            self.nodes.remove(&ino);
        }
    }

    /// What is left after the store was opened again: nothing is open.
    pub fn reopened(mut self) -> Model {
        self.open.clear();
        self.nodes.retain(|_, node| node.nlink > 0);
        self
    }

    /// Applies an operation; `new` is the number the real one gave to what was created.
    #[expect(clippy::too_many_lines, reason = "one arm for each kind of operation")]
    pub fn apply(&mut self, op: &Op, new: Option<u64>) -> Outcome {
        match op {
            Op::Write { ino, offset, data } => put(self.file(*ino)?, *offset as usize, data),
            Op::Append { ino, data } => self.file(*ino)?.extend_from_slice(data),
            Op::Resize { ino, size } => self.file(*ino)?.resize(*size as usize, 0),
            Op::Allocate { ino, offset, len, mode } => {
                let file = self.file(*ino)?;
                let (start, end) = (*offset as usize, (offset + len) as usize);
                use AllocateMode::*;
                if matches!(mode, PunchHole | ZeroRange | ZeroRangeKeepSize) {
                    let size = file.len();
                    file[start.min(size)..end.min(size)].fill(0);
                }
                if matches!(mode, Extend | ZeroRange) && file.len() < end {
                    file.resize(end, 0);
                }
            }
            Op::Create { parent, name, kind } => self.create(*parent, name, kind, new)?,
            Op::Link { ino, parent, name } => {
                if self.names(*parent)?.contains_key(name) || self.is_dir(*ino) {
                    return Err(());
                }
                if self.node(*ino)?.nlink == 0 || self.node(*parent)?.nlink == 0 {
                    return Err(());
                }
                self.node_mut(*ino)?.nlink += 1;
                self.names_mut(*parent)?.insert(name.clone(), *ino);
            }
            Op::Unlink { parent, name } => {
                let ino = *self.names(*parent)?.get(name).ok_or(())?;
                if self.is_dir(ino) {
                    return Err(());
                }
                self.names_mut(*parent)?.remove(name);
                self.drop_name(ino);
            }
            Op::Rmdir { parent, name } => {
                let ino = *self.names(*parent)?.get(name).ok_or(())?;
                if !self.names(ino)?.is_empty() {
                    return Err(());
                }
                self.names_mut(*parent)?.remove(name);
                self.node_mut(*parent)?.nlink -= 1;
                self.drop_name(ino);
            }
            Op::Rename { parent, name, new_parent, new_name, mode } => {
                self.rename(*parent, name, *new_parent, new_name, *mode)?;
            }
            Op::SetMode { ino, mode, .. } => self.node_mut(*ino)?.mode = *mode,
            Op::SetXattr { ino, name, value } => {
                self.node_mut(*ino)?.xattrs.insert(name.clone(), value.clone());
            }
            Op::RemoveXattr { ino, name } => {
                self.node_mut(*ino)?.xattrs.remove(name).ok_or(())?;
            }
            Op::Copy { from, offset, to, to_offset, len } => {
                let source = self.file(*from)?.clone();
                self.file(*to)?;
                let size = source.len() as u64;
                let len = (*len).min(size.saturating_sub(*offset));
                if from == to && offset.abs_diff(*to_offset) < len {
                    return Err(());
                }
                let part = &source[(*offset).min(size) as usize..][..len as usize];
                if !part.is_empty() {
                    put(self.file(*to)?, *to_offset as usize, part);
                }
            }
            Op::Open { ino } => {
                self.node(*ino)?;
                *self.open.entry(*ino).or_default() += 1;
            }
            Op::Close { ino } => {
                let Some(count) = self.open.get_mut(ino) else { return Ok(()) };
                *count -= 1;
                if *count == 0 {
                    self.open.remove(ino);
                    if self.node(*ino).is_ok_and(|node| node.nlink == 0) {
                        self.nodes.remove(ino);
                    }
                }
            }
        }
        Ok(())
    }

    fn create(&mut self, parent: u64, name: &[u8], kind: &NewKind, new: Option<u64>) -> Outcome {
        if self.names(parent)?.contains_key(name) || self.node(parent)?.nlink == 0 {
            return Err(());
        }
        let content = match kind {
            NewKind::File => Content::File(Vec::new()),
            NewKind::Directory => Content::Directory(BTreeMap::new()),
            NewKind::Symlink(target) => Content::Other(target.clone()),
            _ => Content::Other(Vec::new()),
        };
        let dir = *kind == NewKind::Directory;
        // Without a number the real one refused, which `check` will report.
        let ino = new.ok_or(())?;
        self.names_mut(parent)?.insert(name.to_vec(), ino);
        self.node_mut(parent)?.nlink += u32::from(dir);
        let node = Node {
            content,
            mode: 0o644,
            nlink: if dir { 2 } else { 1 },
            parent,
            xattrs: BTreeMap::new(),
        };
        self.nodes.insert(ino, Arc::new(node));
        Ok(())
    }

    fn is_below(&self, mut dir: u64, ino: u64) -> bool {
        loop {
            if dir == ino {
                return true;
            }
            if dir == 1 {
                return false;
            }
            dir = self.nodes[&dir].parent;
        }
    }

    fn rename(
        &mut self,
        parent: u64,
        name: &[u8],
        new_parent: u64,
        new_name: &[u8],
        mode: RenameMode,
    ) -> Outcome {
        let ino = *self.names(parent)?.get(name).ok_or(())?;
        let target = self.names(new_parent)?.get(new_name).copied();
        match (mode, target) {
            (RenameMode::NoReplace, Some(_)) | (RenameMode::Exchange, None) => return Err(()),
            (_, Some(target)) if target == ino => return Ok(()),
            _ => {}
        }
        if self.node(new_parent)?.nlink == 0 {
            return Err(());
        }
        if self.is_dir(ino) && self.is_below(new_parent, ino) {
            return Err(());
        }
        let exchange = mode == RenameMode::Exchange;
        if let Some(target) = target {
            let (moved_dir, target_dir) = (self.is_dir(ino), self.is_dir(target));
            if exchange {
                if target_dir && self.is_below(parent, target) {
                    return Err(());
                }
            } else {
                if moved_dir != target_dir {
                    return Err(());
                }
                if target_dir && !self.names(target)?.is_empty() {
                    return Err(());
                }
            }
        }
        self.names_mut(new_parent)?.insert(new_name.to_vec(), ino);
        if let (true, Some(target)) = (exchange, target) {
            self.names_mut(parent)?.insert(name.to_vec(), target);
            if self.is_dir(target) {
                self.node_mut(target)?.parent = parent;
            }
        } else {
            self.names_mut(parent)?.remove(name);
        }
        if self.is_dir(ino) {
            self.node_mut(ino)?.parent = new_parent;
        }
        if let (false, Some(target)) = (exchange, target) {
            self.drop_name(target);
        }
        for dir in BTreeSet::from([parent, new_parent]) {
            let subdirs =
                self.names(dir)?.values().filter(|child| self.is_dir(**child)).count() as u32;
            self.node_mut(dir)?.nlink = 2 + subdirs;
        }
        Ok(())
    }
}

fn put(file: &mut Vec<u8>, offset: usize, data: &[u8]) {
    if file.len() < offset + data.len() {
        file.resize(offset + data.len(), 0);
    }
    file[offset..offset + data.len()].copy_from_slice(data);
}

/// Applies an operation for real; returns the number of what was created.
pub fn apply_real(dataset: &Dataset, op: &Op) -> Result<Option<u64>, Error> {
    match op {
        Op::Write { ino, offset, data } => dataset.write(Ino(*ino), *offset, data)?,
        Op::Append { ino, data } => {
            dataset.append(Ino(*ino), data)?;
        }
        Op::Resize { ino, size } => {
            let change = SetAttr { size: Some(*size), ..SetAttr::default() };
            dataset.setattr(Ino(*ino), &change)?;
        }
        Op::Allocate { ino, offset, len, mode } => {
            dataset.allocate(Ino(*ino), *offset, *len, *mode)?;
        }
        Op::Create { parent, name, kind } => {
            let new = NewInode { kind: kind.clone(), mode: 0o644, uid: 5, gid: 6, rdev: 7 };
            return Ok(Some(dataset.create(Ino(*parent), name, &new)?.ino.0));
        }
        Op::Link { ino, parent, name } => {
            dataset.link(Ino(*ino), Ino(*parent), name)?;
        }
        Op::Unlink { parent, name } => dataset.unlink(Ino(*parent), name)?,
        Op::Rmdir { parent, name } => dataset.rmdir(Ino(*parent), name)?,
        Op::Rename { parent, name, new_parent, new_name, mode } => {
            dataset.rename(Ino(*parent), name, Ino(*new_parent), new_name, *mode)?;
        }
        Op::SetMode { ino, mode, mtime_s } => {
            let mtime = Some(UNIX_EPOCH + Duration::from_secs(*mtime_s));
            let change = SetAttr { mode: Some(*mode), mtime, ..SetAttr::default() };
            dataset.setattr(Ino(*ino), &change)?;
        }
        Op::SetXattr { ino, name, value } => {
            dataset.set_xattr(Ino(*ino), name, value, XattrMode::Set)?;
        }
        Op::RemoveXattr { ino, name } => dataset.remove_xattr(Ino(*ino), name)?,
        Op::Copy { from, offset, to, to_offset, len } => {
            dataset.copy_range(dataset, Ino(*from), *offset, Ino(*to), *to_offset, *len)?;
        }
        Op::Open { ino } => dataset.open(Ino(*ino))?,
        Op::Close { ino } => dataset.close(Ino(*ino)),
    }
    Ok(None)
}

/// All that can be seen of one inode.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub attr: Attr,
    pub content: u64,
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// All that can be seen of a dataset, by path.
pub type Dump = BTreeMap<Vec<u8>, Seen>;

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

pub fn dump(dataset: &Dataset) -> Result<Dump, Error> {
    let mut dump = Dump::new();
    let mut left = vec![(Vec::new(), Ino::ROOT)];
    while let Some((path, ino)) = left.pop() {
        let seen = see(dataset, &path, ino, &mut left)?;
        assert!(dump.insert(path, seen).is_none());
    }
    Ok(dump)
}

/// Checks one inode; adds what is in a directory.
fn see(
    dataset: &Dataset,
    path: &[u8],
    ino: Ino,
    left: &mut Vec<(Vec<u8>, Ino)>,
) -> Result<Seen, Error> {
    let mut attr = dataset.getattr(ino)?;
    let content = match attr.kind {
        FileKind::File => hash(&dataset.read(ino, 0, 1 << 22)?),
        FileKind::Symlink => hash(&dataset.readlink(ino)?),
        FileKind::Directory => {
            let mut cookie = 0;
            loop {
                let entries = dataset.readdir(ino, cookie, 7)?;
                let Some(last) = entries.last() else { break };
                cookie = last.cookie;
                for entry in entries {
                    let name = [path, b"/", &entry.name].concat();
                    left.push((name, entry.ino));
                    assert_eq!(dataset.lookup(ino, &entry.name)?.ino, entry.ino);
                    assert_eq!(dataset.getattr(entry.ino)?.kind, entry.kind);
                }
            }
            dataset.parent(ino)?.0
        }
        _ => 0,
    };
    let mut xattrs = BTreeMap::new();
    for name in dataset.list_xattrs(ino)? {
        let value = dataset.get_xattr(ino, &name)?;
        xattrs.insert(name, value);
    }
    // An estimate until a commit.
    attr.allocated = 0;
    Ok(Seen { attr, content, xattrs })
}

/// What can be seen of a damaged dataset.
pub struct Partial {
    pub seen: Dump,
    /// Paths whose inode, content or names answered with an I/O error.
    pub unreadable: BTreeSet<Vec<u8>>,
}

impl Partial {
    /// # Panics
    /// On errors other than of input and output.
    pub fn of(dataset: &Dataset, context: &str) -> Partial {
        let mut partial = Partial { seen: Dump::new(), unreadable: BTreeSet::new() };
        let mut left = vec![(Vec::new(), Ino::ROOT)];
        while let Some((path, ino)) = left.pop() {
            match see(dataset, &path, ino, &mut left) {
                Ok(seen) => drop(partial.seen.insert(path, seen)),
                Err(error) => {
                    let name = String::from_utf8_lossy(&path).into_owned();
                    assert_eq!(error.errno(), 5, "{context}: {name}: {error}");
                    partial.unreadable.insert(path);
                }
            }
        }
        partial
    }

    /// Whether everything visible is as in `whole`, and what is missing is below something that cannot be
    /// read.
    pub fn fits(&self, whole: &Dump) -> bool {
        let right = |(path, seen): (&Vec<u8>, &Seen)| whole.get(path) == Some(seen);
        let behind = |path: &Vec<u8>| {
            self.unreadable.contains(path)
                || (0..path.len())
                    .any(|end| path[end] == b'/' && self.unreadable.contains(&path[..end]))
        };
        self.seen.iter().all(right)
            && self.unreadable.iter().all(|path| whole.contains_key(path))
            && whole.keys().all(|path| self.seen.contains_key(path) || behind(path))
    }
}

/// Panics unless the dump shows the model.
pub fn check(dump: &Dump, model: &Model, context: &str) {
    let mut left = vec![(Vec::new(), 1u64)];
    let mut count = 0;
    while let Some((path, ino)) = left.pop() {
        count += 1;
        let name = String::from_utf8_lossy(&path).into_owned();
        let seen = dump.get(&path).unwrap_or_else(|| panic!("{context}: {name} is missing"));
        let node = &model.nodes[&ino];
        assert_eq!(seen.attr.ino.0, ino, "{context}: inode of {name}");
        assert_eq!(seen.attr.nlink, node.nlink, "{context}: links of {name}");
        assert_eq!(seen.attr.mode, node.mode, "{context}: mode of {name}");
        assert_eq!(seen.xattrs, node.xattrs, "{context}: attributes of {name}");
        let content = match &node.content {
            Content::File(bytes) => {
                assert_eq!(seen.attr.size, bytes.len() as u64, "{context}: length of {name}");
                hash(bytes)
            }
            Content::Directory(names) => {
                for (child, ino) in names {
                    left.push(([&path[..], b"/", child].concat(), *ino));
                }
                node.parent
            }
            Content::Other(target) if target.is_empty() => 0,
            Content::Other(target) => hash(target),
        };
        assert_eq!(seen.content, content, "{context}: content of {name}");
    }
    assert_eq!(dump.len(), count, "{context}: names that should not be there");
}
