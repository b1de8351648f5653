//! Alias tables: weighted draws in constant time.

use std::ops::Range;

use rayon::prelude::*;

use burn_gnn_graph::GraphError;

use crate::random::generator::Draws;

/// One alias table (Walker, ACM TOMS 1977; Vose's linear construction, IEEE TSE 1991) per row of a compressed layout.
///
/// A table splits the total weight of `n` entries into `n` columns of equal height, each filled by at most two entries.
/// A draw chooses a column uniformly, then one of its two entries: `O(1)` for any weights, at 8 bytes per edge.
///
/// ```text
/// build:  height = sum(weights) / n
///         while a column is not full: fill it with an entry below `height` and the rest of one above it
/// draw:   i = below(n);  word() < keep[i] ? i : other[i]
/// ```
///
/// A row whose weights are all 0 has no draws.
#[derive(Clone, Debug)]
pub(crate) struct AliasTables {
    /// Probability, in units of 2⁻³², that a draw of the column returns its own entry.
    keep: Vec<u32>,
    /// The other entry of the column, counted from the start of the row.
    other: Vec<u32>,
}

/// Value of `keep` for a column with one entry.
const ALWAYS: u32 = u32::MAX;

impl AliasTables {
    /// Builds tables of `weights`, by position, which are finite and not negative.
    pub(crate) fn new(indptr: &[u32], weights: &[f32]) -> Self {
        let (mut keep, mut other) = (vec![0u32; weights.len()], vec![0u32; weights.len()]);
        // Splits the arrays by row, so that threads write to disjoint slices.
        let mut rows = Vec::with_capacity(indptr.len() - 1);
        let (mut keep_left, mut other_left) = (&mut keep[..], &mut other[..]);
        for w in indptr.windows(2) {
            let (row_keep, rest_keep) = keep_left.split_at_mut((w[1] - w[0]) as usize);
            let (row_other, rest_other) = other_left.split_at_mut((w[1] - w[0]) as usize);
            (keep_left, other_left) = (rest_keep, rest_other);
            if !row_keep.is_empty() {
                rows.push((&weights[w[0] as usize..w[1] as usize], row_keep, row_other));
            }
        }
        rows.into_par_iter()
            .with_min_len(256)
            .for_each_init(Default::default, |memory, (w, keep, other)| {
                fill(w, keep, other, memory)
            });
        Self { keep, other }
    }

    /// Builds the table of one row.
    pub(crate) fn single(weights: &[f32]) -> Self {
        Self::new(&[0, weights.len() as u32], weights)
    }

    /// Probability of each position of a row, up to a common factor; empty for a row without draws.
    pub(crate) fn shares(&self, row: Range<usize>) -> Vec<f64> {
        let mut shares = vec![0.0; row.len()];
        if row.is_empty() || self.other[row.start] == u32::MAX {
            return shares;
        }
        for (place, p) in row.enumerate() {
            let kept = if self.keep[p] == ALWAYS {
                1.0
            } else {
                f64::from(self.keep[p]) / 4_294_967_296.0
            };
            shares[place] += kept;
            shares[self.other[p] as usize] += 1.0 - kept;
        }
        shares
    }

    /// Draws a position of the row in proportion to its weight; `None` if all weights are 0.
    #[inline]
    pub(crate) fn draw(&self, row: Range<usize>, draws: &mut Draws<'_>) -> Option<u32> {
        if row.is_empty() || self.other[row.start] == u32::MAX {
            return None;
        }
        let place = draws.below(row.len() as u32);
        let (keep, coin) = (self.keep[row.start + place as usize], draws.word());
        Some(if keep == ALWAYS || coin < keep {
            place
        } else {
            self.other[row.start + place as usize]
        })
    }
}

/// Positions of a row, and the remaining weight of each.
type Shares = Vec<(u32, f64)>;

fn fill(
    weights: &[f32],
    keep: &mut [u32],
    other: &mut [u32],
    (small, large): &mut (Shares, Shares),
) {
    let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
    if total <= 0.0 {
        other[0] = u32::MAX; // Marks a row without draws: no position has this number.
        return;
    }
    small.clear();
    large.clear();
    for (i, &w) in weights.iter().enumerate() {
        let share = f64::from(w) * weights.len() as f64 / total;
        if share < 1.0 {
            small.push((i as u32, share))
        } else {
            large.push((i as u32, share))
        }
        (keep[i], other[i]) = (ALWAYS, i as u32);
    }
    while let Some((i, share)) = small.pop() {
        let Some(top) = large.last_mut() else {
            // Rounding left this entry without a partner: its column is full, unless its weight is 0.
            if weights[i as usize] == 0.0 {
                let any = (0..weights.len())
                    .max_by(|&a, &b| weights[a].total_cmp(&weights[b]))
                    .unwrap_or(0);
                (keep[i as usize], other[i as usize]) = (0, any as u32);
            }
            continue;
        };
        // The share is below 1; the clamp keeps a rounded share below `ALWAYS`.
        keep[i as usize] = ((share * 4_294_967_296.0) as u32).min(ALWAYS - 1);
        other[i as usize] = top.0;
        top.1 -= 1.0 - share;
        if top.1 < 1.0 {
            small.extend(large.pop());
        }
    }
}

/// Checks that weights are finite and not negative.
pub(crate) fn check_weights(
    arg: &'static str,
    of: impl Fn() -> String,
    weights: &[f32],
) -> Result<(), GraphError> {
    match weights.iter().position(|w| !w.is_finite() || *w < 0.0) {
        None => Ok(()),
        Some(position) => {
            Err(GraphError::Weight { arg, of: of(), position, value: f64::from(weights[position]) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::key::SampleKey;

    fn counts(weights: &[f32], draws: u64) -> Vec<u32> {
        let table = AliasTables::single(weights);
        let stream = SampleKey::new(11).stream("test");
        let mut counts = vec![0u32; weights.len()];
        for id in 0..draws {
            counts[table.draw(0..weights.len(), &mut Draws::new(&stream, id)).unwrap() as usize] +=
                1;
        }
        counts
    }

    /// The last item included, which a well-known implementation never draws.
    #[test]
    fn draws_follow_the_weights() {
        for weights in
            [vec![1.0f32; 4], vec![1.0, 2.0, 3.0, 4.0], vec![0.0, 5.0, 0.0, 1e-3, 9.0, 0.5]]
        {
            let n = 100_000.0;
            let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
            let counts = counts(&weights, n as u64);
            let mut chi = 0.0;
            for (&w, &c) in weights.iter().zip(&counts) {
                let expected = n * f64::from(w) / total;
                if w == 0.0 {
                    assert_eq!(c, 0, "weight 0 was drawn");
                } else {
                    chi += (f64::from(c) - expected).powi(2) / expected;
                }
            }
            assert!(chi < 21.2, "{weights:?} {counts:?}: {chi}"); // 99.99 % point, 3 degrees
        }
    }

    #[test]
    fn a_row_of_zeros_draws_nothing_and_rows_are_apart() {
        let tables = AliasTables::new(&[0, 2, 2, 5], &[0.0, 0.0, 0.0, 1.0, 0.0]);
        let stream = SampleKey::new(1).stream("test");
        let draw = |row| tables.draw(row, &mut Draws::new(&stream, 4));
        assert_eq!((draw(0..2), draw(2..2), draw(2..5)), (None, None, Some(1)));
    }
}
