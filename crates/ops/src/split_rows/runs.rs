//! Splits a tensor into runs of rows.

use burn::tensor::Tensor;
use burn_gnn_plan::SplitPlan;

use crate::operator::{call, tensor};
use crate::split_rows::operator::{Part, Whole};
use crate::split_rows::pending::Split;

/// Splits a tensor into runs of rows: part `i` is rows `bounds[i]..bounds[i + 1]` of `x`, where `bounds` ascends from 0
/// to the number of rows.
///
/// In backward, Burn's `narrow` allocates a gradient as large as `x` for every part. This function concatenates the
/// gradients of all parts once.
///
/// # Gradients
/// `d x` is the concatenation of the gradients of the parts, with zeros for parts that do not reach the loss. First
/// order only: parts that are used in a second backward must come from another call.
///
/// # Cost
/// Forward as `narrow`. Backward is one pass over `x`, for any number of parts. On CPUs the gradient of a part is copied
/// into the gradient of `x` as soon as it is computed, so that the gradients of all parts do not exist at the same
/// time.
///
/// # Panics
/// Bounds that do not ascend from 0 to the number of rows.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_ops::split_rows;
/// let x = Tensor::<2>::from_data([[1.0], [2.0], [3.0]], &Device::flex());
/// let parts = split_rows(x, &[0, 1, 3]);
/// assert_eq!((parts[0].dims(), parts[1].dims()), ([1, 1], [2, 1]));
/// ```
#[track_caller]
pub fn split_rows<const D: usize>(x: Tensor<D>, bounds: &[usize]) -> Vec<Tensor<D>> {
    let plan = SplitPlan::runs(x.dims()[0], bounds);
    cut(x, plan)
}

/// All parts of a tensor, in order.
pub(crate) fn cut<const D: usize>(x: Tensor<D>, plan: SplitPlan) -> Vec<Tensor<D>> {
    let plan = Split::new(plan);
    let whole =
        call(Whole { plan: plan.clone(), shape: x.shape() }, [x.into_dispatch()]).read().float();
    let part = |part: usize| tensor(Part { plan: plan.clone(), part }, [whole.clone()]);
    (0..plan.plan().parts()).map(part).collect()
}

#[cfg(all(test, feature = "flex"))]
#[allow(deprecated)]
pub(crate) mod tests {
    use burn::tensor::{Device, TensorData};
    use burn_gnn_testutil::{Kind, NO_ADAPTER, NO_GPU_BACKEND, skip};

    use super::*;

    pub(crate) fn values<const D: usize>(x: Tensor<D>) -> Vec<f32> {
        x.into_data().iter().collect()
    }

    /// Every available backend.
    pub(crate) fn devices() -> Vec<Device> {
        #[allow(unused_mut)]
        let mut all: Vec<_> =
            burn_gnn_testutil::devices().into_iter().map(Device::autodiff).collect();
        let cpus = all.len();
        #[cfg(feature = "cuda")]
        if !Device::enumerate(burn::tensor::DeviceType::Cuda).is_empty() {
            all.push(Device::cuda(0).autodiff());
        }
        #[cfg(feature = "wgpu")]
        if !Device::enumerate(burn::tensor::DeviceType::Wgpu).is_empty() {
            all.push(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice).autodiff());
        }
        if all.len() == cpus {
            let built = cfg!(any(feature = "wgpu", feature = "cuda"));
            skip(Kind::Gpu, if built { NO_ADAPTER } else { NO_GPU_BACKEND });
        }
        all
    }

    /// Values and gradients equal those of `narrow`, also for a part that is used twice, empty parts and unused parts.
    #[test]
    fn parts_of_rows() {
        for device in devices() {
            let data = TensorData::new(
                (0..30).map(|i| i as f32 * 0.3 - 4.0).collect::<Vec<_>>(),
                [5, 2, 3],
            );
            let leaf = || Tensor::<3>::from_data(data.clone(), &device).require_grad();
            let bounds = [0, 1, 1, 4, 5];
            let loss = |parts: &[Tensor<3>]| {
                let first = parts[0].clone().powi_scalar(2).sum();
                first
                    + (parts[2].clone() * parts[2].clone().exp()).sum() * 3.0
                    + parts[1].clone().sum()
            };
            let (x, y) = (leaf(), leaf());
            let parts = split_rows(x.clone() * 2.0, &bounds);
            let narrowed: Vec<_> =
                bounds.windows(2).map(|b| (y.clone() * 2.0).slice_dim(0, b[0]..b[1])).collect();
            for (a, b) in parts.iter().zip(&narrowed) {
                assert_eq!((a.dims(), values(a.clone())), (b.dims(), values(b.clone())));
            }
            let (got, want) =
                (x.grad(&loss(&parts).backward()), y.grad(&loss(&narrowed).backward()));
            // GPUs compute `exp` with other rounding.
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * (1.0 + b.abs());
            let (got, want) = (values(got.unwrap()), values(want.unwrap()));
            assert!(got.len() == want.len() && got.iter().zip(&want).all(near), "{got:?} {want:?}");
        }
    }

    /// Constants are split without autodiff.
    #[test]
    fn parts_of_constants() {
        let x = Tensor::<1>::from_data([1.0, 2.0, 3.0], &Device::flex());
        let parts: Vec<_> = split_rows(x, &[0, 2, 3]).into_iter().map(values).collect();
        assert_eq!(parts, [vec![1.0, 2.0], vec![3.0]]);
    }

    #[test]
    #[should_panic(expected = "bounds must ascend from 0 to 3")]
    fn bounds_that_leave_rows_out() {
        split_rows(Tensor::<1>::from_data([1.0, 2.0, 3.0], &Device::flex()), &[0, 2]);
    }
}
