//! The backend extension of parts with one gradient.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use burn::backend::tensor::FloatTensor;
// Named by the code that the attribute writes.
#[cfg(feature = "flex")]
#[allow(unused_imports)]
use burn::backend::Flex;
#[cfg(feature = "ndarray")]
#[allow(unused_imports)]
use burn::backend::NdArray;
#[allow(unused_imports)]
use burn::backend::{Autodiff, Backend, backend_extension};
use burn::tensor::Slice;

/// A tensor of the backend that runs backward.
type AnyTensor = Box<dyn Any + Send>;

/// Where a tensor is cut, and the gradients of its parts until all of them are there.
#[derive(Clone, Debug)]
pub struct SplitPlan {
    bounds: Arc<[usize]>,
    grads: Arc<Mutex<Vec<Option<AnyTensor>>>>,
}

impl SplitPlan {
    pub(crate) fn new(bounds: &[usize]) -> Self {
        Self { bounds: bounds.into(), grads: Arc::default() }
    }
    pub(super) fn rows(&self, part: usize) -> std::ops::Range<usize> {
        self.bounds[part]..self.bounds[part + 1]
    }
    /// Lays the gradient of a part down.
    pub(super) fn put<T: Send + 'static>(&self, part: usize, grad: T) {
        let mut grads = self.grads.lock().unwrap_or_else(PoisonError::into_inner);
        grads.resize_with(self.bounds.len() - 1, || None);
        grads[part] = Some(Box::new(grad));
    }
    /// The gradients of all parts, each once.
    pub(super) fn take<T: 'static>(&self) -> Vec<Option<T>> {
        let mut grads = std::mem::take(&mut *self.grads.lock().unwrap_or_else(PoisonError::into_inner));
        grads.resize_with(self.bounds.len() - 1, || None);
        // Backward of all parts and of the whole runs on one backend.
        grads.into_iter().map(|g| g.and_then(|g| g.downcast::<T>().ok()).map(|g| *g)).collect()
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
}

#[cfg(feature = "flex")]
impl SplitBackend for Flex {}
#[cfg(feature = "ndarray")]
#[allow(deprecated)]
impl SplitBackend for NdArray {}
#[cfg(feature = "cube")]
impl SplitBackend for burn_cubecl::CubeBackend {}
