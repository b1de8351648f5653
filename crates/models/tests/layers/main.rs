//! What must hold for every layer: numbering of nodes and edges does not matter, a block gives what the graph gives,
//! gradients are differences, weights are kept by files; and the formulas that golden vectors do not cover.

#![allow(deprecated)] // `Device::ndarray`: Burn has deprecated the backend, users still ask for it

mod blocks;
mod caches;
mod formulas;
mod inference;
mod initializers;
mod learning;
mod numbering;
mod random;
mod refusals;
mod registry;
mod seeds;
mod storage;
mod threads;
mod types;
mod views;
#[path = "../../../sampling/tests/sampling/watchdog.rs"]
mod watchdog;
mod weights;

use burn::module::Module;
use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_models::NodeTensors;
use burn_gnn_ops::{GraphView, Stream};

fn devices() -> [Device; 2] {
    [Device::flex(), Device::ndarray()]
}

/// Numbers in `-1..1`, functions of purpose, row and column.
fn matrix(device: &Device, purpose: &str, rows: usize, cols: usize) -> Tensor<2> {
    let s = Stream::new(3, purpose, 0);
    let v: Vec<f64> = (0..rows * cols)
        .map(|i| s.uniform((i / cols) as u64, (i % cols) as u64) * 2.0 - 1.0)
        .collect();
    Tensor::from_data(TensorData::new(v, [rows, cols]), (device, DType::F64))
}

fn values<const D: usize>(t: &Tensor<D>) -> Vec<f64> {
    t.clone().into_data_dtype(DType::F64).try_to_vec().unwrap()
}

#[track_caller]
fn close(what: &str, got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (a, b)) in got.iter().zip(want).enumerate() {
        // Written so that a NaN fails.
        let near = (a - b).abs() <= tolerance * (1.0 + b.abs());
        assert!(near, "{what}: entry {i} is {a}, expected {b}");
    }
}

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
