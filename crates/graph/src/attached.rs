//! What backends keep beside an array of a relation, so that it is made once and freed with the
//! array.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::DerivedMap;

/// Values that stay; a machine has fewer devices than this.
const LIMIT: usize = 16;

type AnyKey = Box<dyn Any + Send + Sync>;

/// A key and the type of its values.
struct Key<K, V>(K, PhantomData<fn() -> V>);

/// Values kept beside an array, by a key that a backend chooses (its device, say): copies of the
/// array in a device's memory.
///
/// Holds at most 16 values, that asked for least recently goes first; all go with the array. It
/// takes no part in comparisons: two arrays are equal whatever is kept beside them.
///
/// ```
/// use burn_gnn_graph::Relation;
/// let r = Relation::from_coo(1, 1, vec![0], vec![0])?;
/// let length = r.csc().attached().get_or_insert("length", || r.csc().indices().len());
/// assert_eq!(*length, 1);
/// assert_eq!(*r.csc().attached().get_or_insert("length", || 7usize), 1);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
pub struct Attached(DerivedMap<AnyKey, Arc<dyn Any + Send + Sync>>);

impl Attached {
    /// The value of this type under `key`; `make` makes it where there is none, while nothing is
    /// locked. It is filled as [`Derived`](crate::Derived) is: where several threads ask at once,
    /// one value stays.
    pub fn get_or_insert<K, V>(&self, key: K, make: impl FnOnce() -> V) -> Arc<V>
    where
        K: Eq + Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        let is_same = |a: &AnyKey, b: &AnyKey| match (a.downcast_ref::<Key<K, V>>(), b.downcast_ref()) {
            (Some(Key(a, _)), Some(Key::<K, V>(b, _))) => a == b,
            _ => false,
        };
        let cell = self.0.cell(Box::new(Key(key, PhantomData::<fn() -> V>)), is_same);
        let value = cell.get_or_compute(|| Arc::new(make())).clone();
        value.downcast().unwrap_or_else(|_| unreachable!("the key tells the type of the value"))
    }
}

impl Default for Attached {
    fn default() -> Self {
        Self(DerivedMap::new(LIMIT))
    }
}

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Attached({} values)", self.0.len())
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
    fn keys_and_types_are_distinguished() {
        let kept = Attached::default();
        assert_eq!(*kept.get_or_insert(1u32, || 10i64), 10);
        assert_eq!(*kept.get_or_insert(2u32, || 20i64), 20);
        assert_eq!(*kept.get_or_insert(1u64, || 30i64), 30);
        assert_eq!(*kept.get_or_insert(1u32, || "text"), "text");
        assert_eq!(*kept.get_or_insert(1u32, || 0i64), 10);
    }

    #[test]
    fn the_least_recent_goes_first() {
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
