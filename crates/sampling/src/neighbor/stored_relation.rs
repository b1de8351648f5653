//! Samples from relations whose edges are in a file.
//!
//! A row is drawn from by places inside of it, so that a choice is the one in memory; what stands there is read
//! afterwards, for all destinations of a piece at once. Positions of a block are places inside of rows as well.

use crate::batch::stored_ids::edge_of;
use crate::choice::choose::Choice;
use crate::choice::strategy::Strategy;
use crate::neighbor::memory::Piece;
use crate::neighbor::memory::StoredRows;
use crate::neighbor::sampler::NeighborSampler;
use crate::neighbor::trees::Trees;
use crate::random::alias::{AliasTables, check_weights};
use burn_gnn_graph::internal::setting;
use burn_gnn_graph::{EdgeKey, EdgeReader, GraphError, Relation};

/// Number of edges of each destination, of a relation in a file.
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
        // Excluded edges have the ids of edges in memory.
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
        let looks = weighs
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
                let (rule, indices, edge_ids) =
                    (&stored.rule, &stored.sources[..], Some(&stored.edge_ids[..]));
                let row = Choice { rule, indices, edge_ids, ..*choice };
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

    /// Weights of the edges of a type out of its file, for [`Strategy::Weighted`], [`Strategy::TopK`] and
    /// [`Strategy::Labor`]: those of a row are read when it is drawn from. Draws are those of
    /// [`with_weights`](Self::with_weights).
    ///
    /// # Errors
    /// Unknown type, edges that are not in a file or have no weights there.
    pub fn with_stored_weights(mut self, etype: impl EdgeKey) -> Result<Self, GraphError> {
        let t = self.source.graph.schema().etype(etype)?;
        let found = match self.source.graph.relations()[t].stored() {
            None => "edges in memory: give their weights to `with_weights`",
            Some(reader) if reader.weights_of(0..0, &mut vec![])? => "",
            Some(_) => "a file without weights",
        };
        if !found.is_empty() {
            return Err(setting("etype", "a relation in a file with weights", found))
                .map_err(|e| self.source.graph.in_etype(t, e));
        }
        std::sync::Arc::make_mut(&mut self.rules)[t].stored_weights = true;
        self.checked()
    }
}

impl StoredRows {
    /// What a choice looks at of one row.
    fn read(
        &mut self,
        choice: &Choice<'_>,
        reader: &dyn EdgeReader,
        kept_ids: Option<&[u64]>,
        v: u32,
        row: std::ops::Range<u64>,
        weighs: bool,
    ) -> Result<(), GraphError> {
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
        }
        if choice.excluded.binary_search_by_key(&v, |e| e.0).is_ok() {
            let positions: Vec<u64> = row.collect();
            self.ids.resize(positions.len(), 0);
            reader.edge_ids(&positions, &mut self.ids)?;
            self.edge_ids.clear();
            // An id that `u32` does not hold is none of those that a caller can exclude.
            let edge = |&id: &u64| edge_of(kept_ids, id).unwrap_or(u32::MAX);
            self.edge_ids.extend(self.ids.iter().map(edge));
        }
        Ok(())
    }
}
