//! The assignment of nodes to parts.

use std::hash::Hasher;

use burn_gnn_structure::internal::{OrPanic, check_ids, setting};
use burn_gnn_structure::{EdgeReader, NodeKey, Schema};
use twox_hash::XxHash3_64;

use super::relation_files::{GraphFiles, RelationFiles};
use super::row_stream::each_node;
use crate::error::StoreError;

/// The part of every node, by node type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// A schema of the node types only.
    types: Schema,
    pub(super) part_of: Vec<Vec<u32>>,
    pub(super) parts: usize,
    pub(super) cut: u64,
    pub(super) edges: u64,
}

impl Assignment {
    /// A user-defined assignment for a graph of one node type, `_N`.
    ///
    /// # Errors
    /// A part out of range.
    pub fn new(part_of: Vec<u32>, parts: usize) -> Result<Self, StoreError> {
        Self::of_types([("_N", part_of)], parts)
    }
    /// A user-defined assignment, by node type.
    ///
    /// ```
    /// use burn_gnn_store::Assignment;
    /// let parts = Assignment::of_types([("paper", vec![0, 1, 1]), ("author", vec![1, 0])], 2)?;
    /// assert_eq!((parts.part_of("author"), parts.sizes("paper")), (&[1, 0][..], vec![1, 2]));
    /// # Ok::<(), burn_gnn_store::StoreError>(())
    /// ```
    ///
    /// # Errors
    /// A part out of range; a type that occurs twice.
    pub fn of_types<'a>(
        part_of: impl IntoIterator<Item = (&'a str, Vec<u32>)>,
        parts: usize,
    ) -> Result<Self, StoreError> {
        let mut of: Vec<(&str, Vec<u32>)> = part_of.into_iter().collect();
        of.sort_by_key(|t| t.0);
        for (name, ids) in &of {
            check_ids("part_of", &format!("`{name}`"), ids, parts)?;
        }
        let types = Schema::new(of.iter().map(|t| t.0.to_owned()).collect(), vec![])?;
        Ok(Self::of_schema(types, of.into_iter().map(|t| t.1).collect(), parts))
    }
    pub(super) fn of_schema(types: Schema, part_of: Vec<Vec<u32>>, parts: usize) -> Self {
        Self { types, part_of, parts, cut: 0, edges: 0 }
    }

    /// The part of every node of a type.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn part_of(&self, ntype: impl NodeKey) -> &[u32] {
        &self.part_of[self.types.ntype(ntype).or_panic()]
    }
    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.parts
    }
    /// Number of nodes of a type in each part.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn sizes(&self, ntype: impl NodeKey) -> Vec<usize> {
        let mut sizes = vec![0; self.parts];
        self.part_of(ntype).iter().for_each(|&p| sizes[p as usize] += 1);
        sizes
    }
    /// Share of edges between parts as counted during the last pass. An edge counts by the part that its source had
    /// when its destination was assigned: the part of the previous pass if the source came later, and as cut in the
    /// first pass.
    pub fn cut_seen(&self) -> f64 {
        if self.edges == 0 { 0.0 } else { self.cut as f64 / self.edges as f64 }
    }
    /// Returns an error unless types and numbers of nodes match the graph.
    pub(super) fn check(&self, of: &RelationFiles<'_>) -> Result<(), StoreError> {
        let names = of.schema.ntypes();
        if self.types.ntypes() != names {
            let (expected, found) = (
                format!("the parts of the node types {names:?}"),
                format!("those of {:?}", self.types.ntypes()),
            );
            return Err(setting("part_of", &expected, &found).into());
        }
        for ((name, part_of), &n) in names.iter().zip(&self.part_of).zip(&of.counts) {
            if part_of.len() != n {
                let expected = format!("the parts of {n} nodes of type `{name}`");
                let found = format!("those of {}", part_of.len());
                return Err(setting("part_of", &expected, &found).into());
            }
        }
        Ok(())
    }
    /// Share of edges between parts.
    ///
    /// # Errors
    /// Node types or numbers of nodes that differ from the files; [`StoreError::Damaged`].
    ///
    /// # Cost
    /// One pass over the files.
    pub fn cut(&self, graph: &(impl GraphFiles + ?Sized)) -> Result<f64, StoreError> {
        let of = graph.relations()?;
        self.check(&of)?;
        let (cut, edges) = (self.count_cut(&of)?, of.num_edges());
        Ok(if edges == 0 { 0.0 } else { cut as f64 / edges as f64 })
    }
    /// Number of edges between parts.
    pub(super) fn count_cut(&self, of: &RelationFiles<'_>) -> Result<u64, StoreError> {
        let mut cut = 0;
        each_node(of, |t, v, edges| {
            let own = self.part_of[t][v as usize];
            cut +=
                edges.sources().filter(|&(s, u)| self.part_of[s][u as usize] != own).count() as u64;
            Ok(())
        })?;
        Ok(cut)
    }
    /// A hash of the assignment and of the graph's types and sizes.
    pub(super) fn fingerprint(&self, of: &RelationFiles<'_>) -> u64 {
        let mut hash = XxHash3_64::new();
        hash.write(&(self.parts as u64).to_le_bytes());
        for (etype, csc) in of.schema.etypes().iter().zip(&of.files) {
            hash.write(etype.to_string().as_bytes());
            hash.write(&csc.num_edges().to_le_bytes());
        }
        for (name, part_of) in self.types.ntypes().iter().zip(&self.part_of) {
            hash.write(name.as_bytes());
            hash.write(&(part_of.len() as u64).to_le_bytes());
            hash.write(bytemuck::cast_slice(part_of));
        }
        hash.finish()
    }
}
