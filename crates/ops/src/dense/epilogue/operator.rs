//! Implements `Operator` for epilogues and their gradient.

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::tensor::DType;

use super::{EpiloguePlan, cpu, reference};
use crate::operator::cpu::Host;
use crate::operator::{
    GnnBackend, Gradient, Operator, Saved, SavedForBackward, Spec, Specs, Tensors,
};

/// `dropout(activation(x + bias))` of `x` and the bias, if there is one.
#[derive(Clone, Debug)]
pub(crate) struct Epilogue {
    pub(crate) plan: EpiloguePlan,
    pub(crate) biased: bool,
    /// Whether a relu returns, beside the result, which entries it and dropout let through, in a form that the backend
    /// chooses.
    pub(crate) open: bool,
}

impl Operator for Epilogue {
    const NAME: &'static str = "bias_activation";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        let [rows, columns] = self.plan.shape();
        // As the kernels for GPUs have it, the only ones behind fusion.
        let open = self.open.then(|| Spec::new([rows * columns.div_ceil(4)], DType::U32));
        Some(Specs { floats: vec![inputs[0].clone()], ints: open.into_iter().collect() })
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let mut inputs = inputs.read();
        let (x, bias) = (inputs.float(), inputs.float_if(self.biased));
        let out = reference::forward::<B>(x, bias, &self.plan);
        let open = self.open.then(|| reference::open::<B>(&out));
        Tensors::one(out).and_int(open)
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::forward(self, inputs)
    }
    fn gradient(&self) -> Gradient {
        Gradient::Backward
    }
    fn tracked(&self) -> Self {
        Self { open: self.plan.keeps_open(), ..self.clone() }
    }
    fn keeps(&self, tracked: &[bool]) -> SavedForBackward {
        SavedForBackward { inputs: vec![false; tracked.len()], result: self.plan.keeps_output() }
    }
    fn backward<B: GnnBackend>(
        &self,
        grad: FloatTensor<B>,
        saved: Saved<B>,
        wants: &[bool],
    ) -> Vec<Option<FloatTensor<B>>> {
        let Tensors { mut floats, ints } = saved.results;
        floats.insert(0, grad);
        let op = EpilogueGrad { plan: self.plan.clone(), bias: wants.get(1) == Some(&true) };
        let mut all = B::run(Tensors { floats, ints }, op.clone()).read();
        let (d_x, d_bias) = (all.float(), all.float_if(op.bias));
        [Some(d_x), d_bias]
            .into_iter()
            .zip(wants)
            .map(|(d, &wanted)| d.filter(|_| wanted))
            .collect()
    }
}

/// The gradients of `x` and, if it is wanted, of the bias, from that of the result and what [`EpiloguePlan`] keeps: the
/// result, which entries are open, or nothing.
#[derive(Clone, Debug)]
pub(crate) struct EpilogueGrad {
    pub(crate) plan: EpiloguePlan,
    pub(crate) bias: bool,
}

/// What the gradient is computed from.
pub(super) struct GradInputs<B: GnnBackend> {
    pub(super) grad: FloatTensor<B>,
    pub(super) out: Option<FloatTensor<B>>,
    pub(super) open: Option<IntTensor<B>>,
}

impl EpilogueGrad {
    /// The inputs by name.
    pub(super) fn given<B: GnnBackend>(&self, inputs: Tensors<B>) -> GradInputs<B> {
        let mut inputs = inputs.read();
        GradInputs {
            grad: inputs.float(),
            out: inputs.float_if(self.plan.keeps_output()),
            open: inputs.int(),
        }
    }
}

impl Operator for EpilogueGrad {
    const NAME: &'static str = "bias_activation";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        let [_, columns] = self.plan.shape();
        let bias = self.bias.then(|| Spec::new([columns], inputs[0].dtype));
        Specs::floats(std::iter::once(inputs[0].clone()).chain(bias).collect::<Vec<_>>())
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        reference::gradient::<B>(self, self.given(inputs))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::gradient(self, self.given(inputs))
    }
}
