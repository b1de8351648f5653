//! Defines `IdLists`, a list of ids per row.

use burn_gnn_models::ModelError;

use crate::errors::out_of_range;

/// A list of distinct ids per row, ascending: the targets of each query, the items that each user has seen.
///
/// ```
/// use burn_gnn_links::IdLists;
/// let seen = IdLists::from_pairs(3, [(2, 7), (0, 5), (2, 1), (2, 7)])?;
/// assert_eq!((seen.of(0), seen.of(1), seen.of(2)), (&[5][..], &[][..], &[1, 7][..]));
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdLists {
    /// Ids of row `r`: `ids[starts[r]..starts[r + 1]]`.
    starts: Vec<usize>,
    ids: Vec<u32>,
}

impl Default for IdLists {
    fn default() -> Self {
        Self { starts: vec![0], ids: vec![] }
    }
}

impl IdLists {
    /// Lists of `(row, id)` pairs in any order; repeated pairs count once.
    ///
    /// # Errors
    /// A row that is not below `rows`.
    ///
    /// # Cost
    /// `O(rows + pairs log pairs)`; 12 bytes per pair during the call, 4 afterwards.
    pub fn from_pairs(
        rows: usize,
        pairs: impl IntoIterator<Item = (u32, u32)>,
    ) -> Result<Self, ModelError> {
        let mut pairs: Vec<(u32, u32)> = pairs.into_iter().collect();
        pairs.sort_unstable();
        pairs.dedup();
        if let Some(&(row, _)) = pairs.last().filter(|last| last.0 as usize >= rows) {
            return Err(out_of_range("row of pairs", format!("0..{rows}"), row));
        }
        let mut starts = vec![0; rows + 1];
        pairs.iter().for_each(|p| starts[p.0 as usize + 1] += 1);
        (0..rows).for_each(|r| starts[r + 1] += starts[r]);
        Ok(Self { starts, ids: pairs.into_iter().map(|p| p.1).collect() })
    }

    /// One id per row.
    pub fn single(ids: Vec<u32>) -> Self {
        Self { starts: (0..=ids.len()).collect(), ids }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of ids of all rows.
    pub fn total(&self) -> usize {
        self.ids.len()
    }

    /// Ids of a row; none for a row beyond the last.
    pub fn of(&self, row: usize) -> &[u32] {
        match self.starts.get(row..row.saturating_add(2)) {
            Some(&[from, to]) => &self.ids[from..to],
            _ => &[],
        }
    }

    /// Ids of all rows, concatenated.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Pairs of row and id, in order.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..self.len()).flat_map(|r| self.of(r).iter().map(move |&id| (r as u32, id)))
    }

    /// Offsets of the rows in [`ids`](Self::ids), one more than rows.
    pub(crate) fn starts(&self) -> &[usize] {
        &self.starts
    }
}
