//! Concatenates features, also of tensors without rows.

use burn::tensor::Tensor;

/// Concatenates features, `Tensor::cat(tensors, 1)`, `[rows, Σ features]`, also for tensors without rows. User-defined
/// functions need it, since a block may have no edges of some type.
///
/// # Gradients
/// As for `Tensor::cat`. Without rows, backward of `Tensor::cat` in Burn 0.22.1 slices an empty tensor beyond its end,
/// and the next operation panics on the Flex backend ("range start index 2 out of range"). A result without rows is
/// therefore computed from sums.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_ops::cat_features;
/// let device = Device::flex().autodiff();
/// let time = Tensor::<2>::ones([1, 2], &device).require_grad();
/// // Features of no edges, and their time encoding.
/// let x = Tensor::<2>::zeros([0, 3], &device);
/// let encoded = (Tensor::<2>::zeros([0, 1], &device) * time.clone()).cos();
/// let y = cat_features(vec![x, encoded]);
/// assert_eq!(y.dims(), [0, 5]);
/// let grads = y.sum().backward();
/// assert_eq!(time.grad(&grads).unwrap().into_data().try_to_vec::<f32>().unwrap(), [0.0, 0.0]);
/// ```
///
/// # Panics
/// No tensor, or tensors with different numbers of rows.
#[track_caller]
pub fn cat_features(tensors: Vec<Tensor<2>>) -> Tensor<2> {
    if tensors.iter().any(|x| x.dims()[0] > 0) || tensors.is_empty() {
        return Tensor::cat(tensors, 1);
    }
    let columns = tensors.iter().map(|x| x.dims()[1]).sum();
    let (device, dtype) = (tensors[0].device().without_autodiff(), tensors[0].dtype());
    let nothing = Tensor::<2>::zeros([0, columns], (&device, dtype));
    let nothing =
        if tensors.iter().any(Tensor::is_autodiff) { nothing.autodiff() } else { nothing };
    tensors.into_iter().fold(nothing, |out, x| out + x.sum_dim(1))
}
