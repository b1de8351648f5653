//! Runs operators on backends: dispatch, autodiff and fusion, once for all of them.
//!
//! An operator is one folder: the public function in `mod.rs`, the [`Operator`] of its plan (of `burn-gnn-plan`) there
//! or in `operator.rs`, the same in Burn primitives in `reference.rs`. The implementation of [`Operator`] calls the
//! kernels of `burn-gnn-cpu` and `burn-gnn-cube`, in files `cpu.rs` and `cube.rs` where that is long.

mod autodiff;
pub(crate) mod cpu;
// The dispatch that `backend_extension` generates names `NdArray`, which Burn has deprecated.
#[cfg_attr(feature = "ndarray", allow(deprecated))]
// Without a backend that code ignores its arguments.
#[cfg_attr(
    not(any(feature = "flex", feature = "ndarray", feature = "cube")),
    allow(unused_variables)
)]
mod definition;
#[cfg(feature = "fusion")]
mod fusion;
#[cfg(all(test, feature = "flex"))]
pub(crate) mod property_tests;
mod tensors;

#[cfg(feature = "cube")]
pub(crate) use definition::CubeTensors;
pub(crate) use definition::{
    BackwardCall, GnnBackend, Gradient, Operator, Spec, Specs, call, operands, reference, run_on,
    tensor,
};
pub(crate) use tensors::Tensors;
