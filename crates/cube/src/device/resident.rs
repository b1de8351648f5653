//! Caches device copies of arrays that callers own; an entry is freed soon after its array.

use std::sync::{Arc, Weak};

use burn_gnn_graph::{Bytes, CacheUses, CountBytes, DerivedMap};

/// Number of cached values. A program uses fewer arrays than this at a time.
const LIMIT: usize = 64;

struct Key<T, const N: usize, K> {
    arrays: [Weak<[T]>; N],
    key: K,
}

/// Cache of values that are derived from arrays of the caller, by the addresses of the arrays and a key, for example a
/// device.
///
/// A clone of an `Arc` is the same array. The cache holds at most 64 values and evicts the least recently used one. The
/// values of a dropped array are freed by the next call.
pub struct Resident<T, const N: usize, K, V>(DerivedMap<Key<T, N, K>, V>);

impl<T, const N: usize, K: PartialEq, V: Clone> Default for Resident<T, N, K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize, K: PartialEq, V: Clone> Resident<T, N, K, V> {
    /// An empty cache.
    pub const fn new() -> Self {
        Self(DerivedMap::new(LIMIT))
    }
    /// Returns the value of these arrays under `key`, and computes it with `make` if it is missing. No lock is held while
    /// `make` runs. If several threads compute the value at once, one result is kept, as in
    /// [`Derived`](burn_gnn_graph::Derived).
    pub fn get_or_insert(&self, arrays: [&Arc<[T]>; N], key: K, make: impl FnOnce() -> V) -> V {
        self.0.retain(|kept| kept.arrays.iter().all(|array| array.strong_count() > 0));
        let is_same = |a: &Key<T, N, K>, b: &Key<T, N, K>| {
            a.key == b.key && a.arrays.iter().zip(&b.arrays).all(|(a, b)| a.ptr_eq(b))
        };
        let cell = self.0.cell(Key { arrays: arrays.map(Arc::downgrade), key }, is_same);
        cell.get_or_compute(make).clone()
    }
    /// Hits and misses since the cache was created.
    pub fn uses(&self) -> CacheUses {
        self.0.uses()
    }
    /// Removes all values; they are computed again on next use.
    pub fn clear(&self) {
        self.0.clear();
    }
}

impl<T, const N: usize, K, V: CountBytes> CountBytes for Resident<T, N, K, V> {
    fn bytes(&self) -> Bytes {
        self.0.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_per_array_and_key() {
        let kept = Resident::<u64, 1, &str, usize>::new();
        let (a, b): (Arc<[u64]>, Arc<[u64]>) = ([1, 2].into(), [1, 2].into());
        assert_eq!(kept.get_or_insert([&a], "here", || 1), 1);
        assert_eq!(kept.get_or_insert([&a.clone()], "here", || 2), 1);
        assert_eq!(kept.get_or_insert([&b], "here", || 3), 3);
        assert_eq!(kept.get_or_insert([&a], "there", || 4), 4);
        assert_eq!(kept.uses(), CacheUses { hits: 1, misses: 3 });
    }

    #[test]
    fn values_of_dropped_arrays_are_freed() {
        let kept = Resident::<u64, 2, (), Arc<()>>::new();
        let (a, b): (Arc<[u64]>, Arc<[u64]>) = ([1].into(), [2].into());
        let value = Arc::downgrade(&kept.get_or_insert([&a, &b], (), || Arc::new(())));
        assert!(value.upgrade().is_some());
        drop(b);
        kept.get_or_insert([&a, &a], (), || Arc::new(()));
        assert!(value.upgrade().is_none());
    }

    #[test]
    fn the_least_recently_used_value_is_evicted() {
        let kept = Resident::<u64, 1, usize, usize>::new();
        let a: Arc<[u64]> = [].into();
        for key in 0..=LIMIT {
            kept.get_or_insert([&a], key, || key);
        }
        assert_eq!(kept.get_or_insert([&a], 1, || 99), 1);
        assert_eq!(kept.get_or_insert([&a], 0, || 99), 99);
    }
}
