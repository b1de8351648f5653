//! The backend extension of parts with one gradient.

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

use crate::shelf::Shelf;

/// Where a tensor is cut, and the gradients of its parts until all of them are there.
#[derive(Clone, Debug)]
pub struct SplitPlan {
    bounds: Arc<[usize]>,
    pub(super) grads: Shelf,
}

impl SplitPlan {
    pub(crate) fn new(bounds: &[usize]) -> Self {
        Self { bounds: bounds.into(), grads: Shelf::default() }
    }
    pub(super) fn parts(&self) -> usize {
        self.bounds.len() - 1
    }
    pub(super) fn rows(&self, part: usize) -> std::ops::Range<usize> {
        self.bounds[part]..self.bounds[part + 1]
    }
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
        Self::float_slice(whole, &[Slice::from(rows)])
    }
    /// Lays the gradient of part `part` down; one entry comes back, which says only that there is something to
    /// [`split_join`](Self::split_join).
    #[fusion(default)]
    fn split_put(grad: FloatTensor<Self>, plan: SplitPlan, part: usize) -> FloatTensor<Self> {
        let due = Self::float_zeros(Shape::from([1]), &grad.device(), FloatDType::from(grad.dtype()));
        let none = || std::iter::repeat_with(|| None).take(plan.parts()).collect::<Vec<Option<FloatTensor<Self>>>>();
        plan.grads.with(none, |grads| grads[part] = Some(grad));
        due
    }
    /// The gradients of all parts as that of the whole, `shape`; zeros for parts that laid none down.
    #[fusion(default)]
    fn split_join(due: FloatTensor<Self>, plan: SplitPlan, shape: Shape) -> FloatTensor<Self> {
        let zeros = |part: usize| {
            let mut shape = shape.clone();
            shape[0] = plan.rows(part).len();
            Self::float_zeros(shape, &due.device(), FloatDType::from(due.dtype()))
        };
        let mut grads = plan.grads.take::<Vec<Option<FloatTensor<Self>>>>().unwrap_or_default();
        grads.resize_with(plan.parts(), || None);
        Self::float_cat(grads.into_iter().enumerate().map(|(i, grad)| grad.unwrap_or_else(|| zeros(i))).collect(), 0)
    }
}

/// On the host gradients go to their rows of the whole while they are in the cache, and are gone before the next one is made.
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
