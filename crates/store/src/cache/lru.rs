//! Evicts the least recently used rows (LRU cache).

use hashbrown::HashMap;

use super::policy::{NO_SLOT, Policy, Step};

/// Slots in the order of their last use, as a doubly linked list in arrays.
#[derive(Debug)]
pub(crate) struct Lru {
    capacity: usize,
    slot_of: HashMap<u32, u32>,
    row: Vec<u32>,
    /// Links towards the most and the least recently used slot. The list is circular; `capacity` is its head.
    newer: Vec<u32>,
    older: Vec<u32>,
}

impl Lru {
    pub(crate) fn new(capacity: usize) -> Self {
        let capacity = capacity.min(NO_SLOT as usize - 1);
        let end = capacity as u32;
        let mut links = vec![end; capacity + 1];
        links[capacity] = end;
        Self { capacity, slot_of: HashMap::new(), row: vec![], newer: links.clone(), older: links }
    }

    /// An empty cache with the same number of slots.
    pub(crate) fn emptied(&self) -> Self {
        Self::new(self.capacity)
    }

    fn unlink(&mut self, slot: u32) {
        let (newer, older) = (self.newer[slot as usize], self.older[slot as usize]);
        self.older[newer as usize] = older;
        self.newer[older as usize] = newer;
    }
    /// Inserts a slot as the most recently used one.
    fn link(&mut self, slot: u32) {
        let end = self.capacity;
        let before = self.older[end];
        (self.older[slot as usize], self.newer[slot as usize]) = (before, end as u32);
        (self.newer[before as usize], self.older[end]) = (slot, slot);
    }
}

impl Policy for Lru {
    fn capacity(&self) -> usize {
        self.capacity
    }
    fn step(&mut self, ids: &[u32]) -> Step {
        let mut step = Step::default();
        for (at, id) in ids.iter().enumerate() {
            match self.slot_of.get(id) {
                Some(&slot) => {
                    step.hits.push((at as u32, slot));
                    self.unlink(slot);
                    self.link(slot);
                }
                None => step.misses.push(at as u32),
            }
        }
        // If there are more misses than slots, the last ones stay.
        let first = step.misses.len().saturating_sub(self.capacity);
        for &at in &step.misses[first..] {
            let id = ids[at as usize];
            let slot = if self.row.len() < self.capacity {
                self.row.push(id);
                self.row.len() as u32 - 1
            } else {
                let slot = self.newer[self.capacity];
                self.unlink(slot);
                self.slot_of.remove(&self.row[slot as usize]);
                self.row[slot as usize] = id;
                slot
            };
            self.slot_of.insert(id, slot);
            self.link(slot);
            step.kept.push((at, slot));
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a linear list.
        #[test]
        fn equals_a_linear_list(batches in proptest::collection::vec(proptest::collection::btree_set(0u32..12, 0..6), 0..30), capacity in 0usize..6) {
            let (mut lru, mut list) = (Lru::new(capacity), Vec::<u32>::new());
            for batch in batches {
                let ids: Vec<u32> = batch.into_iter().collect();
                let step = lru.step(&ids);
                let hits: Vec<u32> = ids.iter().copied().filter(|id| list.contains(id)).collect();
                prop_assert_eq!(step.hits.iter().map(|h| ids[h.0 as usize]).collect::<Vec<_>>(), hits.clone());
                list.retain(|id| !hits.contains(id));
                list.extend(&hits);
                list.extend(ids.iter().filter(|id| !hits.contains(id)));
                list.drain(..list.len().saturating_sub(capacity));
                let mut kept: Vec<u32> = lru.slot_of.keys().copied().collect();
                kept.sort_unstable();
                let mut expected = list.clone();
                expected.sort_unstable();
                prop_assert_eq!(kept, expected);
            }
        }
    }
}
