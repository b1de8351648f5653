//! Selects the first rows of a tensor that is used as a whole as well.

use burn::tensor::Tensor;
use burn_gnn_plan::SplitPlan;

use crate::split_rows::runs::cut;

/// Returns `x` and its rows `0..rows`: the input rows of a block and the rows of its destinations.
///
/// # Gradients
/// The gradient of the second result is added in place to the first rows of the gradient of the first result. If only
/// the second result reaches the loss, its gradient is extended by zeros. Burn's `slice` would fill a tensor as large as
/// `x` with zeros and add all of it, on one thread. First order only, as for [`split_rows`](crate::split_rows).
///
/// # Cost
/// Forward is free on backends with views. Backward reads and writes the first rows only, or writes `d x` once.
///
/// # Panics
/// `rows` is larger than the number of rows of `x`.
pub(crate) fn first_rows<const D: usize>(x: Tensor<D>, rows: usize) -> (Tensor<D>, Tensor<D>) {
    let all = x.dims()[0];
    if rows == all {
        return (x.clone(), x);
    }
    let mut parts = cut(x, SplitPlan::first(all, rows)).into_iter();
    match (parts.next(), parts.next()) {
        (Some(all), Some(first)) => (all, first),
        _ => unreachable!("two parts"),
    }
}

#[cfg(all(test, feature = "flex"))]
#[allow(deprecated)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::split_rows::runs::tests::{devices, values};

    /// Values and gradients equal those of `slice`, for any results that reach the loss, also if one is used twice.
    #[test]
    fn gradients_are_those_of_slices() {
        for device in devices() {
            // Small whole numbers, so that sums do not depend on their order.
            let data =
                TensorData::new((0..30).map(|i| i as f32 - 13.0).collect::<Vec<_>>(), [5, 2, 3]);
            let leaf = || Tensor::<3>::from_data(data.clone(), &device).require_grad();
            for rows in [0, 2, 5] {
                for (with_all, with_first) in [(true, true), (true, false), (false, true)] {
                    // Burn's slice of no rows leaves the graph.
                    if rows == 0 && !with_all {
                        continue;
                    }
                    let loss = |all: Tensor<3>, first: Tensor<3>| {
                        let mut loss = Tensor::<1>::zeros([1], &device);
                        if with_all {
                            loss = loss + (all.clone() * all).sum() * 3.0;
                        }
                        if with_first {
                            loss = loss
                                + (first.clone() * first.clone() * first.clone()).sum()
                                + first.sum() * 2.0;
                        }
                        loss
                    };
                    let (x, y) = (leaf(), leaf());
                    let (all, first) = first_rows(x.clone() * 2.0, rows);
                    let twice = y.clone() * 2.0;
                    let sliced = twice.clone().slice_dim(0, 0..rows);
                    assert_eq!(
                        (first.dims(), values(first.clone())),
                        ([rows, 2, 3], values(sliced.clone()))
                    );
                    assert_eq!(values(all.clone()), values(twice.clone()));
                    let (got, want) = (
                        x.grad(&loss(all, first).backward()),
                        y.grad(&loss(twice, sliced).backward()),
                    );
                    assert_eq!(
                        values(got.unwrap()),
                        values(want.unwrap()),
                        "{rows} {with_all} {with_first}"
                    );
                }
            }
        }
    }

    /// Constants are split without autodiff.
    #[test]
    fn of_constants() {
        let (all, first) = first_rows(Tensor::<1>::from_data([1.0, 2.0, 3.0], &Device::flex()), 2);
        assert_eq!((values(all), values(first)), (vec![1.0, 2.0, 3.0], vec![1.0, 2.0]));
    }

    #[test]
    #[should_panic(expected = "`rows` must be at most 3 (rows of the tensor), got 4")]
    fn more_than_there_are() {
        first_rows(Tensor::<1>::from_data([1.0, 2.0, 3.0], &Device::flex()), 4);
    }
}
