//! Caches derived values by key in a bounded table.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::derived::Derived;
use crate::memory::bytes::{Bytes, CountBytes};

/// [`Derived`] values by key, each for as long as its key stays here or somebody holds it.
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
    /// Those asked for last at the end.
    all: Vec<(K, Arc<Derived<T>>)>,
    uses: CacheUses,
}

/// How often a table was asked, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUses {
    /// Times that there was a value, or somebody was making it.
    pub hits: u64,
    /// Times that there was none.
    pub misses: u64,
}

impl<K, T> DerivedMap<K, T> {
    /// Keeps at most `limit` values, at least one; that asked for least recently goes first.
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            cells: Mutex::new(Cells { all: Vec::new(), uses: CacheUses { hits: 0, misses: 0 } }),
        }
    }

    /// The cell of the key that `is_same` says is `key`; an empty one under `key` where there is
    /// none.
    ///
    /// `is_same` runs under a lock: it only compares.
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
        // Outside of the lock, for a value may do anything when it is dropped.
        drop(old);
        cell
    }

    /// Gives up the values whose keys `keep` does not want; it runs under a lock: it only looks at
    /// the key.
    pub fn retain(&self, keep: impl Fn(&K) -> bool) {
        let mut cells = self.lock();
        let old: Vec<_> = cells.all.extract_if(.., |(key, _)| !keep(key)).collect();
        drop(cells);
        drop(old);
    }

    /// Gives up all values, those that somebody holds with their last holder.
    pub fn clear(&self) {
        self.retain(|_| false);
    }

    /// How often it was asked.
    pub fn uses(&self) -> CacheUses {
        self.lock().uses
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.lock().all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Cells<K, T>> {
        // A comparison that panics leaves all as it was.
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What has been computed, without the keys.
impl<K, T: CountBytes> CountBytes for DerivedMap<K, T> {
    fn bytes(&self) -> Bytes {
        // Outside of the lock, for a value may do anything when it is asked.
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
    fn a_map_keeps_what_was_asked_for_last() {
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
