//! Connects nodes that a metapath joins.

use rayon::prelude::*;

use crate::graph::ONE_RELATION;
use crate::{EdgeKey, EdgeType, Graph, GraphError, Relation};
use burn_gnn_structure::internal::{check_limit, room};

impl Graph {
    /// One edge `u -> v` of relation `_E` wherever a path along the edge types of `metapath` leads from `u` to `v`,
    /// however many paths there are; sorted by (source, destination). The result has the source and destination node
    /// types of the metapath, with all their nodes and features.
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
    /// An empty metapath, unknown edge types or edge types that do not follow each other, [`GraphError::TooLarge`] for
    /// more than `u32::MAX - 1` edges, [`GraphError::OutOfMemory`].
    ///
    /// # Cost
    /// For each source the edges on its paths, each met once per step, in parallel over sources.
    pub fn metapath_reachable_graph<K: EdgeKey>(&self, metapath: &[K]) -> Result<Self, GraphError> {
        let path = self.metapath_numbers(metapath, "name at least one edge type")?;
        let s = self.schema().endpoints(path[0]).0;
        let d = self.schema().endpoints(path[path.len() - 1]).1;
        let sources = self.node_counts()[s];
        let steps: Vec<&Relation> = path.iter().map(|&t| &self.relations()[t]).collect();
        steps.iter().for_each(|r| {
            r.csr();
        });
        let size = sources.div_ceil(4 * rayon::current_num_threads()).max(1);
        let parts: Vec<(Vec<u32>, Vec<u32>)> = (0..sources.div_ceil(size))
            .into_par_iter()
            .map(|c| reach(&steps, c * size..sources.min((c + 1) * size)))
            .collect();
        let count: usize = parts.iter().map(|p| p.0.len()).sum();
        let etype =
            EdgeType::new(&*self.schema().ntypes()[s], ONE_RELATION, &*self.schema().ntypes()[d]);
        let named = |e: GraphError| e.in_relation(&etype.to_string());
        check_limit("edges", count as u64).map_err(named)?;
        let (what, remedy) = (
            || format!("a graph of {count} edges along a metapath"),
            "choose a shorter metapath or a subgraph",
        );
        let (mut src, mut dst) =
            (room(count as u128, what, remedy)?, room(count as u128, what, remedy)?);
        for (u, v) in parts {
            src.extend(u);
            dst.extend(v);
        }
        let relation =
            Relation::from_coo(sources, self.node_counts()[d], src, dst).map_err(named)?;
        let ntypes = if s == d { vec![s] } else { vec![s, d] };
        self.rebuild(&ntypes, vec![(etype, relation, None)])
    }

    /// Numbers of the edge types of a metapath, which follow each other; `remedy` is that of an empty one.
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

/// What each of `sources` reaches along `steps`, ascending.
fn reach(steps: &[&Relation], sources: std::ops::Range<usize>) -> (Vec<u32>, Vec<u32>) {
    // The source that met a node last, for each step: never cleared.
    let mut seen: Vec<Vec<u32>> = steps.iter().map(|r| vec![u32::MAX; r.num_dst()]).collect();
    let (mut src, mut dst) = (vec![], vec![]);
    let (mut here, mut next) = (vec![], vec![]);
    for u in sources.map(|u| u as u32) {
        here.clear();
        here.push(u);
        for (r, seen) in steps.iter().zip(&mut seen) {
            let out = r.csr();
            for &v in &here {
                let found = out.indices()[out.row(v as usize)].iter().copied();
                next.extend(found.filter(|&w| std::mem::replace(&mut seen[w as usize], u) != u));
            }
            std::mem::swap(&mut here, &mut next);
            next.clear();
        }
        here.sort_unstable();
        src.resize(src.len() + here.len(), u);
        dst.extend_from_slice(&here);
    }
    (src, dst)
}
