//! Connects the start and end nodes of paths along a metapath.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::graph::Graph;
use crate::graph::ONE_RELATION;
use burn_gnn_structure::internal::{check_limit, filled};
use burn_gnn_structure::{EdgeKey, EdgeType, GraphError, Relation};

impl Graph {
    /// A graph with an edge `u -> v` of relation `_E` if at least one path along the edge types of `metapath` leads from `u`
    /// to `v`. Edges are sorted by (source, destination). The result has the first and last node types of the metapath,
    /// with all their nodes and features.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// let g = Graph::builder()
    ///     .edges(("author", "writes", "paper"), vec![0, 1, 1], vec![0, 0, 1])
    ///     .edges(("paper", "by", "author"), vec![0, 0, 1], vec![0, 1, 1])
    ///     .build()?;
    /// let coauthors = g.metapath_reachable_graph(&["writes", "by"])?;
    /// assert_eq!(coauthors.relation("_E")?.src(), [0, 0, 1, 1]);
    /// assert_eq!(coauthors.relation("_E")?.dst(), [0, 1, 0, 1]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// An empty metapath; unknown edge types, or edge types that do not connect; [`GraphError::TooLarge`] for more than
    /// `u32::MAX - 1` edges; [`GraphError::OutOfMemory`]; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(edges on the paths of each source)`, summed over sources and in parallel: a first pass counts, a second one writes.
    pub fn metapath_reachable_graph<K: EdgeKey>(&self, metapath: &[K]) -> Result<Self, GraphError> {
        let path = self.metapath_numbers(metapath, "name at least one edge type")?;
        let s = self.schema().endpoints(path[0]).0;
        let d = self.schema().endpoints(path[path.len() - 1]).1;
        let sources = self.node_counts()[s];
        let steps: Vec<&Relation> =
            path.iter().map(|&t| self.in_memory(t)).collect::<Result<_, _>>()?;
        steps.iter().for_each(|r| {
            r.csr();
        });
        let size = sources.div_ceil(4 * rayon::current_num_threads()).max(1);
        let etype =
            EdgeType::new(&*self.schema().ntypes()[s], ONE_RELATION, &*self.schema().ntypes()[d]);
        let named = |e: GraphError| e.in_relation(&etype.to_string());
        // Counts all edges before it makes any: a hub with n in- and out-edges makes n².
        let walked = AtomicU64::new(0);
        let parts = (0..sources.div_ceil(size)).into_par_iter();
        let range = |c: usize| c * size..sources.min((c + 1) * size);
        let counts: Vec<usize> = parts.map(|c| reached(&steps, range(c), &walked)).collect();
        let count: u64 = counts.iter().map(|&n| n as u64).sum();
        check_limit("edges", count).map_err(named)?;
        let (what, remedy) = (
            || format!("a graph of {count} edges along a metapath"),
            "choose a shorter metapath or a subgraph",
        );
        let mut src = filled(0u32, count.into(), what, remedy)?;
        let mut dst = filled(0u32, count.into(), what, remedy)?;
        let (mut src_left, mut dst_left) = (&mut src[..], &mut dst[..]);
        let mut outputs = vec![];
        for (c, &n) in counts.iter().enumerate() {
            let (u, rest) = src_left.split_at_mut(n);
            let (v, rest_dst) = dst_left.split_at_mut(n);
            (src_left, dst_left) = (rest, rest_dst);
            outputs.push((range(c), u, v));
        }
        outputs.into_par_iter().for_each(|(sources, src, dst)| reach(&steps, sources, src, dst));
        let relation =
            Relation::from_coo(sources, self.node_counts()[d], src, dst).map_err(named)?;
        let ntypes = if s == d { vec![s] } else { vec![s, d] };
        self.rebuild(&ntypes, vec![(etype, relation, None)])
    }

    /// Numbers of the edge types of a metapath, after checking that they connect; `remedy` is for an empty metapath.
    #[doc(hidden)]
    pub fn metapath_numbers<K: EdgeKey>(
        &self,
        metapath: &[K],
        remedy: &'static str,
    ) -> Result<Vec<usize>, GraphError> {
        let schema = self.schema();
        let path = metapath.iter().map(|t| schema.etype(t)).collect::<Result<Vec<_>, _>>()?;
        if path.is_empty() {
            return Err(GraphError::Empty { arg: "metapath", remedy });
        }
        for (i, w) in path.windows(2).enumerate() {
            let reached = schema.endpoints(w[0]).1;
            if schema.endpoints(w[1]).0 != reached {
                let (etype, expected) =
                    (schema.etypes()[w[1]].to_string(), schema.ntypes()[reached].clone());
                return Err(GraphError::Metapath { position: i + 1, etype, expected });
            }
        }
        Ok(path)
    }
}

/// Breadth-first search along `steps`, for one source at a time.
struct Reach<'a> {
    steps: &'a [&'a Relation],
    /// Last source that visited each node, per step; needs no clearing between sources.
    seen: Vec<Vec<u32>>,
    here: Vec<u32>,
    next: Vec<u32>,
}

impl<'a> Reach<'a> {
    fn new(steps: &'a [&'a Relation]) -> Self {
        let seen = steps.iter().map(|r| vec![u32::MAX; r.num_dst()]).collect();
        Self { steps, seen, here: vec![], next: vec![] }
    }

    /// Distinct nodes that `u` reaches; `None` if `stop` returns true for the nodes after a step.
    fn from(&mut self, u: u32, mut stop: impl FnMut(usize, &[u32]) -> bool) -> Option<&mut [u32]> {
        let Self { steps, seen, here, next } = self;
        here.clear();
        here.push(u);
        for (i, (r, seen)) in steps.iter().zip(seen).enumerate() {
            let out = r.csr();
            for &v in &*here {
                let found = out.indices()[out.row(v as usize)].iter().copied();
                next.extend(found.filter(|&w| std::mem::replace(&mut seen[w as usize], u) != u));
            }
            std::mem::swap(here, next);
            next.clear();
            if stop(i, here) {
                return None;
            }
        }
        Some(here)
    }
}

/// Number of pairs from `sources`. Stops early once all threads together have counted more than the limit of edges.
fn reached(steps: &[&Relation], sources: Range<usize>, walked: &AtomicU64) -> usize {
    let mut reach = Reach::new(steps);
    // Caches the count from a node onward: a source whose only successor is that node, as a leaf of a star, has the
    // same count.
    let mut alone: HashMap<(usize, u32), usize> = HashMap::new();
    let mut count = 0;
    for u in sources {
        let (mut met, mut known) = (vec![], None);
        let found = reach.from(u as u32, |step, here| {
            let [v] = here else { return false };
            known = alone.get(&(step, *v)).copied();
            met.push((step, *v));
            known.is_some()
        });
        let found = found.map(|found| found.len());
        let of_source = found.or(known).unwrap_or(0);
        alone.extend(met.into_iter().map(|at| (at, of_source)));
        count += of_source;
        let more = found.unwrap_or(0) as u64;
        if walked.fetch_add(more, Ordering::Relaxed) + more > u64::from(u32::MAX) {
            break;
        }
    }
    count
}

/// Writes the nodes that each of `sources` reaches, in ascending order.
fn reach(steps: &[&Relation], sources: Range<usize>, mut src: &mut [u32], mut dst: &mut [u32]) {
    let mut reach = Reach::new(steps);
    for u in sources.map(|u| u as u32) {
        let found = reach.from(u, |_, _| false).unwrap_or_default();
        found.sort_unstable();
        let (of_source, rest) = std::mem::take(&mut src).split_at_mut(found.len());
        of_source.fill(u);
        src = rest;
        let (of_source, rest) = std::mem::take(&mut dst).split_at_mut(found.len());
        of_source.copy_from_slice(found);
        dst = rest;
    }
}
