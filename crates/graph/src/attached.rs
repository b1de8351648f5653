//! What backends keep beside an array of a relation, so that it is made once and freed with the array.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Values that stay; a machine has fewer devices than this.
const LIMIT: usize = 16;

type AnyBox = Box<dyn Any + Send + Sync>;
type AnyArc = Arc<dyn Any + Send + Sync>;

/// Values kept beside an array, by a key that a backend chooses (its device, say): copies of the array in a device's
/// memory.
///
/// Holds at most 16 values, the oldest goes first; all go with the array. It takes no part in comparisons: two
/// arrays are equal whatever is kept beside them.
///
/// ```
/// use burn_gnn_graph::Relation;
/// let r = Relation::from_coo(1, 1, vec![0], vec![0])?;
/// let length = r.csc().attached().get_or_insert("length", || r.csc().indices().len());
/// assert_eq!(*length, 1);
/// assert_eq!(*r.csc().attached().get_or_insert("length", || 7usize), 1);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Default)]
pub struct Attached(Mutex<VecDeque<(AnyBox, AnyArc)>>);

impl Attached {
    /// The value of this type under `key`; `make` makes it where there is none. Others wait meanwhile, so one copy is
    /// made; `make` must not come back here.
    pub fn get_or_insert<K, V>(&self, key: K, make: impl FnOnce() -> V) -> Arc<V>
    where
        K: Eq + Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |k: &AnyBox| k.downcast_ref::<K>().is_some_and(|k| *k == key);
        let found = kept.iter().filter(|(k, _)| same(k)).find_map(|(_, v)| v.clone().downcast::<V>().ok());
        if let Some(found) = found {
            return found;
        }
        let value = Arc::new(make());
        if kept.len() == LIMIT {
            kept.pop_front();
        }
        kept.push_back((Box::new(key), value.clone()));
        value
    }
}

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write!(f, "Attached({} values)", kept.len())
    }
}

impl PartialEq for Attached {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Attached {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_types_are_told_apart() {
        let kept = Attached::default();
        assert_eq!(*kept.get_or_insert(1u32, || 10i64), 10);
        assert_eq!(*kept.get_or_insert(2u32, || 20i64), 20);
        assert_eq!(*kept.get_or_insert(1u64, || 30i64), 30);
        assert_eq!(*kept.get_or_insert(1u32, || "text"), "text");
        assert_eq!(*kept.get_or_insert(1u32, || 0i64), 10);
    }

    #[test]
    fn the_oldest_goes_first() {
        let kept = Attached::default();
        let first = kept.get_or_insert(0usize, || 0usize);
        let gone = Arc::downgrade(&first);
        drop(first);
        for key in 1..=LIMIT {
            kept.get_or_insert(key, || key);
        }
        assert!(gone.upgrade().is_none());
        assert_eq!(*kept.get_or_insert(1usize, || 99usize), 1);
        assert_eq!(*kept.get_or_insert(0usize, || 99usize), 99);
    }

    #[test]
    fn values_go_with_their_owner() {
        let kept = Attached::default();
        let value = Arc::downgrade(&kept.get_or_insert((), || 5));
        assert!(value.upgrade().is_some());
        drop(kept);
        assert!(value.upgrade().is_none());
    }
}
