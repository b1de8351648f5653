//! Caches uploads of arrays that callers own; an entry is freed soon after its array.

use std::sync::{Arc, Weak};

use burn_gnn_graph::{Bytes, CacheUses, CountBytes, DerivedMap};

/// Values that stay; a program trains on fewer arrays at a time than this.
const LIMIT: usize = 64;

struct Key<T, const N: usize, K> {
    arrays: [Weak<[T]>; N],
    key: K,
}

/// Values by the arrays that they were made of, distinguished by address, and by a key beside them (a
/// device, say).
///
/// A clone of a caller's `Arc` is the same array. Holds at most 64 values, that asked for least
/// recently goes first; values of arrays that are gone go with the next call.
pub struct Resident<T, const N: usize, K, V>(DerivedMap<Key<T, N, K>, V>);

impl<T, const N: usize, K: PartialEq, V: Clone> Default for Resident<T, N, K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize, K: PartialEq, V: Clone> Resident<T, N, K, V> {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self(DerivedMap::new(LIMIT))
    }
    /// The value of these arrays under `key`; `make` makes it where there is none, while nothing is
    /// locked. It is filled as a [`Derived`](burn_gnn_graph::Derived) is: where several threads ask
    /// at once, one value stays.
    pub fn get_or_insert(&self, arrays: [&Arc<[T]>; N], key: K, make: impl FnOnce() -> V) -> V {
        self.0.retain(|kept| kept.arrays.iter().all(|array| array.strong_count() > 0));
        let is_same = |a: &Key<T, N, K>, b: &Key<T, N, K>| {
            a.key == b.key && a.arrays.iter().zip(&b.arrays).all(|(a, b)| a.ptr_eq(b))
        };
        let cell = self.0.cell(Key { arrays: arrays.map(Arc::downgrade), key }, is_same);
        cell.get_or_compute(make).clone()
    }
    /// How often it was asked.
    pub fn uses(&self) -> CacheUses {
        self.0.uses()
    }
    /// Gives up all values; they are made again where somebody asks for them.
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
    fn once_for_an_array_and_a_key() {
        let kept = Resident::<u64, 1, &str, usize>::new();
        let (a, b): (Arc<[u64]>, Arc<[u64]>) = ([1, 2].into(), [1, 2].into());
        assert_eq!(kept.get_or_insert([&a], "here", || 1), 1);
        assert_eq!(kept.get_or_insert([&a.clone()], "here", || 2), 1);
        assert_eq!(kept.get_or_insert([&b], "here", || 3), 3);
        assert_eq!(kept.get_or_insert([&a], "there", || 4), 4);
        assert_eq!(kept.uses(), CacheUses { hits: 1, misses: 3 });
    }

    #[test]
    fn values_go_after_their_array() {
        let kept = Resident::<u64, 2, (), Arc<()>>::new();
        let (a, b): (Arc<[u64]>, Arc<[u64]>) = ([1].into(), [2].into());
        let value = Arc::downgrade(&kept.get_or_insert([&a, &b], (), || Arc::new(())));
        assert!(value.upgrade().is_some());
        drop(b);
        kept.get_or_insert([&a, &a], (), || Arc::new(()));
        assert!(value.upgrade().is_none());
    }

    #[test]
    fn the_least_recent_goes_first() {
        let kept = Resident::<u64, 1, usize, usize>::new();
        let a: Arc<[u64]> = [].into();
        for key in 0..=LIMIT {
            kept.get_or_insert([&a], key, || key);
        }
        assert_eq!(kept.get_or_insert([&a], 1, || 99), 1);
        assert_eq!(kept.get_or_insert([&a], 0, || 99), 99);
    }
}
