//! Operators under autodiff: the gradient that an operator writes by hand, with no more kept for it than tracked inputs need.

use std::fmt::{self, Debug};
use std::marker::PhantomData;

use burn::backend::Autodiff;
use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::{FloatTensor, IntTensor};

use super::{GnnBackend, Gradient, Operator, Saved, Tensors};

/// The backward step of operator `O`.
struct Step<O>(PhantomData<fn() -> O>);

impl<O: Operator> Debug for Step<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(O::NAME)
    }
}

/// Inputs are kept by node, so that Burn's checkpointing may compute them again; results as they are.
#[derive(Clone, Debug)]
struct State<O, F, I> {
    op: O,
    inputs: Vec<Option<NodeId>>,
    floats: Vec<F>,
    ints: Vec<I>,
}

impl<B: GnnBackend, O: Operator, const N: usize> Backward<B, N> for Step<O> {
    type State = State<O, FloatTensor<B>, IntTensor<B>>;

    fn backward(self, ops: Ops<Self::State, N>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let State { op, inputs, floats, ints } = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        let inputs = inputs.into_iter().map(|id| id.map(|id| checkpointer.retrieve_node_output(id))).collect();
        let wants = ops.parents.each_ref().map(Option::is_some);
        let all = op.backward::<B>(grad, Saved { inputs, results: Tensors { floats, ints } }, &wants);
        for (node, gradient) in ops.parents.into_iter().zip(all) {
            if let (Some(node), Some(gradient)) = (node, gradient) {
                grads.register::<B>(node.id, gradient);
            }
        }
    }
}

/// Tensors without history.
fn constants<B: GnnBackend, C: CheckpointStrategy>(x: Tensors<B>) -> Tensors<Autodiff<B, C>> {
    Tensors { floats: x.floats.into_iter().map(FloatTensor::<Autodiff<B, C>>::new).collect(), ints: x.ints }
}

fn inner<B: GnnBackend, C: CheckpointStrategy>(x: Tensors<Autodiff<B, C>>) -> Tensors<B> {
    Tensors { floats: x.floats.into_iter().map(|x| x.into_primitive()).collect(), ints: x.ints }
}

fn step<B: GnnBackend, C: CheckpointStrategy, O: Operator, const N: usize>(
    inputs: Tensors<Autodiff<B, C>>,
    op: O,
) -> Tensors<Autodiff<B, C>> {
    let nodes = std::array::from_fn(|i| inputs.floats[i].node());
    match <Step<O> as Backward<B, N>>::prepare::<C>(Step(PhantomData), nodes).compute_bound().stateful() {
        OpsKind::Tracked(mut prep) => {
            let tracked: [bool; N] = std::array::from_fn(|i| inputs.floats[i].is_tracked());
            let keeps = op.keeps(&tracked);
            let kept = inputs.floats.iter().zip(&keeps.inputs).map(|(x, &keep)| keep.then(|| prep.checkpoint(x))).collect();
            let op = op.tracked();
            let Tensors { mut floats, ints } = B::run(inner(inputs), op.clone());
            let out = floats.remove(0);
            let state = State {
                op,
                inputs: kept,
                floats: keeps.result.then(|| out.clone()).into_iter().chain(floats.clone()).collect(),
                ints: ints.clone(),
            };
            let mut results = constants::<B, C>(Tensors { floats, ints });
            results.floats.insert(0, prep.finish(state, out));
            results
        }
        OpsKind::UnTracked(prep) => {
            let Tensors { mut floats, ints } = B::run(inner(inputs), op);
            let out = floats.remove(0);
            let mut results = constants::<B, C>(Tensors { floats, ints });
            results.floats.insert(0, prep.finish(out));
            results
        }
    }
}

impl<B: GnnBackend, C: CheckpointStrategy> GnnBackend for Autodiff<B, C> {
    fn run<O: Operator>(inputs: Tensors<Self>, op: O) -> Tensors<Self> {
        let is_tracked = inputs.floats.iter().any(|x| x.is_tracked());
        match op.gradient() {
            Gradient::Backward => match inputs.floats.len() {
                1 => step::<B, C, O, 1>(inputs, op),
                2 => step::<B, C, O, 2>(inputs, op),
                3 => step::<B, C, O, 3>(inputs, op),
                n => unreachable!("{}: an operator with a gradient takes one to three float tensors, got {n}", O::NAME),
            },
            Gradient::OfReference if is_tracked => op.reference(inputs),
            // Gradients are computed on the backend below; they get here only if someone asks for the gradient of a gradient.
            Gradient::Refused(why) if is_tracked => panic!("{}: {why}", O::NAME),
            Gradient::OfReference | Gradient::Refused(_) => constants(B::run(inner(inputs), op)),
        }
    }
}
