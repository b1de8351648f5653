//! Converts a part to a graph, by original ids or by local ids.

use std::ops::Range;
use std::sync::Arc;

use burn_gnn_structure::internal::OrPanic;
use burn_gnn_structure::{EdgeKey, EdgeReader, GraphError, Relation};

use super::stored_part::{Content, PartEdges, PartNodes, StoredPart};
use crate::csc::StoredCsc;
use crate::error::StoreError;

impl StoredPart {
    /// The edges of a type into inner nodes by original ids: a relation between all nodes of the whole graph that only
    /// has the rows of inner nodes. Random numbers, degrees and edge ids are those of the whole graph; edge ids are
    /// those of its file, or positions in it. `num_edges` counts the edges of the part.
    ///
    /// A sampler that needs the in-edges of any other node returns [`StoreError::OtherPart`], and so does a function
    /// that reads all edges of the relation.
    ///
    /// # Errors
    /// As [`Relation::from_stored_csc`].
    ///
    /// # Panics
    /// There is no such type.
    ///
    /// # Cost
    /// `O(log inner nodes)` per destination. Edges are read when they are sampled.
    #[track_caller]
    pub fn relation(&self, etype: impl EdgeKey) -> Result<Relation, StoreError> {
        let e = self.schema().etype(etype).or_panic();
        Ok(Relation::from_stored_csc(Arc::new(ByOriginal(PartRelation::new(&self.of, e))))?)
    }
}

#[cfg(feature = "sampling")]
impl StoredPart {
    /// A graph of every [`relation`](Self::relation), with the types and all nodes of the whole graph.
    ///
    /// Use it to sample one hop around inner nodes. [`owners`](Self::owners) returns the rank that continues from a
    /// halo node (`NeighborSampler::only_hop`). The hops together are the batch of the whole graph.
    ///
    /// Degrees of halo nodes are not available: for a block of this graph, `try_src_in_degrees` returns an error (and
    /// `src_in_degrees` panics), while `in_degrees` returns those of the whole graph.
    ///
    /// ```
    /// use burn_gnn_sampling::{NeighborSampler, SampleKey};
    /// use burn_gnn_store::{Assignment, CscBuild, EdgeIter, StoredCsc, StoredPart};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let file = dir.path().join("graph.csc");
    /// CscBuild::new(&file, 4, 4).run(EdgeIter::new([(0, 1), (3, 1), (1, 2)]))?;
    /// let csc = StoredCsc::open(&file)?;
    /// Assignment::new(vec![0, 1, 1, 0], 2)?.write(&csc, dir.path().join("parts"))?;
    ///
    /// // On rank 1.
    /// let part = StoredPart::open(dir.path().join("parts"), 1)?;
    /// let sampler = NeighborSampler::new(&part.graph()?, [-1])?;
    /// let batch = sampler.sample([("_N", [1])], SampleKey::new(0))?; // by original ids
    /// assert_eq!(batch.input_nodes(0), [1, 0, 3]);
    /// assert!(sampler.sample([("_N", [3])], SampleKey::new(0)).is_err()); // its in-edges are in part 0
    /// # Ok::<(), burn_gnn_store::StoreError>(())
    /// ```
    ///
    /// # Errors
    /// As [`relation`](Self::relation).
    pub fn graph(&self) -> Result<burn_gnn_graph::Graph, StoreError> {
        let relations =
            (0..self.of.edges.len()).map(|e| self.relation(e)).collect::<Result<_, _>>()?;
        let counts = self.of.nodes.iter().map(|nodes| nodes.total).collect();
        Ok(burn_gnn_graph::Graph::assemble(self.schema().clone(), counts, relations))
    }

    /// The part as a graph by local ids, inner nodes first. Halo nodes have no in-edges, and degrees and totals are
    /// those of the part. Also returns the original ids of its nodes for `NeighborSampler::with_original_ids`. Edges
    /// stay in the file, and edge ids are positions in the part.
    ///
    /// # Errors
    /// As [`Relation::from_stored_csc`].
    pub fn subgraph(&self) -> Result<burn_gnn_graph::Subgraph, StoreError> {
        use burn_gnn_graph::OriginalIds;
        let of = &self.of;
        let relation = |e| Relation::from_stored_csc(Arc::new(ByLocal(PartRelation::new(of, e))));
        let relations: Vec<Relation> =
            (0..of.edges.len()).map(relation).collect::<Result<_, GraphError>>()?;
        Ok(burn_gnn_graph::Subgraph {
            edge_ids: relations.iter().map(|r| OriginalIds::unchanged(r.num_edges())).collect(),
            node_ids: of.nodes.iter().map(|n| OriginalIds::new(n.ids.clone(), n.total)).collect(),
            graph: burn_gnn_graph::Graph::assemble(
                self.schema().clone(),
                of.nodes.iter().map(|nodes| nodes.ids.len()).collect(),
                relations,
            ),
        })
    }
}

/// One relation of a part.
#[derive(Debug)]
struct PartRelation {
    of: Arc<Content>,
    etype: usize,
}

impl PartRelation {
    fn new(of: &Arc<Content>, etype: usize) -> Self {
        Self { of: of.clone(), etype }
    }
    fn edges(&self) -> &PartEdges {
        &self.of.edges[self.etype]
    }
    fn csc(&self) -> &StoredCsc {
        &self.edges().csc
    }
    fn src(&self) -> &PartNodes {
        &self.of.nodes[self.of.schema.endpoints(self.etype).0]
    }
    fn dst(&self) -> &PartNodes {
        &self.of.nodes[self.of.schema.endpoints(self.etype).1]
    }
}

/// Reads edges by original ids of both endpoints.
#[derive(Debug)]
struct ByOriginal(PartRelation);

impl ByOriginal {
    /// Replaces local ids, which are in range, by original ids.
    fn originals(&self, ids: &mut [u32]) {
        let original = &self.0.src().ids;
        ids.iter_mut().for_each(|u| *u = original[*u as usize]);
    }
}

impl EdgeReader for ByOriginal {
    fn num_src(&self) -> usize {
        self.0.src().total
    }
    fn num_dst(&self) -> usize {
        self.0.dst().total
    }
    fn num_edges(&self) -> u64 {
        self.0.csc().num_edges()
    }
    fn rows(&self, nodes: &[u32], out: &mut Vec<(u64, u32)>) -> Result<(), GraphError> {
        let (of, d) = (&self.0.of, self.0.of.schema.endpoints(self.0.etype).1);
        let local =
            nodes.iter().map(|&v| of.local(d, v)).collect::<Result<Vec<u32>, StoreError>>()?;
        self.0.csc().rows(&local, out)
    }
    fn sources(&self, positions: &[u64], out: &mut [u32]) -> Result<(), GraphError> {
        self.0.csc().sources(positions, out)?;
        self.originals(out);
        Ok(())
    }
    fn sources_of(&self, positions: Range<u64>, out: &mut Vec<u32>) -> Result<(), GraphError> {
        let before = out.len();
        self.0.csc().sources_of(positions, out)?;
        self.originals(&mut out[before..]);
        Ok(())
    }
    fn has_edge_ids(&self) -> bool {
        true
    }
    fn edge_ids(&self, positions: &[u64], out: &mut [u64]) -> Result<(), GraphError> {
        Ok(self.0.edges().edge_ids(positions, out)?)
    }
    fn weights_of(&self, positions: Range<u64>, out: &mut Vec<f32>) -> Result<bool, GraphError> {
        self.0.csc().weights_of(positions, out)
    }
    fn times_of(&self, positions: Range<u64>, out: &mut Vec<i64>) -> Result<bool, GraphError> {
        Ok(self.0.csc().times_of(positions, out)?)
    }
}

/// Reads edges by local ids of both endpoints. Halo nodes are destinations without edges.
#[cfg(feature = "sampling")]
#[derive(Debug)]
struct ByLocal(PartRelation);

#[cfg(feature = "sampling")]
impl EdgeReader for ByLocal {
    fn num_src(&self) -> usize {
        self.0.src().ids.len()
    }
    fn num_dst(&self) -> usize {
        self.0.dst().ids.len()
    }
    fn num_edges(&self) -> u64 {
        self.0.csc().num_edges()
    }
    fn rows(&self, nodes: &[u32], out: &mut Vec<(u64, u32)>) -> Result<(), GraphError> {
        let inner = self.0.dst().num_inner;
        for &v in nodes {
            let row = (v as usize) < inner;
            out.push(if row { self.0.csc().row(v)? } else { (self.num_edges(), 0) });
        }
        Ok(())
    }
    fn sources(&self, positions: &[u64], out: &mut [u32]) -> Result<(), GraphError> {
        self.0.csc().sources(positions, out)
    }
    fn sources_of(&self, positions: Range<u64>, out: &mut Vec<u32>) -> Result<(), GraphError> {
        self.0.csc().sources_of(positions, out)
    }
    fn weights_of(&self, positions: Range<u64>, out: &mut Vec<f32>) -> Result<bool, GraphError> {
        self.0.csc().weights_of(positions, out)
    }
    fn times_of(&self, positions: Range<u64>, out: &mut Vec<i64>) -> Result<bool, GraphError> {
        Ok(self.0.csc().times_of(positions, out)?)
    }
}
