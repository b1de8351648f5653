//! Belady's optimal cache: evicts the rows whose next use is farthest in the future.
//!
//! Which rows a batch of an epoch reads is a function of the seed, the step and the original ids. So the batches of a
//! window can be sampled before they are used, and the next use of every row is known.
//!
//! ```text
//! plan(batch):                                 // for each batch that enters the window
//!     for each row: next[last planned read of row] = number of this batch
//! step():                                      // for the next batch to be read
//!     hits   = rows of the batch with a slot
//!     misses = all other rows; read them from disk, sorted, in whole sectors
//!     for each row of the batch, and of the sectors that were read, by ascending next use:
//!         keep it if there is a free slot, or evict the slot with the farthest next use if that is later
//! ```
//!
//! Why it is written this way:
//!
//! 1. *Optimal*: if all batches are planned, no policy reads fewer rows. With a shorter window, rows without a planned
//!    use are evicted first.
//! 2. *A list of slots per next use instead of a heap*: the farthest list is found in `O(1)`, so a step costs `O(1)`
//!    per row. Entries that are out of date are skipped when they are met.
//! 3. *Rows of the same sector* come for free with a read, so they compete for slots by the same rule.
//! 4. *A quarter of the budget is the plan*: a longer window costs memory that rows could use.

use std::collections::VecDeque;
use std::ops::Range;

use hashbrown::HashMap;

use super::policy::{NO_SLOT, Policy, Step};
use crate::io::SECTOR;

/// Next use of a row that no planned batch reads.
const FAR: u32 = u32::MAX;
/// Position of a row that is not in the batch.
const NOT_IN_BATCH: u32 = u32::MAX;

/// A planned batch: its rows, and for each row the next batch that reads it.
#[derive(Debug)]
struct PlannedIds {
    ids: Vec<u32>,
    next: Vec<u32>,
}

/// The planned reads of a row: the first batch, and the last one with the row's position in it.
#[derive(Clone, Copy, Debug)]
struct Reads {
    first: u32,
    last: u32,
    position: u32,
}

/// Layout of rows in sectors, the unit of disk reads.
#[derive(Clone, Copy, Debug)]
struct Sectors {
    row_bytes: u64,
    rows: u64,
    /// Maximal number of rows of shared sectors that are cached per batch.
    most_sector_rows: usize,
}

impl Sectors {
    /// The rows that are completely contained in the sectors of row `id`.
    fn read_with(self, id: u32) -> Range<u32> {
        let (from, to) = (u64::from(id) * self.row_bytes, (u64::from(id) + 1) * self.row_bytes);
        let (from, to) = (from / SECTOR * SECTOR, to.next_multiple_of(SECTOR));
        from.div_ceil(self.row_bytes) as u32..(to / self.row_bytes).min(self.rows) as u32
    }
}

/// Belady's algorithm over planned batches (Belady, "A study of replacement algorithms for a virtual-storage computer",
/// IBM Systems Journal 1966). After every batch, the rows with the nearest next use stay in the cache. If all batches
/// are planned, no other policy reads fewer rows.
///
/// Disks read whole sectors. With [`with_sectors`](Self::with_sectors) the other rows of a sector are cached by the
/// same rule: rows that planned batches read, and further rows while there are free slots. With rows of 256 bytes, a
/// read brings 15 other rows.
///
/// `O(1)` per row of a batch and of its sectors: there is a list of slots for each next use, and slots are evicted from
/// the farthest list.
#[derive(Debug)]
pub(crate) struct Belady {
    capacity: usize,
    sectors: Option<Sectors>,
    slot_of: HashMap<u32, u32>,
    /// Row and next use of each slot.
    slots: Vec<(u32, u32)>,
    /// Planned batches, the next one first.
    planned_batches: VecDeque<PlannedIds>,
    /// Number of the next batch.
    now: u32,
    /// Planned reads of each row.
    reads: HashMap<u32, Reads>,
    /// Slots by next use; some entries are out of date.
    by_next: VecDeque<Vec<u32>>,
    far: Vec<u32>,
}

impl Belady {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.min(NO_SLOT as usize - 1),
            sectors: None,
            slot_of: HashMap::new(),
            slots: vec![],
            planned_batches: VecDeque::new(),
            now: 0,
            reads: HashMap::new(),
            by_next: VecDeque::new(),
            far: vec![],
        }
    }

    /// Caches rows of shared sectors, at most `most_sector_rows` per batch. Rows have `row_bytes` bytes, not 0, and the
    /// first row starts a sector.
    pub(crate) fn with_sectors(
        self,
        row_bytes: usize,
        rows: usize,
        most_sector_rows: usize,
    ) -> Self {
        Self {
            sectors: Some(Sectors {
                row_bytes: row_bytes as u64,
                rows: rows as u64,
                most_sector_rows,
            }),
            ..self
        }
    }

    /// Number of planned batches.
    #[cfg(test)]
    fn planned(&self) -> usize {
        self.planned_batches.len()
    }
    /// Number of planned reads.
    pub(crate) fn planned_reads(&self) -> usize {
        self.planned_batches.iter().map(|c| c.ids.len()).sum()
    }

    /// Plans a batch after all others. Its ids are distinct.
    pub(crate) fn plan(&mut self, ids: &[u32]) {
        let batch = self.now + self.planned_batches.len() as u32;
        self.by_next.push_back(vec![]);
        for (at, &id) in ids.iter().enumerate() {
            let position = at as u32;
            match self.reads.get_mut(&id) {
                Some(reads) => {
                    self.planned_batches[(reads.last - self.now) as usize].next
                        [reads.position as usize] = batch;
                    (reads.last, reads.position) = (batch, position);
                }
                // The row may be cached although no planned batch reads it yet.
                None => {
                    self.reads.insert(id, Reads { first: batch, last: batch, position });
                    if let Some(&slot) = self.slot_of.get(&id) {
                        self.slots[slot as usize].1 = batch;
                        self.by_next
                            .back_mut()
                            .unwrap_or_else(|| unreachable!("pushed above"))
                            .push(slot);
                    }
                }
            }
        }
        self.planned_batches
            .push_back(PlannedIds { ids: ids.to_vec(), next: vec![FAR; ids.len()] });
    }

    fn file(&mut self, slot: u32, next: u32) {
        self.slots[slot as usize].1 = next;
        match next {
            FAR => self.far.push(slot),
            batch => self.by_next[(batch - self.now) as usize].push(slot),
        }
    }

    /// Evicts the slot with the farthest next use if that is later than `next`, and returns it.
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

    /// Rows in the same sectors as `missed`, with their next uses: candidates for the cache. If there are more than the
    /// limit, those with the nearest next use.
    fn sector_rows(&self, mut missed: Vec<u32>) -> Vec<(u32, u32)> {
        let Some(sectors) = self.sectors else { return vec![] };
        let most = sectors.most_sector_rows;
        // Rows without a planned use are cached while there are free slots.
        let mut room = most.min(self.capacity - self.slots.len());
        if most == 0 || room == 0 && self.reads.is_empty() {
            return vec![];
        }
        missed.sort_unstable();
        let (mut found, mut seen, mut before) = (vec![], 0, 0);
        for &id in &missed {
            let rows = sectors.read_with(id);
            for row in rows.start.max(seen)..rows.end {
                // Rows ascend over consecutive sectors.
                while missed.get(before).is_some_and(|&m| m < row) {
                    before += 1;
                }
                if missed.get(before) == Some(&row) || self.slot_of.contains_key(&row) {
                    continue;
                }
                let next = self.reads.get(&row).map_or(FAR, |reads| reads.first);
                if next == FAR {
                    if room == 0 {
                        continue;
                    }
                    room -= 1;
                }
                found.push((next, row));
                if found.len() > 2 * most {
                    found.select_nth_unstable(most);
                    found.truncate(most);
                }
            }
            seen = rows.end.max(seen);
        }
        if most < found.len() {
            found.select_nth_unstable(most);
            found.truncate(most);
        }
        found
    }
}

impl Policy for Belady {
    fn capacity(&self) -> usize {
        self.capacity
    }
    /// Decides on the next batch. Plans it first if it is not planned.
    fn step(&mut self, ids: &[u32]) -> Step {
        if self.planned_batches.is_empty() {
            self.plan(ids);
        }
        let batch =
            self.planned_batches.pop_front().unwrap_or_else(|| unreachable!("planned above"));
        debug_assert_eq!(
            batch.ids, ids,
            "batches are read in the order in which they were planned"
        );
        let mut step = Step::default();
        for (at, (id, &next)) in ids.iter().zip(&batch.next).enumerate() {
            match (next, self.reads.get_mut(id)) {
                (FAR, _) => drop(self.reads.remove(id)),
                (_, Some(reads)) => reads.first = next,
                _ => unreachable!("a planned batch reads it"),
            }
            match self.slot_of.get(id) {
                Some(&slot) => {
                    step.hits.push((at as u32, slot));
                    self.file(slot, next);
                }
                None => step.misses.push(at as u32),
            }
        }
        // Rows with the nearest use come first, so that no row is cached and evicted in the same step.
        let sector_rows =
            self.sector_rows(step.misses.iter().map(|&at| ids[at as usize]).collect());
        let missed = step.misses.iter().map(|&at| (batch.next[at as usize], ids[at as usize], at));
        let mut order: Vec<(u32, u32, u32)> = missed
            .chain(sector_rows.into_iter().map(|(next, id)| (next, id, NOT_IN_BATCH)))
            .collect();
        order.retain(|&(next, ..)| next != FAR || self.slots.len() < self.capacity);
        order.sort_unstable_by_key(|&(next, id, at)| (next, at, id));
        let mut top = self.by_next.len() - 1;
        for (next, id, at) in order {
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
            match at {
                NOT_IN_BATCH => step.sector_rows.push((id, slot)),
                at => step.kept.push((at, slot)),
            }
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

    const PER_SECTOR: u32 = 4;

    #[test]
    fn rows_of_a_sector() {
        let rows =
            |row_bytes, id| Sectors { row_bytes, rows: 10, most_sector_rows: 1 }.read_with(id);
        assert_eq!((rows(1024, 0), rows(1024, 5), rows(1024, 9)), (0..4, 4..8, 8..10));
        // Row 1 starts in the first sector and ends in the second, which contains the ends of rows 0 to 4, but not of
        // 5.
        assert_eq!((rows(1500, 0), rows(1500, 2), rows(1500, 4)), (0..2, 0..5, 3..5));
    }

    /// The minimal number of misses of any policy, by exhaustive search over the sets of cached rows.
    fn fewest(batches: &[Vec<u32>], capacity: usize) -> usize {
        let mut states = BTreeMap::from([(0u32, 0usize)]);
        for batch in batches {
            let here: u32 = batch.iter().map(|r| 1 << r).sum();
            let mut after = BTreeMap::new();
            for (kept, misses) in states {
                let misses = misses + (here & !kept).count_ones() as usize;
                let all = kept | here;
                // Every subset of the available rows.
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

    fn many() -> impl Strategy<Value = Vec<Vec<u32>>> {
        proptest::collection::vec(proptest::collection::btree_set(0u32..30, 0..12), 1..12)
            .prop_map(|b| b.into_iter().map(|s| s.into_iter().collect()).collect())
    }

    /// Cached rows were read before, and their number never exceeds the capacity.
    fn run(batches: &[Vec<u32>], capacity: usize, window: usize) -> usize {
        misses_of(Belady::new(capacity), batches, window)
    }

    fn misses_of(mut cache: Belady, batches: &[Vec<u32>], window: usize) -> usize {
        let (mut memory, mut misses, mut planned) = (vec![u32::MAX; cache.capacity], 0, 0);
        for batch in batches {
            while planned < batches.len() && cache.planned() < window {
                cache.plan(&batches[planned]);
                planned += 1;
            }
            let step = cache.step(batch);
            planned = planned.max(1);
            assert!(
                step.hits.iter().all(|&(at, slot)| memory[slot as usize] == batch[at as usize])
            );
            assert_eq!(step.hits.len() + step.misses.len(), batch.len());
            let sector = |id: &u32| id / PER_SECTOR;
            let read: Vec<u32> =
                step.misses.iter().map(|&at| sector(&batch[at as usize])).collect();
            assert!(step.sector_rows.iter().all(|(id, _)| read.contains(&sector(id))
                && !batch.contains(id)
                && !memory.contains(id)));
            step.kept.iter().for_each(|&(at, slot)| memory[slot as usize] = batch[at as usize]);
            step.sector_rows.iter().for_each(|&(id, slot)| memory[slot as usize] = id);
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

        /// Caching rows of shared sectors does not increase the misses of any batch.
        #[test]
        fn sectors(batches in many(), capacity in 0usize..24, window in 1usize..12) {
            let cache = || Belady::new(capacity).with_sectors(1024, 30, 3);
            let with = |window| misses_of(cache(), &batches, window);
            prop_assert!(with(batches.len()) <= run(&batches, capacity, batches.len()));
            prop_assert!(with(window) <= batches.iter().map(Vec::len).sum());
        }

        /// A short window gives a valid cache.
        #[test]
        fn windows(batches in batches(), capacity in 0usize..5, window in 1usize..4) {
            let (misses, best) = (run(&batches, capacity, window), fewest(&batches, capacity));
            prop_assert!(misses >= best && misses <= batches.iter().map(Vec::len).sum());
        }
    }
}
