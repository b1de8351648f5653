//! Defines operators: the plan of one call, its result shapes, its kernels and its gradient.
//!
//! An operator is one folder: the public function in `mod.rs`, this trait's implementation for its plan (of
//! `burn-gnn-plan`) there or in `operator.rs`, plain primitives in `reference.rs`. The implementation calls kernels (of
//! `burn-gnn-cpu` and `burn-gnn-cube`), in files `cpu.rs` and `cube.rs` where that is long. Dispatch to backends,
//! autodiff, fusion, the refusal of second derivatives and "keep only what a tracked input needs" stand here, once for
//! all of them.

mod autodiff;
// The generated dispatch names `NdArray`, which Burn has deprecated.
#[cfg_attr(feature = "ndarray", allow(deprecated))]
// Without a backend the code that `backend_extension` writes ignores its arguments.
#[cfg_attr(
    not(any(feature = "flex", feature = "ndarray", feature = "cube")),
    allow(unused_variables)
)]
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

/// Tensors on a GPU.
#[cfg(feature = "cube")]
pub(crate) type CubeTensors = Tensors<burn_cubecl::CubeBackend>;

/// How autodiff differentiates an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gradient {
    /// By [`Operator::backward`], which reads what is kept.
    Backward(SavedForBackward),
    /// By Burn, through the primitives of [`Operator::reference`].
    OfReference,
    /// Not at all: a tracked input panics with this text.
    Refused(&'static str),
}

impl Gradient {
    /// By [`Operator::backward`], which reads those float inputs, and the first float result if `result`. Results
    /// behind the first one are always kept.
    pub(crate) fn reading(inputs: impl Into<Vec<bool>>, result: bool) -> Self {
        Self::Backward(SavedForBackward { inputs: inputs.into(), result })
    }
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
pub(crate) trait Operator: Clone + Debug + Send + Sync + 'static {
    /// Its name in messages.
    const NAME: &'static str;

    /// Shapes and element types of the results, before they are computed; `inputs` are those of the float tensors.
    /// `None`: a lazy backend runs [`reference`](Self::reference) and fuses its primitives.
    fn results(&self, _inputs: &[Spec]) -> Option<Specs> {
        None
    }

    /// The results in plain Burn primitives: the oracle of tests, and what a backend without kernels runs.
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B>;

    /// The results on a CPU backend.
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        self.reference(inputs)
    }

    /// The results on a GPU.
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        self.reference(inputs)
    }

    /// How autodiff differentiates the first float result, given which float inputs are tracked; other results are
    /// constants.
    fn gradient(&self, _tracked: &[bool]) -> Gradient {
        Gradient::Refused(SECOND_ORDER)
    }

    /// The call that runs where an input is tracked: one that returns beside its result what only backward reads.
    fn tracked(&self) -> Self {
        self.clone()
    }

    /// The gradient of each float input that is wanted.
    fn backward<B: GnnBackend>(&self, _call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        unreachable!("an operator with a gradient of its own says how it is computed")
    }
}

/// What is kept for backward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedForBackward {
    /// Which float inputs.
    pub(crate) inputs: Vec<bool>,
    /// Whether the first float result.
    pub(crate) result: bool,
}

/// What backward is given.
pub(crate) struct BackwardCall<B: burn::backend::Backend> {
    /// The gradient of the first float result.
    pub(crate) grad: FloatTensor<B>,
    /// Float inputs, those that were kept.
    pub(crate) inputs: Vec<Option<FloatTensor<B>>>,
    /// The first float result if it was kept, then the others; integers.
    pub(crate) results: Tensors<B>,
    /// Of which float inputs the gradient is wanted.
    pub(crate) wants: Vec<bool>,
}

impl<B: GnnBackend> BackwardCall<B> {
    /// Whether the gradient of an input is wanted; of one that is not there it is not.
    pub(crate) fn wants_input(&self, input: usize) -> bool {
        self.wants.get(input) == Some(&true)
    }

    /// The gradients that are wanted, by an operator that computes just them, in order, from the gradient, the results
    /// and the inputs that were kept.
    pub(crate) fn run<O: Operator>(self, op: O) -> Vec<Option<FloatTensor<B>>> {
        let Tensors { floats, ints } = self.results;
        let kept = self.inputs.into_iter().flatten();
        let floats = std::iter::once(self.grad).chain(floats).chain(kept).collect();
        wanted::<B>(&self.wants, B::run(Tensors { floats, ints }, op))
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
    pub(crate) fn floats(floats: impl IntoIterator<Item = Spec>) -> Option<Self> {
        Some(Self { floats: floats.into_iter().collect(), ints: Vec::new() })
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

/// Runs an operator on a backend; the first float result.
pub(crate) fn run_on<B: GnnBackend, O: Operator>(
    op: O,
    inputs: impl IntoIterator<Item = FloatTensor<B>>,
) -> FloatTensor<B> {
    B::run(inputs.into_iter().collect(), op).read().float()
}

/// Two operands, or the one that is there.
pub(crate) fn operands<const L: usize, const R: usize>(
    lhs: Option<Tensor<L>>,
    rhs: Option<Tensor<R>>,
) -> impl Iterator<Item = FloatTensor<Dispatch>> {
    lhs.map(Tensor::into_dispatch).into_iter().chain(rhs.map(Tensor::into_dispatch))
}

/// Runs an operator on the backend of its inputs.
pub(crate) fn call<O: Operator>(
    op: O,
    inputs: impl IntoIterator<Item = FloatTensor<Dispatch>>,
) -> Tensors<Dispatch> {
    Dispatch::run(inputs.into_iter().collect(), op)
}

/// As [`call`], the first float result.
pub(crate) fn tensor<O: Operator, const D: usize>(
    op: O,
    inputs: impl IntoIterator<Item = FloatTensor<Dispatch>>,
) -> Tensor<D> {
    Tensor::from_dispatch(call(op, inputs).read().float())
}

/// As [`tensor`], in plain primitives on every backend, differentiated by Burn.
pub(crate) fn reference<O: Operator, const D: usize>(
    op: O,
    inputs: impl IntoIterator<Item = FloatTensor<Dispatch>>,
) -> Tensor<D> {
    Tensor::from_dispatch(Dispatch::plain(inputs.into_iter().collect(), op).read().float())
}
