//! What a check looks at.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;

use super::checksum::PAGE_LEN;
use crate::base_backup::TABLESPACES_DIR;
use crate::control::Control;
use offshoot_connector::DataDir;

/// Files with at most this much to check are small: mostly those of catalogs.
const SMALL_BYTES: u64 = 8 << 20;

/// Which pages of the files of relations a check looks at: ascending ranges of pages by the path of the
/// file, below the data directory as PostgreSQL names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    pub(super) files: BTreeMap<String, Vec<Range<u64>>>,
    /// Pages of each file of a relation but the last.
    pub(super) segment_pages: u64,
}

impl Scope {
    /// Everything of an image that `changed` does not exclude: it gets each file of a relation and
    /// returns the pages to check, `None` for all.
    ///
    /// # Errors
    /// Errors of `changed` and of the file system.
    pub fn of(
        control: &Control,
        data: &dyn DataDir,
        mut changed: impl FnMut(&str) -> io::Result<Option<Vec<Range<u64>>>>,
    ) -> io::Result<Scope> {
        let mut files = BTreeMap::new();
        for path in relation_files(data)? {
            let pages = match changed(&path)? {
                Some(pages) => pages,
                None => {
                    let all = 0..data.open(&path)?.size()?.div_ceil(PAGE_LEN as u64);
                    std::iter::once(all).collect()
                }
            };
            let pages = pages.into_iter().filter(|range| !range.is_empty()).collect();
            files.insert(path, pages);
        }
        Ok(Scope { files, segment_pages: control.segment_pages })
    }

    /// How much it is, in bytes.
    pub fn bytes(&self) -> u64 {
        bytes_in(self.files.values().flatten())
    }

    /// The small files, which must be sound before a server is started, and the others.
    pub fn split(&self) -> (Scope, Scope) {
        let is_small = |pages: &[Range<u64>]| bytes_in(pages.iter()) <= SMALL_BYTES;
        let part = |small: bool| Scope {
            files: (self.files.iter().filter(|(_, pages)| is_small(pages) == small))
                .map(|(path, pages)| (path.clone(), pages.clone()))
                .collect(),
            segment_pages: self.segment_pages,
        };
        (part(true), part(false))
    }

    /// Without the main forks of these relations, given by the paths of their first files.
    pub fn without(mut self, relations: &BTreeSet<String>) -> Scope {
        self.files.retain(|path, _| {
            let (first, _) = path.rsplit_once('.').unwrap_or((path, ""));
            !relations.contains(path) && !relations.contains(first)
        });
        self
    }

    /// The pages of a relation's main fork by their numbers in it, across its files; `None`: it has
    /// none here.
    pub(super) fn of_relation(&self, path: &str) -> Option<Vec<Range<u64>>> {
        let mut found = self.files.get(path)?.clone();
        for segment in 1.. {
            let Some(pages) = self.files.get(&format!("{path}.{segment}")) else { break };
            let base = segment * self.segment_pages;
            found.extend(pages.iter().map(|one| base + one.start..base + one.end));
        }
        Some(found)
    }
}

/// The size of some pages, in bytes.
pub(super) fn bytes_in<'a>(ranges: impl Iterator<Item = &'a Range<u64>>) -> u64 {
    ranges.map(|pages| pages.end - pages.start).sum::<u64>() * PAGE_LEN as u64
}

/// The files of relations, all forks and segments.
fn relation_files(data: &dyn DataDir) -> io::Result<Vec<String>> {
    let mut directories = vec!["global".to_owned()];
    directories.extend(data.list("base")?.into_iter().map(|name| format!("base/{name}")));
    for oid in data.list("pg_tblspc")? {
        // A link is not followed where a path ends.
        let moved = format!("{TABLESPACES_DIR}/{oid}");
        let place = if data.exists(&moved)? { moved } else { format!("pg_tblspc/{oid}") };
        for version in directory(data, &place)? {
            let databases = directory(data, &format!("{place}/{version}"))?;
            let path = |database| format!("pg_tblspc/{oid}/{version}/{database}");
            directories.extend(databases.into_iter().map(path));
        }
    }
    let mut files = Vec::new();
    for path in directories {
        let names = directory(data, &path)?.into_iter();
        let relations = names.filter(|name| segment_of(name).is_some());
        files.extend(relations.map(|name| format!("{path}/{name}")));
    }
    Ok(files)
}

/// The names in a directory; none if it is something else, such as a link out of the image.
fn directory(data: &dyn DataDir, path: &str) -> io::Result<Vec<String>> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match data.list(path) {
        Err(error) if matches!(error.kind(), NotADirectory | NotFound) => Ok(Vec::new()),
        names => names,
    }
}

/// The segment that a file holds, if its name is that of a relation's: `16384`, `16384.1`,
/// `16384_fsm`, `16384_vm.2`.
pub(super) fn segment_of(name: &str) -> Option<u64> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (fork, segment) = match name.split_once('.') {
        Some((fork, segment)) if is_number(segment) => (fork, segment.parse().ok()?),
        Some(_) => return None,
        None => (name, 0),
    };
    let (number, kind) = fork.split_once('_').unwrap_or((fork, "init"));
    (is_number(number) && matches!(kind, "fsm" | "vm" | "init")).then_some(segment)
}

#[cfg(test)]
mod tests;
