//! The rows that are needed again first: an optimal cache of what the coming batches are known to read.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::{NO_SLOT, Policy, Step};

/// No batch that is known.
const FAR: u32 = u32::MAX;

/// A batch that is coming: its rows, and for each the next batch that reads it too.
#[derive(Debug)]
struct Coming {
    ids: Vec<u32>,
    next: Vec<u32>,
}

/// Belady's algorithm over the batches that are planned (Belady, "A study of replacement algorithms for a virtual-storage computer",
/// IBM Systems Journal 1966): after every batch, of the rows that are at hand those stay whose next batch is the nearest.
/// No choice reads fewer rows where all batches are planned.
///
/// `O(1)` per row of a batch: slots stand in a list per next batch, from whose far end room is made.
#[derive(Debug)]
pub(crate) struct Belady {
    capacity: usize,
    slot_of: HashMap<u32, u32>,
    /// Row and next batch of each slot.
    slots: Vec<(u32, u32)>,
    /// Of the coming batches, the next one first.
    coming: VecDeque<Coming>,
    /// Number of the next batch.
    now: u32,
    /// Where each row of a coming batch is read last: its batch and its place there.
    last: HashMap<u32, (u32, u32)>,
    /// Slots by next batch; some entries are out of date.
    by_next: VecDeque<Vec<u32>>,
    far: Vec<u32>,
}

impl Belady {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.min(NO_SLOT as usize - 1),
            slot_of: HashMap::new(),
            slots: vec![],
            coming: VecDeque::new(),
            now: 0,
            last: HashMap::new(),
            by_next: VecDeque::new(),
            far: vec![],
        }
    }

    /// Batches that are planned.
    #[cfg(test)]
    fn planned(&self) -> usize {
        self.coming.len()
    }
    /// Reads that are planned.
    pub(crate) fn planned_reads(&self) -> usize {
        self.coming.iter().map(|c| c.ids.len()).sum()
    }

    /// One more batch, behind those that are planned; its rows differ.
    pub(crate) fn plan(&mut self, ids: &[u32]) {
        let batch = self.now + self.coming.len() as u32;
        self.by_next.push_back(vec![]);
        for (at, &id) in ids.iter().enumerate() {
            match self.last.insert(id, (batch, at as u32)) {
                Some((before, place)) => self.coming[(before - self.now) as usize].next[place as usize] = batch,
                // Of rows that no coming batch reads, some are kept.
                None => {
                    if let Some(&slot) = self.slot_of.get(&id) {
                        self.slots[slot as usize].1 = batch;
                        self.by_next.back_mut().unwrap_or_else(|| unreachable!("pushed above")).push(slot);
                    }
                }
            }
        }
        self.coming.push_back(Coming { ids: ids.to_vec(), next: vec![FAR; ids.len()] });
    }

    fn file(&mut self, slot: u32, next: u32) {
        self.slots[slot as usize].1 = next;
        match next {
            FAR => self.far.push(slot),
            batch => self.by_next[(batch - self.now) as usize].push(slot),
        }
    }

    /// The slot whose row is needed last, if that is later than `next`; it is free then.
    fn evict(&mut self, next: u32, top: &mut usize) -> Option<u32> {
        if next == FAR {
            return None;
        }
        while let Some(slot) = self.far.pop() {
            if self.slots[slot as usize].1 == FAR {
                return Some(self.free(slot));
            }
        }
        let bound = (next - self.now) as usize;
        while *top > bound {
            while let Some(slot) = self.by_next[*top].pop() {
                if self.slots[slot as usize].1 == self.now + *top as u32 {
                    return Some(self.free(slot));
                }
            }
            *top -= 1;
        }
        None
    }

    fn free(&mut self, slot: u32) -> u32 {
        self.slot_of.remove(&self.slots[slot as usize].0);
        slot
    }
}

impl Policy for Belady {
    /// The next batch, which is planned first where it was not.
    fn step(&mut self, ids: &[u32]) -> Step {
        if self.coming.is_empty() {
            self.plan(ids);
        }
        let batch = self.coming.pop_front().unwrap_or_else(|| unreachable!("planned above"));
        debug_assert_eq!(batch.ids, ids, "batches are read in the order in which they were planned");
        let mut step = Step::default();
        for (at, (id, &next)) in ids.iter().zip(&batch.next).enumerate() {
            if next == FAR {
                self.last.remove(id);
            }
            match self.slot_of.get(id) {
                Some(&slot) => {
                    step.hits.push((at as u32, slot));
                    self.file(slot, next);
                }
                None => step.misses.push(at as u32),
            }
        }
        // Those that are needed first come first, so that nothing is kept and dropped again in one step.
        let mut order = step.misses.clone();
        order.retain(|&at| batch.next[at as usize] != FAR || self.slots.len() < self.capacity);
        order.sort_unstable_by_key(|&at| (batch.next[at as usize], at));
        let mut top = self.by_next.len() - 1;
        for at in order {
            let (id, next) = (ids[at as usize], batch.next[at as usize]);
            let slot = if self.slots.len() < self.capacity {
                self.slots.push((id, next));
                self.slots.len() as u32 - 1
            } else {
                match self.evict(next, &mut top) {
                    Some(slot) => slot,
                    None => break,
                }
            };
            self.slots[slot as usize].0 = id;
            self.slot_of.insert(id, slot);
            self.file(slot, next);
            step.kept.push((at, slot));
        }
        self.by_next.pop_front();
        self.now += 1;
        if self.far.len() > 2 * self.capacity + 1024 {
            let slots = &self.slots;
            self.far.retain(|&slot| slots[slot as usize].1 == FAR);
            self.far.sort_unstable();
            self.far.dedup();
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// The fewest misses of any choice of what to keep: over all sets of rows that may be kept after each batch.
    fn fewest(batches: &[Vec<u32>], capacity: usize) -> usize {
        let mut states = BTreeMap::from([(0u32, 0usize)]);
        for batch in batches {
            let here: u32 = batch.iter().map(|r| 1 << r).sum();
            let mut after = BTreeMap::new();
            for (kept, misses) in states {
                let misses = misses + (here & !kept).count_ones() as usize;
                let all = kept | here;
                // Every subset of what is at hand.
                let mut subset = all;
                loop {
                    if subset.count_ones() as usize <= capacity {
                        let best = after.entry(subset).or_insert(usize::MAX);
                        *best = misses.min(*best);
                    }
                    if subset == 0 {
                        break;
                    }
                    subset = (subset - 1) & all;
                }
            }
            states = after;
        }
        states.into_values().min().unwrap_or(0)
    }

    fn batches() -> impl Strategy<Value = Vec<Vec<u32>>> {
        proptest::collection::vec(proptest::collection::btree_set(0u32..7, 0..5), 1..9)
            .prop_map(|b| b.into_iter().map(|s| s.into_iter().collect()).collect())
    }

    /// What is kept is what was read, and never more than there is room for.
    fn run(batches: &[Vec<u32>], capacity: usize, window: usize) -> usize {
        let (mut cache, mut memory, mut misses, mut planned) = (Belady::new(capacity), vec![u32::MAX; capacity], 0, 0);
        for batch in batches {
            while planned < batches.len() && cache.planned() < window {
                cache.plan(&batches[planned]);
                planned += 1;
            }
            let step = cache.step(batch);
            planned = planned.max(1);
            assert!(step.hits.iter().all(|&(at, slot)| memory[slot as usize] == batch[at as usize]));
            assert_eq!(step.hits.len() + step.misses.len(), batch.len());
            step.kept.iter().for_each(|&(at, slot)| memory[slot as usize] = batch[at as usize]);
            misses += step.misses.len();
        }
        misses
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn as_few_misses_as_any_choice(batches in batches(), capacity in 0usize..5) {
            prop_assert_eq!(run(&batches, capacity, batches.len()), fewest(&batches, capacity));
        }

        /// A short window is a cache all the same.
        #[test]
        fn windows(batches in batches(), capacity in 0usize..5, window in 1usize..4) {
            let (misses, best) = (run(&batches, capacity, window), fewest(&batches, capacity));
            prop_assert!(misses >= best && misses <= batches.iter().map(Vec::len).sum());
        }
    }
}
