//! A bounded cache of derived values by key.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::derived::Derived;
use crate::memory::bytes::{Bytes, CountBytes};

/// A bounded map of [`Derived`] cells. A cell lives as long as its key is in the map or a caller holds it.
///
/// ```
/// use burn_gnn_structure::DerivedMap;
/// let squares = DerivedMap::<u32, u32>::new(2);
/// assert_eq!(*squares.cell(3, u32::eq).get_or_compute(|| 9), 9);
/// assert_eq!(*squares.cell(3, u32::eq).get_or_compute(|| 0), 9);
/// ```
pub struct DerivedMap<K, T> {
    limit: usize,
    cells: Mutex<Cells<K, T>>,
}

struct Cells<K, T> {
    /// Ordered by last use, the most recent at the end.
    all: Vec<(K, Arc<Derived<T>>)>,
    uses: CacheUses,
}

/// Hits and misses of a cache since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUses {
    /// Look-ups that found a value, or a value that another thread was computing.
    pub hits: u64,
    /// Look-ups that found no value.
    pub misses: u64,
}

impl<K, T> DerivedMap<K, T> {
    /// A cache of at most `limit` values (at least one), which evicts the least recently used value.
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            cells: Mutex::new(Cells { all: Vec::new(), uses: CacheUses { hits: 0, misses: 0 } }),
        }
    }

    /// The cell whose key equals `key` by `is_same`. If there is none, an empty cell is inserted.
    ///
    /// `is_same` runs with the lock held, so it should only compare the keys.
    pub fn cell(&self, key: K, is_same: impl Fn(&K, &K) -> bool) -> Arc<Derived<T>> {
        let mut cells = self.lock();
        let found = cells.all.iter().position(|(kept, _)| is_same(kept, &key));
        match found {
            Some(_) => cells.uses.hits += 1,
            None => cells.uses.misses += 1,
        }
        let (entry, old) = match found {
            Some(at) => (cells.all.remove(at), None),
            None => (
                (key, Arc::default()),
                (cells.all.len() >= self.limit.max(1)).then(|| cells.all.remove(0)),
            ),
        };
        let cell = entry.1.clone();
        cells.all.push(entry);
        drop(cells);
        // Outside of the lock, because the destructor of a value may run arbitrary code.
        drop(old);
        cell
    }

    /// Removes the values whose keys do not satisfy `keep`. It runs with the lock held, so it should only read the key.
    pub fn retain(&self, keep: impl Fn(&K) -> bool) {
        let mut cells = self.lock();
        let old: Vec<_> = cells.all.extract_if(.., |(key, _)| !keep(key)).collect();
        drop(cells);
        drop(old);
    }

    /// Removes all values. A value that a caller holds is freed with its last reference.
    pub fn clear(&self) {
        self.retain(|_| false);
    }

    /// Hits and misses since the map was created.
    pub fn uses(&self) -> CacheUses {
        self.lock().uses
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.lock().all.len()
    }

    /// Whether the map has no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Cells<K, T>> {
        // A comparison that panics leaves the cells unchanged.
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts the computed values, without their keys.
impl<K, T: CountBytes> CountBytes for DerivedMap<K, T> {
    fn bytes(&self) -> Bytes {
        // Outside of the lock, because `bytes` of a value may run arbitrary code.
        let cells: Vec<_> = self.lock().all.iter().map(|(_, cell)| cell.clone()).collect();
        cells.iter().map(|cell| cell.bytes()).sum()
    }
}

impl<K, T> std::fmt::Debug for DerivedMap<K, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DerivedMap({} values)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_value_is_evicted() {
        let map = DerivedMap::<u32, u32>::new(2);
        let of = |key, value| *map.cell(key, u32::eq).get_or_compute(|| value);
        assert_eq!([of(1, 10), of(2, 20), of(1, 0), of(3, 30), of(1, 0)], [10, 20, 10, 30, 10]);
        assert_eq!((of(2, 21), map.len()), (21, 2));
        map.retain(|key| *key == 2);
        assert_eq!((map.len(), map.is_empty(), of(2, 0)), (1, false, 21));
        assert_eq!(map.uses(), CacheUses { hits: 3, misses: 4 });
        map.clear();
        assert_eq!((map.is_empty(), of(2, 22)), (true, 22));
    }
}
