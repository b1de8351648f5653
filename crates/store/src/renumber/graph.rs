//! Reads renumbered relations by original ids.

use std::ops::Range;
use std::sync::Arc;

use burn_gnn_graph::{EdgeReader, Graph, GraphError, NodeKey, Relation};
use burn_gnn_structure::internal::{check_len, prefetch, setting};

use super::renumbering::Renumbering;
use crate::csc::StoredCsc;
use crate::error::StoreError;
use crate::graph::StoredGraph;

/// Distance of the prefetch in sources.
const AHEAD: usize = 24;

impl StoredGraph {
    /// A graph by original ids over files that were built with [`RenumberedEdges`](crate::RenumberedEdges): the given
    /// node types have new ids in the files. Use it for samplers: batches equal, bit for bit, those of files without
    /// renumbering. This includes edge ids if they are stored (`CscBuild::with_edge_ids`); otherwise edge ids are
    /// positions in the renumbered files.
    ///
    /// Functions that need all edges of a relation with renumbered destinations (operators on the whole graph,
    /// `Relation::csc`, out-degrees) return [`GraphError::Layout`], since its rows are in another order. Use
    /// [`graph`](Self::graph) with new ids for them.
    ///
    /// # Errors
    /// An unknown type or one that occurs twice; the number of ids differs from that of nodes.
    ///
    /// # Cost
    /// `O(1)`; sampling looks up 4 more bytes per destination and edge.
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
                    "distinct node types",
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

/// Reads a renumbered file by original ids.
#[derive(Debug)]
struct ByOriginal {
    csc: Arc<StoredCsc>,
    src: Option<Arc<Renumbering>>,
    dst: Option<Arc<Renumbering>>,
}

impl ByOriginal {
    /// Replaces new ids, which are in range, by original ids.
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
    fn times_of(&self, positions: Range<u64>, out: &mut Vec<i64>) -> Result<bool, GraphError> {
        Ok(self.csc.times_of(positions, out)?)
    }
}
