//! Implements `Operator` for attention and its gradient.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
#[cfg(feature = "cube")]
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_cpu::attention::GradInputs;
use burn_gnn_cpu::{Elem, Kernels};
#[cfg(feature = "cube")]
use burn_gnn_cube::{self as cube, AttentionScores};
use burn_gnn_plan::AttentionPlan;

use crate::attention::call::AttentionGrad;
#[cfg(feature = "cube")]
use crate::attention::call::AttentionGradInputs;
use crate::attention::reference;
#[cfg(feature = "cube")]
use crate::operator::CubeTensors;
use crate::operator::cpu::{Host, by_dtype};
use crate::operator::{BackwardCall, GnnBackend, Gradient, Operator, Spec, Specs, Tensors};

/// Operands of the scores: `a_src` and `a_dst`, or one score per edge and head.
#[cfg(feature = "cube")]
fn scores(first: CubeTensor, second: Option<CubeTensor>) -> AttentionScores {
    match second {
        Some(a_dst) => AttentionScores::Nodes(first, a_dst),
        None => AttentionScores::Edges(first),
    }
}

/// Names the inputs: `z`, `a_src` or the given scores, and `a_dst`.
fn operands<B: GnnBackend>(
    plan: &AttentionPlan,
    inputs: Tensors<B>,
) -> (FloatTensor<B>, FloatTensor<B>, Option<FloatTensor<B>>) {
    let mut inputs = inputs.read();
    (inputs.float(), inputs.float(), inputs.float_if(plan.scoring().reads_nodes()))
}

/// Attention. Inputs: `z`, and `a_src` and `a_dst` or the given scores. Results: the weighted sums and their statistics
/// ([`AttentionPlan::stats_shape`]).
impl Operator for AttentionPlan {
    const NAME: &'static str = "attention";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        let dtype = inputs[0].dtype;
        Specs::floats([
            Spec::new(self.out_shape(), dtype),
            Spec::new(self.stats_shape(), reference::wide(dtype)),
        ])
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let (z, first, second) = operands(self, inputs);
        let (out, stats) = reference::forward::<B>(z, first, second, self);
        vec![out, stats].into()
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let (z, first, second) = operands(self, inputs);
        by_dtype!(z.dtype(), T => {
            let second = second.as_ref().map(B::floats::<T>);
            let (out, stats) = T::attention(
                self,
                &B::floats::<T>(&z),
                &B::floats::<T>(&first),
                second.as_deref(),
            );
            vec![B::from_floats(out, self.out_shape()), B::from_floats(stats, self.stats_shape())]
                .into()
        })
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let (z, first, second) = operands(self, inputs);
        let (out, stats) = cube::attention(self, z, scores(first, second));
        vec![out, stats].into()
    }
    fn gradient(&self, tracked: &[bool]) -> Gradient {
        Gradient::reading(vec![true; tracked.len()], true)
    }
    fn backward<B: GnnBackend>(&self, call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        let op = AttentionGrad {
            plan: self.clone(),
            z: call.wants[0],
            first: call.wants[1],
            second: call.wants_input(2),
        };
        call.run(op)
    }
}

impl Operator for AttentionGrad {
    const NAME: &'static str = "attention";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::floats(self.wanted(self.shapes().map(|shape| Spec::new(shape, inputs[0].dtype))))
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        reference::gradient::<B>(self, self.read(inputs))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let inputs = self.read(inputs);
        by_dtype!(inputs.grad.dtype(), T => {
            let second = inputs.second.as_ref().map(B::floats::<T>);
            let slices = GradInputs::<'_, T> {
                grad: &B::floats::<T>(&inputs.grad),
                out: &B::floats::<T>(&inputs.out),
                stats: &B::floats::<<T as Elem>::Acc>(&inputs.stats),
                z: &B::floats::<T>(&inputs.z),
                first: &B::floats::<T>(&inputs.first),
                second: second.as_deref(),
            };
            let [d_z, d_first, d_second] =
                T::attention_gradient(&self.plan, slices, [self.z, self.first, self.second]);
            let [of_z, of_first, of_second] = self.shapes();
            let all = self.wanted([(d_z, of_z), (d_first, of_first), (d_second, of_second)]);
            all.into_iter().map(|(data, shape)| B::from_floats(data, shape.into())).collect()
        })
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let AttentionGradInputs { grad, out, stats, z, first, second } = self.read(inputs);
        let wants = cube::AttentionGradMask { z: self.z, first: self.first, second: self.second };
        let kept = cube::AttentionKept { out, stats, z, scores: scores(first, second) };
        let (d_z, d_first, d_second) = cube::attention_grad(&self.plan, grad, kept, wants);
        self.wanted([d_z, d_first, d_second]).into()
    }
}
