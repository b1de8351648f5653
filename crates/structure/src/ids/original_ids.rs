//! Original ids of the nodes and edges of a subgraph.

/// The ids of the nodes or edges of one type in the graph from which a subgraph was extracted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginalIds {
    len: usize,
    /// `None` if every id is unchanged.
    ids: Option<Vec<u32>>,
}

impl OriginalIds {
    /// The ids `0..len`, unchanged.
    #[doc(hidden)]
    pub fn unchanged(len: usize) -> Self {
        Self { len, ids: None }
    }
    /// Stores a list of original ids: entry `i` belongs to node or edge `i`.
    pub fn from_vec(ids: Vec<u32>) -> Self {
        let bound = ids.len();
        Self::new(ids, bound)
    }
    /// A selection `ids` of `0..bound`. If it is `0..bound` itself, no list is stored.
    #[doc(hidden)]
    pub fn new(ids: Vec<u32>, bound: usize) -> Self {
        let same = ids.len() == bound && ids.iter().enumerate().all(|(i, &id)| id as usize == i);
        Self { len: ids.len(), ids: (!same).then_some(ids) }
    }
    /// The positions at which `keep` is true.
    #[doc(hidden)]
    pub fn marked(keep: &[bool]) -> Self {
        if keep.iter().all(|&k| k) {
            return Self::unchanged(keep.len());
        }
        let ids: Vec<u32> =
            keep.iter().enumerate().filter(|(_, k)| **k).map(|(i, _)| i as u32).collect();
        Self { len: ids.len(), ids: Some(ids) }
    }
    /// Number of nodes or edges.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether there are no nodes or edges.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The original id of node or edge `i`.
    ///
    /// # Panics
    /// If `i` is not below [`len`](Self::len).
    #[inline]
    #[track_caller]
    pub fn get(&self, i: usize) -> u32 {
        assert!(i < self.len, "id {i} is out of range 0..{}", self.len);
        self.ids.as_ref().map_or(i as u32, |ids| ids[i])
    }
    /// The original ids; `None` if all ids are unchanged, so that features need not be gathered.
    #[inline]
    pub fn as_slice(&self) -> Option<&[u32]> {
        self.ids.as_deref()
    }
    /// The original ids as a list.
    pub fn to_vec(&self) -> Vec<u32> {
        self.ids.clone().unwrap_or_else(|| (0..self.len as u32).collect())
    }
    #[inline]
    #[doc(hidden)]
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len).map(|i| self.get(i))
    }
}
