//! Defines operators and the backends that they run on.

use std::fmt::Debug;

// Named by the code that `backend_extension` generates.
#[allow(unused_imports)]
use burn::backend::Autodiff;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, TensorMetadata, backend_extension};
use burn::tensor::{DType, Shape, Tensor};

use crate::operator::tensors::Tensors;

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
const SECOND_ORDER: &str =
    "the gradient of a gradient is not implemented; detach the inputs of the first gradient";

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

/// An element type of Burn's that kernels know, as is the type that its sums are kept in.
pub(crate) trait Float: Elem<Acc: Element> + Element {}
impl<T: Elem<Acc: Element> + Element> Float for T {}

/// A backend whose tensors are slices on the host.
pub(crate) trait Host: GnnBackend {
    /// The entries in row-major order; copies only if they are not stored so.
    fn floats<T: Float>(tensor: &FloatTensor<Self>) -> Cow<'_, [T]>;
    /// Whether [`floats`](Self::floats) copies nothing.
    fn is_row_major(tensor: &FloatTensor<Self>) -> bool;
    /// As [`floats`](Self::floats), for 32-bit integers.
    fn ints(tensor: &IntTensor<Self>) -> Cow<'_, [i32]>;
    /// The entries to be changed in place, if no other tensor shares them and they are stored in row-major
    /// order; by default no backend gives them out.
    fn floats_mut<T: Float>(_tensor: &mut FloatTensor<Self>) -> Option<&mut [T]> {
        None
    }
    /// A tensor that takes the vector over.
    fn from_floats<T: Float>(data: Vec<T>, shape: Shape) -> FloatTensor<Self>;
    /// As [`from_floats`](Self::from_floats), for 32-bit integers.
    fn from_ints(data: Vec<i32>, shape: Shape) -> IntTensor<Self>;
}

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
