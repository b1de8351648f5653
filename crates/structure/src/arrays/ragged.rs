//! Ragged lists of integers, one list per node or edge.

use std::sync::Arc;

use crate::error::GraphError;

/// A list of integers per row, of varying length. Multi-valued attributes are stored this way.
///
/// ```
/// use burn_gnn_structure::Ragged;
/// let r = Ragged::new(vec![0, 2, 2, 3], vec![7, 8, 9])?;
/// assert_eq!((r.row(0), r.row(1), r.row(2)), (&[7, 8][..], &[][..], &[9][..]));
/// assert_eq!(r.select(&[2, 0]).values(), [9, 7, 8]);
/// # Ok::<(), burn_gnn_structure::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ragged {
    // `Arc`, because frames are cloned. The arrays are modified only while a table is read.
    indptr: Arc<Vec<u64>>,
    values: Arc<Vec<i64>>,
}

impl Default for Ragged {
    /// A list without rows.
    fn default() -> Self {
        Self { indptr: Arc::new(vec![0]), values: Arc::default() }
    }
}

impl Ragged {
    /// Row `i` is `values[indptr[i]..indptr[i + 1]]`.
    ///
    /// # Errors
    /// [`GraphError::Indptr`] if `indptr` is empty, does not start at 0, decreases, or does not end at the number of
    /// values.
    pub fn new(indptr: Vec<u64>, values: Vec<i64>) -> Result<Self, GraphError> {
        let wrong = |position: usize, expected: String| {
            let value = i128::from(indptr.get(position).copied().unwrap_or(u64::MAX));
            Err(GraphError::Indptr { relation: "(lists)".into(), position, expected, value })
        };
        if indptr.first() != Some(&0) {
            return wrong(0, "0".into());
        }
        if let Some(i) = indptr.windows(2).position(|w| w[0] > w[1]) {
            return wrong(i + 1, format!("at least {}", indptr[i]));
        }
        if indptr.last() != Some(&(values.len() as u64)) {
            return wrong(indptr.len() - 1, format!("{}, the number of values", values.len()));
        }
        Ok(Self { indptr: Arc::new(indptr), values: Arc::new(values) })
    }
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.indptr.len() - 1
    }
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Row offsets: row `i` is `values[indptr[i]..indptr[i + 1]]`.
    pub fn indptr(&self) -> &[u64] {
        &self.indptr
    }
    /// The concatenated values of all rows.
    pub fn values(&self) -> &[i64] {
        &self.values
    }
    /// The values of a row.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    #[track_caller]
    pub fn row(&self, row: usize) -> &[i64] {
        &self.values[self.indptr[row] as usize..self.indptr[row + 1] as usize]
    }
    /// Gathers rows, in the order of `rows`; duplicates are allowed.
    ///
    /// # Panics
    /// If a row is not below [`len`](Self::len).
    #[track_caller]
    #[must_use]
    pub fn select(&self, rows: &[u32]) -> Self {
        let mut out = Self::default();
        rows.iter().for_each(|&r| out.push(self.row(r as usize).iter().copied()));
        out
    }
    /// Appends a row.
    #[doc(hidden)]
    pub fn push(&mut self, row: impl IntoIterator<Item = i64>) {
        let values = Arc::make_mut(&mut self.values);
        values.extend(row);
        Arc::make_mut(&mut self.indptr).push(values.len() as u64);
    }
    /// Appends the rows of another list.
    #[doc(hidden)]
    pub fn append(&mut self, other: &Self) {
        let before = self.values.len() as u64;
        Arc::make_mut(&mut self.values).extend_from_slice(&other.values);
        Arc::make_mut(&mut self.indptr).extend(other.indptr[1..].iter().map(|p| before + p));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_pushed_selected_and_appended() {
        let mut a = Ragged::default();
        a.push([1, 2]);
        a.push([]);
        let b = Ragged::new(vec![0, 1], vec![3]).unwrap();
        let before = a.clone();
        a.append(&b);
        assert_eq!(a, Ragged::new(vec![0, 2, 2, 3], vec![1, 2, 3]).unwrap());
        assert_eq!((before.len(), before.values()), (2, &[1, 2][..]), "a clone keeps its rows");
        assert_eq!(a.select(&[2, 2, 1]), Ragged::new(vec![0, 1, 2, 2], vec![3, 3]).unwrap());
    }

    #[test]
    fn invalid_offsets_are_errors() {
        for (indptr, values, end) in [
            (
                vec![],
                vec![],
                "`indptr[0]` must be 0, got 18446744073709551615; compute `indptr` as the cumulative sum of the row lengths, from 0",
            ),
            (
                vec![1],
                vec![1],
                "`indptr[0]` must be 0, got 1; compute `indptr` as the cumulative sum of the row lengths, from 0",
            ),
            (
                vec![0, 2, 1, 2],
                vec![1, 2],
                "`indptr[2]` must be at least 2, got 1; compute `indptr` as the cumulative sum of the row lengths, from 0",
            ),
            (
                vec![0, 1],
                vec![1, 2],
                "`indptr[1]` must be 2, the number of values, got 1; compute `indptr` as the cumulative sum of the row lengths, from 0",
            ),
        ] {
            let e = Ragged::new(indptr, values).unwrap_err().to_string();
            assert!(e.ends_with(end), "{e}");
        }
    }
}
