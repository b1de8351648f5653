//! Selects the destinations with messages for reduce functions, in ascending order or by degree.

use std::sync::Arc;

use burn_gnn_graph::{Bytes, Compressed, CountBytes, Derived, Relation};

use crate::error::OpsError;
use crate::message::columns::{picking, placing};

/// The destinations of a relation that have edges, in some order, and their edges sorted by destination. Computed on
/// first use in `O(E + V log V)` and cached with the relation.
#[derive(Debug)]
pub(crate) struct Destinations {
    /// The edges into these destinations, sorted by destination. Sources are the sources of the whole relation.
    pub(crate) relation: Relation,
    /// Rows of these destinations in the whole relation, to gather from; see [`picking`].
    pub(crate) nodes: Relation,
    /// Rows of these destinations in the whole relation, to scatter to; see [`placing`].
    pub(crate) delivery: Relation,
}

/// Destinations sorted by number of edges, in ascending order inside a degree.
#[derive(Debug)]
pub(crate) struct ByDegree {
    pub(crate) reached: Destinations,
    /// Ids of the edges in the whole relation, to gather from; see [`picking`].
    pub(crate) edges: Relation,
    /// Runs of destinations of one degree, at least one run: the degree, and the edges of the run with endpoints numbered
    /// from 0.
    pub(crate) buckets: Vec<(usize, Relation)>,
    /// Bounds of the buckets among destinations and among edges.
    pub(crate) node_bounds: Vec<usize>,
    pub(crate) edge_bounds: Vec<usize>,
}

impl CountBytes for Destinations {
    fn bytes(&self) -> Bytes {
        [&self.relation, &self.nodes, &self.delivery].into_iter().map(CountBytes::bytes).sum()
    }
}

impl CountBytes for ByDegree {
    fn bytes(&self) -> Bytes {
        let buckets: Bytes = self.buckets.iter().map(|(_, relation)| relation.bytes()).sum();
        buckets
            + self.reached.bytes()
            + self.edges.bytes()
            + self.node_bounds.bytes()
            + self.edge_bounds.bytes()
    }
}

/// Returns the value of type `T` that is cached with the relation, or computes it.
fn kept<T: CountBytes + Send + Sync + 'static>(
    whole: &Relation,
    make: impl FnOnce(&Compressed) -> Result<T, OpsError>,
) -> Result<Arc<T>, OpsError> {
    let csc = whole.csc();
    let cell = csc.attached().get_or_insert((), Derived::<Arc<T>>::new);
    cell.try_get_or_compute(|| Ok(Arc::new(make(csc)?))).cloned()
}

/// The in-edges of `nodes`, in the order of `nodes`, which numbers the destinations of the result.
pub(crate) fn into_nodes(
    whole: &Relation,
    csc: &Compressed,
    nodes: &[u32],
) -> Result<Relation, OpsError> {
    let rows = || nodes.iter().map(|&v| csc.row(v as usize));
    let src: Vec<u32> = rows().flat_map(|row| &csc.indices()[row]).copied().collect();
    let mut dst = Vec::with_capacity(src.len());
    rows().zip(0u32..).for_each(|(row, i)| dst.resize(dst.len() + row.len(), i));
    Ok(Relation::from_coo(whole.num_src(), nodes.len(), src, dst)?)
}

/// The ids of the edges of [`into_nodes`].
pub(crate) fn in_edge_ids(csc: &Compressed, nodes: &[u32]) -> Vec<u32> {
    nodes.iter().flat_map(|&v| csc.row(v as usize)).map(|p| csc.edge_id(p)).collect()
}

/// Destinations that have edges.
fn with_edges(whole: &Relation, csc: &Compressed) -> Vec<u32> {
    (0..whole.num_dst() as u32).filter(|&v| !csc.row(v as usize).is_empty()).collect()
}

impl Destinations {
    /// In ascending order. Takes about 20 bytes per edge.
    pub(crate) fn ascending(whole: &Relation) -> Result<Arc<Self>, OpsError> {
        kept(whole, |csc| Self::new(whole, csc, with_edges(whole, csc)))
    }

    fn new(whole: &Relation, csc: &Compressed, nodes: Vec<u32>) -> Result<Self, OpsError> {
        Ok(Self {
            relation: into_nodes(whole, csc, &nodes)?,
            delivery: placing(whole.num_dst(), nodes.clone())?,
            nodes: picking(whole.num_dst(), nodes)?,
        })
    }
}

impl ByDegree {
    /// By degree. Takes about 40 bytes per edge.
    pub(crate) fn of(whole: &Relation) -> Result<Arc<Self>, OpsError> {
        kept(whole, |csc| {
            let degree = |v: &u32| csc.row(*v as usize).len();
            let mut nodes = with_edges(whole, csc);
            nodes.sort_by_key(degree);
            let mut runs: Vec<(usize, usize)> = nodes
                .chunk_by(|a, b| degree(a) == degree(b))
                .map(|run| (run.len(), degree(&run[0])))
                .collect();
            if runs.is_empty() {
                // An empty bucket: its call determines the shapes of results.
                runs.push((0, 1));
            }
            let bucket = |&(n, degree): &(usize, usize)| {
                let dst: Vec<u32> =
                    (0..n as u32).flat_map(|v| std::iter::repeat_n(v, degree)).collect();
                Ok((degree, Relation::from_coo(1, n, vec![0; dst.len()], dst)?))
            };
            Ok(Self {
                buckets: runs.iter().map(bucket).collect::<Result<_, OpsError>>()?,
                node_bounds: bounds(runs.iter().map(|&(n, _)| n)),
                edge_bounds: bounds(runs.iter().map(|&(n, degree)| n * degree)),
                edges: picking(whole.num_edges(), in_edge_ids(csc, &nodes))?,
                reached: Destinations::new(whole, csc, nodes)?,
            })
        })
    }
}

/// 0 and the running sums.
fn bounds(lens: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut all = vec![0];
    all.extend(lens.scan(0, |at, n| {
        *at += n;
        Some(*at)
    }));
    all
}
