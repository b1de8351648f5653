//! Epilogues on CubeCL backends.

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn_cubecl::{CubeBackend, CubeDevice};
use burn_gnn_cube as cube;

use super::backend::{EpilogueBackend, EpilogueKept};
use super::plan::EpiloguePlan;
use crate::dropout::cube::draws;

fn call(plan: &EpiloguePlan, device: &CubeDevice) -> cube::Epilogue {
    cube::Epilogue { activation: plan.activation().into(), dropout: plan.dropout().map(|dropout| draws(dropout, device)) }
}

/// The kernel of `burn-gnn-cube`.
fn run(
    x: FloatTensor<CubeBackend>,
    bias: Option<FloatTensor<CubeBackend>>,
    plan: &EpiloguePlan,
    open: bool,
) -> (FloatTensor<CubeBackend>, IntTensor<CubeBackend>) {
    let call = call(plan, &x.device);
    cube::epilogue(&call, x, bias, open)
}

/// Kernels of `burn-gnn-cube`. Which entries are open is four columns in a number.
impl EpilogueBackend for CubeBackend {
    fn epilogue(x: FloatTensor<Self>, plan: EpiloguePlan) -> FloatTensor<Self> {
        run(x, None, &plan, false).0
    }
    fn epilogue_bias(x: FloatTensor<Self>, bias: FloatTensor<Self>, plan: EpiloguePlan) -> FloatTensor<Self> {
        run(x, Some(bias), &plan, false).0
    }
    fn epilogue_open(x: FloatTensor<Self>, plan: EpiloguePlan) -> (FloatTensor<Self>, IntTensor<Self>) {
        run(x, None, &plan, true)
    }
    fn epilogue_bias_open(x: FloatTensor<Self>, bias: FloatTensor<Self>, plan: EpiloguePlan) -> (FloatTensor<Self>, IntTensor<Self>) {
        run(x, Some(bias), &plan, true)
    }
    fn epilogue_grad(
        grad: FloatTensor<Self>,
        kept: EpilogueKept<Self>,
        plan: EpiloguePlan,
        bias: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let kept = match kept {
            EpilogueKept::Nothing => cube::EpilogueKept::Nothing,
            EpilogueKept::Out(y) => cube::EpilogueKept::Output(y),
            EpilogueKept::Open(open) => cube::EpilogueKept::Open(open),
        };
        let call = call(&plan, &grad.device);
        cube::epilogue_grad(&call, grad, kept, bias)
    }
}
