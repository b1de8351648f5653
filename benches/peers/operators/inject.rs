//! Runs backward from a given output gradient.
//!
//! `Tensor::backward` starts from a scalar, and the time of a sum would be measured, too. This
//! operator replaces the sum: its forward does not read its input, and its backward returns a given
//! cotangent.

#[allow(unused_imports)] // named by the code that the attribute writes
use burn::backend::Autodiff;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::{Shape, Tensor};

#[backend_extension(Flex, Cube: cfg(feature = "cube"), Autodiff)]
pub(crate) trait Inject: Backend {
    /// Returns a scalar whose gradient with respect to `y` is `cotangent`, independent of the
    /// incoming gradient.
    fn inject(y: FloatTensor<Self>, _cotangent: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::float_zeros(Shape::new([1]), &y.device(), y.dtype().into())
    }
}

impl Inject for Flex {}
#[cfg(feature = "cube")]
impl Inject for burn_gnn::ops::CubeBackend {}

#[derive(Debug)]
struct Injected;

impl<B: Inject> Backward<B, 1> for Injected {
    type State = FloatTensor<B>;

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        drop(grads.consume::<B>(&ops.node));
        if let [Some(node)] = ops.parents {
            grads.register::<B>(node.id, ops.state);
        }
    }
}

impl<B: Inject, C: CheckpointStrategy> Inject for Autodiff<B, C> {
    fn inject(y: FloatTensor<Self>, cotangent: FloatTensor<Self>) -> FloatTensor<Self> {
        let (y, node) = y.into_parts();
        let cotangent = cotangent.into_primitive();
        let out = B::inject(y, cotangent.clone());
        match Injected.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(cotangent, out),
            OpsKind::UnTracked(prep) => prep.finish(out),
        }
    }
}

/// Runs forward and backward of `make` with a cotangent of ones, which is created on the first
/// call.
pub(crate) fn fwd_bwd<const D: usize>(make: impl Fn() -> Tensor<D>) -> impl FnMut() {
    let mut cotangent: Option<Tensor<D>> = None;
    move || {
        let y = make();
        let g = cotangent
            .get_or_insert_with(|| {
                Tensor::ones(y.dims(), (&y.device().without_autodiff(), y.dtype()))
            })
            .clone();
        let scalar =
            Tensor::<1>::from_dispatch(Dispatch::inject(y.into_dispatch(), g.into_dispatch()));
        drop(scalar.backward());
    }
}

/// Checks, before any measurement, that [`fwd_bwd`] computes the gradient of a sum.
pub(crate) fn check() {
    let x = Tensor::<2>::from_data([[1.0f32, 2.0], [3.0, 4.0]], &burn::tensor::Device::flex())
        .autodiff()
        .require_grad();
    let y = x.clone() * x.clone();
    let g = Tensor::<2>::ones([2, 2], &burn::tensor::Device::flex());
    let scalar = Tensor::<1>::from_dispatch(Dispatch::inject(y.into_dispatch(), g.into_dispatch()));
    let dx = x.grad(&scalar.backward()).map(|g| g.into_data().try_to_vec::<f32>().ok());
    assert_eq!(dx, Some(Some(vec![2.0, 4.0, 6.0, 8.0])), "the cotangent does not arrive");
}
