//! Maps the node ids of files to node numbers, and back.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use rayon::prelude::*;

use crate::arrays::Texts;
use crate::derived::Derived;

/// A column of ids: 64-bit integers or strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// Integers of any value and in any order.
    Int(Vec<i64>),
    /// Strings.
    Text(Texts),
}

/// An id in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileId<'a> {
    /// An integer.
    Int(i64),
    /// A string.
    Text(&'a str),
}

impl From<i64> for FileId<'_> {
    fn from(id: i64) -> Self {
        Self::Int(id)
    }
}
impl<'a> From<&'a str> for FileId<'a> {
    fn from(id: &'a str) -> Self {
        Self::Text(id)
    }
}
impl std::fmt::Display for FileId<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(id) => id.fmt(f),
            Self::Text(id) => id.fmt(f),
        }
    }
}

impl Ids {
    /// Number of ids.
    pub fn len(&self) -> usize {
        match self {
            Self::Int(ids) => ids.len(),
            Self::Text(ids) => ids.len(),
        }
    }
    /// Whether there are no ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Id `i`.
    ///
    /// # Panics
    /// If `i` is not below [`len`](Self::len).
    #[track_caller]
    pub fn get(&self, i: usize) -> FileId<'_> {
        match self {
            Self::Int(ids) => FileId::Int(ids[i]),
            Self::Text(ids) => FileId::Text(ids.get(i)),
        }
    }
    /// Gathers the ids at `rows`, in this order.
    #[must_use]
    pub fn select(&self, rows: &[u32]) -> Self {
        match self {
            Self::Int(ids) => Self::Int(rows.iter().map(|&r| ids[r as usize]).collect()),
            Self::Text(ids) => Self::Text(ids.select(rows.iter().map(|&r| r as usize))),
        }
    }
    /// The type of the ids as errors name it: `int64` or `string`.
    #[doc(hidden)]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Int(_) => "int64",
            Self::Text(_) => "string",
        }
    }
    /// Appends an id of the same type.
    #[doc(hidden)]
    pub fn push(&mut self, id: FileId<'_>) {
        match (self, id) {
            (Self::Int(ids), FileId::Int(id)) => ids.push(id),
            (Self::Text(ids), FileId::Text(id)) => ids.push(id),
            // Callers compare the types of columns first.
            (ids, id) => unreachable!("{id:?} in a column of type {}", ids.kind()),
        }
    }
}

/// The ids of the nodes of one type in their files, with an index from id to node. Node `i` has the `i`-th id.
///
/// ```
/// use burn_gnn_structure::{FileId, Ids, NodeIds};
/// let users = NodeIds::new(Ids::Int(vec![123, 124, -9]));
/// assert_eq!((users.number(-9), users.number(1)), (Some(2), None)); // 1 is not an id
/// assert_eq!(users.id(0), Some(FileId::Int(123)));
/// let cities = NodeIds::new(Ids::Text(["bonn", "köln"].into_iter().collect()));
/// assert_eq!((cities.number("köln"), cities.number(1)), (Some(1), None));
/// ```
#[derive(Clone, Debug)]
pub struct NodeIds {
    ids: Ids,
    index: Derived<Index>,
}

#[derive(Clone, Debug)]
enum Index {
    /// The id of node `i` is `i`, as in many generated tables.
    Same,
    /// For dense integers: the node is `table[id - first]`, or `u32::MAX` if there is none.
    Table { first: i64, table: Vec<u32> },
    /// A hash table of node numbers, by the hash of their ids.
    Hash { hasher: DefaultHashBuilder, table: HashTable<u32> },
}

/// Largest number of entries per id of [`Index::Table`]. With more a hash table takes less memory.
const MAX_ENTRIES_PER_ID: u64 = 4;

impl NodeIds {
    /// Stores ids in node order. Ids should be distinct; of equal ids [`number`](Self::number) finds the first. The index
    /// is built on first use.
    pub fn new(ids: Ids) -> Self {
        Self { ids, index: Derived::new() }
    }
    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.ids.len()
    }
    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
    /// All ids, in node order.
    pub fn ids(&self) -> &Ids {
        &self.ids
    }
    /// The id of node `number`.
    pub fn id(&self, number: u32) -> Option<FileId<'_>> {
        ((number as usize) < self.len()).then(|| self.ids.get(number as usize))
    }
    /// The node with an id, or `None`.
    ///
    /// # Cost
    /// `O(1)`; the first call builds the index in `O(n)`.
    pub fn number<'a>(&self, id: impl Into<FileId<'a>>) -> Option<u32> {
        let id = id.into();
        match (self.index(), &self.ids, id) {
            (Index::Same, Ids::Int(ids), FileId::Int(id)) => {
                u32::try_from(id).ok().filter(|&i| (i as usize) < ids.len())
            }
            (Index::Table { first, table }, _, FileId::Int(id)) => {
                let at = usize::try_from(i128::from(id) - i128::from(*first)).ok()?;
                table.get(at).copied().filter(|&n| n != u32::MAX)
            }
            (Index::Hash { hasher, table }, ids, id) => {
                table.find(hasher.hash_one(id), |&n| ids.get(n as usize) == id).copied()
            }
            _ => None,
        }
    }
    /// The nodes with the ids of a column. `Err` has the positions of at most `most` ids without a node.
    #[doc(hidden)]
    pub fn numbers(&self, ids: &Ids, most: usize) -> Result<Vec<u32>, Vec<usize>> {
        self.index();
        let found = |i: usize| self.number(ids.get(i)).unwrap_or(u32::MAX);
        let out: Vec<u32> =
            (0..ids.len()).into_par_iter().with_min_len(1 << 12).map(found).collect();
        let missing: Vec<usize> = out
            .iter()
            .enumerate()
            .filter(|(_, n)| **n == u32::MAX)
            .map(|(i, _)| i)
            .take(most)
            .collect();
        if missing.is_empty() { Ok(out) } else { Err(missing) }
    }
    /// The rows whose id occurred before, each with the first row of this id.
    #[doc(hidden)]
    pub fn repeated(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        let same = matches!(self.index(), Index::Same);
        let rows = if same { 0 } else { self.len() };
        (0..rows).filter_map(|i| {
            self.number(self.ids.get(i))
                .filter(|&first| first as usize != i)
                .map(|first| (i, first))
        })
    }

    fn index(&self) -> &Index {
        self.index.get_or_compute(|| {
            if let Ids::Int(ids) = &self.ids {
                if ids.iter().enumerate().all(|(i, &id)| i as i64 == id) {
                    return Index::Same;
                }
                let (first, last) =
                    ids.iter().fold((i64::MAX, i64::MIN), |(a, b), &id| (a.min(id), b.max(id)));
                let span = last.abs_diff(first);
                if span < (ids.len() as u64).saturating_mul(MAX_ENTRIES_PER_ID) {
                    let mut table = vec![u32::MAX; span as usize + 1];
                    ids.iter()
                        .enumerate()
                        .rev()
                        .for_each(|(i, id)| table[id.abs_diff(first) as usize] = i as u32);
                    return Index::Table { first, table };
                }
            }
            let (hasher, ids) = (DefaultHashBuilder::default(), &self.ids);
            let mut table = HashTable::with_capacity(ids.len());
            let hash = |&n: &u32| hasher.hash_one(ids.get(n as usize));
            for n in 0..ids.len() as u32 {
                let id = ids.get(n as usize);
                if let hashbrown::hash_table::Entry::Vacant(free) =
                    table.entry(hasher.hash_one(id), |&m| ids.get(m as usize) == id, hash)
                {
                    free.insert(n);
                }
            }
            Index::Hash { hasher, table }
        })
    }
    /// The ids of the nodes `rows`.
    #[doc(hidden)]
    pub fn select(&self, rows: &[u32]) -> Self {
        Self::new(self.ids.select(rows))
    }
}

impl PartialEq for NodeIds {
    fn eq(&self, other: &Self) -> bool {
        self.ids == other.ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Dense integers, sparse integers and strings, which use different indices.
        #[test]
        fn number_finds_the_first_node_with_an_id(ids in prop::collection::vec(-20i64..20, 0..30), scale in prop::sample::select(vec![1i64, 3, 1 << 40])) {
            let ids: Vec<i64> = ids.into_iter().map(|i| i * scale).collect();
            let first = |id: i64| ids.iter().position(|&x| x == id).map(|i| i as u32);
            let numbers = NodeIds::new(Ids::Int(ids.clone()));
            let texts = NodeIds::new(Ids::Text(ids.iter().map(i64::to_string).collect()));
            for id in (-21i64..21).map(|i| i * scale).chain([i64::MIN, i64::MAX, scale / 2 + 1]) {
                prop_assert_eq!(numbers.number(id), first(id));
                prop_assert_eq!(texts.number(id.to_string().as_str()), first(id));
                prop_assert_eq!((numbers.number("x"), texts.number(id)), (None, None));
            }
            let repeated: Vec<_> = numbers.repeated().collect();
            prop_assert!(repeated.iter().all(|&(i, f)| ids[i] == ids[f as usize] && (f as usize) < i));
            prop_assert_eq!(ids.len() - repeated.len(), ids.iter().collect::<std::collections::BTreeSet<_>>().len());
        }
    }

    #[test]
    fn extreme_integers() {
        let ids = NodeIds::new(Ids::Int(vec![i64::MIN, i64::MAX, 0]));
        assert_eq!(
            [i64::MIN, i64::MAX, 0, 1].map(|i| ids.number(i)),
            [Some(0), Some(1), Some(2), None]
        );
        assert_eq!(ids.numbers(&Ids::Int(vec![0, 5, 6]), 9), Err(vec![1, 2]));
        assert_eq!((ids.id(1), ids.id(3)), (Some(FileId::Int(i64::MAX)), None));
    }
}
