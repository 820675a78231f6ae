//! WAL files for servers: fed to the staging standby as they grow, or cut at a moment for a clone.
//!
//! A server that polls `pg_wal` reads a WAL file while it grows, as it does with a stream: a record
//! that is not whole yet fails its checksum and is read again later. Whole files are shared by block;
//! of a growing one only the new bytes are copied, and the store keeps one copy of equal blocks.

use crate::archive::{Archive, WalFile};
use crate::lsn::Lsn;
use offshoot_connector::LogTarget;
use offshoot_types::{ErrorKind, Failure};
use std::io;

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;
/// Records begin and end at multiples of it.
pub(super) const RECORD_ALIGNMENT: u64 = 8;
/// Where servers look for log.
const PG_WAL: &str = "pg_wal";
/// Files of a server's own; the received ones belong to the engine's user.
const PRIVATE: u32 = 0o600;

/// A data directory that takes files of an archive.
pub(super) struct WalTarget<'a> {
    pub(super) archive: &'a Archive,
    pub(super) target: &'a dyn LogTarget,
}

fn failed(name: &str) -> impl Fn(io::Error) -> Failure + '_ {
    move |error| {
        Failure::new(ErrorKind::Internal, format!("log for a server, {name}: {error}"), "")
            .or_pool_full(&error)
    }
}

impl WalTarget<'_> {
    /// The files that hold the bytes `from..to`. If `to` is the end of a file, the next one need not
    /// exist: an idle source has none.
    pub(super) fn files_between(&self, from: Lsn, to: Lsn) -> Result<Vec<WalFile>, Failure> {
        let mut files = self.archive.files_for(from, Some(Lsn(to.0.saturating_sub(1))))?;
        files.retain(|file| self.archive.start(file) < to);
        Ok(files)
    }

    /// Whether the server has a file, whole or not.
    pub(super) fn has(&self, file: &WalFile) -> Result<bool, Failure> {
        let name = self.archive.name(file);
        self.target.files().exists(&format!("{PG_WAL}/{name}")).map_err(failed(&name))
    }

    /// Gives the server a whole file.
    pub(super) fn share(&self, file: &WalFile) -> Result<(), Failure> {
        self.share_as(&self.archive.file_name(file), &self.archive.name(file))
    }

    fn share_as(&self, from: &str, name: &str) -> Result<(), Failure> {
        self.target.share(from, &format!("{PG_WAL}/{name}")).map_err(failed(name))
    }

    /// Copies the bytes `from..to` (positions within `file`) into the server's file, which gets its
    /// full length at once.
    pub(super) fn copy(&self, file: &WalFile, from: Lsn, to: Lsn) -> Result<(), Failure> {
        let name = self.archive.name(file);
        let fail = failed(&name);
        let path = format!("{PG_WAL}/{name}");
        let out = self.target.files().open_writable(&path, PRIVATE).map_err(&fail)?;
        if out.size().map_err(&fail)? != self.archive.segment_bytes() {
            out.set_size(self.archive.segment_bytes()).map_err(&fail)?;
        }
        let Some(input) = self.archive.open_now(file)? else {
            return Err(fail(io::ErrorKind::NotFound.into()));
        };
        let start = self.archive.start(file).0;
        let (mut at, end) = (from.0 - start, to.0 - start);
        let mut buffer = vec![0; COPY_BYTES];
        while at < end {
            let want = buffer.len().min((end - at) as usize);
            let got = input.read_at(at, &mut buffer[..want]).map_err(&fail)?;
            if got == 0 {
                break;
            }
            out.write_at(at, &buffer[..got]).map_err(&fail)?;
            at += got as u64;
        }
        Ok(())
    }

    /// Gives the server the timeline histories that it lacks.
    pub(super) fn copy_histories(&self) -> Result<(), Failure> {
        for name in self.archive.history_files()? {
            let there = self.target.files().exists(&format!("{PG_WAL}/{name}"));
            if !there.map_err(failed(&name))? {
                self.share_as(&name, &name)?;
            }
        }
        Ok(())
    }

    /// Puts exactly the log from `from` to `to` into a clone: whole files shared, the last one cut at
    /// `to` and followed by zeros, and nothing after it. Recovery to the end of this log opens the
    /// moment `to` (see `docs/decisions`).
    pub(super) fn place(&self, from: Lsn, to: Lsn) -> Result<(), Failure> {
        // A record may be whole before its padding, but it ends after that.
        let to = Lsn(to.0 - to.0 % RECORD_ALIGNMENT);
        let files = self.target.files();
        for name in files.list(PG_WAL).map_err(failed(PG_WAL))? {
            if self.archive.parse_name(&name).is_some() {
                files.remove_all(&format!("{PG_WAL}/{name}")).map_err(failed(&name))?;
            }
        }
        self.copy_histories()?;
        for file in self.files_between(from, to)? {
            let (start, end) = (self.archive.start(&file), self.archive.end(&file));
            if end <= to && !file.partial {
                self.share(&file)?;
            } else {
                self.copy(&file, start, end.min(to))?;
            }
        }
        Ok(())
    }
}
