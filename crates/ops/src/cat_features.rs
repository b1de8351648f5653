//! Concatenates features of tensors, also of tensors without rows.

use burn::tensor::Tensor;

/// `Tensor::cat(tensors, 1)`, `[rows, Σ columns]`, also of no rows: what user-defined functions take for the edges of a
/// block that may have none.
///
/// # Gradients
/// Those of `Tensor::cat`. Without rows Burn 0.22.1 takes gradients apart by slices of an empty tensor that begin behind
/// its end, and the next operation on them panics on the Flex backend ("range start index 2 out of range"). Here the
/// result of no rows is made of sums.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_ops::cat_features;
/// let device = Device::flex().autodiff();
/// let time = Tensor::<2>::ones([1, 2], &device).require_grad();
/// // Features of no edge, and a time encoding of them.
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
