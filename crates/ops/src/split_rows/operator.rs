//! Implements `Operator` for splits and their gradients.
//!
//! Backward of a part stores its gradient in the plan ([pending](crate::pending_gradients)); backward of the whole
//! joins them: it concatenates those of runs of rows, and adds that of first rows to that of all. On GPUs by Burn's own
//! slices.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{Shape, Slice};

use crate::operator::cpu::Host;
use crate::operator::{BackwardCall, GnnBackend, Gradient, Operator, Tensors};
use crate::primitives::zeros;
use crate::split_rows::pending::Split;
use crate::split_rows::{cpu, join};

/// The tensor itself, whose parts are [`Part`]s with the same plan.
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

/// Keeps the gradient of a part; one entry comes back, which says only that there is something to [`Join`].
#[derive(Clone, Debug)]
struct Put(Part);

/// The gradients of all parts as that of the whole; zeros for parts that have none.
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
    /// Gradients of runs go to their rows of the whole while they are in the cache, and are gone before the next one is
    /// made.
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
