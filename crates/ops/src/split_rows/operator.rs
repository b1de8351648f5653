//! Implements `Operator` for splits and their gradients.
//!
//! Backward of a part stores its gradient ([`PendingGradients`](crate::pending_gradients)). Backward of the whole tensor
//! joins them: it concatenates the gradients of runs, or adds the gradient of the first rows to the gradient of all rows.
//! GPUs use Burn's slices.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{Shape, Slice};

use crate::operator::cpu::Host;
use crate::operator::{BackwardCall, GnnBackend, Gradient, Operator, Tensors};
use crate::primitives::zeros;
use crate::split_rows::pending::Split;
use crate::split_rows::{cpu, join};

/// The whole tensor, whose parts are [`Part`]s with the same plan.
#[derive(Clone, Debug)]
pub(crate) struct Whole {
    pub(crate) plan: Split,
    pub(crate) shape: Shape,
}

/// The rows of one part of a [`Whole`].
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) plan: Split,
    pub(crate) part: usize,
}

/// Stores the gradient of a part, and returns a tensor of one entry so that autodiff runs [`Join`] afterwards.
#[derive(Clone, Debug)]
struct Put(Part);

/// Joins the gradients of all parts; parts without a gradient are zeros.
#[derive(Clone, Debug)]
struct Join(Whole);

impl Operator for Whole {
    const NAME: &'static str = "split_rows";

    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        inputs
    }
    fn gradient(&self, _tracked: &[bool]) -> Gradient {
        Gradient::reading([false], false)
    }
    fn backward<B: GnnBackend>(&self, call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        call.run(Join(self.clone()))
    }
}

impl Operator for Part {
    const NAME: &'static str = "split_rows";

    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [whole] = inputs.take();
        let rows = self.plan.plan().rows(self.part);
        Tensors::one(if rows == (0..whole.shape()[0]) {
            whole
        } else {
            B::float_slice(whole, &[Slice::from(rows)])
        })
    }
    fn gradient(&self, _tracked: &[bool]) -> Gradient {
        Gradient::reading([false], false)
    }
    fn backward<B: GnnBackend>(&self, call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        call.run(Put(self.clone()))
    }
}

impl Operator for Put {
    const NAME: &'static str = "split_rows";

    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [grad] = inputs.take();
        Tensors::one(self.0.plan.keep::<B>(grad, self.0.part))
    }
    /// Copies gradients of runs while they are in the cache, and frees each before the next one is computed.
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [grad] = inputs.take();
        Tensors::one(cpu::put::<B>(grad, &self.0.plan, self.0.part))
    }
}

impl Operator for Join {
    const NAME: &'static str = "split_rows";

    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let ([due], Whole { plan, shape }) = (inputs.take(), &self.0);
        let grads = plan.kept::<B>();
        Tensors::one(match plan.plan().is_runs() {
            true => {
                let zeros = |part: usize| {
                    let mut shape = shape.clone();
                    shape[0] = plan.plan().rows(part).len();
                    zeros::<B>(shape, &due)
                };
                B::float_cat(
                    grads
                        .into_iter()
                        .enumerate()
                        .map(|(i, grad)| grad.unwrap_or_else(|| zeros(i)))
                        .collect(),
                    0,
                )
            }
            false => join::join::<B>(&due, grads, shape.clone(), join::add::<B>, join::extend::<B>),
        })
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [due] = inputs.take();
        Tensors::one(cpu::joined::<B>(&due, &self.0.plan, self.0.shape.clone()))
    }
}
