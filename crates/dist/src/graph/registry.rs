//! Registers distributed tensors by name.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// By name: tensors that have a handle, and persistent ones, which the graph holds.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<BTreeMap<String, Entry>>);

type Kept = Arc<dyn Any + Send + Sync>;

#[derive(Debug)]
struct Entry {
    found: Weak<dyn Any + Send + Sync>,
    kept: Option<Kept>,
}

impl Registry {
    /// What is kept under a name, if anybody still holds it.
    pub(crate) fn find(&self, name: &str) -> Option<Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name)?.found.upgrade()
    }
    pub(crate) fn keep(&self, name: &str, value: &Kept, persistent: bool) {
        let entry = Entry { found: Arc::downgrade(value), kept: persistent.then(|| value.clone()) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), entry);
    }
    /// Removes a persistent tensor; it is freed with its last handle.
    pub(crate) fn release(&self, name: &str) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get_mut(name).is_some_and(|e| e.kept.take().is_some())
    }
}
