//! Keys of what the steps of a job store.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt;
use std::marker::PhantomData;

/// A name under which steps of a job store a value of one type. The name and the value's JSON are stored with the
/// job: neither may change while jobs that have stored it can be resumed.
pub struct Key<T> {
    name: &'static str,
    value: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    /// The key of this name; a name has one type.
    pub const fn new(name: &'static str) -> Self {
        Key { name, value: PhantomData }
    }

    /// The name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What a job has stored under the key, for readers outside the job.
    pub fn find(&self, bag: &Map<String, Value>) -> Option<T>
    where
        T: DeserializeOwned,
    {
        T::deserialize(bag.get(self.name)?).ok()
    }
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> fmt::Display for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
