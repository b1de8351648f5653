//! Defines [`Relation`]: the edges between two sets of nodes, and the layouts that are derived from them.

use std::sync::Arc;

use super::checks::{LIMIT, check_counts, check_len, check_nodes};
use super::compress::compress;
use super::compressed::Compressed;
use super::edge_reader::EdgeReader;
use super::whole_number::{check_indptr, narrow};
use crate::arrays::shared_array::U32Array;
use crate::derived::Attached;
use crate::derived::Derived;
use crate::error::graph_error::GraphError;
use crate::memory::bytes::{Bytes, CountBytes};

/// The edges from which a relation was constructed. Clones and reversed relations share them.
#[derive(Debug)]
pub(super) struct Edges {
    pub(super) num_src: usize,
    pub(super) num_dst: usize,
    pub(super) endpoints: Endpoints,
}

/// Endpoints of edges.
#[derive(Debug)]
pub(super) enum Endpoints {
    Given(Coo),
    Stored(Arc<dyn EdgeReader>),
}

/// Source and destination of each edge, by edge id.
#[derive(Debug)]
pub(super) struct Coo {
    pub(super) src: U32Array,
    pub(super) dst: U32Array,
}

/// The caches of a relation.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Edges of a stored relation.
    pub(super) coo: Derived<Coo>,
    /// Original edge ids of a stored relation by edge id, if they have gaps.
    pub(super) original_ids: Derived<Vec<u64>>,
    /// Layouts by destination and by source.
    layouts: [Derived<Compressed>; 2],
    /// Edges renumbered by destination and, for the reversed relation, by source.
    sorted: [Derived<Sorted>; 2],
    /// Values that backends derive from `src` and from `dst`.
    attached: [Attached; 2],
}

/// Edges from `num_src` source nodes to `num_dst` destination nodes.
///
/// A relation stores its edges as a list of pairs (COO); edge `i` is the `i`-th pair. Two compressed layouts are derived on
/// first use and cached: CSC, sorted by destination, for aggregation, and CSR, sorted by source, for its gradient. Edge
/// ids connect the three forms, so features of edges are stored once, in COO order.
///
/// ```text
///        edge id      0  1  2             sources    destinations
///   COO  src        [ 2, 0, 2 ]              0 ────1────▶ 0
///        dst        [ 1, 0, 1 ]              1
///                                            2 ────0────▶ 1
///   CSC  indptr     [ 0, 1, 3 ]              2 ────2────▶ 1
///        indices    [ 0, 2, 2 ]
///        edge_ids   [ 1, 0, 2 ]           (edge ids on the arrows)
///
///   CSR  indptr     [ 0, 1, 1, 3 ]
///        indices    [ 0, 1, 1 ]
///        edge_ids   [ 1, 0, 2 ]
/// ```
///
/// The layouts are built by a parallel counting sort in `O(E + V)`. Edges that are sorted by the endpoint already need no
/// sort: one thread counts them, and `edge_ids` is `None`. Self loops and parallel edges are kept. A relation with
/// `num_src != num_dst` is a block (message flow graph) or a bipartite relation.
///
/// Cloning and [`reverse`](Self::reverse) increment a reference count.
///
/// ```
/// use burn_gnn_structure::Relation;
/// let r = Relation::from_coo(3, 2, vec![0, 2, 2], vec![1, 0, 1])?;
/// assert_eq!(r.csc().indptr(), [0, 1, 3]);
/// assert_eq!(r.csc().indices(), [2, 0, 2]); // sources of destination 0, then of 1
/// assert_eq!(r.csc().edge_ids(), Some(&[1, 0, 2][..]));
/// assert_eq!(r.in_degrees().collect::<Vec<_>>(), [1, 2]);
/// # Ok::<(), burn_gnn_structure::GraphError>(())
/// ```
#[derive(Clone)]
pub struct Relation {
    pub(super) edges: Arc<Edges>,
    pub(super) kept: Arc<Kept>,
    pub(super) reversed: bool,
}

impl std::fmt::Debug for Relation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Relation({} -> {}, {} edges)", self.num_src(), self.num_dst(), self.num_edges())
    }
}

impl PartialEq for Relation {
    /// Whether node counts are equal and edges are equal, in the same order.
    fn eq(&self, o: &Self) -> bool {
        self.num_src() == o.num_src()
            && self.num_dst() == o.num_dst()
            && self.src() == o.src()
            && self.dst() == o.dst()
    }
}

impl Relation {
    /// The largest number of nodes of one type and of edges of one relation; the id `u32::MAX` means "no edge".
    pub const LIMIT: u64 = LIMIT;

    /// From lists of sources and destinations; entry `i` is edge `i`.
    ///
    /// # Errors
    /// The lengths differ, an id is out of range, or there are more than `u32::MAX - 1` nodes or edges.
    pub fn from_coo(
        num_src: usize,
        num_dst: usize,
        src: Vec<u32>,
        dst: Vec<u32>,
    ) -> Result<Self, GraphError> {
        check_counts(num_src, num_dst, src.len())?;
        check_len("dst", "one entry per entry of `src`", src.len(), dst.len())?;
        check_nodes("src", &src, num_src)?;
        check_nodes("dst", &dst, num_dst)?;
        Ok(Self::new(num_src, num_dst, src, dst))
    }

    /// From signed 64-bit ids, which many files have. Ids are validated before they are narrowed.
    ///
    /// # Errors
    /// As for [`from_coo`](Self::from_coo); negative ids are out of range.
    pub fn from_coo_i64(
        num_src: usize,
        num_dst: usize,
        src: &[i64],
        dst: &[i64],
    ) -> Result<Self, GraphError> {
        check_counts(num_src, num_dst, src.len())?;
        check_len("dst", "one entry per entry of `src`", src.len(), dst.len())?;
        let src = narrow("src", src, num_src)?;
        let dst = narrow("dst", dst, num_dst)?;
        Ok(Self::new(num_src, num_dst, src, dst))
    }

    /// From the rows of a sampled block. Edge ids are positions, so edges are sorted by destination.
    ///
    /// # Errors
    /// As for [`from_csc`](Self::from_csc).
    #[doc(hidden)]
    pub fn from_rows(num_src: usize, indptr: Vec<u32>, src: Vec<u32>) -> Result<Self, GraphError> {
        let num_dst = indptr.len().saturating_sub(1);
        check_counts(num_src, num_dst, src.len())?;
        check_indptr(num_dst, &indptr, src.len())?;
        check_nodes("src", &src, num_src)?;
        let mut dst = Vec::with_capacity(src.len());
        for (v, w) in indptr.windows(2).enumerate() {
            dst.resize(dst.len() + (w[1] - w[0]) as usize, v as u32);
        }
        let by_dst = Compressed::new(indptr, src.clone().into(), None);
        let coo = Coo { src: src.into(), dst: dst.into() };
        Ok(Self::from_words(num_src, num_dst, coo, [by_dst.into(), Derived::new()]))
    }

    pub(super) fn new(num_src: usize, num_dst: usize, src: Vec<u32>, dst: Vec<u32>) -> Self {
        let coo = Coo { src: src.into(), dst: dst.into() };
        Self::from_words(num_src, num_dst, coo, Default::default())
    }

    /// From validated arrays; `layouts` are by destination and by source.
    pub(super) fn from_words(
        num_src: usize,
        num_dst: usize,
        coo: Coo,
        layouts: [Derived<Compressed>; 2],
    ) -> Self {
        Self {
            edges: Arc::new(Edges { num_src, num_dst, endpoints: Endpoints::Given(coo) }),
            kept: Arc::new(Kept { layouts, ..Kept::default() }),
            reversed: false,
        }
    }

    /// Whether both are clones of one relation, in the same direction. Caches use this test, which reads no edges.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.edges, &other.edges) && self.reversed == other.reversed
    }

    /// Number of source nodes.
    #[inline]
    pub fn num_src(&self) -> usize {
        if self.reversed { self.edges.num_dst } else { self.edges.num_src }
    }
    /// Number of destination nodes.
    #[inline]
    pub fn num_dst(&self) -> usize {
        if self.reversed { self.edges.num_src } else { self.edges.num_dst }
    }
    /// Number of edges.
    #[inline]
    pub fn num_edges(&self) -> usize {
        match &self.edges.endpoints {
            Endpoints::Given(coo) => coo.src.len(),
            Endpoints::Stored(reader) => reader.num_edges() as usize,
        }
    }
    /// Source of each edge, by edge id.
    #[inline]
    pub fn src(&self) -> &[u32] {
        let (src, dst) = self.endpoints();
        if self.reversed { dst } else { src }
    }
    /// Destination of each edge, by edge id.
    #[inline]
    pub fn dst(&self) -> &[u32] {
        let (src, dst) = self.endpoints();
        if self.reversed { src } else { dst }
    }
    /// Sources and destinations as given at construction, ignoring `reversed`.
    #[inline]
    fn endpoints(&self) -> (&[u32], &[u32]) {
        let Coo { src, dst } = match &self.edges.endpoints {
            Endpoints::Given(coo) => coo,
            Endpoints::Stored(reader) => self.coo(&**reader),
        };
        (src, dst)
    }
    /// The cache of values that backends derive from [`src`](Self::src).
    pub fn src_attached(&self) -> &Attached {
        &self.kept.attached[usize::from(self.reversed)]
    }
    /// The cache of values that backends derive from [`dst`](Self::dst).
    pub fn dst_attached(&self) -> &Attached {
        &self.kept.attached[usize::from(!self.reversed)]
    }
    /// The layout by destination: rows are destinations, indices are sources.
    pub fn csc(&self) -> &Compressed {
        self.csc_cell().get_or_compute(|| self.make_csc())
    }
    /// The layout by source: rows are sources, indices are destinations.
    pub fn csr(&self) -> &Compressed {
        let cell = &self.kept.layouts[usize::from(!self.reversed)];
        cell.get_or_compute(|| compress(self.num_src(), self.src(), self.dst()))
    }
    /// The cell of [`csc`](Self::csc).
    pub(super) fn csc_cell(&self) -> &Derived<Compressed> {
        &self.kept.layouts[usize::from(self.reversed)]
    }
    fn make_csc(&self) -> Compressed {
        compress(self.num_dst(), self.dst(), self.src())
    }
    /// Calls `f` with [`csc`](Self::csc). If the layout is not cached, it is built for this call and dropped.
    #[doc(hidden)]
    pub fn with_csc<T>(&self, f: impl FnOnce(&Compressed) -> T) -> T {
        match self.csc_cell().get() {
            Some(layout) => f(layout),
            None => f(&self.make_csc()),
        }
    }
    /// Whether [`csc`](Self::csc) stores edge ids, without building it.
    #[doc(hidden)]
    pub fn csc_has_edge_ids(&self) -> bool {
        let layout = self.csc_cell().get();
        layout.map_or_else(|| !self.dst().is_sorted(), |layout| layout.edge_ids().is_some())
    }
    /// The cell of [`sorted_by_dst`](Self::sorted_by_dst).
    pub(super) fn sorted_cell(&self) -> &Derived<Sorted> {
        &self.kept.sorted[usize::from(self.reversed)]
    }
    /// Memory of the cached data that was derived from the edges: layouts, edges renumbered by destination, and values of
    /// operators (degree scales, copies on devices). The edges themselves do not count.
    pub fn derived_bytes(&self) -> Bytes {
        self.kept.bytes()
    }
    /// Frees the data that was derived from the edges. It is computed again, with the same result, on next use.
    ///
    /// Values of operators (degree scales, copies on devices) are removed for all clones of the relation; a value in use
    /// is freed with its last user. Layouts may be in use by other clones, so they are freed with the last clone that was
    /// made before this call. Layouts of a mapped file are kept.
    ///
    /// ```
    /// use burn_gnn_structure::Relation;
    /// let mut r = Relation::from_coo(3, 2, vec![0, 2, 2], vec![1, 0, 1])?;
    /// assert_eq!(r.csc().indptr(), [0, 1, 3]);
    /// assert!(r.derived_bytes().host > 0);
    /// r.clear_derived();
    /// assert_eq!(r.derived_bytes().host, 0);
    /// assert_eq!(r.csc().indptr(), [0, 1, 3]);
    /// # Ok::<(), burn_gnn_structure::GraphError>(())
    /// ```
    pub fn clear_derived(&mut self) {
        self.kept.clear_attached();
        // Edges of a mapped file cannot be sorted again safely, because another process may change the file.
        let may_change = |coo: &Coo| coo.src.is_shared() || coo.dst.is_shared();
        if !matches!(&self.edges.endpoints, Endpoints::Given(coo) if may_change(coo)) {
            self.kept = Arc::default();
        }
    }
    /// The relation with every edge reversed and the same edge ids. All arrays are shared.
    #[must_use]
    pub fn reverse(&self) -> Self {
        Self { edges: self.edges.clone(), kept: self.kept.clone(), reversed: !self.reversed }
    }
    /// Number of in-edges of each destination.
    pub fn in_degrees(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.csc().indptr().windows(2).map(|w| w[1] - w[0])
    }
    /// Number of out-edges of each source.
    pub fn out_degrees(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.csr().indptr().windows(2).map(|w| w[1] - w[0])
    }
}

impl CountBytes for Coo {
    fn bytes(&self) -> Bytes {
        self.src.bytes() + self.dst.bytes()
    }
}

/// The cached result of [`Relation::sorted_by_dst`].
#[derive(Debug)]
pub(super) struct Sorted {
    pub(super) relation: Relation,
    pub(super) order: Derived<Relation>,
}

impl Sorted {
    fn clear_attached(&self) {
        self.relation.kept.clear_attached();
        if let Some(order) = self.order.get() {
            order.kept.clear_attached();
        }
    }
}

impl CountBytes for Sorted {
    fn bytes(&self) -> Bytes {
        self.relation.bytes() + self.order.bytes()
    }
}

impl Kept {
    fn clear_attached(&self) {
        self.attached.iter().for_each(Attached::clear);
        self.layouts.iter().filter_map(Derived::get).for_each(|l| l.attached().clear());
        self.sorted.iter().filter_map(Derived::get).for_each(Sorted::clear_attached);
    }
}

impl CountBytes for Kept {
    fn bytes(&self) -> Bytes {
        let layouts: Bytes = self.layouts.iter().map(CountBytes::bytes).sum();
        let sorted: Bytes = self.sorted.iter().map(CountBytes::bytes).sum();
        self.coo.bytes()
            + self.original_ids.bytes()
            + layouts
            + sorted
            + self.attached.iter().map(CountBytes::bytes).sum()
    }
}

/// Counts the edges and all derived data, as if the relation had no other clones.
impl CountBytes for Relation {
    fn bytes(&self) -> Bytes {
        let given = match &self.edges.endpoints {
            Endpoints::Given(coo) => coo.bytes(),
            Endpoints::Stored(_) => Bytes::default(),
        };
        given + self.derived_bytes()
    }
}
