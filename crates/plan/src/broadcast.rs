//! Resolves NumPy broadcasting of feature rows before kernels run.

use burn::tensor::Shape;

use crate::error::PlanError;

/// How the columns of an output row find their operand entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Column `j` reads entry `j`.
    Same,
    /// Every column reads the only entry.
    One,
    /// Column `j` reads entry `j / times`, `times` 8 or a multiple of 16: attention heads.
    Repeat(usize),
    /// Column `j` reads entry `table[j]`; no entries if no column is ever read.
    Table(Vec<u32>),
}

/// One operand's feature row against the output's.
#[derive(Clone, Debug)]
pub struct RowMap {
    /// Feature shape as given.
    pub own: Vec<usize>,
    /// Feature shape with leading ones up to the rank of the output's.
    pub padded: Vec<usize>,
    /// Entries of a row.
    pub len: usize,
    /// How the columns of an output row find their entry.
    pub columns: Columns,
}

/// Why two feature shapes cannot be operands of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BroadcastError {
    /// They do not broadcast.
    Axes,
    /// A row of this feature shape has more than [`MAX_COLUMNS`] entries.
    Width(Vec<usize>),
}

impl BroadcastError {
    /// The error of operator `op`, of feature shapes `lhs` and `rhs`.
    pub fn of(self, op: &'static str, lhs: &[usize], rhs: &[usize]) -> PlanError {
        match self {
            Self::Axes => PlanError::Broadcast { op, lhs: lhs.to_vec(), rhs: rhs.to_vec() },
            Self::Width(shape) => PlanError::TooWide { op, shape, limit: MAX_COLUMNS },
        }
    }
}

/// Offsets in a row are 32-bit.
pub const MAX_COLUMNS: usize = u32::MAX as usize;

/// Entries of a row; `None` for more than [`MAX_COLUMNS`].
pub(crate) fn width(features: &[usize]) -> Option<usize> {
    // A zero anywhere wins over an overflow of the axes before it.
    if features.contains(&0) {
        return Some(0);
    }
    features.iter().try_fold(1usize, |n, &axis| n.checked_mul(axis)).filter(|&n| n <= MAX_COLUMNS)
}

/// Entries of a row of this feature shape; few enough that 32 bits number them.
///
/// # Errors
/// More entries.
pub fn check_width(op: &'static str, features: &[usize]) -> Result<usize, PlanError> {
    width(features).ok_or_else(|| PlanError::TooWide {
        op,
        shape: features.to_vec(),
        limit: MAX_COLUMNS,
    })
}

/// The shape of `rows` rows of a feature shape.
#[doc(hidden)]
pub fn with_rows(rows: usize, features: &[usize]) -> Shape {
    Shape::from([&[rows], features].concat())
}

impl RowMap {
    /// `read`: whether any column is looked up; otherwise no table is made.
    fn new(own: &[usize], out: &[usize], read: bool) -> Result<Self, BroadcastError> {
        let mut padded = vec![1; out.len() - own.len()];
        padded.extend_from_slice(own);
        let len = width(own).ok_or_else(|| BroadcastError::Width(own.to_vec()))?;
        let columns = if padded == out {
            Columns::Same
        } else if len == 1 {
            Columns::One
        } else if let Some(times) = repeat(&padded, out) {
            Columns::Repeat(times)
        } else {
            Columns::Table(if read { row_offsets(&padded, out) } else { Vec::new() })
        };
        Ok(Self { own: own.to_vec(), padded, len, columns })
    }
    /// The offsets as a table whatever the kind, for the general path.
    pub fn table(&self, out: &[usize]) -> Vec<u32> {
        match &self.columns {
            Columns::Table(t) => t.clone(),
            _ => row_offsets(&self.padded, out),
        }
    }
}

/// How many neighbouring columns read one entry, where leading axes are equal and the others broadcast, and
/// kernels have a loop for it.
fn repeat(padded: &[usize], out: &[usize]) -> Option<usize> {
    let same = padded.iter().zip(out).take_while(|(p, o)| p == o).count();
    let times = out[same..].iter().try_fold(1usize, |n, &axis| n.checked_mul(axis))?;
    (padded[same..].iter().all(|&p| p == 1) && times > 0 && (times == 8 || times % 16 == 0))
        .then_some(times)
}

/// Offset in a row of shape `padded` for each entry of a row of shape `out` (row-major); for the first axes of `out`
/// alone, where each block of the others starts.
pub fn row_offsets(padded: &[usize], out: &[usize]) -> Vec<u32> {
    let mut offsets = vec![0u32];
    let mut stride = padded.iter().product::<usize>();
    for (&p, &o) in padded.iter().zip(out) {
        stride = stride.checked_div(p).unwrap_or(0);
        let step = if p == 1 { 0 } else { stride as u32 };
        offsets =
            offsets.iter().flat_map(|&base| (0..o as u32).map(move |i| base + i * step)).collect();
    }
    offsets
}

/// Feature shape of the result, entries of its rows, and the two maps. Without edges no message is ever
/// made, and tables of offsets stay empty.
pub fn broadcast(
    lhs: &[usize],
    rhs: &[usize],
    num_edges: usize,
) -> Result<(Vec<usize>, usize, RowMap, RowMap), BroadcastError> {
    let rank = lhs.len().max(rhs.len());
    let axis = |s: &[usize], i: usize| (i + s.len()).checked_sub(rank).map_or(1, |k| s[k]);
    let out = (0..rank)
        .map(|i| match (axis(lhs, i), axis(rhs, i)) {
            (a, b) if a == b => Some(a),
            (1, b) => Some(b),
            (a, 1) => Some(a),
            _ => None,
        })
        .collect::<Option<Vec<_>>>()
        .ok_or(BroadcastError::Axes)?;
    let columns = width(&out).ok_or_else(|| BroadcastError::Width(out.clone()))?;
    let read = num_edges > 0 && columns > 0;
    let (l, r) = (RowMap::new(lhs, &out, read)?, RowMap::new(rhs, &out, read)?);
    Ok((out, columns, l, r))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numpy_rules() {
        let (out, columns, l, r) = broadcast(&[4, 1], &[3], 1).unwrap();
        assert_eq!((&out[..], columns), (&[4, 3][..], 12));
        assert_eq!(l.columns, Columns::Table(vec![0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]));
        assert_eq!(r.columns, Columns::Table(vec![0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]));
        assert_eq!(r.padded, [1, 3]);
        let (out, _, l, r) = broadcast(&[], &[2, 3], 1).unwrap();
        assert_eq!((out, l.columns, r.columns), (vec![2, 3], Columns::One, Columns::Same));
        assert_eq!(broadcast(&[2], &[3], 1).unwrap_err(), BroadcastError::Axes);
        let (out, _, l, _) = broadcast(&[1], &[0], 1).unwrap();
        assert_eq!((out, l.table(&[0])), (vec![0], vec![]));
        assert_eq!(broadcast(&[], &[], 1).unwrap().0, Vec::<usize>::new());
    }

    #[test]
    fn heads_need_no_table() {
        let columns = |lhs: &[usize], rhs: &[usize]| broadcast(lhs, rhs, 1).unwrap().3.columns;
        assert_eq!(columns(&[4, 8], &[4, 1]), Columns::Repeat(8));
        assert_eq!(columns(&[2, 2, 16], &[2, 1, 1]), Columns::Repeat(32));
        assert_eq!(columns(&[4, 4], &[4, 1]), Columns::Table((0..16).map(|j| j / 4).collect()));
        assert_eq!(columns(&[2, 8], &[1, 8]), Columns::Table((0..16).map(|j| j % 8).collect()));
    }

    #[test]
    fn sizes_are_checked_before_tables() {
        const M: usize = 1 << 20;
        assert_eq!(broadcast(&[M, 1], &[1, M], 0).unwrap_err(), BroadcastError::Width(vec![M, M]));
        assert_eq!(broadcast(&[M, 1], &[1, M], 9).unwrap_err(), BroadcastError::Width(vec![M, M]));
        // Products that do not fit a usize, of the result and of an operand whose result is empty.
        let huge = [1 << 40, 1 << 40];
        assert_eq!(broadcast(&huge, &[1], 0).unwrap_err(), BroadcastError::Width(huge.to_vec()));
        assert_eq!(
            broadcast(&[1 << 40, 1 << 40, 1], &[0], 0).unwrap_err(),
            BroadcastError::Width(vec![1 << 40, 1 << 40, 1])
        );
        // A zero last, after axes whose product does not fit.
        assert_eq!(broadcast(&[1 << 40, 1 << 40, 0], &[0], 3).unwrap().1, 0);
        assert_eq!(broadcast(&[MAX_COLUMNS], &[1], 5).unwrap().1, MAX_COLUMNS);
        assert_eq!(
            broadcast(&[MAX_COLUMNS + 1], &[1], 5).unwrap_err(),
            BroadcastError::Width(vec![MAX_COLUMNS + 1])
        );
        // Wide, allowed, and never read: no table of 4 GB. No multiple of 16, which would need no table anyway.
        const W: usize = (1 << 15) + 1;
        for (lhs, rhs, edges) in [(&[W, 1][..], &[1, W][..], 0), (&[W, 1, 1], &[1, W, 0], 7)] {
            let (_, _, l, r) = broadcast(lhs, rhs, edges).unwrap();
            assert_eq!(
                (l.columns, r.columns == Columns::Same || r.columns == Columns::Table(vec![])),
                (Columns::Table(vec![]), true)
            );
        }
    }
}
