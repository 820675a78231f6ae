//! Extended attributes.

use super::Dataset;
use super::occasion::Occasion;
use crate::attributes::XattrMode;
use crate::blocks::PoolReader;
use crate::inode::Inode;
use crate::{Error, Result, tree};
use offshoot_format::Reader;
use offshoot_format::inode::{XATTR_INLINE_MAX, parse_xattr_key, xattr_key};
use offshoot_format::operation::Operation;
use offshoot_format::tree::Value;
use offshoot_pool::Transaction;
use offshoot_types::{BlockHash, Ino};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

const NAME_LEN_MAX: usize = 255;
pub(super) const VALUE_LEN_MAX: usize = 64 << 10;

const INLINE: u8 = 0;
const BLOCK: u8 = 1;
const ZEROS: u8 = 2;

/// The value of the tree for an attribute: short ones inside, long ones as a block.
pub(super) fn store_value(value: &[u8], transaction: &Transaction) -> Result<Value> {
    if value.len() <= XATTR_INLINE_MAX {
        let mut bytes = vec![INLINE];
        bytes.extend_from_slice(value);
        return Ok(Value { children: vec![], bytes });
    }
    let hash = transaction.write_data(value)?;
    let kind = if hash.is_zero() { ZEROS } else { BLOCK };
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
    let children = if hash.is_zero() { vec![] } else { vec![hash] };
    Ok(Value { children, bytes })
}

fn load_value(value: &Value, reader: &PoolReader) -> Result<Vec<u8>> {
    let mut fields = Reader::new("extended attribute", &value.bytes);
    match (fields.u8()?, value.children.first()) {
        (INLINE, None) => Ok(fields.rest().to_vec()),
        (ZEROS, None) => Ok(vec![0; (fields.u32()? as usize).min(VALUE_LEN_MAX)]),
        (BLOCK, Some(hash)) => Ok(reader.read(hash)?.to_vec()),
        (kind, _) => Err(fields.error(format!("has kind {kind}")).into()),
    }
}

/// The names of the attributes of an inode in a tree.
pub(super) fn stored_names(reader: &PoolReader, root: BlockHash, ino: Ino) -> Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    tree::scan(
        reader,
        root,
        &xattr_key(ino, &[]),
        &mut |entry| match parse_xattr_key(&entry.key) {
            Some((owner, name)) if owner == ino => {
                names.push(name.to_vec());
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(()),
        },
    )?;
    Ok(names)
}

impl Dataset {
    pub(super) fn xattr_at(
        &self,
        ino: Ino,
        name: &[u8],
        value: Option<&[u8]>,
        mode: XattrMode,
        occasion: Occasion<'_>,
    ) -> Result<()> {
        let Occasion { time, request } = occasion;
        if name.is_empty() || name.len() > NAME_LEN_MAX {
            return Err(Error::Invalid("an attribute's name has 1 to 255 bytes"));
        }
        // Serialises with other changes of attributes, so that `mode` holds when it is applied.
        let _names = self.namespace.lock();
        let inode = self.inode(ino)?;
        if mode != XattrMode::Set {
            let exists = self.find_xattr(&inode, name)?.is_some();
            match mode {
                XattrMode::Create if exists => return Err(Error::Exists),
                XattrMode::Replace if !exists => return Err(Error::NoAttribute),
                _ => {}
            }
        }
        let gate = self.enter()?;
        let mut state = inode.state.write();
        if state.gone {
            return Err(Error::Stale);
        }
        self.change(*gate, &inode, &mut state, |state| {
            state.dirty.put_xattr(name, value.map(Arc::from));
            state.ctime = time;
            let operation = Operation::Xattr { ino, name, value, time };
            self.queue.lock().push_asked(&operation, request);
        });
        Ok(())
    }

    /// The value of an extended attribute.
    pub fn get_xattr(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        let inode = self.inode(ino)?;
        self.find_xattr(&inode, name)?.ok_or(Error::NoAttribute)
    }

    fn find_xattr(&self, inode: &Inode, name: &[u8]) -> Result<Option<Vec<u8>>> {
        loop {
            {
                let state = inode.state.read();
                if state.gone {
                    return Err(Error::Stale);
                }
                let frozen = state.frozen.as_ref().map(|frozen| &frozen.layer);
                let known = state.dirty.xattrs.get(name);
                if let Some(value) =
                    known.or_else(|| frozen.and_then(|frozen| frozen.xattrs.get(name)))
                {
                    return Ok(value.as_ref().map(|value| value.to_vec()));
                }
            }
            let committed = *self.committed.read();
            let key = xattr_key(inode.ino, name);
            let found = tree::get(&self.reader, committed.root, &key)
                .and_then(|value| value.map(|value| load_value(&value, &self.reader)).transpose());
            match found {
                Err(Error::Missing(hash)) => self.after_missing(committed, hash)?,
                other => return other,
            }
        }
    }

    /// The names of the extended attributes.
    pub fn list_xattrs(&self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        let inode = self.inode(ino)?;
        loop {
            let mut changes: Vec<(Vec<u8>, bool)> = Vec::new();
            {
                let state = inode.state.read();
                if state.gone {
                    return Err(Error::Stale);
                }
                let frozen = state.frozen.iter().flat_map(|frozen| &frozen.layer.xattrs);
                for (name, value) in frozen.chain(&state.dirty.xattrs) {
                    changes.push((name.to_vec(), value.is_some()));
                }
            }
            let committed = *self.committed.read();
            match stored_names(&self.reader, committed.root, ino) {
                Err(Error::Missing(hash)) => self.after_missing(committed, hash)?,
                other => {
                    let mut names: BTreeSet<Vec<u8>> = other?.into_iter().collect();
                    for (name, there) in changes {
                        if there {
                            names.insert(name)
                        } else {
                            names.remove(&name)
                        };
                    }
                    return Ok(names.into_iter().collect());
                }
            }
        }
    }
}
