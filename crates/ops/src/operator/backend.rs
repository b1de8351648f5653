//! Declares the backend extension that every operator goes through.

// Named by the code that the attribute writes.
#[allow(unused_imports)]
use burn::backend::Autodiff;
use burn::backend::{Backend, backend_extension};

use super::{Operator, Tensors};

/// A backend that operators run on: Flex and NdArray by CPU kernels, CubeCL backends by theirs, what fuses by queueing
/// the call, autodiff by the operator's own gradient.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "cube"), Autodiff)]
pub(crate) trait GnnBackend: Backend {
    /// The results of one call.
    fn run<O: Operator>(#[extension_type] inputs: Tensors<Self>, op: O) -> Tensors<Self>;

    /// As [`run`](Self::run), in plain primitives on every backend, differentiated by Burn: the oracle of tests.
    fn plain<O: Operator>(#[extension_type] inputs: Tensors<Self>, op: O) -> Tensors<Self> {
        op.reference(inputs)
    }
}

#[cfg(feature = "cube")]
impl GnnBackend for burn_cubecl::CubeBackend {
    fn run<O: Operator>(inputs: Tensors<Self>, op: O) -> Tensors<Self> {
        op.cube(inputs)
    }
}
