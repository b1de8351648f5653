//! Defines operators: the plan of one call, its result shapes, its kernels and its gradient.
//!
//! An operator is one folder: the public function in `mod.rs`, this trait's implementation for its plan (of
//! `burn-gnn-plan`) there or in `operator.rs`, calls of kernels (of `burn-gnn-cpu` and `burn-gnn-cube`) in `cpu.rs` and
//! `cube.rs`, plain primitives in `reference.rs`. Dispatch to backends, autodiff, fusion, the refusal of second
//! derivatives and "keep only what a tracked input needs" stand here, once for all of them.

mod autodiff;
// The generated dispatch names `NdArray`, which Burn has deprecated.
#[cfg_attr(feature = "ndarray", allow(deprecated))]
mod backend;
pub(crate) mod cpu;
#[cfg(feature = "fusion")]
mod fusion;
#[cfg(all(test, feature = "flex", feature = "ndarray"))]
pub(crate) mod property_tests;
mod tensors;

use std::fmt::Debug;

pub(crate) use backend::GnnBackend;
use burn::backend::Dispatch;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{DType, Shape, Tensor};
pub(crate) use tensors::Tensors;

use crate::operator::cpu::Host;

/// How autodiff differentiates an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gradient {
    /// By [`Operator::backward`].
    Backward,
    /// By Burn, through the primitives of [`Operator::reference`].
    OfReference,
    /// Not at all: a tracked input panics with this text.
    Refused(&'static str),
}

/// The text of operators that are gradients themselves.
pub(crate) const SECOND_ORDER: &str =
    "the gradient of a gradient is not implemented; detach the inputs of the first gradient";

/// One call of an operator, as a plain value that goes through dispatch, autodiff state and the queues of lazy
/// backends.
///
/// A backend without kernels of its own runs [`reference`](Self::reference), so a new operator works everywhere as soon
/// as that is written.
#[cfg_attr(not(any(feature = "flex", feature = "ndarray")), allow(dead_code))]
pub(crate) trait Operator: OnCube + Clone + Debug + Send + Sync + 'static {
    /// Its name in messages.
    const NAME: &'static str;

    /// Shapes and element types of the results, before they are computed; `inputs` are those of the float tensors.
    /// `None`: a lazy backend runs [`reference`](Self::reference) and fuses its primitives.
    fn results(&self, inputs: &[Spec]) -> Option<Specs>;

    /// The results in plain Burn primitives: the oracle of tests, and what a backend without kernels runs.
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B>;

    /// The results on a CPU backend.
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        self.reference(inputs)
    }

    /// How autodiff differentiates the first float result; others are constants.
    fn gradient(&self) -> Gradient {
        Gradient::Refused(SECOND_ORDER)
    }

    /// The call that runs where an input is tracked: one that returns beside its result what only backward reads.
    fn tracked(&self) -> Self {
        self.clone()
    }

    /// What [`backward`](Self::backward) reads, given which float inputs are tracked. Results behind the first one are
    /// always kept.
    fn keeps(&self, tracked: &[bool]) -> SavedForBackward {
        SavedForBackward { inputs: vec![false; tracked.len()], result: false }
    }

    /// The gradient of each float input that is wanted, from that of the first float result.
    fn backward<B: GnnBackend>(
        &self,
        _grad: FloatTensor<B>,
        _saved: Saved<B>,
        _wants: &[bool],
    ) -> Vec<Option<FloatTensor<B>>> {
        unreachable!("an operator with a gradient of its own says how it is computed")
    }
}

/// An operator on CubeCL backends.
#[cfg(feature = "cube")]
pub(crate) trait OnCube {
    /// The results on a GPU.
    fn cube(&self, inputs: Tensors<burn_cubecl::CubeBackend>) -> Tensors<burn_cubecl::CubeBackend>
    where
        Self: Operator,
    {
        self.reference(inputs)
    }
}
/// Nothing is asked of operators where there are no such backends.
#[cfg(not(feature = "cube"))]
pub(crate) trait OnCube {}
#[cfg(not(feature = "cube"))]
impl<O> OnCube for O {}

/// What is kept for backward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedForBackward {
    /// Which float inputs.
    pub(crate) inputs: Vec<bool>,
    /// Whether the first float result.
    pub(crate) result: bool,
}

/// What was kept.
pub(crate) struct Saved<B: burn::backend::Backend> {
    /// Float inputs, those that [`SavedForBackward`] named.
    pub(crate) inputs: Vec<Option<FloatTensor<B>>>,
    /// The first float result if it was named, then the others; integers.
    pub(crate) results: Tensors<B>,
}

impl<B: burn::backend::Backend> Saved<B> {
    /// The inputs that were kept, in their order.
    pub(crate) fn kept_inputs(&mut self) -> Vec<FloatTensor<B>> {
        std::mem::take(&mut self.inputs).into_iter().flatten().collect()
    }
}

/// Shape and element type of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
}

impl Spec {
    pub(crate) fn new(shape: impl Into<Shape>, dtype: DType) -> Self {
        Self { shape: shape.into(), dtype }
    }
}

/// Shapes and element types of the results of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Specs {
    pub(crate) floats: Vec<Spec>,
    /// Read where a backend is lazy; kernels of the CPU may choose other shapes for what only their backward reads.
    #[cfg_attr(not(feature = "fusion"), allow(dead_code))]
    pub(crate) ints: Vec<Spec>,
}

impl Specs {
    /// One float tensor.
    pub(crate) fn one(shape: impl Into<Shape>, dtype: DType) -> Option<Self> {
        Self::floats([Spec::new(shape, dtype)])
    }
    pub(crate) fn floats(floats: impl Into<Vec<Spec>>) -> Option<Self> {
        Some(Self { floats: floats.into(), ints: Vec::new() })
    }
}

/// The gradients of those inputs that are wanted, from an operator that computes just them, in order.
pub(crate) fn wanted<B: GnnBackend>(
    wants: &[bool],
    gradients: Tensors<B>,
) -> Vec<Option<FloatTensor<B>>> {
    let mut gradients = gradients.read();
    wants.iter().map(|&wanted| wanted.then(|| gradients.float())).collect()
}

/// Runs an operator on the backend of its inputs.
pub(crate) fn call<O: Operator>(
    op: O,
    inputs: impl Into<Vec<FloatTensor<Dispatch>>>,
) -> Tensors<Dispatch> {
    Dispatch::run(Tensors::from(inputs.into()), op)
}

/// As [`call`], the first float result.
pub(crate) fn tensor<O: Operator, const D: usize>(
    op: O,
    inputs: impl Into<Vec<FloatTensor<Dispatch>>>,
) -> Tensor<D> {
    Tensor::from_dispatch(call(op, inputs).read().float())
}

/// As [`tensor`], in plain primitives on every backend, differentiated by Burn.
pub(crate) fn reference<O: Operator, const D: usize>(
    op: O,
    inputs: impl Into<Vec<FloatTensor<Dispatch>>>,
) -> Tensor<D> {
    Tensor::from_dispatch(Dispatch::plain(Tensors::from(inputs.into()), op).read().float())
}
