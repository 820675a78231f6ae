//! Flushes that do less than they report, to prove that a test notices if one is missing.

/// Which flushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// Those of files whose path begins and ends like this.
    File {
        /// The path's beginning.
        prefix: &'static str,
        /// The path's end.
        suffix: &'static str,
    },
    /// For these files only flushes before which at most this many first bytes were written.
    Header {
        /// The path's beginning.
        prefix: &'static str,
        /// The bytes.
        len: usize,
    },
    /// For these files only flushes before which more than the first page was written.
    Rest {
        /// The path's beginning.
        prefix: &'static str,
    },
    /// Those of a directory, for names with this ending.
    Names {
        /// The directory; `""` is the top.
        dir: &'static str,
        /// The names' end.
        suffix: &'static str,
    },
}

/// How a flush is weakened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weakness {
    /// It does nothing.
    Ignored(Flush),
    /// It does its work only at the next [`super::SimDisk::settle`]: what should come after it may
    /// reach the medium before it.
    Late(Flush),
}

impl Weakness {
    pub(super) fn flush(&self) -> Flush {
        match self {
            Weakness::Ignored(flush) | Weakness::Late(flush) => *flush,
        }
    }
}

impl Flush {
    /// Whether the flush of a file is meant; `header`: nothing but so many first bytes were written since
    /// the last.
    pub(super) fn covers_file(&self, path: &str, header: Option<usize>) -> bool {
        match self {
            Flush::File { prefix, suffix } => path.starts_with(prefix) && path.ends_with(suffix),
            Flush::Header { prefix, len } => header == Some(*len) && path.starts_with(prefix),
            Flush::Rest { prefix } => header.is_none() && path.starts_with(prefix),
            Flush::Names { .. } => false,
        }
    }

    /// Whether the flush of a name is meant.
    pub(super) fn covers_name(&self, name_dir: &str, name: &str) -> bool {
        match self {
            Flush::Names { dir, suffix } => *dir == name_dir && name.ends_with(suffix),
            _ => false,
        }
    }
}
