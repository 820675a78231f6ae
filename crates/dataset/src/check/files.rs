//! One state of a dataset: its inodes, names, links and block maps agree.

use crate::block_map::BlockMap;
use crate::blocks::NodeSource;
use crate::tree;
use offshoot_format::directory::TreeState;
use offshoot_format::inode::{
    InodeRecord, decode_name, name_hash, parse_inode_key, parse_name_key, parse_orphan_key,
    parse_xattr_key,
};
use offshoot_format::tree::LeafEntry;
use offshoot_types::{BLOCK_SIZE, BlockHash, Ino};
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

const FILE: u8 = 1;
const DIRECTORY: u8 = 2;

/// Block maps already counted, since many states share them: data blocks and the last one's number,
/// or what is wrong.
pub(crate) type Maps = HashMap<(BlockHash, u8), std::result::Result<(u64, u64), String>>;

/// What the names say of an inode.
#[derive(Default)]
struct Named {
    names: u32,
    /// As a directory: names in it, and those of directories.
    entries: u64,
    directories: u32,
    /// The directory of the last name met.
    parent: u64,
    orphan: bool,
    /// The kind the names say.
    kind: Option<u8>,
}

#[derive(Default)]
struct State {
    inodes: BTreeMap<u64, InodeRecord>,
    named: BTreeMap<u64, Named>,
    last_key: Vec<u8>,
    problems: Vec<String>,
}

/// Everything wrong with a state.
pub(crate) fn check_state(
    source: &dyn NodeSource,
    tree: &TreeState,
    maps: &mut Maps,
) -> Vec<String> {
    let mut state = State::default();
    let scanned = tree::scan(source, tree.root, &[], &mut |entry| {
        if let Err(problem) = state.take(&entry) {
            state.problems.push(problem);
        }
        state.last_key = entry.key;
        ControlFlow::Continue(())
    });
    if let Err(error) = scanned {
        // What is below the damage is unknown: comparing would only report consequences of it.
        state.problems.push(format!("its tree cannot be read: {error}"));
        return state.problems;
    }
    state.check_names();
    state.check_maps(source, maps);
    state.check_sums(tree);
    state.problems
}

impl State {
    fn take(&mut self, entry: &LeafEntry) -> std::result::Result<(), String> {
        let key = &entry.key[..];
        if key <= &self.last_key[..] {
            return Err("keys do not ascend".to_owned());
        }
        let text = |error: offshoot_format::DecodeError| error.to_string();
        if let Some(ino) = parse_inode_key(key) {
            let record = InodeRecord::decode(&entry.value).map_err(text)?;
            self.inodes.insert(ino.0, record);
        } else if let Some((directory, hash, name)) = parse_name_key(key) {
            let (Ino(ino), kind) = decode_name(&entry.value.bytes).map_err(text)?;
            let shown = String::from_utf8_lossy(name);
            let named = self.named.entry(ino).or_default();
            named.names += 1;
            named.parent = directory.0;
            let differs = named.kind.is_some_and(|known| known != kind);
            named.kind = Some(kind);
            let of = self.named.entry(directory.0).or_default();
            of.entries += 1;
            of.directories += u32::from(kind == DIRECTORY);
            if hash != name_hash(name) {
                let directory = directory.0;
                return Err(format!(
                    "inode {directory}: name '{shown}' is not found where it lies"
                ));
            }
            if differs {
                return Err(format!("inode {ino} has names of several kinds"));
            }
        } else if let Some((ino, _)) = parse_xattr_key(key) {
            // Inodes sort first, so the record was already met.
            if !self.inodes.contains_key(&ino.0) {
                return Err(format!("an attribute of inode {}, which is missing", ino.0));
            }
        } else if let Some(ino) = parse_orphan_key(key) {
            self.named.entry(ino.0).or_default().orphan = true;
        } else {
            return Err("a key of unknown kind".to_owned());
        }
        Ok(())
    }

    fn check_names(&mut self) {
        let problems = &mut self.problems;
        let named = &mut self.named;
        for (ino, record) in &self.inodes {
            let of = named.remove(ino).unwrap_or_default();
            let mut say = |problem: String| problems.push(format!("inode {ino}: {problem}"));
            let root = *ino == Ino::ROOT.0;
            if of.kind.is_some_and(|kind| kind != record.kind) {
                say(format!("its names say kind {:?}, it is {}", of.kind, record.kind));
            }
            if of.orphan != (record.nlink == 0) {
                say(format!("{} links, and marked as without a name: {}", record.nlink, of.orphan));
            }
            if record.kind != DIRECTORY {
                if of.names != record.nlink {
                    say(format!("{} links, {} names", record.nlink, of.names));
                }
                if of.entries > 0 {
                    say("names in what is no directory".to_owned());
                }
                continue;
            }
            let links = if record.nlink == 0 { 0 } else { 2 + of.directories };
            if record.nlink != links || of.names != u32::from(record.nlink > 0 && !root) {
                let (count, names) = (of.directories, of.names);
                say(format!("{} links, {count} directories in it, {names} names", record.nlink));
            }
            if of.entries != record.size {
                say(format!("{} names in it, {} counted", of.entries, record.size));
            }
            if !root && record.nlink > 0 && of.parent != record.parent {
                say(format!("it lies in {}, its parent is {}", of.parent, record.parent));
            }
        }
        for ino in named.keys() {
            problems.push(format!("inode {ino} is named but missing"));
        }
        if self.inodes.get(&Ino::ROOT.0).is_none_or(|root| root.kind != DIRECTORY) {
            problems.push("there is no root directory".to_owned());
        }
        self.check_parents();
    }

    /// Every directory leads up to the root.
    fn check_parents(&mut self) {
        let up = |ino: u64| self.inodes.get(&ino).map_or(0, |record| record.parent);
        for (ino, record) in &self.inodes {
            let (mut at, mut steps) = (*ino, 0);
            while record.kind == DIRECTORY && record.nlink > 0 && at > Ino::ROOT.0 {
                at = up(at);
                steps += 1;
                if steps > self.inodes.len() {
                    self.problems.push(format!("inode {ino}: its parents form a circle"));
                    break;
                }
            }
        }
    }

    fn check_maps(&mut self, source: &dyn NodeSource, maps: &mut Maps) {
        for (ino, record) in &self.inodes {
            let map = BlockMap { height: record.height, root: record.root };
            let counted = maps
                .entry((record.root, record.height))
                .or_insert_with(|| map.count(source).map_err(|error| error.to_string()));
            let problem = match counted {
                Err(problem) => format!("its block map: {problem}"),
                Ok((blocks, _)) if *blocks != record.blocks => {
                    format!("{blocks} blocks, {} counted", record.blocks)
                }
                Ok((0, _)) => continue,
                Ok(_) if record.kind != FILE => "blocks of what is no file".to_owned(),
                Ok((_, end)) if *end > record.size.div_ceil(BLOCK_SIZE as u64) => {
                    format!("a block behind its end of {} bytes", record.size)
                }
                Ok(_) => continue,
            };
            self.problems.push(format!("inode {ino}: {problem}"));
        }
    }

    fn check_sums(&mut self, tree: &TreeState) {
        let inodes = self.inodes.len() as u64;
        if inodes != tree.inodes {
            self.problems.push(format!("{inodes} inodes, {} counted", tree.inodes));
        }
        let blocks: u64 = self.inodes.values().map(|record| record.blocks).sum();
        if blocks != tree.blocks {
            self.problems.push(format!("{blocks} blocks, {} counted", tree.blocks));
        }
        if let Some((last, _)) = self.inodes.last_key_value()
            && *last >= tree.next_ino
        {
            self.problems.push(format!("inode {last} has a number that is still to be given"));
        }
    }
}
