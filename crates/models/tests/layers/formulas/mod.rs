//! Formulas written out with one-hot matrices and loops, for the layers that golden vectors do not cover.

mod graphs;
mod messages;
mod propagation;
mod recurrent;
mod types;

use burn::module::{Module, ModuleMapper, Param};
use burn::nn::Linear;
use burn::tensor::activation::relu;
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use burn_gnn_graph::{Graph, Relation};
use burn_gnn_models::{Mlp, to_dtype};

use crate::{assert_close, matrix, values};

/// Every parameter drawn again, so that no bias is 0.
struct Draw(usize);

impl ModuleMapper for Draw {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.0 += 1;
        let name = format!("param {}", self.0);
        param.map(|t| {
            let shape = t.dims();
            matrix(&t.device(), &name, 1, shape.iter().product()).reshape(shape)
        })
    }
}

pub(crate) fn drawn<M: Module>(layer: M) -> M {
    to_dtype(layer, FloatDType::F64).map(&mut Draw(0))
}

pub(crate) fn one_hot(device: &Device, ids: &[u32], n: usize) -> Tensor<2> {
    let v: Vec<f64> = ids
        .iter()
        .flat_map(|&i| (0..n).map(move |j| f64::from(u8::from(i as usize == j))))
        .collect();
    Tensor::from_data(TensorData::new(v, [ids.len(), n]), (device, DType::F64))
}

/// `[edges, sources]` and `[edges, destinations]`: rows of ends are products with them, sums over in-edges with the
/// transposed second.
pub(crate) fn endpoints(device: &Device, r: &Relation) -> (Tensor<2>, Tensor<2>) {
    (one_hot(device, r.src(), r.num_src()), one_hot(device, r.dst(), r.num_dst()))
}

pub(crate) fn linear(l: &Linear, x: Tensor<2>) -> Tensor<2> {
    let y = x.matmul(l.weight.val());
    match &l.bias {
        Some(b) => y + b.val().unsqueeze(),
        None => y,
    }
}

/// In f64; Burn's own is computed in f32 on one backend.
pub(crate) fn sigmoid(x: Tensor<2>) -> Tensor<2> {
    (x.neg().exp() + 1.0).recip()
}

pub(crate) fn mlp(m: &Mlp, x: Tensor<2>) -> Tensor<2> {
    let y = linear(&m.layers[0], x);
    m.layers[1..].iter().fold(y, |y, l| linear(l, relu(y)))
}

/// `[edges, 1]` over the in-edges of destinations.
pub(crate) fn softmax_into(d: &Tensor<2>, logits: Tensor<2>) -> Tensor<2> {
    let e = logits.exp();
    e.clone() / d.clone().matmul(d.clone().transpose().matmul(e))
}

pub(crate) fn same<const D: usize>(what: &str, got: &Tensor<D>, want: &Tensor<D>) {
    assert_eq!(got.dims(), want.dims(), "{what}");
    assert_close(what, &values(got), &values(want), 1e-11);
}

/// Two edge types on one node type and one from another.
pub(crate) fn two_types() -> Graph {
    Graph::builder()
        .nodes("a", 4)
        .nodes("b", 3)
        .edges(("a", "r", "a"), vec![0, 1, 3, 3], vec![1, 1, 0, 1])
        .edges(("a", "s", "a"), vec![2, 0], vec![1, 3])
        .edges(("b", "t", "a"), vec![0, 2, 2], vec![1, 0, 0])
        .build()
        .unwrap()
}
