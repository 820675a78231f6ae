//! Received log for servers: fed to the staging standby as it grows, or cut at a moment for a clone.
//!
//! A server that polls `pg_wal` reads a WAL file while it grows, as it does behind a stream: a record
//! that is not whole yet fails its checksum and is read again later. Whole files are shared by block;
//! of a growing one only the new bytes are copied, and the store keeps one copy of equal blocks.

use crate::paths::{DATA_DIR, WAL_DIR};
use offshoot_fs::{FileSystem, NewFile, PathError};
use offshoot_postgres::archive::{Archive, WalFile};
use offshoot_types::{Failure, Lsn};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// Where the received log is and what its files look like.
#[derive(Clone)]
pub struct ReceivedLog {
    pub archive: Archive,
    /// The log dataset.
    pub files: Arc<FileSystem>,
    /// Who the servers run as: user and group.
    pub owner: (u32, u32),
}

impl ReceivedLog {
    /// The files that hold the bytes `from..to`. Where `to` is the end of a file, the next one need not
    /// be there: an idle source has none.
    fn files_between(&self, from: Lsn, to: Lsn) -> Result<Vec<WalFile>, Failure> {
        let mut files = self.archive.files_for(from, Some(Lsn(to.0.saturating_sub(1))))?;
        files.retain(|file| self.archive.start(file) < to);
        Ok(files)
    }

    fn source(&self, file: &WalFile) -> PathBuf {
        Path::new(WAL_DIR).join(self.archive.file_name(file))
    }

    fn target(&self, file: &WalFile) -> PathBuf {
        Path::new(DATA_DIR).join("pg_wal").join(self.archive.name(file))
    }

    /// Files of a server's own; the received ones belong to the engine's user.
    fn new_file(&self) -> NewFile {
        NewFile::private(self.owner.0, self.owner.1)
    }

    /// Copies the bytes `from..to` (positions within `file`) into the server's file, which gets its
    /// full length at once.
    fn copy(
        &self,
        file: &WalFile,
        target: &Arc<FileSystem>,
        from: Lsn,
        to: Lsn,
    ) -> Result<(), Failure> {
        let path = self.target(file);
        let out = if target.exists(&path)? {
            target.open_file(&path)?
        } else {
            target.create_file(&path, self.new_file())?
        };
        let failed = |source| PathError { operation: "copy log to", path: path.clone(), source };
        if out.len().map_err(failed)? != self.archive.segment_bytes() {
            out.set_len(self.archive.segment_bytes()).map_err(failed)?;
        }
        let input = self.files.open_file(self.source(file))?;
        let start = self.archive.start(file).0;
        let (mut at, end) = (from.0 - start, to.0 - start);
        let mut buffer = vec![0; COPY_BYTES];
        while at < end {
            let want = buffer.len().min((end - at) as usize);
            let got = input.read_at(at, &mut buffer[..want]).map_err(failed)?;
            if got == 0 {
                break;
            }
            out.write_at(at, &buffer[..got]).map_err(failed)?;
            at += got as u64;
        }
        Ok(())
    }

    fn copy_histories(&self, target: &FileSystem) -> Result<(), Failure> {
        for entry in self.files.list(WAL_DIR)? {
            let name = Path::new(&entry.name);
            if name.extension().is_some_and(|extension| extension == "history") {
                let to = Path::new(DATA_DIR).join("pg_wal").join(name);
                if !target.exists(&to)? {
                    target.share_file_as(
                        &self.files,
                        Path::new(WAL_DIR).join(name),
                        to,
                        self.new_file(),
                    )?;
                }
            }
        }
        Ok(())
    }

    /// Puts exactly the log from `from` to `to` into a clone: whole files shared, the last one cut at
    /// `to` and followed by zeros, nothing behind it. Recovery to the end of this log opens the
    /// moment `to` (see `docs/decisions`).
    pub fn place(&self, target: &Arc<FileSystem>, from: Lsn, to: Lsn) -> Result<(), Failure> {
        let wal = Path::new(DATA_DIR).join("pg_wal");
        for entry in target.list(&wal)? {
            let name = entry.name.to_string_lossy();
            if self.archive.parse_name(&name).is_some() {
                target.remove_tree(wal.join(&entry.name))?;
            }
        }
        self.copy_histories(target)?;
        for file in self.files_between(from, to)? {
            let (start, end) = (self.archive.start(&file), self.archive.end(&file));
            if end <= to && !file.partial {
                target.share_file_as(
                    &self.files,
                    self.source(&file),
                    self.target(&file),
                    self.new_file(),
                )?;
            } else {
                self.copy(&file, target, start, end.min(to))?;
            }
        }
        Ok(())
    }
}

/// Feeds one staging standby.
pub struct LogFeed {
    log: ReceivedLog,
    staging: Arc<FileSystem>,
    /// Where the next feeding starts.
    fed: Lsn,
    /// Up to where each file that is not whole yet was copied.
    growing: HashMap<String, Lsn>,
}

impl LogFeed {
    /// A feed for a standby whose replay starts at `from`.
    pub fn new(log: ReceivedLog, staging: Arc<FileSystem>, from: Lsn) -> Self {
        LogFeed { log, staging, fed: from, growing: HashMap::new() }
    }

    /// How far the standby was fed.
    pub fn fed(&self) -> Lsn {
        self.fed
    }

    /// Gives the standby the log up to `to`; nothing when it has that.
    pub fn advance(&mut self, to: Lsn) -> Result<(), Failure> {
        if to <= self.fed {
            return Ok(());
        }
        let archive = &self.log.archive;
        let files = self.log.files_between(self.fed, to)?;
        if files.iter().any(|file| file.timeline > 1) {
            self.log.copy_histories(&self.staging)?;
        }
        for file in files {
            let (name, start, end) =
                (archive.name(&file), archive.start(&file), archive.end(&file));
            let begun = self.growing.get(&name).copied();
            if begun.is_none() && end <= to && !file.partial {
                self.staging.share_file_as(
                    &self.log.files,
                    self.log.source(&file),
                    self.log.target(&file),
                    self.log.new_file(),
                )?;
                continue;
            }
            self.log.copy(&file, &self.staging, begun.unwrap_or(start), end.min(to))?;
            if end <= to {
                self.growing.remove(&name);
            } else {
                self.growing.insert(name, end.min(to));
            }
        }
        self.fed = to;
        Ok(())
    }
}
