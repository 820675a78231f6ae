//! What is loaded into a server: it reads blocks where the engine has put them, and leaves everything else to the kernel.
//!
//! Compiled by `build.rs` with `core` alone. Its functions take the place of the C library's, and so MUST NOT allocate,
//! lock or panic; they may run in a signal handler, in the child of a fork, and before any constructor. They make system calls
//! by number: nothing needs to be looked up first.
//!
//! A descriptor is *watched* if it was opened by the name of a relation's file. At its first read it is looked for among
//! the slots, and the engine is asked for it once. Whatever is missing, changed or unknown: the kernel reads.
#![no_std]
#![allow(unsafe_op_in_unsafe_fn)] // each function here is the C library's, and as unsafe as that one

#[allow(dead_code)] // the engine uses the rest
#[path = "../src/layout.rs"]
mod layout;
#[allow(dead_code)]
#[path = "../src/protocol.rs"]
mod protocol;
#[path = "../src/reading.rs"]
mod reading;

use core::ffi::{c_char, c_int, c_long, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use layout::{BLOCK, Header, MARKS_AT};
use reading::{Found, Mapped};

#[cfg(target_arch = "x86_64")]
mod number {
    pub const CLOSE: i64 = 3;
    pub const FSTAT: i64 = 5;
    pub const LSEEK: i64 = 8;
    pub const PREAD: i64 = 17;
    pub const FCNTL: i64 = 72;
    pub const FADVISE: i64 = 221;
    pub const OPENAT: i64 = 257;
    pub const DUP3: i64 = 292;
    pub const PREADV: i64 = 295;
    pub const CLOSE_RANGE: i64 = 436;
}
#[cfg(target_arch = "aarch64")]
mod number {
    pub const DUP3: i64 = 24;
    pub const FCNTL: i64 = 25;
    pub const OPENAT: i64 = 56;
    pub const CLOSE: i64 = 57;
    pub const LSEEK: i64 = 62;
    pub const PREAD: i64 = 67;
    pub const PREADV: i64 = 69;
    pub const FSTAT: i64 = 80;
    pub const FADVISE: i64 = 223;
    pub const CLOSE_RANGE: i64 = 436;
}

const F_GETFL: u64 = 3;
const F_SETFL: u64 = 4;
#[cfg(target_arch = "x86_64")]
const O_DIRECT: i64 = 0o40_000;
#[cfg(target_arch = "aarch64")]
const O_DIRECT: i64 = 0o200_000;
const AT_FDCWD: c_int = -100;
const PROT_READ: c_int = 1;
const PROT_WRITE: c_int = 2;
const MAP_SHARED: c_int = 1;
const MAP_PRIVATE: c_int = 2;
const MAP_FIXED: c_int = 0x10;
const MAP_ANONYMOUS: c_int = 0x20;
const MAP_NORESERVE: c_int = 0x4000;
const MADV_HUGEPAGE: c_int = 14;
const SEEK_END: c_int = 2;
const POSIX_FADV_WILLNEED: c_int = 3;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn mmap(
        at: *mut c_void,
        len: usize,
        prot: c_int,
        flags: c_int,
        fd: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn madvise(at: *mut c_void, len: usize, advice: c_int) -> c_int;
    fn ioctl(fd: c_int, request: u64, ...) -> c_int;
    fn getenv(name: *const c_char) -> *const c_char;
    fn unsetenv(name: *const c_char) -> c_int;
    fn __errno_location() -> *mut c_int;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

/// Descriptors from here on are not watched.
const WATCHED_MAX: usize = 65_536;
/// What is watched and in no slot.
const NOWHERE: u32 = u32::MAX;
/// Blocks are counted in so many at a time.
const COUNTED: u32 = 64;

/// By descriptor: 0 is not watched; else the slot's number and 1, or [`NOWHERE`].
static SLOT_OF: [AtomicU32; WATCHED_MAX] = [const { AtomicU32::new(0) }; WATCHED_MAX];
/// By descriptor: the slot's generation; of one in no slot, the epoch in which it was looked for.
static GENERATION_OF: [AtomicU32; WATCHED_MAX] = [const { AtomicU32::new(0) }; WATCHED_MAX];

static TABLE: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static FRAMES: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static FRAME_COUNT: AtomicU64 = AtomicU64::new(0);
/// The mount's device number, as the first answer of the engine tells; 0: not known yet.
static DEVICE: AtomicU64 = AtomicU64::new(0);
static COUNT: AtomicU32 = AtomicU32::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static START: unsafe extern "C" fn() = start;

/// Maps what the variable names. Programs that this one starts have no use for it, nor for the descriptors.
unsafe extern "C" fn start() {
    let value = getenv(c"OFFSHOOT_DIRECT".as_ptr());
    if value.is_null() {
        return;
    }
    let mut numbers = [0_i32; 2];
    let (mut which, mut at) = (0, value);
    while *at != 0 {
        match *at as u8 {
            digit @ b'0'..=b'9' => numbers[which] = numbers[which] * 10 + i32::from(digit - b'0'),
            b',' if which == 0 => which = 1,
            _ => return,
        }
        at = at.add(1);
    }
    unsetenv(c"OFFSHOOT_DIRECT".as_ptr());
    unsetenv(c"LD_PRELOAD".as_ptr());
    let [table, frames] = numbers;
    map(table, frames);
    syscall(number::CLOSE, table);
    syscall(number::CLOSE, frames);
}

/// The length of a file, with its device and inode.
unsafe fn stat(fd: c_int) -> Option<(u64, u64, usize)> {
    // `struct stat` begins with device and inode on all 64-bit machines; the length is at 48.
    let mut buffer = [0_u64; 32];
    if syscall(number::FSTAT, fd, buffer.as_mut_ptr()) != 0 {
        return None;
    }
    Some((buffer[0], buffer[1], buffer[6] as usize))
}

unsafe fn map(table: c_int, frames: c_int) {
    let (Some((.., table_len)), Some((.., frames_len))) = (stat(table), stat(frames)) else {
        return;
    };
    let count = frames_len / BLOCK;
    if table_len != layout::table_len(count) {
        return;
    }
    let flags = MAP_SHARED | MAP_NORESERVE;
    let base = mmap(null_mut(), table_len, PROT_READ, flags, table, 0);
    if base as isize == -1 {
        return;
    }
    let header = &*base.cast::<Header>();
    if header.magic.load(Ordering::Relaxed) != layout::MAGIC
        || header.version.load(Ordering::Relaxed) != layout::VERSION
        || header.frames.load(Ordering::Relaxed) != count as u64
    {
        return;
    }
    let marks = base.cast::<u8>().add(MARKS_AT).cast();
    let (len, prot) = (table_len - MARKS_AT, PROT_READ | PROT_WRITE);
    if mmap(marks, len, prot, flags | MAP_FIXED, table, MARKS_AT as i64) as isize == -1 {
        return;
    }
    // At addresses that begin with a huge page: elsewhere none can be mapped.
    const HUGE_PAGE: usize = 2 << 20;
    let (reserving, all) = (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, frames_len + HUGE_PAGE);
    let reserved = mmap(null_mut(), all, 0, reserving, -1, 0);
    if reserved as isize == -1 {
        return;
    }
    let content = reserved.cast::<u8>().wrapping_add(reserved.align_offset(HUGE_PAGE)).cast();
    if mmap(content, frames_len, PROT_READ, flags | MAP_FIXED, frames, 0) as isize == -1 {
        return;
    }
    madvise(content, frames_len, MADV_HUGEPAGE);
    FRAMES.store(content.cast(), Ordering::Relaxed);
    FRAME_COUNT.store(count as u64, Ordering::Relaxed);
    TABLE.store(base.cast(), Ordering::Release);
}

/// Whether a path is that of a relation's file: `base/1/1259`, `global/1262`, `pg_tblspc/…/16384.1_fsm`.
unsafe fn is_of_relation(path: *const c_char) -> bool {
    let begins = |word: &[u8]| {
        let mut at = 0;
        while at < word.len() {
            if *path.add(at) as u8 != word[at] {
                return false;
            }
            at += 1;
        }
        true
    };
    if !(begins(b"base/") || begins(b"global/") || begins(b"pg_tblspc/")) {
        return false;
    }
    let (mut at, mut last) = (path, path);
    while *at != 0 {
        if *at as u8 == b'/' {
            last = at.add(1);
        }
        at = at.add(1);
    }
    (*last as u8).is_ascii_digit()
}

fn of_descriptor(list: &'static [AtomicU32], fd: c_int) -> Option<&'static AtomicU32> {
    usize::try_from(fd).ok().and_then(|fd| list.get(fd))
}

fn forget(fd: c_int) {
    if let Some(slot) = of_descriptor(&SLOT_OF, fd)
        && slot.load(Ordering::Relaxed) != 0
    {
        slot.store(0, Ordering::Relaxed);
    }
}

unsafe fn opened(path: *const c_char, fd: c_long) -> c_int {
    let fd = fd as c_int;
    forget(fd);
    if !TABLE.load(Ordering::Acquire).is_null() && fd >= 0 && is_of_relation(path) {
        if let Some(generation) = of_descriptor(&GENERATION_OF, fd) {
            generation.store(0, Ordering::Relaxed);
        }
        if let Some(slot) = of_descriptor(&SLOT_OF, fd) {
            slot.store(NOWHERE, Ordering::Relaxed);
        }
    }
    fd
}

/// What is mapped, if anything is.
fn mapped() -> Option<Mapped> {
    let table = TABLE.load(Ordering::Acquire);
    let frames = FRAMES.load(Ordering::Relaxed);
    let count = FRAME_COUNT.load(Ordering::Relaxed) as usize;
    (!table.is_null()).then_some(Mapped { table, frames, count })
}

/// A watched descriptor's slot, if it is in one.
unsafe fn slot_of(fd: c_int) -> Option<(Mapped, Found)> {
    let (slot, generation) = (of_descriptor(&SLOT_OF, fd)?, of_descriptor(&GENERATION_OF, fd)?);
    match slot.load(Ordering::Relaxed) {
        0 => None,
        NOWHERE => {
            let mapped = mapped()?;
            let found = find(fd, &mapped, generation)?;
            generation.store(found.generation, Ordering::Relaxed);
            slot.store(found.index + 1, Ordering::Relaxed);
            past_the_page_cache(fd);
            Some((mapped, found))
        }
        known => {
            let generation = generation.load(Ordering::Relaxed);
            Some((mapped()?, Found { index: known - 1, generation }))
        }
    }
}

/// What the kernel answers from its page cache, the engine does not see, and so does not put where it is read directly.
unsafe fn past_the_page_cache(fd: c_int) {
    let flags = syscall(number::FCNTL, fd, F_GETFL, 0_u64);
    if flags >= 0 {
        syscall(number::FCNTL, fd, F_SETFL, flags | O_DIRECT);
    }
}

/// Finds the slot of a descriptor, at most once in each epoch.
unsafe fn find(fd: c_int, mapped: &Mapped, tried: &AtomicU32) -> Option<Found> {
    let epoch = mapped.epoch() as u32;
    if tried.load(Ordering::Relaxed) == epoch {
        return None;
    }
    tried.store(epoch, Ordering::Relaxed);
    let (device, ino, _) = stat(fd)?;
    // Inodes of another file system may have the same numbers.
    match DEVICE.load(Ordering::Relaxed) {
        0 => {}
        known if known == device => {
            if let Some(found) = mapped.find(ino) {
                return Some(found);
            }
        }
        _ => {
            forget(fd);
            return None;
        }
    }
    let mut answer = 0_u64;
    if ioctl(fd, u64::from(layout::ASK), &mut answer) != 0 || answer != layout::ANSWER {
        return None;
    }
    DEVICE.store(device, Ordering::Relaxed);
    mapped.find(ino)
}

/// Whether a slot is still that of the descriptor; if not, it is looked for at the next read.
fn is_still(fd: c_int, mapped: &Mapped, found: Found) -> bool {
    if mapped.is_still(found) {
        return true;
    }
    if let (Some(slot), Some(tried)) =
        (of_descriptor(&SLOT_OF, fd), of_descriptor(&GENERATION_OF, fd))
    {
        tried.store(0, Ordering::Relaxed);
        slot.store(NOWHERE, Ordering::Relaxed);
    }
    false
}

/// Reads all of it, or nothing that counts.
unsafe fn read(fd: c_int, target: *mut u8, len: usize, offset: i64) -> bool {
    let Some((mapped, found)) = slot_of(fd) else { return false };
    let Ok(offset) = usize::try_from(offset) else { return false };
    let done = mapped.read(found, target, len, offset);
    if !(is_still(fd, &mapped, found) && done) {
        return false;
    }
    count_blocks(&mapped, len.div_ceil(BLOCK) as u32);
    true
}

fn count_blocks(mapped: &Mapped, blocks: u32) {
    let counted = COUNT.load(Ordering::Relaxed) + blocks;
    let kept = if counted < COUNTED { counted } else { 0 };
    COUNT.store(kept, Ordering::Relaxed);
    if kept == 0 {
        mapped.add_reads(u64::from(counted));
    }
}

/// `open(2)`. The C library takes the mode as a variable argument, which is passed like a fixed one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    opened(path, syscall(number::OPENAT, AT_FDCWD, path, flags, mode))
}

/// The same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    open(path, flags, mode)
}

/// `posix_fadvise(3)`. What can be read directly need not be brought anywhere; the rest the engine puts where it can be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_fadvise(fd: c_int, offset: i64, len: i64, advice: c_int) -> c_int {
    if advice == POSIX_FADV_WILLNEED
        && let Some((mapped, found)) = slot_of(fd)
        && let (Ok(offset), Ok(len)) = (usize::try_from(offset), usize::try_from(len))
        && mapped.has(found, offset, len)
        && is_still(fd, &mapped, found)
    {
        return 0;
    }
    let failed = syscall(number::FADVISE, fd, offset, len, advice) != 0;
    if failed { *__errno_location() } else { 0 }
}

/// The same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_fadvise64(fd: c_int, offset: i64, len: i64, advice: c_int) -> c_int {
    posix_fadvise(fd, offset, len, advice)
}

/// `close(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    forget(fd);
    syscall(number::CLOSE, fd) as c_int
}

/// `close_range(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    let mut fd = first;
    while fd <= last && (fd as usize) < WATCHED_MAX {
        forget(fd as c_int);
        fd += 1;
    }
    syscall(number::CLOSE_RANGE, first, last, flags) as c_int
}

/// `dup2(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup2(from: c_int, to: c_int) -> c_int {
    if from == to {
        // Answers as `dup2` does: with an error if there is no such descriptor.
        return if stat(from).is_some() { to } else { -1 };
    }
    forget(to);
    syscall(number::DUP3, from, to, 0) as c_int
}

/// `dup3(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    forget(to);
    syscall(number::DUP3, from, to, flags) as c_int
}

/// `pread(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pread(fd: c_int, target: *mut c_void, len: usize, offset: i64) -> isize {
    if read(fd, target.cast(), len, offset) {
        return len as isize;
    }
    syscall(number::PREAD, fd, target, len, offset) as isize
}

/// The same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pread64(fd: c_int, target: *mut c_void, len: usize, offset: i64) -> isize {
    pread(fd, target, len, offset)
}

/// `struct iovec`.
#[repr(C)]
pub struct Part {
    base: *mut c_void,
    len: usize,
}

/// `preadv(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn preadv(fd: c_int, parts: *const Part, count: c_int, offset: i64) -> isize {
    let (mut done, mut at) = (0, 0);
    while at < count {
        let part = &*parts.add(at as usize);
        if !read(fd, part.base.cast(), part.len, offset + done as i64) {
            // On 64-bit machines the whole offset is in the first of two arguments.
            return syscall(number::PREADV, fd, parts, count, offset, 0_u64) as isize;
        }
        done += part.len;
        at += 1;
    }
    if count > 0 {
        done as isize
    } else {
        syscall(number::PREADV, fd, parts, count, offset, 0_u64) as isize
    }
}

/// The same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn preadv64(
    fd: c_int,
    parts: *const Part,
    count: c_int,
    offset: i64,
) -> isize {
    preadv(fd, parts, count, offset)
}

/// `lseek(2)`. Whoever asks for the end of a relation's file wants to know its length: PostgreSQL reads and writes such files at
/// offsets that it gives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lseek(fd: c_int, offset: i64, whence: c_int) -> i64 {
    if whence == SEEK_END
        && offset == 0
        && let Some((mapped, found)) = slot_of(fd)
    {
        let size = mapped.size(found);
        if is_still(fd, &mapped, found) {
            return size as i64;
        }
    }
    syscall(number::LSEEK, fd, offset, whence)
}

/// The same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lseek64(fd: c_int, offset: i64, whence: c_int) -> i64 {
    lseek(fd, offset, whence)
}
