//! The backend extension of parts with one gradient.

use std::ops::Range;
use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
// Named by the code that the attribute writes.
#[cfg(feature = "flex")]
#[allow(unused_imports)]
use burn::backend::Flex;
#[cfg(feature = "ndarray")]
#[allow(unused_imports)]
use burn::backend::NdArray;
use burn::backend::TensorMetadata;
#[allow(unused_imports)]
use burn::backend::{Autodiff, Backend, backend_extension};
use burn::tensor::{FloatDType, Shape, Slice};

use super::first_rows;
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
pub struct SplitPlan {
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

/// A tensor to be cut, and its parts.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "cube"), Autodiff, Fusion: cfg(feature = "fusion"))]
pub trait SplitBackend: Backend {
    /// `x`, whose parts [`split_part`](Self::split_part) takes with the same plan.
    #[fusion(default)]
    fn split_whole(x: FloatTensor<Self>, _plan: SplitPlan) -> FloatTensor<Self> {
        x
    }
    /// The rows of part `part` of what [`split_whole`](Self::split_whole) returned.
    #[fusion(default)]
    fn split_part(whole: FloatTensor<Self>, plan: SplitPlan, part: usize) -> FloatTensor<Self> {
        let rows = plan.rows(part);
        if rows == (0..whole.shape()[0]) { whole } else { Self::float_slice(whole, &[Slice::from(rows)]) }
    }
    /// Keeps the gradient of part `part`; one entry comes back, which says only that there is something to
    /// [`split_join`](Self::split_join).
    #[fusion(default)]
    fn split_put(grad: FloatTensor<Self>, plan: SplitPlan, part: usize) -> FloatTensor<Self> {
        plan.keep::<Self>(grad, part)
    }
    /// The gradients of all parts as that of the whole, `shape`; zeros for parts that have none.
    #[fusion(default)]
    fn split_join(due: FloatTensor<Self>, plan: SplitPlan, shape: Shape) -> FloatTensor<Self> {
        let grads = plan.kept::<Self>();
        match plan.cut {
            Cut::Runs(_) => {
                let zeros = |part: usize| {
                    let mut shape = shape.clone();
                    shape[0] = plan.rows(part).len();
                    zeros::<Self>(shape, &due)
                };
                Self::float_cat(grads.into_iter().enumerate().map(|(i, grad)| grad.unwrap_or_else(|| zeros(i))).collect(), 0)
            }
            Cut::First { .. } => first_rows::join::<Self>(&due, grads, shape, first_rows::add::<Self>, first_rows::extend::<Self>),
        }
    }
}

/// On the host gradients of runs go to their rows of the whole while they are in the cache, and are gone before the next one is made.
#[cfg(any(feature = "flex", feature = "ndarray"))]
macro_rules! on_the_host {
    () => {
        fn split_put(grad: FloatTensor<Self>, plan: SplitPlan, part: usize) -> FloatTensor<Self> {
            super::cpu::put::<Self>(grad, &plan, part)
        }
        fn split_join(due: FloatTensor<Self>, plan: SplitPlan, shape: Shape) -> FloatTensor<Self> {
            super::cpu::join::<Self>(&due, &plan, shape)
        }
    };
}

#[cfg(feature = "flex")]
impl SplitBackend for Flex {
    on_the_host!();
}
#[cfg(feature = "ndarray")]
#[allow(deprecated)]
impl SplitBackend for NdArray {
    on_the_host!();
}
#[cfg(feature = "cube")]
impl SplitBackend for burn_cubecl::CubeBackend {}
