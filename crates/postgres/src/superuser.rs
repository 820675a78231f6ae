//! Names that a superuser of a data directory can log in with.
//!
//! The source's bootstrap superuser need not be called `postgres`, and opening a session needs a
//! role's name. The names are read from the table of roles (`pg_authid`) in the files: its first
//! columns have been the same in all supported versions. What is read may be older than the running
//! server's memory, so the names are candidates to try, not truth.
//!
//! A row of `pg_authid` begins: oid (4 bytes), name (64), superuser (1), inherits (1), creates
//! roles (1), creates databases (1), may log in (1).

use offshoot_connector::DataDir;

const PG_AUTHID: u32 = 1260;
const MAP_MAGIC: u32 = 0x59_27_17;
const PAGE_BYTES: usize = 8192;
const BOOTSTRAP_OID: u32 = 10;

/// `t_infomask` bit of a tuple that no transaction has deleted.
const XMAX_INVALID: u16 = 0x0800;

/// Superusers that may log in according to the files, the bootstrap superuser first; empty when the
/// files cannot be understood.
pub fn candidates(dir: &dyn DataDir) -> Vec<String> {
    let Some(file) = dir.read("global/pg_filenode.map").ok().and_then(|map| file_number(&map))
    else {
        return Vec::new();
    };
    let table = dir.read(&format!("global/{file}")).unwrap_or_default();
    let mut roles: Vec<Role> = table.chunks_exact(PAGE_BYTES).flat_map(roles_of_page).collect();
    // Live rows first: an old name of a renamed role is worth a try only when nothing else works.
    roles.sort_by_key(|role| (!role.live, role.oid != BOOTSTRAP_OID));
    let mut names: Vec<String> = Vec::new();
    for role in roles {
        if !names.contains(&role.name) {
            names.push(role.name);
        }
    }
    names
}

struct Role {
    oid: u32,
    name: String,
    live: bool,
}

/// The file of `pg_authid`, as the map of shared system tables says.
fn file_number(map: &[u8]) -> Option<u32> {
    if u32_at(map, 0)? != MAP_MAGIC {
        return None;
    }
    let count = u32_at(map, 4)? as usize;
    (0..count.min(128))
        .find(|entry| u32_at(map, 8 + entry * 8) == Some(PG_AUTHID))
        .and_then(|entry| u32_at(map, 12 + entry * 8))
}

fn roles_of_page(page: &[u8]) -> Vec<Role> {
    let lower = u16_at(page, 12).unwrap_or(0) as usize;
    let items = lower.saturating_sub(24).min(PAGE_BYTES) / 4;
    (0..items).filter_map(|item| role_at(page, u32_at(page, 24 + item * 4)?)).collect()
}

fn role_at(page: &[u8], pointer: u32) -> Option<Role> {
    let (offset, flags) = ((pointer & 0x7FFF) as usize, pointer >> 15 & 3);
    if flags != 1 {
        return None;
    }
    let tuple = page.get(offset..)?;
    let infomask = u16_at(tuple, 20)?;
    let row = tuple.get(*tuple.get(22)? as usize..)?;
    let (superuser, login) = (*row.get(68)? == 1, *row.get(72)? == 1);
    let bytes = row.get(4..68)?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let name = std::str::from_utf8(bytes.get(..end)?).ok()?.to_owned();
    let live = infomask & XMAX_INVALID != 0 || u32_at(tuple, 4)? == 0;
    (superuser && login && !name.is_empty())
        .then(|| Some(Role { oid: u32_at(row, 0)?, name, live }))?
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(offset..offset + 2)?.try_into().ok()?))
}
