//! Groups of the operating system.

use super::c_string;
use std::io;

/// The id of the group of this name; `None` when there is none.
///
/// # Errors
/// When the group database cannot be read.
pub fn lookup_group(name: &str) -> io::Result<Option<u32>> {
    let c_name = c_string(name)?;
    // Groups have long lists of members.
    let mut buffer = vec![0_u8; 1 << 20];
    // SAFETY: all zero is a valid `group` (null pointers).
    let mut entry: libc::group = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: the buffer is valid for its length, all pointers are valid.
    let code = unsafe {
        libc::getgrnam_r(
            c_name.as_ptr(),
            &mut entry,
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            &mut found,
        )
    };
    // There are several ways to say "no such group" besides a null result (see getgrnam_r(3)).
    match code {
        _ if !found.is_null() => Ok(Some(entry.gr_gid)),
        0 | libc::ENOENT | libc::ESRCH => Ok(None),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}
