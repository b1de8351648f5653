//! Resolves NumPy broadcasting of feature rows before kernels run.

use burn::tensor::Shape;

use crate::error::PlanError;

/// Index map from the columns of an output row to the entries of an operand row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Column `j` reads entry `j`.
    Same,
    /// Every column reads the single entry.
    One,
    /// Column `j` reads entry `j / times`, as for attention heads; `times` is 8 or a multiple of 16.
    Repeat(usize),
    /// Column `j` reads entry `table[j]`. The table is empty if kernels read no columns.
    Table(Vec<u32>),
}

/// Broadcasting of one operand's feature row to the output's.
#[derive(Clone, Debug)]
pub struct RowMap {
    /// Feature shape of the operand.
    pub own: Vec<usize>,
    /// The same with leading ones, up to the rank of the output.
    pub padded: Vec<usize>,
    /// Entries of a row.
    pub len: usize,
    /// Index map from columns of an output row.
    pub columns: Columns,
}

/// Reason why two feature shapes cannot be operands of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BroadcastError {
    /// They do not broadcast.
    Axes,
    /// A row of this feature shape has more than [`MAX_COLUMNS`] entries.
    Width(Vec<usize>),
}

impl BroadcastError {
    /// Converts to the error of operator `op` on feature shapes `lhs` and `rhs`.
    pub fn of(self, op: &'static str, lhs: &[usize], rhs: &[usize]) -> PlanError {
        match self {
            Self::Axes => PlanError::Broadcast { op, lhs: lhs.to_vec(), rhs: rhs.to_vec() },
            Self::Width(shape) => PlanError::TooWide { op, shape, limit: MAX_COLUMNS },
        }
    }
}

/// Largest number of entries of a feature row: kernels use 32-bit offsets in a row.
pub const MAX_COLUMNS: usize = u32::MAX as usize;

/// Number of entries of a row; `None` above [`MAX_COLUMNS`].
pub(crate) fn width(features: &[usize]) -> Option<usize> {
    // A zero axis makes the row empty, even where the product of the axes before it overflows.
    if features.contains(&0) {
        return Some(0);
    }
    features.iter().try_fold(1usize, |n, &axis| n.checked_mul(axis)).filter(|&n| n <= MAX_COLUMNS)
}

/// Number of entries of a row of this feature shape.
///
/// # Errors
/// More than [`MAX_COLUMNS`] entries.
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
    /// `read`: whether kernels read any column. If not, no table is allocated.
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
    /// The index map as a table of offsets, for kernels of any broadcasting.
    pub fn table(&self, out: &[usize]) -> Vec<u32> {
        match &self.columns {
            Columns::Table(t) => t.clone(),
            _ => row_offsets(&self.padded, out),
        }
    }
}

/// Number of adjacent columns that read the same entry: leading axes are equal, and all other axes of the operand are
/// 1. `None` for other shapes, and for numbers that kernels have no specialised loop for.
fn repeat(padded: &[usize], out: &[usize]) -> Option<usize> {
    let same = padded.iter().zip(out).take_while(|(p, o)| p == o).count();
    let times = out[same..].iter().try_fold(1usize, |n, &axis| n.checked_mul(axis))?;
    (padded[same..].iter().all(|&p| p == 1) && times > 0 && (times == 8 || times % 16 == 0))
        .then_some(times)
}

/// Offset in a row of shape `padded` for each entry of a row of shape `out`, in row-major order. If `out` has only the
/// leading axes, these are the offsets at which the blocks of the trailing axes start.
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

/// Broadcasts two feature shapes as NumPy does. Returns the feature shape of the result, the entries of its rows, and
/// the maps of both operands. Without edges tables of offsets stay empty, since no message is computed.
///
/// # Errors
/// Shapes that do not broadcast; rows of more than [`MAX_COLUMNS`] entries.
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
        // Products that overflow `usize`: of the result, and of an operand whose result is empty.
        let huge = [1 << 40, 1 << 40];
        assert_eq!(broadcast(&huge, &[1], 0).unwrap_err(), BroadcastError::Width(huge.to_vec()));
        assert_eq!(
            broadcast(&[1 << 40, 1 << 40, 1], &[0], 0).unwrap_err(),
            BroadcastError::Width(vec![1 << 40, 1 << 40, 1])
        );
        // A last axis of length 0 after axes whose product overflows.
        assert_eq!(broadcast(&[1 << 40, 1 << 40, 0], &[0], 3).unwrap().1, 0);
        assert_eq!(broadcast(&[MAX_COLUMNS], &[1], 5).unwrap().1, MAX_COLUMNS);
        assert_eq!(
            broadcast(&[MAX_COLUMNS + 1], &[1], 5).unwrap_err(),
            BroadcastError::Width(vec![MAX_COLUMNS + 1])
        );
        // Wide rows that are allowed and never read allocate no table, which would take 4 GB. The width is no multiple
        // of 16, as those need no table.
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
