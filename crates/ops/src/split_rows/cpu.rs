//! Assembles the gradient of a split tensor on CPU backends.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;
use burn_gnn_cpu::Kernels;
use burn_gnn_cpu::split_rows::FilledByPart;
use bytemuck::Zeroable;

use crate::operator::cpu::{Host, by_dtype};
use crate::split_rows::join;
use crate::split_rows::pending::Split;

/// Stores the gradient of a part: a run of rows is copied to its rows of the whole gradient, other parts are kept as
/// tensors.
pub(crate) fn put<B: Host>(grad: FloatTensor<B>, split: &Split, part: usize) -> FloatTensor<B> {
    let plan = split.plan();
    if !plan.is_runs() {
        return split.keep::<B>(grad, part);
    }
    by_dtype!(grad.dtype(), T => {
        let width = grad.shape()[1..].iter().product();
        split.grads.with(
            || FilledByPart::<T>::new(plan, width),
            |all| all.put(part, &B::floats::<T>(&grad)),
        );
        B::from_floats(vec![T::zeroed()], Shape::from([1]))
    })
}

/// The gradient of the whole tensor.
pub(crate) fn joined<B: Host>(due: &FloatTensor<B>, split: &Split, shape: Shape) -> FloatTensor<B> {
    let plan = split.plan();
    if !plan.is_runs() {
        return join::join::<B>(due, split.kept::<B>(), shape, add::<B>, extend::<B>);
    }
    by_dtype!(due.dtype(), T => {
        let width = shape[1..].iter().product();
        let all = split
            .grads
            .take::<FilledByPart<T>>()
            .unwrap_or_else(|| FilledByPart::new(plan, width));
        B::from_floats(all.joined(), shape)
    })
}

/// Adds `first` to the first rows of `all`, in place if `all` has no other reference.
fn add<B: Host>(mut all: FloatTensor<B>, first: FloatTensor<B>) -> FloatTensor<B> {
    by_dtype!(all.dtype(), T => {
        let first = B::floats::<T>(&first);
        if let Some(own) = B::floats_mut::<T>(&mut all) {
            T::add_to(own, &first);
            return all;
        }
        let mut copy = B::floats::<T>(&all).into_owned();
        T::add_to(&mut copy, &first);
        B::from_floats(copy, all.shape())
    })
}

/// Appends rows of zeros to `first`, up to `shape`.
fn extend<B: Host>(first: FloatTensor<B>, shape: Shape) -> FloatTensor<B> {
    by_dtype!(first.dtype(), T => {
        B::from_floats(T::extend(&B::floats::<T>(&first), shape.num_elements()), shape)
    })
}
