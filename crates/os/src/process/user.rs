//! Users of the operating system.

use std::io;

use super::c_string;

/// A user that a child runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its user id.
    pub uid: u32,
    /// Its primary group.
    pub gid: u32,
    /// All its groups.
    pub groups: Vec<u32>,
}

impl User {
    /// Looks a user up by name; `None` when there is none.
    ///
    /// # Errors
    /// When the user database cannot be read.
    pub fn lookup(name: &str) -> io::Result<Option<User>> {
        let c_name = c_string(name)?;
        let mut buffer = vec![0_u8; 16 << 10];
        // SAFETY: all zero is a valid `passwd` (null pointers).
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        // SAFETY: the buffer is valid for its length, all pointers are valid.
        let code = unsafe {
            libc::getpwnam_r(
                c_name.as_ptr(),
                &mut entry,
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                &mut found,
            )
        };
        // There are several ways to say "no such user" besides a null result (see getpwnam_r(3)).
        if found.is_null() {
            return match code {
                0 | libc::ENOENT | libc::ESRCH => Ok(None),
                code => Err(io::Error::from_raw_os_error(code)),
            };
        }
        let (uid, gid) = (entry.pw_uid, entry.pw_gid);
        let mut groups = vec![0 as libc::gid_t; 1024];
        let mut count = groups.len() as i32;
        // SAFETY: the list is valid for `count` entries.
        let code =
            unsafe { libc::getgrouplist(c_name.as_ptr(), gid, groups.as_mut_ptr(), &mut count) };
        groups.truncate(if code < 0 { 0 } else { count.max(0) as usize });
        if groups.is_empty() {
            groups.push(gid);
        }
        Ok(Some(User { name: name.to_owned(), uid, gid, groups }))
    }

    /// The name of the user whose rights this process has; `None` when the user database has none.
    pub fn own_name() -> Option<String> {
        let mut buffer = vec![0_u8; 16 << 10];
        // SAFETY: all zero is a valid `passwd` (null pointers).
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        // SAFETY: the buffer is valid for its length, all pointers are valid.
        unsafe {
            libc::getpwuid_r(
                User::own_uid(),
                &mut entry,
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                &mut found,
            )
        };
        if found.is_null() {
            return None;
        }
        // SAFETY: an entry that was found has a name, a C string in the buffer.
        let name = unsafe { std::ffi::CStr::from_ptr(entry.pw_name) };
        name.to_str().ok().map(str::to_owned)
    }

    /// The user whose rights this process has.
    pub fn own_uid() -> u32 {
        // SAFETY: plain system call.
        unsafe { libc::geteuid() }
    }

    /// User id and group id of this process.
    pub fn own_ids() -> (u32, u32) {
        // SAFETY: geteuid and getegid have no preconditions and cannot fail.
        unsafe { (libc::geteuid(), libc::getegid()) }
    }

    /// Whether this process runs as root.
    pub fn own_is_root() -> bool {
        User::own_uid() == 0
    }
}
