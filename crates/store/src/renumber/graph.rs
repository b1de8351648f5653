//! Reads relations of files in new ids by original ids.

use std::ops::Range;
use std::sync::Arc;

use burn_gnn_graph::{EdgeReader, Graph, GraphError, NodeKey, Relation};
use burn_gnn_structure::internal::{check_len, prefetch, setting};

use super::renumbering::Renumbering;
use crate::csc::StoredCsc;
use crate::error::StoreError;
use crate::graph::StoredGraph;

/// Sources that are prefetched ahead.
const AHEAD: usize = 24;

impl StoredGraph {
    /// The graph of files that were built with [`RenumberedEdges`](crate::RenumberedEdges), by original ids: of
    /// each node type given, the files have new ids and the graph has those from before. For samplers: batches, bit
    /// for bit, are those of files that were built without new ids. Edge ids are so where the files keep them
    /// (`CscBuild::with_edge_ids`); without, they are positions in these files.
    ///
    /// What needs all edges of a relation whose destinations are renumbered (operators on the whole graph,
    /// `Relation::csc`, out-degrees) is refused with [`GraphError::Layout`], as its rows stand in another order;
    /// [`graph`](Self::graph) has them by new ids.
    ///
    /// # Errors
    /// Unknown type or one named twice, not one id per node.
    ///
    /// # Cost
    /// `O(1)`; a look-up of 4 bytes more per destination and per edge that is sampled.
    pub fn by_original_ids<N: NodeKey>(
        &self,
        renumbered: impl IntoIterator<Item = (N, Arc<Renumbering>)>,
    ) -> Result<Graph, StoreError> {
        let schema = self.graph().schema();
        let mut of: Vec<Option<Arc<Renumbering>>> = vec![None; schema.ntypes().len()];
        for (ntype, new) in renumbered {
            let t = schema.ntype(ntype)?;
            let name = &schema.ntypes()[t];
            check_len("renumbered", "one id per node", self.graph().node_counts()[t], new.len())
                .map_err(|e| e.in_relation(name))?;
            if of[t].replace(new).is_some() {
                return Err(setting(
                    "renumbered",
                    "every node type once",
                    &format!("`{name}` twice"),
                )
                .into());
            }
        }
        let relation = |(t, csc): (usize, &Arc<StoredCsc>)| {
            let (s, d) = schema.endpoints(t);
            Relation::from_stored_csc(Arc::new(ByOriginal {
                csc: csc.clone(),
                src: of[s].clone(),
                dst: of[d].clone(),
            }))
        };
        let relations = self.files().iter().enumerate().map(relation).collect::<Result<_, _>>()?;
        Ok(Graph::assemble(schema.clone(), self.graph().node_counts().to_vec(), relations))
    }
}

/// A file in new ids, read by original ones.
#[derive(Debug)]
struct ByOriginal {
    csc: Arc<StoredCsc>,
    src: Option<Arc<Renumbering>>,
    dst: Option<Arc<Renumbering>>,
}

impl ByOriginal {
    /// Original ids instead of new ones, which were compared with the number of nodes.
    fn originals(&self, ids: &mut [u32]) {
        let Some(of) = &self.src else { return };
        let original = of.original_ids();
        for i in 0..ids.len() {
            if let Some(&ahead) = ids.get(i + AHEAD) {
                prefetch(original, ahead as usize, 1);
            }
            ids[i] = original[ids[i] as usize];
        }
    }
}

impl EdgeReader for ByOriginal {
    fn num_src(&self) -> usize {
        self.csc.num_src()
    }
    fn num_dst(&self) -> usize {
        self.csc.num_dst()
    }
    fn num_edges(&self) -> u64 {
        self.csc.num_edges()
    }
    fn rows(&self, nodes: &[u32], out: &mut Vec<(u64, u32)>) -> Result<(), GraphError> {
        match &self.dst {
            None => self.csc.rows(nodes, out),
            Some(of) => self.csc.rows(&of.to_new(nodes)?, out),
        }
    }
    fn sources(&self, positions: &[u64], out: &mut [u32]) -> Result<(), GraphError> {
        self.csc.sources(positions, out)?;
        self.originals(out);
        Ok(())
    }
    fn sources_of(&self, positions: Range<u64>, out: &mut Vec<u32>) -> Result<(), GraphError> {
        let before = out.len();
        self.csc.sources_of(positions, out)?;
        self.originals(&mut out[before..]);
        Ok(())
    }
    fn has_edge_ids(&self) -> bool {
        self.csc.has_edge_ids()
    }
    fn edge_ids(&self, positions: &[u64], out: &mut [u64]) -> Result<(), GraphError> {
        self.csc.edge_ids(positions, out)
    }
    fn edge_id_bound(&self) -> u64 {
        self.csc.edge_id_bound()
    }
    fn weights_of(&self, positions: Range<u64>, out: &mut Vec<f32>) -> Result<bool, GraphError> {
        self.csc.weights_of(positions, out)
    }
}
