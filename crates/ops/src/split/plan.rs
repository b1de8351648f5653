//! How a tensor is cut, and the gradients of its parts.

use std::ops::Range;
use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{FloatDType, Shape};

use crate::pending_gradients::PendingGradients;

/// Which rows of a tensor its parts are.
#[derive(Clone, Debug)]
pub(super) enum Cut {
    /// One run of rows behind the other, from each number to the next.
    Runs(Arc<[usize]>),
    /// All rows, this many, and the first rows once more.
    First { all: usize, rows: usize },
}

/// How a tensor is cut, and the gradients of its parts until all of them are there.
#[derive(Clone, Debug)]
pub(super) struct SplitPlan {
    pub(super) cut: Cut,
    pub(super) grads: PendingGradients,
}

/// Gradients of parts in their order.
type Parts<B> = Vec<Option<FloatTensor<B>>>;

impl SplitPlan {
    pub(super) fn new(cut: Cut) -> Self {
        Self { cut, grads: PendingGradients::default() }
    }
    pub(super) fn parts(&self) -> usize {
        match &self.cut {
            Cut::Runs(bounds) => bounds.len() - 1,
            Cut::First { .. } => 2,
        }
    }
    pub(super) fn rows(&self, part: usize) -> Range<usize> {
        match &self.cut {
            Cut::Runs(bounds) => bounds[part]..bounds[part + 1],
            Cut::First { all, rows } => 0..if part == 0 { *all } else { *rows },
        }
    }
    /// Keeps the gradient of a part as it is; the entry to pass on.
    pub(super) fn keep<B: Backend>(&self, grad: FloatTensor<B>, part: usize) -> FloatTensor<B> {
        let due = zeros::<B>(Shape::from([1]), &grad);
        let none = || -> Parts<B> { (0..self.parts()).map(|_| None).collect() };
        self.grads.with(none, |grads| grads[part] = Some(grad));
        due
    }
    /// What was kept.
    pub(super) fn kept<B: Backend>(&self) -> Parts<B> {
        let mut grads = self.grads.take::<Parts<B>>().unwrap_or_default();
        grads.resize_with(self.parts(), || None);
        grads
    }
}

/// Zeros on the device and of the type of another tensor.
pub(super) fn zeros<B: Backend>(shape: Shape, like: &FloatTensor<B>) -> FloatTensor<B> {
    B::float_zeros(shape, &like.device(), FloatDType::from(like.dtype()))
}
