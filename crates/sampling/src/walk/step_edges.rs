//! Draws steps of walks among the out-edges of a node, by weight and before a time.
//!
//! # Algorithm
//! ```text
//! row = out-edges of v
//! without times:  uniform position of the row, or a draw from its alias table                  # O(1)
//! with times:     the row is sorted by (time, edge id);
//!                 k = number of edges before the time of the start                             # binary search
//!                 uniform place below k, or a search in the prefix sums of the weights         # O(log degree)
//! ```
//!
//! A draw before a time depends on the edges before that time and on their order only. Edges that are later change
//! neither, so that a walk is the same whether the graph contains them or not. An alias table has no such property: one
//! more edge changes all entries of its row.

use std::ops::Range;

use rayon::prelude::*;

use crate::random::alias::{AliasTables, check_weights};
use crate::random::generator::Draws;
use burn_gnn_graph::internal::check_len;
use burn_gnn_graph::{Compressed, GraphError, Relation};

/// How the out-edges of one edge type are drawn.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepEdges {
    /// By position in CSR.
    weights: Option<Vec<f32>>,
    /// Of the weights, unless edges have times.
    alias: Option<AliasTables>,
    timed: Option<TimedRows>,
}

/// Rows of CSR in the order of time.
#[derive(Clone, Debug)]
struct TimedRows {
    /// Positions of each row, by time, then by position.
    positions: Vec<u32>,
    /// Times in this order.
    times: Vec<i64>,
    /// Prefix sums of the weights of each row in this order.
    sums: Option<Vec<f64>>,
}

impl StepEdges {
    /// Sets weights by edge id; `name` is that of the edge type.
    pub(crate) fn set_weights(
        &mut self,
        name: &str,
        relation: &Relation,
        weights: &[f32],
    ) -> Result<(), GraphError> {
        check_len("weights", "one per edge", relation.num_edges(), weights.len())
            .map_err(|e| e.in_relation(name))?;
        check_weights("weights", || format!("edge type `{name}`"), weights)?;
        let csr = relation.csr();
        let by_position: Vec<f32> =
            (0..weights.len()).map(|p| weights[csr.edge_id(p) as usize]).collect();
        match &mut self.timed {
            Some(timed) => timed.set_weights(csr, &by_position),
            None => self.alias = Some(AliasTables::new(csr.indptr(), &by_position)),
        }
        self.weights = Some(by_position);
        Ok(())
    }

    /// Sets times by edge id; `name` is that of the edge type.
    pub(crate) fn set_times(
        &mut self,
        name: &str,
        relation: &Relation,
        times: &[i64],
    ) -> Result<(), GraphError> {
        check_len("times", "one per edge", relation.num_edges(), times.len())
            .map_err(|e| e.in_relation(name))?;
        let csr = relation.csr();
        let mut timed = TimedRows::new(csr, times);
        if let Some(weights) = &self.weights {
            timed.set_weights(csr, weights);
        }
        (self.alias, self.timed) = (None, Some(timed));
        Ok(())
    }

    /// Whether edges have times.
    pub(crate) fn is_timed(&self) -> bool {
        self.timed.is_some()
    }

    /// Places of the edges of a row that may be drawn: those strictly before `time`, or all.
    #[inline]
    pub(crate) fn before(&self, row: Range<usize>, time: Option<i64>) -> Range<usize> {
        match (&self.timed, time) {
            (Some(timed), Some(time)) => {
                let earlier = timed.times[row.clone()].partition_point(|&of| of < time);
                row.start..row.start + earlier
            }
            _ => row,
        }
    }

    /// The position in CSR of a place of [`before`](Self::before).
    #[inline]
    pub(crate) fn position(&self, place: usize) -> usize {
        self.timed.as_ref().map_or(place, |timed| timed.positions[place] as usize)
    }

    /// Draws the position of an edge, in proportion to weights if there are any; `None` if no edge can be drawn.
    #[inline]
    pub(crate) fn draw(&self, places: Range<usize>, draws: &mut Draws<'_>) -> Option<usize> {
        match &self.timed {
            None => draw(self.alias.as_ref(), places, draws),
            Some(timed) => timed.draw(places, draws),
        }
    }

    /// Weight of each place, up to a common factor.
    pub(crate) fn shares(&self, places: Range<usize>) -> Vec<f64> {
        match (&self.alias, &self.weights) {
            (Some(alias), _) => alias.shares(places),
            (None, Some(weights)) => {
                places.map(|place| f64::from(weights[self.position(place)])).collect()
            }
            (None, None) => vec![1.0; places.len()],
        }
    }
}

impl TimedRows {
    /// Sorts the rows. `times` are by edge id.
    fn new(csr: &Compressed, times: &[i64]) -> Self {
        let mut positions: Vec<u32> = (0..csr.indices().len() as u32).collect();
        let key = |p: &u32| (times[csr.edge_id(*p as usize) as usize], *p);
        // Splits the positions by row, so that threads write to disjoint slices.
        let (mut rows, mut left) = (Vec::with_capacity(csr.num_rows()), &mut positions[..]);
        for row in csr.indptr().windows(2) {
            let (row, rest) = left.split_at_mut((row[1] - row[0]) as usize);
            left = rest;
            if row.len() > 1 {
                rows.push(row);
            }
        }
        rows.into_par_iter().with_min_len(256).for_each(|row| row.sort_unstable_by_key(key));
        let times = positions.iter().map(|p| key(p).0).collect();
        Self { positions, times, sums: None }
    }

    /// Adds the weights of each row. `weights` are by position.
    fn set_weights(&mut self, csr: &Compressed, weights: &[f32]) {
        let mut sums = Vec::with_capacity(weights.len());
        for row in csr.indptr().windows(2) {
            let mut sum = 0.0;
            sums.extend(self.positions[row[0] as usize..row[1] as usize].iter().map(|&p| {
                sum += f64::from(weights[p as usize]);
                sum
            }));
        }
        self.sums = Some(sums);
    }

    #[inline]
    fn draw(&self, places: Range<usize>, draws: &mut Draws<'_>) -> Option<usize> {
        let place = match &self.sums {
            _ if places.is_empty() => return None,
            None => draws.below(places.len() as u32) as usize,
            Some(sums) => {
                let sums = &sums[places.clone()];
                let sum = sums[sums.len() - 1];
                if sum <= 0.0 {
                    return None;
                }
                let drawn = draws.unit() * sum;
                // Rounding may place a draw at the sum: it goes to the last edge with a positive weight.
                let last = sums.partition_point(|&s| s < sum);
                sums.partition_point(|&s| s <= drawn).min(last)
            }
        };
        Some(self.positions[places.start + place] as usize)
    }
}

/// Draws a position of a row, in proportion to weights if there are any; `None` if no edge can be drawn.
#[inline]
pub(crate) fn draw(
    weights: Option<&AliasTables>,
    row: Range<usize>,
    draws: &mut Draws<'_>,
) -> Option<usize> {
    let place = match weights {
        Some(table) => table.draw(row.clone(), draws)?,
        None if row.is_empty() => return None,
        None => draws.below(row.len() as u32),
    };
    Some(row.start + place as usize)
}
