//! Defines `Combine`: reductions of groups of rows to one row each.

use burn::tensor::kind::Basic;
use burn::tensor::{Bool, DType, Device, Float, IndexingUpdateOp, Int, Tensor, TensorData};

use crate::features::column::{Column, ColumnKind, by_rank};
use crate::features::row_index::row_index;
use crate::features::rows::join;
use burn_gnn_structure::GraphError;

/// Reduction of the feature rows of several edges to one row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Combine {
    /// The row of the edge with the smallest id; for all columns.
    #[default]
    First,
    /// The sum; for float and integer columns.
    Sum,
    /// The mean; for float columns.
    Mean,
    /// The maximum, NaN if an entry is NaN; for float and integer columns.
    Max,
    /// The minimum, NaN if an entry is NaN; for float and integer columns.
    Min,
}

/// Groups of rows: group `g` consists of rows `order[indptr[g]..indptr[g + 1]]`.
#[derive(Clone, Copy)]
pub(crate) struct Groups<'a> {
    pub(crate) indptr: &'a [u32],
    /// `None` if rows are sorted by group.
    pub(crate) order: Option<&'a [u32]>,
}

impl Groups<'_> {
    fn len(&self) -> usize {
        self.indptr.len() - 1
    }
    fn rows(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        self.indptr.windows(2).map(|w| w[0] as usize..w[1] as usize)
    }
}

impl Column {
    /// Reduces each group to one row; an empty group gives 0.
    pub(crate) fn combine(
        &self,
        frame: &str,
        name: &str,
        groups: Groups<'_>,
        how: Combine,
    ) -> Result<Self, GraphError> {
        let able = match self.kind {
            ColumnKind::Float => true,
            ColumnKind::Int => how != Combine::Mean,
            ColumnKind::Bool => how == Combine::First,
        };
        if !able {
            let expected = format!("column that has a {how:?}; give `{name}` a rule of its own");
            return Err(self.wrong_type(frame, name, expected));
        }
        if how == Combine::First {
            let start = |rows: std::ops::Range<usize>| match groups.order {
                _ if rows.is_empty() => self.len() as u32,
                Some(order) => order[rows.start],
                None => rows.start as u32,
            };
            let ids: Vec<u32> = groups.rows().map(start).collect();
            if ids.iter().all(|&i| (i as usize) < self.len()) {
                return Ok(self.select(&ids));
            }
            let zero = self.filled(frame, name, 1, 0.0)?;
            return Ok(join(frame, name, &[self.clone(), zero])?.select(&ids));
        }
        let zeros = self.filled(frame, name, groups.len(), 0.0)?;
        if self.is_empty() || zeros.is_empty() {
            return Ok(zeros);
        }
        let ordered = groups.order.map_or_else(|| self.clone(), |o| self.select(o));
        let empty = &zeros.tensor;
        let combined = match self.kind {
            ColumnKind::Float => by_rank!(ordered, Float, t => {
                let zeros = Tensor::from_dispatch(empty.clone());
                Self::new(combined_floats(t, zeros, groups, how, &self.device))
            }),
            ColumnKind::Int => by_rank!(ordered, Int, t => {
                let zeros = Tensor::from_dispatch(empty.clone());
                Self::new(combined_ints(t, zeros, groups, how, &self.device))
            }),
            // Unreachable: booleans support only `First`, which has returned above.
            ColumnKind::Bool => zeros,
        };
        Ok(combined.named_like(self))
    }
}

/// Sum, mean, maximum or minimum of groups of contiguous rows.
fn combined_floats<const D: usize>(
    rows: Tensor<D>,
    zeros: Tensor<D>,
    groups: Groups<'_>,
    how: Combine,
    device: &Device,
) -> Tensor<D> {
    let dtype = rows.dtype();
    match how {
        Combine::Sum | Combine::Mean if matches!(dtype, DType::F16 | DType::BF16) => {
            let (rows, zeros) = (rows.cast(DType::F32), zeros.cast(DType::F32));
            combined_floats(rows, zeros, groups, how, device).cast(dtype)
        }
        Combine::Mean => {
            let counts: Vec<f64> = groups.rows().map(|r| r.len().max(1) as f64).collect();
            let mut dims = [1; D];
            dims[0] = counts.len();
            sums(rows, zeros, groups, device)
                / Tensor::from_data(TensorData::new(counts, dims), (device, dtype))
        }
        Combine::Max => {
            extremes(rows, zeros, groups, device, |a, b| a.lower(b.clone()).bool_or(b.is_nan()))
        }
        Combine::Min => {
            extremes(rows, zeros, groups, device, |a, b| a.greater(b.clone()).bool_or(b.is_nan()))
        }
        Combine::Sum | Combine::First => sums(rows, zeros, groups, device),
    }
}

/// Sum, maximum or minimum of groups of contiguous rows.
fn combined_ints<const D: usize>(
    rows: Tensor<D, Int>,
    zeros: Tensor<D, Int>,
    groups: Groups<'_>,
    how: Combine,
    device: &Device,
) -> Tensor<D, Int> {
    match how {
        Combine::Max => extremes(rows, zeros, groups, device, Tensor::lower),
        Combine::Min => extremes(rows, zeros, groups, device, Tensor::greater),
        _ => sums(rows, zeros, groups, device),
    }
}

fn sums<const D: usize, K: Basic>(
    rows: Tensor<D, K>,
    zeros: Tensor<D, K>,
    groups: Groups<'_>,
    device: &Device,
) -> Tensor<D, K> {
    let group = row_index(
        groups.rows().enumerate().flat_map(|(g, r)| std::iter::repeat_n(g, r.len())),
        device,
    );
    zeros.select_assign(0, group, rows, IndexingUpdateOp::Add)
}

/// Maximum or minimum of groups by doubling: after step `k`, row `p` holds the best of the `2^k` rows of its group from `p`
/// on. `O(rows · log(largest group))` with plain tensor operations, which are differentiable. `better(a, b)`: whether `b`
/// replaces `a`.
fn extremes<const D: usize, K: Basic>(
    mut best: Tensor<D, K>,
    zeros: Tensor<D, K>,
    groups: Groups<'_>,
    device: &Device,
    better: impl Fn(Tensor<D, K>, Tensor<D, K>) -> Tensor<D, Bool>,
) -> Tensor<D, K> {
    let largest = groups.rows().map(|r| r.len()).max().unwrap_or(0);
    let mut step = 1;
    while step < largest {
        let ahead = groups
            .rows()
            .flat_map(|r| r.clone().map(move |p| if p + step < r.end { p + step } else { p }));
        let other = best.clone().select(0, row_index(ahead, device));
        let mask = better(best.clone(), other.clone());
        best = best.mask_where(mask, other);
        step *= 2;
    }
    let (found, first): (Vec<usize>, Vec<usize>) =
        groups.rows().enumerate().filter(|(_, r)| !r.is_empty()).map(|(g, r)| (g, r.start)).unzip();
    let best = best.select(0, row_index(first.into_iter(), device));
    zeros.select_assign(0, row_index(found.into_iter(), device), best, IndexingUpdateOp::Add)
}
