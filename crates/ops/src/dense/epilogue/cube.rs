//! Calls the GPU kernels of epilogues.

use burn_cubecl::CubeBackend;
use burn_gnn_cube as cube;

use super::operator::{Epilogue, EpilogueGrad, GradInputs};
use crate::operator::{OnCube, Tensors};

/// Which entries are open is four columns in a number.
impl OnCube for Epilogue {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let mut inputs = inputs.read();
        let (x, bias) = (inputs.float(), inputs.float_if(self.biased));
        let (out, open) = cube::epilogue(&self.plan, x, bias, self.open);
        Tensors::one(out).and_int(self.open.then_some(open))
    }
}

impl OnCube for EpilogueGrad {
    fn cube(&self, inputs: Tensors<CubeBackend>) -> Tensors<CubeBackend> {
        let GradInputs { grad, out, open } = self.given(inputs);
        let kept = match (out, open) {
            (Some(y), _) => cube::EpilogueKept::Output(y),
            (None, Some(open)) => cube::EpilogueKept::Open(open),
            (None, None) => cube::EpilogueKept::Nothing,
        };
        let (d_x, d_bias) = cube::epilogue_grad(&self.plan, grad, kept, self.bias);
        std::iter::once(d_x).chain(self.bias.then_some(d_bias)).collect::<Vec<_>>().into()
    }
}
