//! Implements `Operator` for epilogues and their gradient. CPU kernels update tensors without other references in place,
//! so that an epilogue between two matrix products allocates nothing.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::DType;
use burn_gnn_cpu::Kernels;
use burn_gnn_cpu::dense::epilogue::{Read, words};
#[cfg(feature = "cube")]
use burn_gnn_cube as cube;
use burn_gnn_plan::EpiloguePlan;

use crate::dense::epilogue::call::{EpilogueGrad, EpilogueGradInputs};
use crate::dense::epilogue::reference;
#[cfg(feature = "cube")]
use crate::operator::CubeTensors;
use crate::operator::cpu::{Host, by_dtype};
use crate::operator::{BackwardCall, GnnBackend, Gradient, Operator, Spec, Specs, Tensors};

/// `dropout(activation(x + bias))`. Inputs: `x`, and the bias if there is one.
#[derive(Clone, Debug)]
pub(crate) struct Epilogue {
    pub(crate) plan: EpiloguePlan,
    pub(crate) biased: bool,
    /// Whether a ReLU also returns a mask of the entries that it and dropout let through, in a form that the backend
    /// chooses.
    pub(crate) open: bool,
}

impl Operator for Epilogue {
    const NAME: &'static str = "bias_activation";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        let [rows, columns] = self.plan.shape();
        // The form of the GPU kernels, since fusion wraps GPU backends only.
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
        let mut inputs = inputs.read();
        let (mut x, bias) = (inputs.float(), inputs.float_if(self.biased));
        let [rows, columns] = self.plan.shape();
        by_dtype!(x.dtype(), T => {
            let bias = bias.as_ref().map(B::floats::<T>);
            let open = if let Some(own) = B::floats_mut::<T>(&mut x) {
                T::epilogue_in_place(own, bias.as_deref(), &self.plan, self.open)
            } else {
                let (out, open) = T::epilogue(
                    &B::floats::<T>(&x),
                    bias.as_deref(),
                    &self.plan,
                    self.open,
                );
                x = B::from_floats(out, self.plan.shape().into());
                open
            };
            Tensors::one(x).and_int(
                self.open.then(|| B::from_ints(open, [rows, words(columns)].into())),
            )
        })
    }
    /// The mask of open entries has four columns per integer.
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let mut inputs = inputs.read();
        let (x, bias) = (inputs.float(), inputs.float_if(self.biased));
        let (out, open) = cube::epilogue(&self.plan, x, bias, self.open);
        Tensors::one(out).and_int(self.open.then_some(open))
    }
    fn tracked(&self) -> Self {
        Self { open: self.plan.keeps_open(), ..self.clone() }
    }
    fn gradient(&self, tracked: &[bool]) -> Gradient {
        Gradient::reading(vec![false; tracked.len()], self.plan.keeps_output())
    }
    fn backward<B: GnnBackend>(&self, mut call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        // The gradient of `x` is computed in every case.
        call.wants[0] = true;
        let op = EpilogueGrad { plan: self.plan.clone(), bias: call.wants_input(1) };
        call.run(op)
    }
}

impl Operator for EpilogueGrad {
    const NAME: &'static str = "bias_activation";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        let [_, columns] = self.plan.shape();
        let bias = self.bias.then(|| Spec::new([columns], inputs[0].dtype));
        Specs::floats(std::iter::once(inputs[0].clone()).chain(bias))
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        reference::gradient::<B>(self, self.read(inputs))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let EpilogueGradInputs { mut grad, out, open } = self.read(inputs);
        by_dtype!(grad.dtype(), T => {
            let (out, open) = (out.as_ref().map(B::floats::<T>), open.as_ref().map(B::ints));
            let kept = match (&out, &open) {
                (Some(out), _) => Read::Output(&out[..]),
                (None, Some(open)) => Read::Open(&open[..]),
                (None, None) => Read::Nothing,
            };
            let d_bias = if let Some(own) = B::floats_mut::<T>(&mut grad) {
                T::epilogue_gradient_in_place(own, kept, &self.plan, self.bias)
            } else {
                let (d_x, d_bias) =
                    T::epilogue_gradient(&B::floats::<T>(&grad), kept, &self.plan, self.bias);
                grad = B::from_floats(d_x, self.plan.shape().into());
                d_bias
            };
            let columns = d_bias.len();
            std::iter::once(grad)
                .chain(self.bias.then(|| B::from_floats(d_bias, [columns].into())))
                .collect()
        })
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let EpilogueGradInputs { grad, out, open } = self.read(inputs);
        let kept = match (out, open) {
            (Some(y), _) => cube::EpilogueKept::Output(y),
            (None, Some(open)) => cube::EpilogueKept::Open(open),
            (None, None) => cube::EpilogueKept::Nothing,
        };
        let (d_x, d_bias) = cube::epilogue_grad(&self.plan, grad, kept, self.bias);
        std::iter::once(d_x).chain(self.bias.then_some(d_bias)).collect()
    }
}
