//! Tests of every layer: results do not depend on the numbering of nodes and edges, blocks and graphs give equal results,
//! gradients equal finite differences, files restore weights, and formulas that golden vectors do not cover.

mod errors;
mod fixtures;
mod formulas;
mod parameters;
mod properties;

use burn::module::Module;
use burn::tensor::Tensor;
use burn_gnn_models::NodeTensors;
use burn_gnn_ops::GraphView;
use burn_gnn_testutil::{assert_close, devices, matrix, values};

/// Key of the dropout of a pass in which a model trains.
const STEP: (u64, u64) = (5, 3);

/// What a layer on an autodiff device makes of plain inputs: without dropout, as `valid`, or with that of [`STEP`].
fn pass<M: Module>(
    layer: &M,
    trains: bool,
    run: impl Fn(&M, &dyn GraphView, Tensor<2>, Tensor<2>) -> Tensor<2>,
    g: &dyn GraphView,
    (x, e): (Tensor<2>, Tensor<2>),
) -> Tensor<2> {
    if trains {
        let y = run(
            layer,
            &GraphView::at_step(&g, STEP.0, STEP.1),
            Tensor::from_inner(x),
            Tensor::from_inner(e),
        );
        return y.inner();
    }
    run(&layer.clone().valid(), g, x, e)
}

/// One tensor per node type, by name.
fn typed(g: &dyn GraphView, x: Vec<Tensor<2>>) -> NodeTensors {
    NodeTensors::from_list(g.schema(), x.into_iter().map(Some))
}
