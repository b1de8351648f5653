//! Compares dropout and embeddings of this library with Burn's.

use burn::module::{Module, Param};
use burn::nn::{Dropout, DropoutConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Distribution, Int, Tensor, TensorData};
use burn_gnn::graph::Stream;
use burn_gnn::ops::dropout;
use serde_json::json;

use crate::measure::{Entry, bench, device};

/// Nodes and feature size of the tensor for dropout, as in arxiv-like.
const DROPOUT: [usize; 2] = [169_343, 128];
/// Rows and feature size of the embeddings, and rows that a batch reads.
const TABLE: [usize; 2] = [41_000, 64];
const BATCH: usize = 1024;

pub(crate) fn run() {
    let plain = device();
    dropouts(&plain, "fwd", &drop);
    dropouts(&plain.clone().autodiff(), "fwd+bwd", &|y| drop(y.sum().backward()));
    embeddings(&plain.autodiff());
}

/// Measures both on an autodiff device: elsewhere [`Dropout`] does nothing.
fn dropouts(device: &Device, how: &str, end: &dyn Fn(Tensor<2>)) {
    let x = Tensor::<2>::random(DROPOUT, Distribution::Default, device);
    let x = if device.is_autodiff() { x.require_grad() } else { x };
    let more = [("dim", json!(DROPOUT[1]))];
    let entry = |op: &str, f: &dyn Fn() -> Tensor<2>| {
        let op = format!("{op}.{how}");
        bench(Entry { group: "dense", graph: "arxiv-like", op: &op }, &more, || end(f()));
    };
    entry("dropout", &|| dropout(x.clone(), 0.5, Stream::new(1, "bench", 0), None));
    if device.is_autodiff() {
        let burns: Dropout = DropoutConfig::new(0.5).init();
        entry("burn_dropout", &|| burns.forward(x.clone()));
    }
}

#[derive(Module, Debug)]
struct Embedding {
    table: Param<Tensor<2>>,
}

/// An epoch of batches of a table of embeddings: rows, a loss, the gradient of the whole table, a step of Adam.
fn embeddings(device: &Device) {
    let table = Tensor::<2>::random(TABLE, Distribution::Normal(0.0, 0.1), device);
    let mut model = Embedding { table: Param::from_tensor(table) };
    let mut optimizer = AdamConfig::new().init();
    let ids = |step: usize| {
        let ids: Vec<i64> =
            (0..BATCH).map(|i| ((i * 40_507 + step * 7_919) % TABLE[0]) as i64).collect();
        Tensor::<1, Int>::from_data(TensorData::new(ids, [BATCH]), device)
    };
    let steps = TABLE[0].div_ceil(BATCH);
    let batches: Vec<_> = (0..steps).map(ids).collect();
    let entry = Entry { group: "dense", graph: "none", op: "embedding.epoch" };
    let more = [("dim", json!(TABLE[1])), ("rows", json!(TABLE[0])), ("steps", json!(steps))];
    bench(entry, &more, || {
        for ids in &batches {
            let x = model.table.val().select(0, ids.clone());
            let grads = GradientsParams::from_grads(x.square().mean().backward(), &model);
            model = optimizer.step(0.01, model.clone(), grads);
        }
    });
}
