//! Registry of distributed tensors by name.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Tensors by name. The registry holds weak references, and strong ones to persistent tensors.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<BTreeMap<String, Entry>>);

type Handle = Arc<dyn Any + Send + Sync>;

#[derive(Debug)]
struct Entry {
    tensor: Weak<dyn Any + Send + Sync>,
    persistent: Option<Handle>,
}

impl Registry {
    /// The tensor of a name, if it has not been freed.
    pub(crate) fn find(&self, name: &str) -> Option<Handle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name)?.tensor.upgrade()
    }
    pub(crate) fn insert(&self, name: &str, value: &Handle, persistent: bool) {
        let entry =
            Entry { tensor: Arc::downgrade(value), persistent: persistent.then(|| value.clone()) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), entry);
    }
    /// Drops the registry's handle of a persistent tensor, which is freed with its last handle. Returns whether there
    /// was one.
    pub(crate) fn release(&self, name: &str) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get_mut(name).is_some_and(|e| e.persistent.take().is_some())
    }
}
