//! Caches what backends derive from an array of a relation, and frees it with the array.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::derived::{CacheUses, DerivedMap};
use crate::memory::bytes::{Bytes, CountBytes};

/// Number of cached values. A machine has fewer devices than this.
const LIMIT: usize = 16;

type AnyKey = Box<dyn Any + Send + Sync>;

/// A value of any type, with the function that counts its memory.
#[derive(Clone)]
struct AnyValue {
    value: Arc<dyn Any + Send + Sync>,
    bytes: fn(&(dyn Any + Send + Sync)) -> Bytes,
}

impl AnyValue {
    fn new<V: CountBytes + Send + Sync + 'static>(value: V) -> Self {
        let bytes = |value: &(dyn Any + Send + Sync)| {
            let of = value.downcast_ref::<V>().map_or_else(Bytes::default, V::bytes);
            Bytes::host(size_of::<V>()) + of
        };
        Self { value: Arc::new(value), bytes }
    }
}

impl CountBytes for AnyValue {
    fn bytes(&self) -> Bytes {
        (self.bytes)(&*self.value)
    }
}

/// A value whose type does not implement [`CountBytes`].
struct Foreign<V> {
    value: Arc<V>,
    bytes: fn(&V) -> Bytes,
}

impl<V> CountBytes for Foreign<V> {
    fn bytes(&self) -> Bytes {
        (self.bytes)(&self.value)
    }
}

/// A key and the type of its values.
struct Key<K, V>(K, PhantomData<fn() -> V>);

/// Cache of values that backends derive from an array, such as a copy in device memory. The backend chooses the key, for
/// example its device.
///
/// The cache holds at most 16 values and evicts the least recently used one. It is freed with the array, or by
/// [`clear`](Self::clear). Values report [how much memory](CountBytes) they hold. The cache is ignored by comparisons:
/// two equal arrays are equal whatever is cached for them.
///
/// ```
/// use burn_gnn_structure::Relation;
/// let r = Relation::from_coo(1, 1, vec![0], vec![0])?;
/// let length = r.csc().attached().get_or_insert("length", || r.csc().indices().len());
/// assert_eq!(*length, 1);
/// assert_eq!(*r.csc().attached().get_or_insert("length", || 7usize), 1);
/// # Ok::<(), burn_gnn_structure::GraphError>(())
/// ```
pub struct Attached(DerivedMap<AnyKey, AnyValue>);

impl Attached {
    /// Returns the value of this type under `key`, and computes it with `make` if it is missing. No lock is held while
    /// `make` runs. If several threads compute the value at once, one result is kept, as in
    /// [`Derived`](crate::Derived).
    pub fn get_or_insert<K, V>(&self, key: K, make: impl FnOnce() -> V) -> Arc<V>
    where
        K: Eq + Send + Sync + 'static,
        V: CountBytes + Send + Sync + 'static,
    {
        let is_same =
            |a: &AnyKey, b: &AnyKey| match (a.downcast_ref::<Key<K, V>>(), b.downcast_ref()) {
                (Some(Key(a, _)), Some(Key::<K, V>(b, _))) => a == b,
                _ => false,
            };
        let cell = self.0.cell(Box::new(Key(key, PhantomData::<fn() -> V>)), is_same);
        let value = cell.get_or_compute(|| AnyValue::new(make())).value.clone();
        value.downcast().unwrap_or_else(|_| unreachable!("the type of a value is part of its key"))
    }
    /// [`get_or_insert`](Self::get_or_insert) for a type that does not implement [`CountBytes`]: `bytes` counts the
    /// memory of the value.
    pub fn get_or_insert_sized<K, V>(
        &self,
        key: K,
        make: impl FnOnce() -> V,
        bytes: fn(&V) -> Bytes,
    ) -> Arc<V>
    where
        K: Eq + Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        let sized = self.get_or_insert(key, || Foreign { value: Arc::new(make()), bytes });
        sized.value.clone()
    }
    /// Number of hits and misses since the cache was created.
    pub fn uses(&self) -> CacheUses {
        self.0.uses()
    }
    /// Removes all values. A value that is in use is freed with its last reference. Removed values are computed again on
    /// next use.
    pub fn clear(&self) {
        self.0.clear();
    }
}

impl CountBytes for Attached {
    fn bytes(&self) -> Bytes {
        self.0.bytes()
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
    fn the_least_recently_used_value_is_evicted() {
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

    /// Bytes include data that values compute later. Clearing frees values that are not in use; they are computed again.
    #[test]
    fn bytes_are_counted_and_cleared() {
        let kept = Attached::default();
        assert_eq!(kept.bytes(), Bytes::default());
        let list = kept.get_or_insert("list", || vec![1u32; 1000]);
        let one = kept.bytes();
        assert!(one.host >= 4000 && one.device == 0, "{one:?}");
        let later = kept.get_or_insert("later", crate::derived::Derived::<Vec<u64>>::new);
        let two = kept.bytes();
        later.get_or_compute(|| vec![0; 100]);
        assert!(kept.bytes().host >= two.host + 800);
        kept.get_or_insert_sized("copy", || 7u8, |_| Bytes::device(123));
        assert_eq!(kept.bytes().device, 123);
        assert_eq!(kept.uses(), CacheUses { hits: 0, misses: 3 });
        let (used, gone) = (list.clone(), Arc::downgrade(&later));
        drop((list, later));
        kept.clear();
        assert_eq!(
            (kept.bytes(), gone.upgrade().is_none(), used.len()),
            (Bytes::default(), true, 1000)
        );
        assert_eq!(kept.get_or_insert("list", || vec![1u32; 1000]), used, "computed again");
        assert_eq!(kept.uses(), CacheUses { hits: 0, misses: 4 });
    }

    #[test]
    fn values_are_freed_with_their_owner() {
        let kept = Attached::default();
        let value = Arc::downgrade(&kept.get_or_insert((), || 5));
        assert!(value.upgrade().is_some());
        drop(kept);
        assert!(value.upgrade().is_none());
    }
}
