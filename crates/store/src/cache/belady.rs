//! Evicts the rows whose next use is farthest (Belady's optimal cache).

use std::collections::VecDeque;
use std::ops::Range;

use hashbrown::HashMap;

use super::policy::{NO_SLOT, Policy, Step};
use crate::io::SECTOR;

/// No batch that is known.
const FAR: u32 = u32::MAX;
/// The place of a row that is not in the batch.
const BESIDE: u32 = u32::MAX;

/// A batch that is coming: its rows, and for each the next batch that reads it too.
#[derive(Debug)]
struct Coming {
    ids: Vec<u32>,
    next: Vec<u32>,
}

/// The coming reads of a row: the first of them, and the last with its place in the batch.
#[derive(Clone, Copy, Debug)]
struct Reads {
    first: u32,
    last: u32,
    place: u32,
}

/// How rows lie in sectors, which are what a disk reads.
#[derive(Clone, Copy, Debug)]
struct Sectors {
    row_bytes: u64,
    rows: u64,
    /// Most rows that are kept of one batch's sectors beside its own.
    most_beside: usize,
}

impl Sectors {
    /// The rows of which a read of row `id` brings all bytes.
    fn read_with(self, id: u32) -> Range<u32> {
        let (from, to) = (u64::from(id) * self.row_bytes, (u64::from(id) + 1) * self.row_bytes);
        let (from, to) = (from / SECTOR * SECTOR, to.next_multiple_of(SECTOR));
        from.div_ceil(self.row_bytes) as u32..(to / self.row_bytes).min(self.rows) as u32
    }
}

/// Belady's algorithm over the batches that are planned (Belady, "A study of replacement algorithms for a
/// virtual-storage computer", IBM Systems Journal 1966): after every batch, of the rows that are at hand those stay
/// whose next batch is the nearest. No choice reads fewer rows where all batches are planned.
///
/// A read brings whole sectors. [`with_sectors`](Self::with_sectors) lets the other rows of a sector stay as well,
/// by the same rule: those that coming batches read, while there is room others too. Of rows of 256 bytes that is
/// 15 for every one that is read.
///
/// `O(1)` per row of a batch and of its sectors: slots stand in a list per next batch, from whose far end room is made.
#[derive(Debug)]
pub(crate) struct Belady {
    capacity: usize,
    sectors: Option<Sectors>,
    slot_of: HashMap<u32, u32>,
    /// Row and next batch of each slot.
    slots: Vec<(u32, u32)>,
    /// Of the coming batches, the next one first.
    coming: VecDeque<Coming>,
    /// Number of the next batch.
    now: u32,
    /// Of each row that coming batches read.
    reads: HashMap<u32, Reads>,
    /// Slots by next batch; some entries are out of date.
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
            coming: VecDeque::new(),
            now: 0,
            reads: HashMap::new(),
            by_next: VecDeque::new(),
            far: vec![],
        }
    }

    /// Whose rows of `row_bytes`, not 0, are read in whole sectors, the first row at the beginning of one; of a batch's
    /// sectors at most `most_beside` rows are kept beside its own.
    pub(crate) fn with_sectors(self, row_bytes: usize, rows: usize, most_beside: usize) -> Self {
        Self {
            sectors: Some(Sectors { row_bytes: row_bytes as u64, rows: rows as u64, most_beside }),
            ..self
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
            let place = at as u32;
            match self.reads.get_mut(&id) {
                Some(reads) => {
                    self.coming[(reads.last - self.now) as usize].next[reads.place as usize] =
                        batch;
                    (reads.last, reads.place) = (batch, place);
                }
                // Of rows that no coming batch reads, some are kept.
                None => {
                    self.reads.insert(id, Reads { first: batch, last: batch, place });
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

    /// Rows that come with those of `missed` from the disk and may stay, with their next batches: if there are more
    /// than have room on their way, those with the nearest.
    fn beside(&self, mut missed: Vec<u32>) -> Vec<(u32, u32)> {
        let Some(sectors) = self.sectors else { return vec![] };
        let most = sectors.most_beside;
        // Rows that no batch is known to read stay while there is room.
        let mut room = most.min(self.capacity - self.slots.len());
        if most == 0 || room == 0 && self.reads.is_empty() {
            return vec![];
        }
        missed.sort_unstable();
        let (mut found, mut seen, mut before) = (vec![], 0, 0);
        for &id in &missed {
            let rows = sectors.read_with(id);
            for row in rows.start.max(seen)..rows.end {
                // Rows ascend over all sectors.
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
    /// The next batch, which is planned first where it was not.
    fn step(&mut self, ids: &[u32]) -> Step {
        if self.coming.is_empty() {
            self.plan(ids);
        }
        let batch = self.coming.pop_front().unwrap_or_else(|| unreachable!("planned above"));
        debug_assert_eq!(
            batch.ids, ids,
            "batches are read in the order in which they were planned"
        );
        let mut step = Step::default();
        for (at, (id, &next)) in ids.iter().zip(&batch.next).enumerate() {
            match (next, self.reads.get_mut(id)) {
                (FAR, _) => drop(self.reads.remove(id)),
                (_, Some(reads)) => reads.first = next,
                _ => unreachable!("a coming batch reads it"),
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
        let beside = self.beside(step.misses.iter().map(|&at| ids[at as usize]).collect());
        let missed = step.misses.iter().map(|&at| (batch.next[at as usize], ids[at as usize], at));
        let mut order: Vec<(u32, u32, u32)> =
            missed.chain(beside.into_iter().map(|(next, id)| (next, id, BESIDE))).collect();
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
                BESIDE => step.beside.push((id, slot)),
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
        let rows = |row_bytes, id| Sectors { row_bytes, rows: 10, most_beside: 1 }.read_with(id);
        assert_eq!((rows(1024, 0), rows(1024, 5), rows(1024, 9)), (0..4, 4..8, 8..10));
        // Row 1 begins in the first sector and ends in the second; rows 0 to 4 end there, row 5 does not.
        assert_eq!((rows(1500, 0), rows(1500, 2), rows(1500, 4)), (0..2, 0..5, 3..5));
    }

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

    fn many() -> impl Strategy<Value = Vec<Vec<u32>>> {
        proptest::collection::vec(proptest::collection::btree_set(0u32..30, 0..12), 1..12)
            .prop_map(|b| b.into_iter().map(|s| s.into_iter().collect()).collect())
    }

    /// What is kept is what was read, and never more than there is room for.
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
            assert!(step.beside.iter().all(|(id, _)| read.contains(&sector(id))
                && !batch.contains(id)
                && !memory.contains(id)));
            step.kept.iter().for_each(|&(at, slot)| memory[slot as usize] = batch[at as usize]);
            step.beside.iter().for_each(|&(id, slot)| memory[slot as usize] = id);
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

        /// Rows that come with others make no batch miss more.
        #[test]
        fn sectors(batches in many(), capacity in 0usize..24, window in 1usize..12) {
            let cache = || Belady::new(capacity).with_sectors(1024, 30, 3);
            let with = |window| misses_of(cache(), &batches, window);
            prop_assert!(with(batches.len()) <= run(&batches, capacity, batches.len()));
            prop_assert!(with(window) <= batches.iter().map(Vec::len).sum());
        }

        /// A short window is a cache all the same.
        #[test]
        fn windows(batches in batches(), capacity in 0usize..5, window in 1usize..4) {
            let (misses, best) = (run(&batches, capacity, window), fewest(&batches, capacity));
            prop_assert!(misses >= best && misses <= batches.iter().map(Vec::len).sum());
        }
    }
}
