//! A directory in memory.

use offshoot_connector::{DataDir, DataFile, WritableFile};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

type Files = BTreeMap<String, Arc<Vec<u8>>>;

/// Files by path, without directories of their own.
#[derive(Default)]
pub(crate) struct MemoryDir(Arc<Mutex<Files>>);

impl MemoryDir {
    pub(crate) fn with(files: &[(&str, &[u8])]) -> Arc<Self> {
        let file = |(path, bytes): &(&str, &[u8])| ((*path).to_owned(), Arc::new(bytes.to_vec()));
        Arc::new(MemoryDir(Arc::new(Mutex::new(files.iter().map(file).collect()))))
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.lock().expect("no panic while it is held")
    }
}

/// A file that is being written.
struct Written(Arc<Mutex<Files>>, String);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut files = self.0.lock().expect("no panic while it is held");
        let file = files.entry(self.1.clone()).or_default();
        Arc::make_mut(file).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Written {
    fn change<T>(&self, work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut files = self.0.lock().expect("no panic while it is held");
        work(Arc::make_mut(files.entry(self.1.clone()).or_default()))
    }
}

impl DataFile for Written {
    fn size(&self) -> io::Result<u64> {
        Ok(self.change(|file| file.len() as u64))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        MemoryFile(Arc::new(self.change(|file| file.clone()))).read_at(offset, buffer)
    }
}

impl WritableFile for Written {
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let offset = offset as usize;
        self.change(|file| {
            file.resize(file.len().max(offset + data.len()), 0);
            file[offset..offset + data.len()].copy_from_slice(data);
        });
        Ok(())
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.change(|file| file.resize(size as usize, 0));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

struct MemoryFile(Arc<Vec<u8>>);

impl DataFile for MemoryFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

impl DataDir for MemoryDir {
    fn read_up_to(&self, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        let found = self.files().get(path).map(|bytes| bytes.to_vec());
        match found.ok_or(io::ErrorKind::NotFound)? {
            bytes if bytes.len() as u64 <= bytes_max => Ok(bytes),
            _ => Err(io::ErrorKind::FileTooLarge.into()),
        }
    }

    fn write_atomic(&self, path: &str, bytes: &[u8], _: u32) -> io::Result<()> {
        self.files().insert(path.to_owned(), Arc::new(bytes.to_vec()));
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.files().remove(path);
        Ok(())
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        Ok(self.files().contains_key(path))
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        let files = self.files();
        let names = files.keys().filter_map(|name| name.strip_prefix(&prefix));
        Ok(names.filter(|name| !name.contains('/')).map(str::to_owned).collect())
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn DataFile>> {
        let found = self.files().get(path).cloned();
        Ok(Box::new(MemoryFile(found.ok_or(io::ErrorKind::NotFound)?)))
    }

    fn remove_all(&self, path: &str) -> io::Result<()> {
        let below = format!("{path}/");
        self.files().retain(|name, _| name != path && !name.starts_with(&below));
        Ok(())
    }

    fn create_dir(&self, _: &str, _: u32) -> io::Result<()> {
        Ok(())
    }

    fn create(&self, path: &str, _: u32) -> io::Result<Box<dyn io::Write>> {
        self.files().insert(path.to_owned(), Arc::default());
        Ok(Box::new(Written(self.0.clone(), path.to_owned())))
    }

    fn open_writable(&self, path: &str, _: u32) -> io::Result<Box<dyn WritableFile>> {
        self.files().entry(path.to_owned()).or_default();
        Ok(Box::new(Written(self.0.clone(), path.to_owned())))
    }

    fn link(&self, _: &str, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
