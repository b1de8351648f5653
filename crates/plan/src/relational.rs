//! Plans a relational aggregation, and holds edges sorted by edge type.

use std::sync::Arc;

use burn::tensor::Shape;
use burn_gnn_structure::{Attached, Derived, Relation, RelationStack};
use rayon::prelude::*;

use crate::broadcast::check_width;
use crate::error::{PlanError, accept, check_below, check_rows, check_types};

/// Integer type of type numbers: `u8`, `u16` or `u32`.
pub trait TypeId: Copy + Send + Sync + Into<u32> {}
impl TypeId for u8 {}
impl TypeId for u16 {}
impl TypeId for u32 {}

/// Row numbers sorted by type, ascending inside a type. The rows of type `t` start at `starts[t]`.
pub(crate) fn by_type<I: TypeId>(types: &[I], mut starts: Vec<u32>) -> Vec<u32> {
    let mut rows = vec![0; types.len()];
    for (row, &t) in (0u32..).zip(types) {
        let next = &mut starts[t.into() as usize];
        rows[*next as usize] = row;
        *next += 1;
    }
    rows
}

/// Edges with one type per edge, sorted by type once for any number of calls of `relational_aggregate`.
///
/// Sorted layouts are built on first use and cached: by destination for the result, by source for gradients. Each takes
/// `O(edges)` time, 12 bytes per edge and 8 bytes per pair of a relation and a node with edges of it. A clone costs one
/// reference count.
///
/// ```
/// use burn_gnn_structure::Relation;
/// use burn_gnn_plan::RelationalIndex;
/// let edges = Relation::from_coo(2, 2, vec![0, 1, 1], vec![0, 0, 1])?;
/// let index = RelationalIndex::new(&edges, &[1u8, 0, 1], 2);
/// assert_eq!(index.edge_ids(1), [0, 2]);
/// # Ok::<(), burn_gnn_structure::GraphError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RelationalIndex {
    inner: Arc<Inner>,
    mean: bool,
}

#[derive(Debug)]
struct Inner {
    relation: Relation,
    types: Vec<u32>,
    num_relations: usize,
    by_relation: Derived<(Vec<u32>, Vec<u32>)>,
    pair_counts: Derived<Vec<u32>>,
    attached: Attached,
}

impl RelationalIndex {
    /// `types[e]` is the type of edge `e`, in any order.
    ///
    /// # Panics
    /// With the text of the error that [`try_new`](Self::try_new) returns.
    #[track_caller]
    pub fn new<I: TypeId>(relation: &Relation, types: &[I], num_relations: usize) -> Self {
        accept(Self::try_new(relation, types, num_relations))
    }

    /// [`new`](Self::new) that returns an error instead of panicking.
    ///
    /// # Errors
    /// Not one type per edge, a type that is not below `num_relations`, or more than `u32::MAX - 1` relations.
    pub fn try_new<I: TypeId>(
        relation: &Relation,
        types: &[I],
        num_relations: usize,
    ) -> Result<Self, PlanError> {
        const OP: &str = "relational_index";
        check_rows(OP, "types", "one per edge of the relation", relation.num_edges(), types.len())?;
        check_types(OP, "num_relations", num_relations)?;
        check_below(OP, "types", "relations", num_relations, types)?;
        Ok(Self::of(relation.clone(), types.par_iter().map(|&t| t.into()).collect(), num_relations))
    }

    /// Edge types are the relations of a stack, in its order. Sources are the rows of its concatenated tables.
    pub fn from_stack(stack: &RelationStack) -> Self {
        let types = (0..stack.len())
            .flat_map(|r| std::iter::repeat_n(r as u32, stack.edge_range(r).len()))
            .collect();
        Self::of(stack.concatenated().clone(), types, stack.len())
    }

    fn of(relation: Relation, types: Vec<u32>, num_relations: usize) -> Self {
        let inner = Inner {
            relation,
            types,
            num_relations,
            by_relation: Derived::new(),
            pair_counts: Derived::new(),
            attached: Attached::default(),
        };
        Self { inner: Arc::new(inner), mean: false }
    }

    /// The same edges with the normalisation of the R-GCN paper: every message is divided by the number of edges of its
    /// relation at its destination. No factor per edge is stored; all arrays are shared.
    #[must_use]
    pub fn mean(&self) -> Self {
        Self { mean: true, ..self.clone() }
    }

    /// All edges.
    pub fn relation(&self) -> &Relation {
        &self.inner.relation
    }
    /// Number of edge types.
    pub fn num_relations(&self) -> usize {
        self.inner.num_relations
    }
    /// Type of each edge, by edge id.
    pub fn types(&self) -> &[u32] {
        &self.inner.types
    }
    /// Whether messages are normalised, see [`mean`](Self::mean).
    pub fn is_mean(&self) -> bool {
        self.mean
    }
    /// Ids of the edges of one type, ascending.
    ///
    /// # Panics
    /// If there is no such type.
    #[track_caller]
    pub fn edge_ids(&self, relation: usize) -> &[u32] {
        let count = self.num_relations();
        assert!(
            relation < count,
            "`relation` must lie in 0..{count} (edge types of the index), got {relation}"
        );
        let (starts, ids) = self.by_relation();
        &ids[starts[relation] as usize..starts[relation + 1] as usize]
    }

    /// Offset of each relation, and edge ids sorted by relation, ascending inside a relation.
    fn by_relation(&self) -> (&[u32], &[u32]) {
        let (starts, ids) = self.inner.by_relation.get_or_compute(|| {
            let mut starts = vec![0u32; self.num_relations() + 1];
            self.types().iter().for_each(|&t| starts[t as usize + 1] += 1);
            for r in 0..self.num_relations() {
                starts[r + 1] += starts[r];
            }
            let ids = by_type(self.types(), starts.clone());
            (starts, ids)
        });
        (starts, ids)
    }

    /// Data that kernels cache for these edges, shared by all clones with and without [`mean`](Self::mean).
    #[doc(hidden)]
    pub fn attached(&self) -> &Attached {
        &self.inner.attached
    }

    /// For each edge the number of edges of its relation at its destination.
    #[doc(hidden)]
    pub fn pair_counts(&self) -> &[u32] {
        self.inner.pair_counts.get_or_compute(|| {
            let dst = self.relation().dst();
            let mut counts = vec![0u32; self.types().len()];
            let mut at = vec![0u32; self.relation().num_dst()];
            for r in 0..self.num_relations() {
                let ids = self.edge_ids(r);
                ids.iter().for_each(|&e| at[dst[e as usize] as usize] += 1);
                ids.iter().for_each(|&e| counts[e as usize] = at[dst[e as usize] as usize]);
                // Resets only the counters that this relation used, instead of those of all nodes.
                ids.iter().for_each(|&e| at[dst[e as usize] as usize] = 0);
            }
            counts
        })
    }
}

const NAME: &str = "relational_aggregate";

#[derive(Debug)]
struct Call {
    index: RelationalIndex,
    blocks: usize,
    input: usize,
    output: usize,
    /// Whether weights have an axis of blocks.
    is_diagonal: bool,
}

/// Edges and feature sizes of one relational aggregation. A clone costs one reference count.
///
/// Weights are block-diagonal matrices; a full matrix is one block.
#[derive(Clone, Debug)]
pub struct RelationalPlan(Arc<Call>);

impl RelationalPlan {
    /// `shape` is the shape of the weight of one relation: `[rows, columns]`, or `[blocks, rows, columns]`.
    ///
    /// # Errors
    /// Rows of the input or of the result with more than `u32::MAX` entries. A tensor without nodes or relations may
    /// have axes of any length, so that its allocation does not limit them.
    pub fn new(index: &RelationalIndex, shape: &[usize]) -> Result<Self, PlanError> {
        let (is_diagonal, [blocks, input, output]) = match *shape {
            [blocks, input, output] => (true, [blocks, input, output]),
            [input, output] => (false, [1, input, output]),
            _ => unreachable!("weights are matrices or blocks of them"),
        };
        check_width(NAME, &[blocks, input])?;
        check_width(NAME, &[blocks, output])?;
        Ok(Self(Arc::new(Call { index: index.clone(), blocks, input, output, is_diagonal })))
    }
    /// The edges.
    pub fn index(&self) -> &RelationalIndex {
        &self.0.index
    }
    /// Number of blocks, rows and columns of each.
    pub fn block_shape(&self) -> [usize; 3] {
        [self.0.blocks, self.0.input, self.0.output]
    }
    /// Input feature size.
    pub fn d_input(&self) -> usize {
        self.0.blocks * self.0.input
    }
    /// Output feature size.
    pub fn d_output(&self) -> usize {
        self.0.blocks * self.0.output
    }
    /// Shape of the input: `[num_src, d_input]`.
    pub fn x_shape(&self) -> Shape {
        Shape::from(vec![self.0.index.relation().num_src(), self.d_input()])
    }
    /// Shape of the weights: `[num_relations, rows, columns]`, or `[num_relations, blocks, rows, columns]`.
    pub fn weight_shape(&self) -> Shape {
        let (r, [b, i, o]) = (self.0.index.num_relations(), self.block_shape());
        Shape::from(if self.0.is_diagonal { vec![r, b, i, o] } else { vec![r, i, o] })
    }
    /// Shape of the factors of edges: `[num_edges]`.
    pub fn norm_shape(&self) -> Shape {
        Shape::from(vec![self.0.index.relation().num_edges()])
    }
    /// Shape of the result: `[num_dst, d_output]`.
    pub fn out_shape(&self) -> Shape {
        Shape::from(vec![self.0.index.relation().num_dst(), self.d_output()])
    }
}
