//! Samples from relations whose edges are in a file.
//!
//! An edge is chosen by its position within the row, so that the choice equals the one in memory. The sources are read
//! afterwards, in one read for all destinations of a piece. `Block::positions` of such a relation are positions within
//! rows, too.

use std::sync::Arc;

use crate::batch::stored_ids::edge_of;
use crate::choice::choose::Choice;
use crate::choice::edge_attributes::{EdgeTimes, read as read_times};
use crate::choice::strategy::Strategy;
use crate::neighbor::memory::Piece;
use crate::neighbor::memory::StoredRows;
use crate::neighbor::sampler::NeighborSampler;
use crate::neighbor::trees::Trees;
use crate::random::alias::{AliasTables, check_weights};
use burn_gnn_graph::internal::setting;
use burn_gnn_graph::{Derived, EdgeKey, EdgeReader, GraphError, Relation};

/// In-degree of each destination of a relation in a file; `None` for a relation in memory.
pub(super) fn degrees(relation: &Relation, dst: &[u32]) -> Result<Option<Vec<u32>>, GraphError> {
    let Some(reader) = relation.stored() else { return Ok(None) };
    let mut rows = Vec::with_capacity(dst.len());
    reader.rows(dst, &mut rows)?;
    Ok(Some(rows.into_iter().map(|row| row.1).collect()))
}

impl NeighborSampler {
    pub(super) fn fill_stored(
        &self,
        piece: &mut Piece,
        choice: &Choice<'_>,
        reader: &dyn EdgeReader,
        nodes: &[Vec<u32>],
        trees: Option<&Trees>,
    ) -> Result<(), GraphError> {
        // Excluded edges are given by their ids in memory, which skip the gaps of the ids in the file.
        let kept_ids = match choice.excluded {
            [] => None,
            _ => self.source.graph.relations()[piece.etype].original_edge_ids()?,
        };
        let (_, d) = self.source.graph.schema().endpoints(piece.etype);
        let dst = &nodes[d][piece.dst.clone()];
        let original = self.source.node_ids[d].as_slice();
        let Piece { counts, found, positions, memory, stored, .. } = piece;
        let mut rows = std::mem::take(&mut stored.rows);
        rows.clear();
        counts.clear();
        found.clear();
        stored.positions.clear();
        reader.rows(dst, &mut rows)?;
        let weighs = !matches!(choice.strategy, Strategy::Uniform | Strategy::Latest)
            && choice.rule.stored_weights;
        let timed = choice.rule.times.is_some();
        let looks = weighs
            || timed
            || matches!(choice.strategy, Strategy::Labor { .. })
            || !choice.excluded.is_empty();
        for (i, (&v, &(start, len))) in dst.iter().zip(&rows).enumerate() {
            let before = found.len();
            let id = u64::from(original.map_or(v, |ids| ids[v as usize]));
            let (id, time) =
                trees.map_or((id, None), |trees| trees.draw_id(d, piece.dst.start + i, id));
            if looks {
                let row = start..start + u64::from(len);
                stored.read(choice, reader, kept_ids, v, row, weighs)?;
                let (rule, indices) = (&stored.rule, &stored.sources[..]);
                // Read only for rows with excluded edges; other choices need no ids.
                let edge_ids = Some(&stored.edge_ids[..]).filter(|ids| !ids.is_empty());
                let times = timed.then_some(&stored.times[..]);
                let row = Choice { rule, times, indices, edge_ids, ..*choice };
                row.row(v, id, time, 0..len as usize, memory, found);
            } else {
                choice.row(v, id, time, 0..len as usize, memory, found);
            }
            counts.push((found.len() - before) as u32);
            stored.positions.extend(found[before..].iter().map(|&place| start + u64::from(place)));
        }
        positions.clear();
        positions.extend_from_slice(found);
        stored.rows = rows;
        reader.sources(&stored.positions, found)
    }

    /// Uses the weights in the file of a relation, for [`Strategy::Weighted`], [`Strategy::TopK`] and
    /// [`Strategy::Labor`]. The weights of a row are read when the row is sampled. The draws equal those of
    /// [`with_weights`](Self::with_weights).
    ///
    /// # Errors
    /// Unknown type; a relation in memory; a file without weights.
    pub fn with_stored_weights(mut self, etype: impl EdgeKey) -> Result<Self, GraphError> {
        let t = self.source.graph.schema().etype(etype)?;
        let found = match self.source.graph.relations()[t].stored() {
            None => "a relation in memory (use `with_weights`)",
            Some(reader) if reader.weights_of(0..0, &mut vec![])? => "",
            Some(_) => "a file without weights",
        };
        if !found.is_empty() {
            return Err(setting("etype", "a relation in a file with weights", found))
                .map_err(|e| self.source.graph.in_etype(t, e));
        }
        Arc::make_mut(&mut self.rules)[t].stored_weights = true;
        self.checked()
    }

    /// Uses the times in the file of a relation, as [`with_times`](Self::with_times) uses times in memory. The times of
    /// a row are read when the row is sampled. The draws equal those of `with_times`.
    ///
    /// # Errors
    /// Unknown type; a relation in memory; a file without times; as [`with_times`](Self::with_times).
    ///
    /// # Cost
    /// `O(degree)` per node and 8 bytes per edge of the longest row. Calls that need all edges of the relation
    /// ([`shadow_before`](Self::shadow_before), [`induced_before`](Self::induced_before), out-degrees of a
    /// [`Block`](crate::Block), link samplers) read all times into memory once: 8 bytes per edge.
    pub fn with_stored_times(mut self, etype: impl EdgeKey) -> Result<Self, GraphError> {
        let t = self.source.graph.schema().etype(etype)?;
        let (reader, found) = match self.source.graph.relations()[t].stored() {
            None => (None, "a relation in memory (use `with_times`)"),
            Some(reader) if reader.times_of(0..0, &mut vec![])? => (Some(reader.clone()), ""),
            Some(_) => (None, "a file without times (build it by `CscBuild::with_times`)"),
        };
        let Some(reader) = reader else {
            return Err(setting("etype", "a relation in a file with times", found))
                .map_err(|e| self.source.graph.in_etype(t, e));
        };
        let times = EdgeTimes::Stored { reader, by_edge: Derived::new() };
        Arc::make_mut(&mut self.rules)[t].times = Some(times);
        self.checked()
    }
}

impl StoredRows {
    /// Reads the sources, weights, times and edge ids of one row, as far as the choice needs them.
    fn read(
        &mut self,
        choice: &Choice<'_>,
        reader: &dyn EdgeReader,
        kept_ids: Option<&[u64]>,
        v: u32,
        row: std::ops::Range<u64>,
        weighs: bool,
    ) -> Result<(), GraphError> {
        self.edge_ids.clear();
        if choice.rule.times.is_some() {
            self.times.clear();
            read_times(reader, row.clone(), &mut self.times)?;
        }
        if matches!(choice.strategy, Strategy::Labor { .. }) {
            self.sources.clear();
            reader.sources_of(row.clone(), &mut self.sources)?;
        }
        if weighs {
            let mut weights = self.rule.weights.take().unwrap_or_default();
            weights.clear();
            reader.weights_of(row.clone(), &mut weights)?;
            check_weights(
                "weights",
                || format!("destination {v} in the file of the relation"),
                &weights,
            )?;
            self.rule.alias = choice.replace.then(|| AliasTables::single(&weights));
            self.rule.weights = Some(weights);
        } else {
            // The piece may have sampled a relation with weights before.
            (self.rule.weights, self.rule.alias) = (None, None);
        }
        if choice.excluded.binary_search_by_key(&v, |e| e.0).is_ok() {
            let positions: Vec<u64> = row.collect();
            self.ids.resize(positions.len(), 0);
            reader.edge_ids(&positions, &mut self.ids)?;
            // Callers exclude edges by `u32` ids: an id that does not fit is not excluded.
            let edge = |&id: &u64| edge_of(kept_ids, id).unwrap_or(u32::MAX);
            self.edge_ids.extend(self.ids.iter().map(edge));
        }
        Ok(())
    }
}
