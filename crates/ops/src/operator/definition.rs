//! Defines operators and the backends that they run on.

use std::borrow::Cow;
use std::fmt::Debug;

// Named by the code that `backend_extension` generates.
#[allow(unused_imports)]
use burn::backend::Autodiff;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, backend_extension};
use burn::tensor::{DType, Element, Shape, Tensor};
use burn_gnn_cpu::Elem;

use crate::operator::tensors::Tensors;

/// Tensors on a GPU.
#[cfg(feature = "cube")]
pub(crate) type CubeTensors = Tensors<burn_cubecl::CubeBackend>;

/// Differentiation rule of an operator under autodiff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gradient {
    /// [`Operator::backward`] computes the gradient from the saved tensors.
    Backward(SavedForBackward),
    /// Burn differentiates the primitives of [`Operator::reference`].
    OfReference,
    /// There is no gradient: a tracked input panics with this text.
    Refused(&'static str),
}

impl Gradient {
    /// [`Operator::backward`] reads the float inputs marked in `inputs`, and the first float result if `result`. The
    /// other results are always saved.
    pub(crate) fn reading(inputs: impl Into<Vec<bool>>, result: bool) -> Self {
        Self::Backward(SavedForBackward { inputs: inputs.into(), result })
    }
}

/// Panic text of operators that are gradients themselves.
const SECOND_ORDER: &str =
    "the gradient of a gradient is not implemented; detach the inputs of the first gradient";

/// A backend that runs operators: Flex and NdArray by CPU kernels, CubeCL backends by GPU kernels, fusion by queueing
/// the call, autodiff by the gradient that the operator defines.
// Burn 0.23 does not know the name `NdArray` (`.ci/next-burn`).
#[cfg_attr(feature = "ndarray", backend_extension(Flex: cfg(feature = "flex"), NdArray, Cube: cfg(feature = "cube"), Autodiff))]
#[cfg_attr(not(feature = "ndarray"), backend_extension(Flex: cfg(feature = "flex"), Cube: cfg(feature = "cube"), Autodiff))]
pub(crate) trait GnnBackend: Backend {
    /// Runs one call.
    fn run<O: Operator>(#[extension_type] inputs: Tensors<Self>, op: O) -> Tensors<Self>;

    /// Runs the reference on every backend, differentiated by Burn: the oracle of tests.
    fn plain<O: Operator>(#[extension_type] inputs: Tensors<Self>, op: O) -> Tensors<Self> {
        op.reference(inputs)
    }
}

#[cfg(feature = "cube")]
impl GnnBackend for burn_cubecl::CubeBackend {
    fn run<O: Operator>(inputs: Tensors<Self>, op: O) -> Tensors<Self> {
        let _span = tracing::trace_span!("operator", op = O::NAME).entered();
        op.cube(inputs)
    }
}

/// An element type of Burn with kernels, whose type of sums is an element type as well.
pub(crate) trait Float: Elem<Acc: Element> + Element {}
impl<T: Elem<Acc: Element> + Element> Float for T {}

/// A CPU backend, whose tensors kernels read and write as slices.
pub(crate) trait Host: GnnBackend {
    /// The entries in row-major order, copied only if the tensor has another layout.
    fn floats<T: Float>(tensor: &FloatTensor<Self>) -> Cow<'_, [T]>;
    /// Whether [`floats`](Self::floats) copies nothing.
    fn is_row_major(tensor: &FloatTensor<Self>) -> bool;
    /// As [`floats`](Self::floats), for 32-bit integers.
    fn ints(tensor: &IntTensor<Self>) -> Cow<'_, [i32]>;
    /// The entries for writing in place, if no other tensor shares them and they are in row-major order. By default
    /// `None`.
    fn floats_mut<T: Float>(_tensor: &mut FloatTensor<Self>) -> Option<&mut [T]> {
        None
    }
    /// Creates a tensor that owns the vector.
    fn from_floats<T: Float>(data: Vec<T>, shape: Shape) -> FloatTensor<Self>;
    /// As [`from_floats`](Self::from_floats), for 32-bit integers.
    fn from_ints(data: Vec<i32>, shape: Shape) -> IntTensor<Self>;
}

/// One call of an operator, as a plain value without tensors, so that dispatch, autodiff state and the queues of lazy
/// backends can store it.
///
/// A backend without kernels runs [`reference`](Self::reference), so a new operator works on every backend as soon as
/// its reference is written.
#[cfg_attr(not(any(feature = "flex", feature = "ndarray")), allow(dead_code))]
pub(crate) trait Operator: Clone + Debug + Send + Sync + 'static {
    /// Name in error messages.
    const NAME: &'static str;

    /// Shapes and element types of the results, from those of the float inputs. With `None` a lazy backend runs
    /// [`reference`](Self::reference) and fuses its primitives.
    fn results(&self, _inputs: &[Spec]) -> Option<Specs> {
        None
    }

    /// Computes the results in plain Burn primitives: the oracle of tests, and the fallback without kernels.
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B>;

    /// Computes the results on a CPU backend.
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        self.reference(inputs)
    }

    /// Computes the results on a GPU.
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        self.reference(inputs)
    }

    /// Differentiation rule of the first float result, given which float inputs are tracked. Other results are
    /// constants.
    fn gradient(&self, _tracked: &[bool]) -> Gradient {
        Gradient::Refused(SECOND_ORDER)
    }

    /// The call that runs where an input is tracked. It may return additional results that only backward reads.
    fn tracked(&self) -> Self {
        self.clone()
    }

    /// Computes the gradient of each float input that [`BackwardCall::wants`] marks; `None` for the other inputs.
    fn backward<B: GnnBackend>(&self, _call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        unreachable!("an operator with `Gradient::Backward` implements `backward`")
    }
}

/// Tensors that are saved for backward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedForBackward {
    /// One flag per float input.
    pub(crate) inputs: Vec<bool>,
    /// Whether the first float result is saved.
    pub(crate) result: bool,
}

/// Inputs of a backward pass.
pub(crate) struct BackwardCall<B: burn::backend::Backend> {
    /// The gradient of the first float result.
    pub(crate) grad: FloatTensor<B>,
    /// The saved float inputs; `None` for inputs that were not saved.
    pub(crate) inputs: Vec<Option<FloatTensor<B>>>,
    /// The first float result if it was saved, the other float results, and the integer results.
    pub(crate) results: Tensors<B>,
    /// For each float input whether its gradient is computed.
    pub(crate) wants: Vec<bool>,
}

impl<B: GnnBackend> BackwardCall<B> {
    /// Whether the gradient of an input is computed; `false` for an optional input that the call does not have.
    pub(crate) fn wants_input(&self, input: usize) -> bool {
        self.wants.get(input) == Some(&true)
    }

    /// Runs `op` on the gradient, the saved results and the saved inputs, in this order. `op` returns the gradients
    /// that are wanted, in the order of the inputs.
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
    /// Only lazy backends use these. CPU kernels may choose other shapes for results that only their backward reads.
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

/// Assigns gradients, in order, to the inputs that want one.
pub(crate) fn wanted<B: GnnBackend>(
    wants: &[bool],
    gradients: Tensors<B>,
) -> Vec<Option<FloatTensor<B>>> {
    let mut gradients = gradients.read();
    wants.iter().map(|&wanted| wanted.then(|| gradients.float())).collect()
}

/// Runs an operator on a backend and returns its first float result.
pub(crate) fn run_on<B: GnnBackend, O: Operator>(
    op: O,
    inputs: impl IntoIterator<Item = FloatTensor<B>>,
) -> FloatTensor<B> {
    B::run(inputs.into_iter().collect(), op).read().float()
}

/// The operands that are present, left before right.
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

/// As [`call`]; returns the first float result.
pub(crate) fn tensor<O: Operator, const D: usize>(
    op: O,
    inputs: impl IntoIterator<Item = FloatTensor<Dispatch>>,
) -> Tensor<D> {
    Tensor::from_dispatch(call(op, inputs).read().float())
}

/// As [`tensor`], by the reference on every backend, differentiated by Burn.
pub(crate) fn reference<O: Operator, const D: usize>(
    op: O,
    inputs: impl IntoIterator<Item = FloatTensor<Dispatch>>,
) -> Tensor<D> {
    Tensor::from_dispatch(Dispatch::plain(inputs.into_iter().collect(), op).read().float())
}
