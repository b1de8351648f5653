//! Implements `Operator` for a step of Adam.

use burn::backend::TensorMetadata;
use burn::backend::tensor::IndexingUpdateOp;
use burn_gnn_plan::{AdamRows, AdamStep};

use crate::dense::adam::{cpu, reference};
#[cfg(feature = "cube")]
use crate::operator::CubeTensors;
use crate::operator::cpu::Host;
use crate::operator::{GnnBackend, Gradient, Operator, Spec, Specs, Tensors};
use crate::primitives::index;

const UPDATE: Gradient = Gradient::Refused(
    "an update is not differentiable; pass tensors that are not tracked (`inner` or `detach`)",
);

/// Adam step. Inputs: parameter, gradient and both moments. Results: parameter and both moments after the step.
impl Operator for AdamStep {
    const NAME: &'static str = "adam_step";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::floats(vec![inputs[0].clone(); 3])
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [param, grad, moment_1, moment_2] = inputs.take();
        let (p, m, v) = reference::step::<B>(param, grad, moment_1, moment_2, &self.factors());
        vec![p, m, v].into()
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::step(self, inputs)
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let [param, grad, moment_1, moment_2] = inputs.take();
        let (p, m, v) =
            burn_gnn_cube::adam_step(param, grad, [moment_1, moment_2], &self.factors());
        vec![p, m, v].into()
    }
    fn gradient(&self, _tracked: &[bool]) -> Gradient {
        UPDATE
    }
}

/// Adam step for some rows of a table and its moments. The gradient has one row per updated row.
impl Operator for AdamRows {
    const NAME: &'static str = "adam_rows";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        self.step().results(inputs)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [param, grad, moment_1, moment_2] = inputs.take();
        let index = index::<B>(self.ids(), &param.device());
        let at = |x: &B::FloatTensorPrimitive| B::float_select(x.clone(), 0, index.clone());
        let rows =
            B::run(vec![at(&param), grad, at(&moment_1), at(&moment_2)].into(), *self.step());
        let put =
            |(x, rows)| B::float_select_assign(x, 0, index.clone(), rows, IndexingUpdateOp::Assign);
        [param, moment_1, moment_2].into_iter().zip(rows.floats).map(put).collect()
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let [param, grad, moment_1, moment_2] = inputs.take();
        let (p, m, v) = burn_gnn_cube::adam_rows(self, param, grad, [moment_1, moment_2]);
        vec![p, m, v].into()
    }
    fn gradient(&self, _tracked: &[bool]) -> Gradient {
        UPDATE
    }
}
