//! Holds the input and output tensors of an operator.

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{
    Backend, BackendTensor, Dispatch, DispatchAutodiffContext, DispatchTensor, DispatchTensorKind,
    ExtensionType,
};

/// Float tensors and index tensors of one call, each in the order that the operator defines. An absent optional operand
/// has no entry; the plan records which operands are present.
#[derive(Clone, Debug)]
pub(crate) struct Tensors<B: Backend> {
    pub(crate) floats: Vec<FloatTensor<B>>,
    pub(crate) ints: Vec<IntTensor<B>>,
}

impl<B: Backend> From<Vec<FloatTensor<B>>> for Tensors<B> {
    fn from(floats: Vec<FloatTensor<B>>) -> Self {
        Self { floats, ints: Vec::new() }
    }
}

impl<B: Backend> FromIterator<FloatTensor<B>> for Tensors<B> {
    fn from_iter<I: IntoIterator<Item = FloatTensor<B>>>(floats: I) -> Self {
        Self::from(Vec::from_iter(floats))
    }
}

impl<B: Backend> Tensors<B> {
    /// One float tensor.
    pub(crate) fn one(x: FloatTensor<B>) -> Self {
        Self::from(vec![x])
    }
    /// Appends an index tensor, if there is one.
    pub(crate) fn and_int(mut self, x: Option<IntTensor<B>>) -> Self {
        self.ints.extend(x);
        self
    }
    /// Converts to a reader that returns the tensors one by one.
    pub(crate) fn read(self) -> Reader<B> {
        Reader { floats: self.floats.into_iter(), ints: self.ints.into_iter() }
    }
    /// The float tensors, of which there are `N`.
    pub(crate) fn take<const N: usize>(self) -> [FloatTensor<B>; N] {
        let found = self.floats.len();
        match self.floats.try_into() {
            Ok(floats) => floats,
            Err(_) => unreachable!("{N} float tensors, got {found}"),
        }
    }
}

/// Tensors in their order.
pub(crate) struct Reader<B: Backend> {
    floats: std::vec::IntoIter<FloatTensor<B>>,
    ints: std::vec::IntoIter<IntTensor<B>>,
}

impl<B: Backend> Reader<B> {
    /// The next float tensor.
    pub(crate) fn float(&mut self) -> FloatTensor<B> {
        match self.floats.next() {
            Some(x) => x,
            None => unreachable!("an operator is called with the tensors that its plan describes"),
        }
    }
    /// The next float tensor, if the call has this operand.
    pub(crate) fn float_if(&mut self, is_there: bool) -> Option<FloatTensor<B>> {
        is_there.then(|| self.float())
    }
    /// The next index tensor, if there is one.
    pub(crate) fn int(&mut self) -> Option<IntTensor<B>> {
        self.ints.next()
    }
}

/// As `#[derive(ExtensionType)]` generates it for structs with a fixed number of tensors.
impl<B: Backend> ExtensionType<B> for Tensors<B> {
    type Target = Tensors<Dispatch>;

    fn map_to_dispatch<F>(self, map_kind: F, autodiff: DispatchAutodiffContext) -> Self::Target
    where
        F: Fn(BackendTensor<B>) -> DispatchTensorKind,
    {
        let wrap = |x| DispatchTensor { kind: map_kind(x), autodiff };
        Tensors {
            floats: self.floats.into_iter().map(|x| wrap(BackendTensor::Float(x))).collect(),
            ints: self.ints.into_iter().map(|x| wrap(BackendTensor::Int(x))).collect(),
        }
    }

    fn map_from_dispatch<F>(target: Self::Target, unwrap_kind: F) -> Self
    where
        F: Fn(DispatchTensor) -> BackendTensor<B>,
    {
        Self {
            floats: target.floats.into_iter().map(|x| unwrap_kind(x).float()).collect(),
            ints: target.ints.into_iter().map(|x| unwrap_kind(x).int()).collect(),
        }
    }

    fn routing_tensor(target: &Self::Target) -> Option<&DispatchTensor> {
        target.floats.first().or(target.ints.first())
    }

    fn routing_float_tensor(target: &Self::Target) -> Option<&DispatchTensor> {
        target.floats.first()
    }

    fn autodiff_context(target: &Self::Target) -> DispatchAutodiffContext {
        target
            .floats
            .iter()
            .chain(&target.ints)
            .fold(DispatchAutodiffContext::Disabled, |context, x| context.merge(x.autodiff))
    }
}
