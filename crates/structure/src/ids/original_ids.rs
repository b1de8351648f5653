//! Keeps the original ids of nodes and edges of a subgraph.

/// The ids that the nodes or edges of one type had in the graph they were taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginalIds {
    len: usize,
    /// `None`: every id is unchanged.
    ids: Option<Vec<u32>>,
}

impl OriginalIds {
    /// All of `0..len`, unchanged.
    #[doc(hidden)]
    pub fn unchanged(len: usize) -> Self {
        Self { len, ids: None }
    }
    /// Original ids, written out: entry `i` is that of node or edge `i`.
    pub fn from_vec(ids: Vec<u32>) -> Self {
        let bound = ids.len();
        Self::new(ids, bound)
    }
    /// `ids` out of `0..bound`.
    #[doc(hidden)]
    pub fn new(ids: Vec<u32>, bound: usize) -> Self {
        let same = ids.len() == bound && ids.iter().enumerate().all(|(i, &id)| id as usize == i);
        Self { len: ids.len(), ids: (!same).then_some(ids) }
    }
    /// The ids of the entries of `keep` that hold.
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
    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The original id of node or edge `i`.
    ///
    /// # Panics
    /// `i` is not below [`len`](Self::len).
    #[inline]
    #[track_caller]
    pub fn get(&self, i: usize) -> u32 {
        assert!(i < self.len, "id {i} is out of range 0..{}", self.len);
        self.ids.as_ref().map_or(i as u32, |ids| ids[i])
    }
    /// The original ids; `None` where nothing was renumbered, so that nothing need be gathered.
    #[inline]
    pub fn as_slice(&self) -> Option<&[u32]> {
        self.ids.as_deref()
    }
    /// The original ids, written out.
    pub fn to_vec(&self) -> Vec<u32> {
        self.ids.clone().unwrap_or_else(|| (0..self.len as u32).collect())
    }
    #[inline]
    #[doc(hidden)]
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len).map(|i| self.get(i))
    }
}
