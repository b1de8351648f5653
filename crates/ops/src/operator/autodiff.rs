//! Registers the hand-written gradients of operators with autodiff. Only tensors that tracked inputs need are saved.

use std::fmt::Debug;
use std::sync::Arc;

use burn::backend::Autodiff;
use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::{FloatTensor, IntTensor};

use crate::operator::definition::{BackwardCall, GnnBackend, Gradient, Operator, SavedForBackward};
use crate::operator::tensors::Tensors;

/// A call as a trait object, so that the autodiff code is compiled once per backend and not once per operator.
trait AnyCall<B: GnnBackend>: Debug + Send + Sync {
    fn run(&self, inputs: Tensors<B>) -> Tensors<B>;
    fn backward(&self, call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>>;
}

impl<B: GnnBackend, O: Operator> AnyCall<B> for O {
    fn run(&self, inputs: Tensors<B>) -> Tensors<B> {
        B::run(inputs, self.clone())
    }
    fn backward(&self, call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        Operator::backward::<B>(self, call)
    }
}

/// The backward step of every operator.
#[derive(Debug)]
struct Step;

/// Saved state. Inputs are saved by node id, so that Burn's checkpointing may recompute them; results are saved as
/// tensors.
#[derive(Clone, Debug)]
struct State<O, F, I> {
    op: O,
    inputs: Vec<Option<NodeId>>,
    floats: Vec<F>,
    ints: Vec<I>,
}

impl<B: GnnBackend, const N: usize> Backward<B, N> for Step {
    type State = State<Arc<dyn AnyCall<B>>, FloatTensor<B>, IntTensor<B>>;

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        grads: &mut Gradients,
        checkpointer: &mut Checkpointer,
    ) {
        let State { op, inputs, floats, ints } = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        let inputs = inputs
            .into_iter()
            .map(|id| id.map(|id| checkpointer.retrieve_node_output(id)))
            .collect();
        let wants = ops.parents.iter().map(Option::is_some).collect();
        let results = Tensors { floats, ints };
        let all = op.backward(BackwardCall { grad, inputs, results, wants });
        for (node, gradient) in ops.parents.into_iter().zip(all) {
            if let (Some(node), Some(gradient)) = (node, gradient) {
                grads.register::<B>(node.id, gradient);
            }
        }
    }
}

/// Wraps tensors as constants of the autodiff graph.
fn constants<B: GnnBackend, C: CheckpointStrategy>(x: Tensors<B>) -> Tensors<Autodiff<B, C>> {
    Tensors {
        floats: x.floats.into_iter().map(FloatTensor::<Autodiff<B, C>>::new).collect(),
        ints: x.ints,
    }
}

fn inner<B: GnnBackend, C: CheckpointStrategy>(x: Tensors<Autodiff<B, C>>) -> Tensors<B> {
    Tensors { floats: x.floats.into_iter().map(|x| x.into_primitive()).collect(), ints: x.ints }
}

/// Runs a call with `N` float inputs and saves the tensors that `keeps` marks.
fn step<B: GnnBackend, C: CheckpointStrategy, const N: usize>(
    inputs: Tensors<Autodiff<B, C>>,
    op: Arc<dyn AnyCall<B>>,
    keeps: &SavedForBackward,
) -> Tensors<Autodiff<B, C>> {
    let nodes = std::array::from_fn(|i| inputs.floats[i].node());
    let mut kind = <Step as Backward<B, N>>::prepare::<C>(Step, nodes).compute_bound().stateful();
    let kept = match &mut kind {
        OpsKind::Tracked(prep) => inputs
            .floats
            .iter()
            .zip(&keeps.inputs)
            .map(|(x, &keep)| keep.then(|| prep.checkpoint(x)))
            .collect(),
        OpsKind::UnTracked(_) => Vec::new(),
    };
    let Tensors { mut floats, ints } = op.run(inner(inputs));
    let out = floats.remove(0);
    let first = match kind {
        OpsKind::Tracked(prep) => {
            let results = keeps.result.then(|| out.clone()).into_iter().chain(floats.clone());
            let state = State { op, inputs: kept, floats: results.collect(), ints: ints.clone() };
            prep.finish(state, out)
        }
        OpsKind::UnTracked(prep) => prep.finish(out),
    };
    let mut results = constants::<B, C>(Tensors { floats, ints });
    results.floats.insert(0, first);
    results
}

impl<B: GnnBackend, C: CheckpointStrategy> GnnBackend for Autodiff<B, C> {
    fn run<O: Operator>(inputs: Tensors<Self>, op: O) -> Tensors<Self> {
        let tracked: Vec<bool> = inputs.floats.iter().map(|x| x.is_tracked()).collect();
        let is_tracked = tracked.contains(&true);
        match op.gradient(&tracked) {
            Gradient::Backward(keeps) => {
                #[cfg(all(test, feature = "flex"))]
                if is_tracked {
                    super::property_tests::keeping(&op, inner(inputs.clone()), &tracked, &keeps);
                }
                let op: Arc<dyn AnyCall<B>> =
                    if is_tracked { Arc::new(op.tracked()) } else { Arc::new(op) };
                match inputs.floats.len() {
                    1 => step::<B, C, 1>(inputs, op, &keeps),
                    2 => step::<B, C, 2>(inputs, op, &keeps),
                    3 => step::<B, C, 3>(inputs, op, &keeps),
                    n => unreachable!(
                        "{}: an operator with a gradient takes one to three float tensors, got {n}",
                        O::NAME
                    ),
                }
            }
            Gradient::OfReference if is_tracked => op.reference(inputs),
            // Gradients run on the inner backend. A gradient that is run here is differentiated a second time.
            Gradient::Refused(why) if is_tracked => panic!("{}: {why}", O::NAME),
            Gradient::OfReference | Gradient::Refused(_) => constants(B::run(inner(inputs), op)),
        }
    }
}
