//! One relation: the edges between two sets of nodes.

mod layouts;
mod sorted;

use std::sync::Arc;

use rayon::prelude::*;

use crate::attached::Attached;
use crate::memory::room;
use crate::words::Words;
use crate::{Derived, GraphError};
pub use layouts::LayoutArrays;
use sorted::Sorted;

pub(crate) const UNNAMED: &str = "(unnamed)";
/// `u32::MAX` is kept free as "no edge".
pub(crate) const LIMIT: u64 = u32::MAX as u64 - 1;

/// A compressed layout: row `r` holds positions `indptr[r]..indptr[r + 1]`.
///
/// Inside a row, edges stand in ascending edge id, so sums have one order whichever way a relation
/// was given.
///
/// Unsafe code relies on [`indptr`](Self::indptr), which never decreases and ends at the number of edges, and on
/// [`edge_ids`](Self::edge_ids), a permutation of them. Both are in memory and were checked when the layout was made.
/// [`indices`](Self::indices) may lie in memory of somebody else (a mapped file), and be others when that is changed: they
/// are bounds-checked wherever they are used.
#[derive(Debug, PartialEq, Eq)]
pub struct Compressed {
    indptr: Vec<u32>,
    indices: Words,
    edge_ids: Option<Vec<u32>>,
    attached: Attached,
}

impl Compressed {
    fn new(indptr: Vec<u32>, indices: Words, edge_ids: Option<Vec<u32>>) -> Self {
        Self { indptr, indices, edge_ids, attached: Attached::default() }
    }
    /// Row offsets, `num_rows + 1` entries, never decreasing, from 0 to the number of edges.
    #[inline]
    pub fn indptr(&self) -> &[u32] {
        &self.indptr
    }
    /// The node at the other end of the edge at each position.
    #[inline]
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }
    /// The edge id at each position; `None` where position and edge id are the same number, so that
    /// kernels read no permutation.
    #[inline]
    pub fn edge_ids(&self) -> Option<&[u32]> {
        self.edge_ids.as_deref()
    }
    /// Edge id at position `p`.
    #[inline(always)]
    pub fn edge_id(&self, p: usize) -> u32 {
        match &self.edge_ids {
            Some(ids) => ids[p],
            None => p as u32,
        }
    }
    /// Positions of row `r`.
    #[inline(always)]
    pub fn row(&self, r: usize) -> std::ops::Range<usize> {
        self.indptr[r] as usize..self.indptr[r + 1] as usize
    }
    /// Number of rows.
    #[inline]
    pub fn num_rows(&self) -> usize {
        self.indptr.len() - 1
    }
    /// What backends keep beside these arrays.
    pub fn attached(&self) -> &Attached {
        &self.attached
    }
}

#[derive(Debug)]
struct Inner {
    num_src: usize,
    num_dst: usize,
    src: Words,
    dst: Words,
    by_dst: Derived<Compressed>,
    by_src: Derived<Compressed>,
    /// Renumbered by destination, and by source for the reversed relation.
    sorted: [Derived<Sorted>; 2],
    /// Beside `src` and beside `dst`.
    attached: [Attached; 2],
}

/// Which nodes have a row in a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Dst,
    Src,
}

impl By {
    /// The same layout of the reversed relation, if `reversed`.
    fn reversed_if(self, reversed: bool) -> Self {
        match (self, reversed) {
            (by, false) => by,
            (Self::Dst, true) => Self::Src,
            (Self::Src, true) => Self::Dst,
        }
    }
}

impl Inner {
    /// Where a layout is kept, its number of rows, and the ends of the edges in rows and beside them.
    fn layout(&self, by: By) -> (&Derived<Compressed>, usize, &[u32], &[u32]) {
        match by {
            By::Dst => (&self.by_dst, self.num_dst, &self.dst[..], &self.src[..]),
            By::Src => (&self.by_src, self.num_src, &self.src[..], &self.dst[..]),
        }
    }
}

/// Edges from `num_src` source nodes to `num_dst` destination nodes.
///
/// Edge `i` is the `i`-th pair given (COO order defines edge ids). CSC (by destination, for
/// aggregation) and CSR (by source, for its gradient) are built once, on first use, by a parallel
/// counting sort in `O(E + V)`, except that edges given already sorted by that end need no sort: one
/// thread counts them, and no permutation is stored. Self loops and parallel edges are kept. A relation with
/// `num_src != num_dst` is a block (message flow graph) or a bipartite relation.
///
/// Cloning and [`reverse`](Self::reverse) cost one reference count.
///
/// ```
/// use burn_gnn_graph::Relation;
/// let r = Relation::from_coo(3, 2, vec![0, 2, 2], vec![1, 0, 1])?;
/// assert_eq!(r.csc().indptr(), [0, 1, 3]);
/// assert_eq!(r.csc().indices(), [2, 0, 2]); // sources of destination 0, then of 1
/// assert_eq!(r.csc().edge_ids(), Some(&[1, 0, 2][..]));
/// assert_eq!(r.in_degrees().collect::<Vec<_>>(), [1, 2]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Clone)]
pub struct Relation {
    inner: Arc<Inner>,
    reversed: bool,
}

impl std::fmt::Debug for Relation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Relation({} -> {}, {} edges)", self.num_src(), self.num_dst(), self.num_edges())
    }
}

impl PartialEq for Relation {
    /// Equal node counts and equal edges in equal order.
    fn eq(&self, o: &Self) -> bool {
        self.num_src() == o.num_src() && self.num_dst() == o.num_dst() && self.src() == o.src() && self.dst() == o.dst()
    }
}

pub(crate) fn check_counts(num_src: usize, num_dst: usize, num_edges: usize) -> Result<(), GraphError> {
    for (what, count) in [("nodes", num_src), ("nodes", num_dst), ("edges", num_edges)] {
        if count as u64 > LIMIT {
            return Err(GraphError::TooLarge { relation: UNNAMED.into(), what, count: count as u64, limit: LIMIT });
        }
    }
    // Layouts have an offset per node, and are made where no error can be returned. Asking takes no memory, but counts
    // as a peak where allocations are counted: not for what readers believe of any file.
    const LARGE: usize = 1 << 26;
    let nodes = num_src.max(num_dst);
    if nodes > LARGE { offsets(nodes).map(drop) } else { Ok(()) }
}

/// An empty list with room for the offsets of `rows` rows: of all that a layout takes, what grows with them.
fn offsets(rows: usize) -> Result<Vec<u32>, GraphError> {
    room(rows as u128 + 1, || format!("a layout of {rows} nodes"), "number the nodes that have edges from 0")
}

pub(crate) fn check_nodes(arg: &'static str, ids: &[u32], bound: usize) -> Result<(), GraphError> {
    // Searching for the first is slow; that there is one is not.
    let is_far = |&v: &u32| v as usize >= bound;
    const CHUNK: usize = 1 << 15;
    let found = if ids.len() <= CHUNK { ids.iter().any(is_far) } else { ids.par_chunks(CHUNK).any(|chunk| chunk.iter().any(is_far)) };
    if !found {
        return Ok(());
    }
    match ids.iter().position(is_far) {
        None => Ok(()),
        Some(position) => {
            let value = i128::from(ids[position]);
            Err(GraphError::NodeOutOfRange { relation: UNNAMED.into(), arg, position, bound, value })
        }
    }
}

pub(crate) fn check_len(arg: &str, why: &'static str, expected: usize, actual: usize) -> Result<(), GraphError> {
    if expected == actual {
        return Ok(());
    }
    Err(GraphError::Length { relation: UNNAMED.into(), arg: arg.into(), why, expected, actual })
}

impl Relation {
    /// The most nodes of one type, and the most edges of one relation: `u32::MAX` is kept free as "no edge".
    pub const LIMIT: u64 = LIMIT;

    /// From an edge list; entry `i` is edge `i`.
    ///
    /// # Errors
    /// Lengths differ, an id is out of range, or there are more than `u32::MAX - 1` nodes or edges.
    pub fn from_coo(num_src: usize, num_dst: usize, src: Vec<u32>, dst: Vec<u32>) -> Result<Self, GraphError> {
        check_counts(num_src, num_dst, src.len())?;
        check_len("dst", "one entry per entry of `src`", src.len(), dst.len())?;
        check_nodes("src", &src, num_src)?;
        check_nodes("dst", &dst, num_dst)?;
        Ok(Self::new(num_src, num_dst, src, dst))
    }

    /// From signed 64-bit ids as files hold them; checks the range before narrowing.
    ///
    /// # Errors
    /// As [`from_coo`](Self::from_coo); negative ids are out of range.
    pub fn from_coo_i64(num_src: usize, num_dst: usize, src: &[i64], dst: &[i64]) -> Result<Self, GraphError> {
        check_counts(num_src, num_dst, src.len())?;
        check_len("dst", "one entry per entry of `src`", src.len(), dst.len())?;
        let src = narrow("src", src, num_src)?;
        let dst = narrow("dst", dst, num_dst)?;
        Ok(Self::new(num_src, num_dst, src, dst))
    }

    /// From CSR: row `u` of `indptr` lists the destinations of source `u`. `edge_ids[p]` is the id of the edge at
    /// position `p` (`None`: the position itself) and must be a permutation; other ids are kept beside positions by
    /// [`GraphBuilder::edge_ids`](crate::GraphBuilder::edge_ids). Offsets and nodes may be of any integer type that
    /// files and other libraries have.
    ///
    /// ```
    /// use burn_gnn_graph::Relation;
    /// let r = Relation::from_csr(2, 3, &[0u64, 2, 3], &[1i64, 2, 0], None)?;
    /// assert_eq!((r.src(), r.dst()), (&[0, 0, 1][..], &[1, 2, 0][..]));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Wrong lengths, `indptr` not monotone, ids out of range (negative ones are), repeated edge ids.
    pub fn from_csr<P: WholeNumber, I: WholeNumber>(
        num_src: usize,
        num_dst: usize,
        indptr: &[P],
        indices: &[I],
        edge_ids: Option<&[u32]>,
    ) -> Result<Self, GraphError> {
        let (src, dst) = expand(num_src, num_dst, indptr, indices, edge_ids)?;
        Ok(Self::new(num_src, num_dst, src, dst))
    }

    /// From CSC: row `v` of `indptr` lists the sources of destination `v`; otherwise as
    /// [`from_csr`](Self::from_csr).
    ///
    /// # Errors
    /// As [`from_csr`](Self::from_csr).
    pub fn from_csc<P: WholeNumber, I: WholeNumber>(
        num_src: usize,
        num_dst: usize,
        indptr: &[P],
        indices: &[I],
        edge_ids: Option<&[u32]>,
    ) -> Result<Self, GraphError> {
        let (dst, src) = expand(num_dst, num_src, indptr, indices, edge_ids)?;
        Ok(Self::new(num_src, num_dst, src, dst))
    }

    /// Rows of a sampled block: edges stand in the order of their destinations.
    ///
    /// # Errors
    /// As [`from_csc`](Self::from_csc).
    pub(crate) fn from_rows(num_src: usize, indptr: Vec<u32>, src: Vec<u32>) -> Result<Self, GraphError> {
        let num_dst = indptr.len().saturating_sub(1);
        check_counts(num_src, num_dst, src.len())?;
        check_indptr(num_dst, &indptr, src.len())?;
        check_nodes("src", &src, num_src)?;
        let mut dst = Vec::with_capacity(src.len());
        for (v, w) in indptr.windows(2).enumerate() {
            dst.resize(dst.len() + (w[1] - w[0]) as usize, v as u32);
        }
        let by_dst = Compressed::new(indptr, src.clone().into(), None);
        Ok(Self::from_words(num_src, num_dst, src.into(), dst.into(), [by_dst.into(), Derived::new()]))
    }

    fn new(num_src: usize, num_dst: usize, src: Vec<u32>, dst: Vec<u32>) -> Self {
        Self::from_words(num_src, num_dst, src.into(), dst.into(), Default::default())
    }

    /// Of arrays that are known to agree: `layouts` are by destination and by source.
    fn from_words(num_src: usize, num_dst: usize, src: Words, dst: Words, layouts: [Derived<Compressed>; 2]) -> Self {
        let [by_dst, by_src] = layouts;
        let inner = Inner { num_src, num_dst, src, dst, by_dst, by_src, sorted: Default::default(), attached: Default::default() };
        Self { inner: Arc::new(inner), reversed: false }
    }

    /// Whether both are clones of one relation in the same direction: the test for caches, which reads no edge.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) && self.reversed == other.reversed
    }

    /// Number of source nodes.
    pub fn num_src(&self) -> usize {
        if self.reversed { self.inner.num_dst } else { self.inner.num_src }
    }
    /// Number of destination nodes.
    pub fn num_dst(&self) -> usize {
        if self.reversed { self.inner.num_src } else { self.inner.num_dst }
    }
    /// Number of edges.
    pub fn num_edges(&self) -> usize {
        self.inner.src.len()
    }
    /// Source of each edge, by edge id.
    pub fn src(&self) -> &[u32] {
        if self.reversed { &self.inner.dst } else { &self.inner.src }
    }
    /// Destination of each edge, by edge id.
    pub fn dst(&self) -> &[u32] {
        if self.reversed { &self.inner.src } else { &self.inner.dst }
    }
    /// What backends keep beside [`src`](Self::src).
    pub fn src_attached(&self) -> &Attached {
        &self.inner.attached[usize::from(self.reversed)]
    }
    /// What backends keep beside [`dst`](Self::dst).
    pub fn dst_attached(&self) -> &Attached {
        &self.inner.attached[usize::from(!self.reversed)]
    }
    /// By destination: rows are destinations, indices are sources.
    pub fn csc(&self) -> &Compressed {
        if self.reversed { self.by_src() } else { self.by_dst() }
    }
    /// By source: rows are sources, indices are destinations.
    pub fn csr(&self) -> &Compressed {
        if self.reversed { self.by_dst() } else { self.by_src() }
    }
    fn by_dst(&self) -> &Compressed {
        let (kept, rows, key, other) = self.inner.layout(By::Dst);
        kept.get_or_compute(|| compress(rows, key, other))
    }
    fn by_src(&self) -> &Compressed {
        let (kept, rows, key, other) = self.inner.layout(By::Src);
        kept.get_or_compute(|| compress(rows, key, other))
    }
    /// Calls `f` with [`csc`](Self::csc), which is made for this call alone if it is not there yet.
    #[doc(hidden)]
    pub fn with_csc<T>(&self, f: impl FnOnce(&Compressed) -> T) -> T {
        self.with_layout(By::Dst, f)
    }
    /// Whether [`csc`](Self::csc) has edge ids of its own, without making it.
    #[doc(hidden)]
    pub fn csc_has_edge_ids(&self) -> bool {
        self.has_edge_ids(By::Dst)
    }
    fn with_layout<T>(&self, by: By, f: impl FnOnce(&Compressed) -> T) -> T {
        let (kept, rows, key, other) = self.inner.layout(by.reversed_if(self.reversed));
        match kept.get() {
            Some(layout) => f(layout),
            None => f(&compress(rows, key, other)),
        }
    }
    fn has_edge_ids(&self, by: By) -> bool {
        let (kept, _, key, _) = self.inner.layout(by.reversed_if(self.reversed));
        kept.get().map_or_else(|| !key.is_sorted(), |layout| layout.edge_ids.is_some())
    }
    /// Where [`sorted_by_dst`](Self::sorted_by_dst) is kept.
    fn sorted_cell(&self) -> &Derived<Sorted> {
        &self.inner.sorted[usize::from(self.reversed)]
    }
    /// Every edge reversed; edge ids stay. Shares all arrays.
    #[must_use]
    pub fn reverse(&self) -> Self {
        Self { inner: self.inner.clone(), reversed: !self.reversed }
    }
    /// Number of in-edges of each destination.
    pub fn in_degrees(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.csc().indptr.windows(2).map(|w| w[1] - w[0])
    }
    /// Number of out-edges of each source.
    pub fn out_degrees(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.csr().indptr.windows(2).map(|w| w[1] - w[0])
    }
}

/// Integers that offsets and node ids of [`Relation::from_csr`] and [`Relation::from_csc`] may be: u32, u64, usize, i32
/// and i64.
pub trait WholeNumber: Copy + Send + Sync + sealed::Sealed {
    /// The number.
    #[doc(hidden)]
    fn wide(self) -> i128;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! whole_number {
    ($($t:ty),*) => {$(
        impl sealed::Sealed for $t {}
        impl WholeNumber for $t {
            #[inline(always)]
            fn wide(self) -> i128 {
                self as i128
            }
        }
    )*};
}
whole_number!(u32, u64, usize, i32, i64);

/// Refuses offsets of rows that do not go from 0 to `edges`.
fn check_indptr<P: WholeNumber>(rows: usize, indptr: &[P], edges: usize) -> Result<(), GraphError> {
    check_len("indptr", "number of rows + 1", rows + 1, indptr.len())?;
    let bad = |position: usize, expected: String| GraphError::Indptr {
        relation: UNNAMED.into(),
        position,
        expected,
        value: indptr[position].wide(),
    };
    if indptr[0].wide() != 0 {
        return Err(bad(0, "0".into()));
    }
    if let Some(p) = indptr.windows(2).position(|w| w[0].wide() > w[1].wide()) {
        return Err(bad(p + 1, format!("at least {} (it must never decrease)", indptr[p].wide())));
    }
    if indptr[rows].wide() != edges as i128 {
        return Err(bad(rows, format!("{edges} (the length of `indices`)")));
    }
    Ok(())
}

/// Node ids below `bound` of any type.
fn narrow<I: WholeNumber>(arg: &'static str, ids: &[I], bound: usize) -> Result<Vec<u32>, GraphError> {
    match ids.par_iter().position_first(|v| !(0..bound as i128).contains(&v.wide())) {
        None => Ok(ids.par_iter().map(|v| v.wide() as u32).collect()),
        Some(position) => Err(GraphError::NodeOutOfRange { relation: UNNAMED.into(), arg, position, bound, value: ids[position].wide() }),
    }
}

/// COO out of a compressed layout, after checking it: `(row of each edge, index of each edge)`.
fn expand<P: WholeNumber, I: WholeNumber>(
    rows: usize,
    cols: usize,
    indptr: &[P],
    indices: &[I],
    edge_ids: Option<&[u32]>,
) -> Result<(Vec<u32>, Vec<u32>), GraphError> {
    let e = indices.len();
    check_counts(rows, cols, e)?;
    check_indptr(rows, indptr, e)?;
    let indices = narrow("indices", indices, cols)?;
    let mut row_of = Vec::with_capacity(e);
    for (r, w) in indptr.windows(2).enumerate() {
        row_of.resize(w[1].wide() as usize, r as u32);
    }
    let Some(ids) = edge_ids else { return Ok((row_of, indices)) };
    check_len("edge_ids", "one entry per entry of `indices`", e, ids.len())?;
    let mut seen = vec![false; e];
    for (position, &id) in ids.iter().enumerate() {
        let repeated = seen.get(id as usize).copied();
        if repeated != Some(false) {
            let (relation, value) = (UNNAMED.into(), u64::from(id));
            return Err(GraphError::EdgeIds { relation, position, bound: e, value, repeated: repeated.is_some() });
        }
        seen[id as usize] = true;
    }
    let (mut row_by_id, mut col_by_id) = (vec![0; e], vec![0; e]);
    for (p, &id) in ids.iter().enumerate() {
        row_by_id[id as usize] = row_of[p];
        col_by_id[id as usize] = indices[p];
    }
    Ok((row_by_id, col_by_id))
}

/// Below this many edges one thread is faster than two. Miri is to see both ways, and is slow.
const PARALLEL_FROM: usize = if cfg!(miri) { 1 << 10 } else { 1 << 16 };

/// Stable counting sort of edges by `key`.
///
/// Parallel form: edges are cut into equal chunks, each chunk counts its keys, an exclusive scan over
/// (key, chunk) gives every chunk its own output places per key, then chunks scatter. Stable, so the
/// result does not depend on the number of chunks.
///
/// Where rows outnumber edges by far, counters would take as much as the offsets: edges are sorted by comparison
/// instead, so that the offsets, which [`check_counts`] asked for, are all that grows with the rows.
///
/// # Panics
/// Memory for the offsets is gone since then.
#[expect(unsafe_code, reason = "chunks scatter to places of their own")]
fn compress(rows: usize, key: &[u32], other: &[u32]) -> Compressed {
    let e = key.len();
    let mut indptr = offsets(rows).unwrap_or_else(|e| panic!("{e}"));
    indptr.resize(rows + 1, 0u32);
    let is_sorted = key.is_sorted();
    if is_sorted || rows > 4 * e {
        for &k in key {
            indptr[k as usize + 1] += 1;
        }
        scan(&mut indptr);
        if is_sorted {
            // Position and edge id agree: no permutation is stored or ever read.
            return Compressed::new(indptr, other.to_vec().into(), None);
        }
        let mut edge_ids: Vec<u32> = (0..e as u32).collect();
        edge_ids.par_sort_unstable_by_key(|&id| (key[id as usize], id));
        let indices: Vec<u32> = edge_ids.iter().map(|&id| other[id as usize]).collect();
        return Compressed::new(indptr, indices.into(), Some(edge_ids));
    }
    // Counters of one chunk cost `rows` words: no more chunks than edges pay for.
    let chunks = if e < PARALLEL_FROM { 1 } else { rayon::current_num_threads().min(e / rows.max(1) + 1).max(1) };
    let size = e.div_ceil(chunks).max(1);
    let mut counts: Vec<Vec<u32>> = key
        .par_chunks(size)
        .map(|part| {
            let mut c = vec![0u32; rows];
            part.iter().for_each(|&k| c[k as usize] += 1);
            c
        })
        .collect();
    let mut at = 0u32;
    for r in 0..rows {
        indptr[r] = at;
        for c in &mut counts {
            at += std::mem::replace(&mut c[r], at);
        }
    }
    indptr[rows] = at;
    let (mut indices, mut edge_ids) = (vec![0u32; e], vec![0u32; e]);
    if counts.len() == 1 {
        let next = &mut counts[0];
        for (id, (&k, &o)) in key.iter().zip(other).enumerate() {
            let p = &mut next[k as usize];
            indices[*p as usize] = o;
            edge_ids[*p as usize] = id as u32;
            *p += 1;
        }
    } else {
        let (out_i, out_e) = (Scatter(indices.as_mut_ptr()), Scatter(edge_ids.as_mut_ptr()));
        counts.par_iter_mut().enumerate().for_each(|(c, next)| {
            let (out_i, out_e) = (&out_i, &out_e);
            let from = c * size;
            for id in from..(from + size).min(e) {
                let p = &mut next[key[id] as usize];
                // SAFETY: the scan over `counts` gave each (key, chunk) its own places inside 0..e, as
                // many as the chunk has edges of that key; no two chunks write the same place. `key` is memory that
                // nobody changes: a relation whose nodes somebody else owns comes with both layouts.
                unsafe {
                    *out_i.0.add(*p as usize) = other[id];
                    *out_e.0.add(*p as usize) = id as u32;
                }
                *p += 1;
            }
        });
    }
    Compressed::new(indptr, indices.into(), Some(edge_ids))
}

struct Scatter(*mut u32);
// SAFETY: shared by the chunks of `compress`, which write disjoint places (see there).
#[expect(unsafe_code, reason = "see `compress`")]
unsafe impl Sync for Scatter {}

/// Running sums in place: counts to row offsets.
pub(crate) fn scan(indptr: &mut [u32]) {
    let mut sum = 0;
    for x in indptr {
        sum += *x;
        *x = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edges() -> impl Strategy<Value = (usize, usize, Vec<(u32, u32)>)> {
        (1usize..20, 1usize..20).prop_flat_map(|(a, b)| (Just(a), Just(b), proptest::collection::vec((0..a as u32, 0..b as u32), 0..80)))
    }

    proptest! {
        #[test]
        fn layouts_agree((ns, nd, e) in edges()) {
            let (src, dst): (Vec<_>, Vec<_>) = e.iter().copied().unzip();
            let r = Relation::from_coo(ns, nd, src, dst).unwrap();
            let c = r.csc();
            for v in 0..nd {
                let want: Vec<_> = e.iter().enumerate().filter(|(_, x)| x.1 as usize == v).map(|(i, x)| (i as u32, x.0)).collect();
                let got: Vec<_> = c.row(v).map(|p| (c.edge_id(p), c.indices()[p])).collect();
                prop_assert_eq!(want, got);
            }
            let again = Relation::from_csc(ns, nd, c.indptr(), c.indices(), c.edge_ids()).unwrap();
            prop_assert_eq!(&again, &r);
            let c = r.csr();
            let again = Relation::from_csr(ns, nd, c.indptr(), c.indices(), c.edge_ids()).unwrap();
            prop_assert_eq!(&again, &r);
            let reversed = r.reverse();
            prop_assert_eq!(reversed.csr(), r.csc());
            prop_assert_eq!(&reversed.reverse(), &r);
        }
    }

    #[test]
    fn parallel_sort_is_stable_for_any_thread_count() {
        let e = 3 * PARALLEL_FROM;
        let key: Vec<u32> = (0..e).map(|i| (i as u32).wrapping_mul(2_654_435_761) % 1000).collect();
        let other: Vec<u32> = (0..e as u32).collect();
        let run = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(|| compress(1000, &key, &other));
        let one = run(1);
        assert!(one.edge_ids().unwrap().windows(2).zip(one.indices().windows(2)).all(|(a, b)| a == b));
        for n in [2, 3, 7] {
            assert!(run(n) == one, "{n} threads");
        }
    }

    /// Few edges between many nodes are sorted by comparison: the same layout, also of parallel edges.
    #[test]
    fn more_rows_than_edges() {
        for e in [2, 7, 3 * PARALLEL_FROM as u32] {
            let key: Vec<u32> = (0..e).map(|i| i.wrapping_mul(7) % 4 * e).collect();
            let other: Vec<u32> = (0..e).map(|i| i.wrapping_mul(5) % e).collect();
            let (few, many) = (compress(3 * e as usize + 1, &key, &other), compress(4 * e as usize + 1, &key, &other));
            assert_eq!((few.indices(), few.edge_ids()), (many.indices(), many.edge_ids()));
            assert_eq!(few.indptr(), &many.indptr()[..few.indptr().len()]);
        }
    }

    /// A layout for one call, as it would be kept; reversed relations have the other one.
    #[test]
    fn layouts_that_are_not_kept() {
        let r = Relation::from_coo(3, 2, vec![2, 0, 2], vec![1, 0, 0]).unwrap();
        for r in [r.clone(), r.reverse()] {
            let again = || Relation::from_coo(r.num_src(), r.num_dst(), r.src().to_vec(), r.dst().to_vec()).unwrap();
            for (by, kept) in [(By::Dst, again().csc().indptr().to_vec()), (By::Src, again().csr().indptr().to_vec())] {
                assert_eq!(r.with_layout(by, |l| (l.indptr().to_vec(), l.edge_ids().is_some())), (kept, r.has_edge_ids(by)));
            }
        }
        let fresh = Relation::from_coo(3, 2, vec![2, 0, 2], vec![1, 0, 0]).unwrap();
        fresh.with_layout(By::Dst, |l| assert_eq!(l.indices(), [0, 2, 2]));
        assert!(fresh.has_edge_ids(By::Dst) && fresh.inner.by_dst.get().is_none());
    }

    #[test]
    fn sorted_edges_need_no_permutation() {
        let r = Relation::from_coo(3, 3, vec![2, 1, 0], vec![0, 1, 1]).unwrap();
        assert_eq!(r.csc().edge_ids(), None);
        assert_eq!(r.csr().edge_ids(), Some(&[2, 1, 0][..]));
    }

    #[test]
    fn refusals_name_place_bound_and_value() {
        let text = |r: Result<Relation, GraphError>| r.unwrap_err().in_relation("a:b:c").to_string();
        let t = text(Relation::from_coo(3, 3, vec![0, 3], vec![0, 0]));
        assert_eq!(t, "relation `a:b:c`, position 1: `src` must lie in 0..3, got 3");
        let t = text(Relation::from_coo_i64(3, 3, &[0, 1], &[0, -1]));
        assert_eq!(t, "relation `a:b:c`, position 1: `dst` must lie in 0..3, got -1");
        let t = text(Relation::from_coo(3, 3, vec![0, 1], vec![0]));
        assert_eq!(t, "`dst` of relation `a:b:c`: expected length 2 (one entry per entry of `src`), got 1");
        let csr = |p: &[u32], i: &[u32], e: Option<&[u32]>| text(Relation::from_csr(2, 2, p, i, e));
        assert_eq!(csr(&[0, 1], &[0], None), "`indptr` of relation `a:b:c`: expected length 3 (number of rows + 1), got 2");
        assert_eq!(csr(&[1, 1, 1], &[0], None), "relation `a:b:c`: `indptr[0]` must be 0, got 1");
        assert_eq!(csr(&[0, 2, 1], &[0], None), "relation `a:b:c`: `indptr[2]` must be at least 2 (it must never decrease), got 1");
        assert_eq!(csr(&[0, 1, 3], &[0], None), "relation `a:b:c`: `indptr[2]` must be 1 (the length of `indices`), got 3");
        assert_eq!(csr(&[0, 1, 2], &[0, 5], None), "relation `a:b:c`, position 1: `indices` must lie in 0..2, got 5");
        let twice = csr(&[0, 1, 2], &[0, 1], Some(&[1, 1]));
        assert_eq!(twice, "relation `a:b:c`, position 1: `edge_ids` must be a permutation of 0..2, got 1 a second time");
        let far = csr(&[0, 1, 2], &[0, 1], Some(&[0, 2]));
        assert_eq!(far, "relation `a:b:c`, position 1: `edge_ids` must be a permutation of 0..2, got 2");
        let t = text(Relation::from_coo(u32::MAX as usize, 1, vec![], vec![]));
        assert!(t.contains("exceed the limit"), "{t}");
        let t = text(Relation::from_csr(2, 2, &[0i64, -1, 1], &[0u64], None));
        assert_eq!(t, "relation `a:b:c`: `indptr[1]` must be at least 0 (it must never decrease), got -1");
        let t = text(Relation::from_csr(2, 2, &[0u64, 1, 1 << 40], &[0u32], None));
        assert_eq!(t, "relation `a:b:c`: `indptr[2]` must be 1 (the length of `indices`), got 1099511627776");
        let t = text(Relation::from_csc(2, 2, &[0usize, 1, 2], &[0i64, -3], None));
        assert_eq!(t, "relation `a:b:c`, position 1: `indices` must lie in 0..2, got -3");
    }

    /// Offsets and nodes of every type make the same relation, edge ids or not.
    #[test]
    fn any_integer_type() {
        fn of<P: WholeNumber, I: WholeNumber>(indptr: &[P], indices: &[I]) -> [Relation; 4] {
            let ids = Some(&[2, 0, 1][..]);
            [
                Relation::from_csr(2, 3, indptr, indices, None).unwrap(),
                Relation::from_csc(3, 2, indptr, indices, None).unwrap(),
                Relation::from_csr(2, 3, indptr, indices, ids).unwrap(),
                Relation::from_csc(3, 2, indptr, indices, ids).unwrap(),
            ]
        }
        let expected = of(&[0u32, 1, 3], &[2u32, 0, 1]);
        assert_eq!((expected[2].src(), expected[2].dst()), (&[1, 1, 0][..], &[0, 1, 2][..]));
        assert_eq!(of(&[0u64, 1, 3], &[2i64, 0, 1]), expected);
        assert_eq!(of(&[0i64, 1, 3], &[2u64, 0, 1]), expected);
        assert_eq!(of(&[0usize, 1, 3], &[2i32, 0, 1]), expected);
    }

    /// Run by the test below.
    #[test]
    #[ignore = "wants a limit on memory"]
    fn a_relation_of_most_nodes() {
        let most = LIMIT as usize;
        for (src, dst) in [(most, 1), (1, most)] {
            let e = Relation::from_coo(src, dst, vec![0], vec![0]).unwrap_err();
            assert!(matches!(&e, GraphError::OutOfMemory { bytes, .. } if *bytes == 4 * u128::from(LIMIT + 1)), "{e:?}");
        }
        // Memory for the offsets of a layout, and not for a counter per node beside them.
        let nodes = 250_000_000;
        let r = Relation::from_coo(nodes, nodes, vec![1, 0], vec![1, 0]).unwrap();
        assert_eq!((r.csc().edge_ids(), r.csc().indptr()[nodes]), (Some(&[1, 0][..]), 2));
    }

    /// An error where memory is short, and not an abort when the first layout is made.
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "starts a process")]
    #[test]
    fn node_counts_that_memory_does_not_hold() {
        let run = "ulimit -v 1600000 && exec \"$0\" --exact --ignored relation::tests::a_relation_of_most_nodes";
        let out = std::process::Command::new("sh").args(["-c", run]).arg(std::env::current_exe().unwrap()).output().unwrap();
        assert!(out.status.success() && String::from_utf8_lossy(&out.stdout).contains("1 passed"), "{out:?}");
    }
}
