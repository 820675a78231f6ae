//! The file, transactions, and the operations on objects.

use crate::record::{From64, Record};
use crate::rows::{self, RowKey};
use crate::{Error, KeyId, Keyring, migration, sealed};
use offshoot_domain::Owner;
use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Pages after which the log is written back into the file.
const WAL_PAGES: i64 = 128;
/// How long another process may have the file locked.
const PATIENCE: Duration = Duration::from_secs(5);

type MakeRoom = dyn Fn() -> bool + Send + Sync;

/// The open catalog. Threads share it.
pub struct Catalog {
    db: Mutex<Connection>,
    /// None where nothing secret can be read. Locked after `db`, or alone.
    keys: Mutex<Option<Arc<Keyring>>>,
    /// All objects of a kind, decoded, until one of them changes. Locked after `db`, or alone.
    lists: Mutex<HashMap<&'static str, Arc<dyn Any + Send + Sync>>>,
    on_full: Mutex<Option<Box<MakeRoom>>>,
}

/// Changes that become durable together, or not at all.
pub struct Transaction<'a> {
    sql: &'a Connection,
    keys: Option<Arc<Keyring>>,
    /// Kinds of objects that were changed.
    changed: RefCell<Vec<&'static str>>,
}

impl Catalog {
    /// Opens the catalog, creating it (readable by its owner only) or bringing an older format up to
    /// date. Only one process at a time may have it open; the pool's lock ensures that. All secrets are
    /// sealed with the first of the keys when this returns.
    ///
    /// # Errors
    /// [`Error::Newer`] for a newer format, [`Error::NoKey`] if its secrets are sealed with another key,
    /// [`Error::Damaged`] if the file is not a sound catalog, [`Error::Unusable`] if it cannot be opened.
    pub fn open(path: &Path, keys: impl Into<Arc<Keyring>>) -> Result<Catalog, Error> {
        Catalog::open_sealed(path, keys, None)
    }

    /// As [`Catalog::open`], with the key of an encrypted pool's rows.
    ///
    /// # Errors
    /// As [`Catalog::open`].
    pub fn open_sealed(
        path: &Path,
        keys: impl Into<Arc<Keyring>>,
        rows: Option<&RowKey>,
    ) -> Result<Catalog, Error> {
        let keys = keys.into();
        let unusable = |error| Error::Unusable(format!("{}: {error}", path.display()));
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(path)
            .map_err(unusable)?;
        // It is nobody else's: tighten a file that was copied here with wider permissions.
        file.set_permissions(PermissionsExt::from_mode(0o600)).map_err(unusable)?;
        drop(file);
        // SQLite makes the names of its own files durable; this one is ours to do.
        if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            std::fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(unusable)?;
        }
        let mut db = Connection::open(path)?;
        rows::register(&db, rows)?;
        db.busy_timeout(PATIENCE)?;
        let sound: String = db.pragma_query_value(None, "quick_check", |row| row.get(0))?;
        if sound != "ok" {
            return Err(Error::Damaged(sound));
        }
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "FULL")?;
        // The log stays small: an emptied pool must take no more than an empty one.
        db.pragma_update(None, "wal_autocheckpoint", WAL_PAGES)?;
        db.pragma_update(None, "journal_size_limit", WAL_PAGES * 4096)?;
        // A deleted password must not stay in free pages of the file.
        db.pragma_update(None, "secure_delete", "ON")?;
        // Rebuilding the file makes a copy; it is in memory.
        db.pragma_update(None, "temp_store", "MEMORY")?;
        migration::migrate(&mut db, &keys)?;
        let catalog = Catalog::of(db, Some(keys.clone()));
        catalog.seal_with(keys)?;
        Ok(catalog)
    }

    fn of(db: Connection, keys: Option<Arc<Keyring>>) -> Catalog {
        let (db, keys) = (Mutex::new(db), Mutex::new(keys));
        Catalog { db, keys, lists: Mutex::default(), on_full: Mutex::default() }
    }

    /// The keys that the secrets of a catalog are sealed with, which nobody needs to have open. None where there is no
    /// catalog yet, or one whose secrets are still plain. Changes nothing.
    ///
    /// # Errors
    /// As [`Catalog::open`].
    pub fn keys_needed(path: &Path) -> Result<Vec<KeyId>, Error> {
        // An empty file is what a crash at the first start leaves.
        if std::fs::metadata(path).map_or(true, |found| found.len() == 0) {
            return Ok(Vec::new());
        }
        let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        db.busy_timeout(PATIENCE)?;
        if migration::is_sealed(&db)? { sealed::keys_of(&db) } else { Ok(Vec::new()) }
    }

    /// Removes from a catalog that nobody has open the secrets that none of these keys opens, and returns their names.
    /// They cannot be brought back.
    ///
    /// # Errors
    /// As [`Catalog::open`]; nothing is removed then.
    pub fn forget_closed(path: &Path, keys: &Keyring) -> Result<Vec<String>, Error> {
        let mut db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        db.busy_timeout(PATIENCE)?;
        db.pragma_update(None, "synchronous", "FULL")?;
        // A key that is found after all must not find what was sealed with it.
        db.pragma_update(None, "secure_delete", "ON")?;
        if !migration::is_sealed(&db)? {
            return Ok(Vec::new());
        }
        let change = db.transaction()?;
        let gone = sealed::forget_others(&change, keys)?;
        change.commit()?;
        Ok(gone)
    }

    /// Opens the catalog of a pool that nobody has open, read-only. Its secrets stay closed.
    ///
    /// # Errors
    /// As [`Catalog::open`]; also for an older format, which only an engine migrates.
    pub fn look(path: &Path, rows: Option<&RowKey>) -> Result<Catalog, Error> {
        let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        rows::register(&db, rows)?;
        migration::check_newest(&db)?;
        Ok(Catalog::of(db, None))
    }

    /// Runs `work`; its changes become durable together if it returns `Ok`; otherwise none do.
    ///
    /// `work` may call only the transaction, not the catalog: it would wait for itself.
    pub fn transaction<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let result = self.attempt(work);
        if matches!(result, Err(Error::Full(_))) {
            // For the next.
            self.make_room();
        }
        result
    }

    /// A transaction for what must be recorded: retried as long as [`Catalog::on_full`] makes room.
    pub(crate) fn insistent_transaction<T>(
        &self,
        work: impl Fn(&Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            match self.attempt(&work) {
                Err(Error::Full(_)) if self.make_room() => {}
                result => return result,
            }
        }
    }

    /// Sets what makes room for the catalog and returns whether it did; it must eventually return
    /// false.
    pub fn on_full(&self, make_room: impl Fn() -> bool + Send + Sync + 'static) {
        *self.on_full.lock() = Some(Box::new(make_room));
    }

    /// The keys that secrets are sealed and opened with; None where they stay closed.
    pub(crate) fn keys(&self) -> Option<Arc<Keyring>> {
        self.keys.lock().clone()
    }

    /// Seals and opens with these from now on.
    pub(crate) fn set_keys(&self, keys: Arc<Keyring>) {
        *self.keys.lock() = Some(keys);
    }

    /// Works on the file outside of any transaction.
    pub(crate) fn outside<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        work(&self.db.lock())
    }

    fn make_room(&self) -> bool {
        self.on_full.lock().as_ref().is_some_and(|make_room| make_room())
    }

    fn attempt<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut db = self.db.lock();
        let sql = db.transaction()?;
        // Dropped without a commit (an error, a panic), SQLite rolls back.
        let keys = self.keys.lock().clone();
        let transaction = Transaction { sql: &sql, keys, changed: RefCell::default() };
        let result = work(&transaction)?;
        let changed = transaction.changed.into_inner();
        let committed = sql.commit();
        // Before anyone learns of the change, and also if it is unknown whether it was made.
        self.lists.lock().retain(|kind, _| !changed.contains(kind));
        committed?;
        Ok(result)
    }

    /// Gives out an id that was never given before. A workflow takes it before it makes the object and
    /// remembers it, so that a repeated step makes the object once. Not for snapshots: they have the
    /// store's id.
    pub fn allocate<R: Record>(&self) -> Result<R::Id, Error> {
        self.transaction(|tx| tx.allocate::<R>())
    }

    /// Stores an object, replacing its earlier state.
    ///
    /// # Errors
    /// [`Error::NameTaken`] if another object has its name.
    pub fn put<R: Record>(&self, object: &R) -> Result<(), Error> {
        self.transaction(|tx| tx.put(object))
    }

    /// An object, if it is there.
    pub fn find<R: Record>(&self, id: R::Id) -> Result<Option<R>, Error> {
        self.transaction(|tx| tx.find(id))
    }

    /// An object.
    ///
    /// # Errors
    /// [`Error::NotFound`] where it is not there.
    pub fn get<R: Record>(&self, id: R::Id) -> Result<R, Error> {
        self.transaction(|tx| tx.get(id))
    }

    /// The object of this kind that has the name, if there is one.
    pub fn find_named<R: Record>(&self, name: &str) -> Result<Option<R>, Error> {
        self.transaction(|tx| tx.find_named(name))
    }

    /// All objects of a kind, by id. Read once and then kept in memory until one of them changes, so
    /// frequent calls are cheap.
    pub fn all<R: Record>(&self) -> Result<Arc<Vec<R>>, Error> {
        let kept = || self.lists.lock().get(R::KIND).cloned()?.downcast::<Vec<R>>().ok();
        if let Some(list) = kept() {
            return Ok(list);
        }
        let mut db = self.db.lock();
        let sql = db.transaction()?;
        let reader = Transaction { sql: &sql, keys: None, changed: RefCell::default() };
        let list = Arc::new(reader.list::<R>()?);
        // Under the lock of the file: no change can happen between reading and caching.
        self.lists.lock().insert(R::KIND, list.clone());
        Ok(list)
    }

    /// As [`Catalog::all`], in a list of one's own.
    pub fn list<R: Record>(&self) -> Result<Vec<R>, Error> {
        Ok(self.all()?.to_vec())
    }

    /// The objects of a kind that belong to (VDBs: come from) an owner, by id.
    pub fn list_of<R: Record>(&self, owner: impl Into<Owner>) -> Result<Vec<R>, Error> {
        let owner = Some(owner.into());
        Ok(self.all::<R>()?.iter().filter(|one| one.owner() == owner).cloned().collect())
    }

    /// Changes an object; no other change can happen between reading and writing it.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it does not exist, [`Error::NameTaken`] as with [`Catalog::put`].
    pub fn update<R: Record>(&self, id: R::Id, change: impl FnOnce(&mut R)) -> Result<R, Error> {
        self.transaction(|tx| tx.update(id, change))
    }

    /// Removes an object; returns whether it existed.
    pub fn delete<R: Record>(&self, id: R::Id) -> Result<bool, Error> {
        self.transaction(|tx| tx.delete::<R>(id))
    }

    /// The dSource or VDB that has the name, if there is one.
    pub fn find_owner(&self, name: &str) -> Result<Option<Owner>, Error> {
        self.transaction(|tx| {
            let dsource = tx.find_named::<offshoot_domain::Dsource>(name)?;
            if let Some(dsource) = dsource {
                return Ok(Some(Owner::Dsource(dsource.id)));
            }
            Ok(tx.find_named::<offshoot_domain::Vdb>(name)?.map(|vdb| Owner::Vdb(vdb.id)))
        })
    }
}

impl Transaction<'_> {
    pub(crate) fn sql(&self) -> &Connection {
        self.sql
    }

    pub(crate) fn keys(&self) -> Result<&Keyring, Error> {
        let closed = || Error::Unusable("its secrets are closed to who only looks".to_owned());
        self.keys.as_deref().ok_or_else(closed)
    }

    /// The next number of a sequence, from 1.
    pub(crate) fn next_number(&self, kind: &str) -> Result<u64, Error> {
        let sql = "INSERT INTO sequence VALUES (?1, 1) \
            ON CONFLICT (kind) DO UPDATE SET last = last + 1 RETURNING last";
        Ok(self.sql.query_row(sql, [kind], |row| row.get(0))?)
    }

    /// See [`Catalog::allocate`].
    pub fn allocate<R: Record>(&self) -> Result<R::Id, Error> {
        Ok(R::Id::from_number(self.next_number(R::KIND)?))
    }

    /// See [`Catalog::put`].
    pub fn put<R: Record>(&self, object: &R) -> Result<(), Error> {
        self.changed.borrow_mut().push(R::KIND);
        let id = object.id().number();
        if let (Some(namespace), Some(name)) = (R::NAMESPACE, object.name()) {
            let sql = "SELECT kind || '-' || id FROM object \
                WHERE namespace = ?1 AND name = label('name', ?2) AND NOT (kind = ?3 AND id = ?4)";
            let other = params![namespace, name, R::KIND, id];
            if let Some(by) = self.sql.query_row(sql, other, |row| row.get(0)).optional()? {
                return Err(Error::NameTaken { name: name.to_owned(), by });
            }
        }
        let body = serde_json::to_string(object)
            .map_err(|error| Error::Unusable(format!("{}: {error}", object.id())))?;
        let owner = object.owner().map(|owner| owner.to_string());
        self.sql.execute(
            "INSERT OR REPLACE INTO object \
             VALUES (?1, ?2, ?3, label('name', ?4), ?5, seal('object', ?6))",
            params![R::KIND, id, R::NAMESPACE, object.name(), owner, body],
        )?;
        Ok(())
    }

    /// See [`Catalog::find`].
    pub fn find<R: Record>(&self, id: R::Id) -> Result<Option<R>, Error> {
        Ok(self.select("id = ?2", &id.number())?.pop())
    }

    /// See [`Catalog::get`].
    pub fn get<R: Record>(&self, id: R::Id) -> Result<R, Error> {
        self.find(id)?.ok_or_else(|| Error::NotFound(id.to_string()))
    }

    /// See [`Catalog::find_named`].
    pub fn find_named<R: Record>(&self, name: &str) -> Result<Option<R>, Error> {
        Ok(self.select("name = label('name', ?2)", &name)?.pop())
    }

    /// See [`Catalog::list`].
    pub fn list<R: Record>(&self) -> Result<Vec<R>, Error> {
        self.select("id > ?2", &-1)
    }

    /// See [`Catalog::list_of`].
    pub fn list_of<R: Record>(&self, owner: impl Into<Owner>) -> Result<Vec<R>, Error> {
        self.select("owner = ?2", &owner.into().to_string())
    }

    /// See [`Catalog::update`].
    pub fn update<R: Record>(&self, id: R::Id, change: impl FnOnce(&mut R)) -> Result<R, Error> {
        let mut object = self.get::<R>(id)?;
        change(&mut object);
        self.put(&object)?;
        Ok(object)
    }

    /// See [`Catalog::delete`].
    pub fn delete<R: Record>(&self, id: R::Id) -> Result<bool, Error> {
        self.changed.borrow_mut().push(R::KIND);
        let sql = "DELETE FROM object WHERE kind = ?1 AND id = ?2";
        Ok(self.sql.execute(sql, params![R::KIND, id.number()])? > 0)
    }

    fn select<R: Record>(
        &self,
        condition: &str,
        value: &dyn rusqlite::ToSql,
    ) -> Result<Vec<R>, Error> {
        let sql = format!(
            "SELECT id, unseal('object', body) FROM object WHERE kind = ?1 AND {condition} ORDER BY id"
        );
        let mut query = self.sql.prepare_cached(&sql)?;
        let mut rows = query.query(params![R::KIND, value])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let (id, body): (u64, String) = (row.get(0)?, row.get(1)?);
            let object = serde_json::from_str(&body)
                .map_err(|error| Error::Damaged(format!("{}-{id}: {error}", R::KIND)))?;
            found.push(object);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
