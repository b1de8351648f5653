//! Stacks the relations into each node type, sorted once per graph.

use std::sync::Arc;

use burn::tensor::Tensor;
use burn_gnn_graph::{DerivedMap, Relation, RelationStack, row_index};
use burn_gnn_ops::{GraphView, RelationalIndex};

/// The relations into one node type.
#[derive(Clone, Debug)]
pub(crate) struct Incoming {
    /// Their edge types, ascending.
    pub(crate) etypes: Vec<usize>,
    /// Source node types, whose features are concatenated: each once, or one for every relation.
    pub(crate) tables: Vec<usize>,
    pub(crate) index: RelationalIndex,
}

/// Incoming relations of every node type; `None` where no relation into it has edges on any rank.
type ByDst = Arc<Vec<Option<Incoming>>>;

/// Sorted relations of the graphs seen last. Clones share them, as do the layers of one model.
#[derive(Clone, Debug)]
pub(crate) struct Sorted {
    /// By all relations of a graph; held, so that no other graph can take their place in memory.
    kept: Arc<DerivedMap<Vec<Relation>, ByDst>>,
    /// Whether every relation has separate source features.
    apart: bool,
}

/// A graph to train on and one to evaluate on.
const KEPT: usize = 2;

impl Default for Sorted {
    fn default() -> Self {
        Self { kept: Arc::new(DerivedMap::new(KEPT)), apart: false }
    }
}

impl Sorted {
    /// A table per relation, for layers that transform source features per relation.
    pub(crate) fn apart() -> Self {
        Self { apart: true, ..Self::default() }
    }

    /// Incoming relations of every node type; `None` where no relation into it has edges on any rank.
    ///
    /// Graphs are distinguished by the identity of their relations, which costs no pass over edges.
    #[track_caller]
    pub(crate) fn of<G: GraphView + ?Sized>(&self, g: &G) -> ByDst {
        let relations: Vec<Relation> =
            (0..g.schema().etypes().len()).map(|r| g.relation(r).clone()).collect();
        let is_same = |a: &Vec<Relation>, b: &Vec<Relation>| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b))
        };
        let all = || {
            Arc::new((0..g.schema().ntypes().len()).map(|d| incoming(g, d, self.apart)).collect())
        };
        self.kept.cell(relations, is_same).get_or_compute(all).clone()
    }
}

#[track_caller]
fn incoming<G: GraphView + ?Sized>(g: &G, dst: usize, apart: bool) -> Option<Incoming> {
    let endpoints = |r: usize| g.schema().endpoints(r);
    let etypes: Vec<usize> =
        g.schema().etypes_into(dst).filter(|&r| g.total_edges(r) > 0).collect();
    if etypes.is_empty() {
        return None;
    }
    let mut tables: Vec<usize> = etypes.iter().map(|&r| endpoints(r).0).collect();
    if !apart {
        tables.sort_unstable();
        tables.dedup();
    }
    let rows: Vec<usize> = tables.iter().map(|&t| g.num_src(t)).collect();
    let table = |(i, &r): (usize, &usize)| {
        if apart { i } else { tables.partition_point(|&t| t < endpoints(r).0) }
    };
    let relations: Vec<_> =
        etypes.iter().enumerate().map(|r| (table(r), g.relation(*r.1).clone())).collect();
    match RelationStack::new(g.num_dst(dst), &rows, &relations) {
        Ok(stack) => Some(Incoming { etypes, tables, index: RelationalIndex::from_stack(&stack) }),
        Err(error) => {
            panic!("relations of this graph into one node type cannot be concatenated: {error}")
        }
    }
}

/// Several tables, concatenated, all of which the result depends on.
///
/// `Tensor::cat` forgets a tensor without rows and with it the path to a halo exchange, which a rank must
/// not lose. The sum of no rows is a row of zeros that remembers.
pub(crate) fn cat_rows(tables: impl Iterator<Item = Tensor<2>>) -> Tensor<2> {
    let (mut empty, mut rows): (Vec<_>, Vec<_>) = tables.partition(|x| x.dims()[0] == 0);
    if empty.len() + rows.len() == 1 {
        return empty.pop().or_else(|| rows.pop()).expect("one of the two holds the only table");
    }
    let nothing = empty.into_iter().map(|x| x.sum_dim(0)).reduce(|a, b| a + b);
    let some = if rows.len() > 1 { Some(Tensor::cat(rows, 0)) } else { rows.pop() };
    match (some, nothing) {
        (Some(rows), None) => rows,
        (Some(rows), Some(zeros)) => rows + zeros,
        (None, Some(zeros)) => {
            let none = row_index(std::iter::empty(), &zeros.device());
            zeros.select(0, none)
        }
        (None, None) => unreachable!("a node type with relations has source tables"),
    }
}
