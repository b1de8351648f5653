//! Implements an LSTM cell, and an LSTM over the neighbours of every node.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::{Relation, row_index};
use burn_gnn_ops::copy_u_sum;

use crate::layers::dense::mlp::{apply, sigmoid};
use crate::params::init::Init;
use crate::pretrained::param_mapping::ParamMapping;

/// Cell of an LSTM (Hochreiter and Schmidhuber, 1997), a part of [`SageConv`](crate::SageConv) with the LSTM aggregator and
/// of [`JumpingKnowledge`](crate::JumpingKnowledge).
///
/// `c' = σ(f) c + σ(i) tanh(g)`, `h' = σ(o) tanh(c')`, with gates in PyTorch's order `i, f, g, o`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::{Conv, SageAggregator, SageConvConfig};
/// let (device, g) = (Device::flex(), Graph::homogeneous(2, vec![0, 1], vec![1, 1])?);
/// let conv = SageConvConfig::new(4, 3).with_aggregator(SageAggregator::Lstm).init(&device);
/// assert_eq!(conv.lstm.as_ref().unwrap().ih.weight.dims(), [4, 16]); // four gates
/// assert_eq!(conv.forward(&g, Tensor::<2>::ones([2, 4], &device)).dims(), [2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct LstmCell {
    /// `[d_input, 4 · hidden]` and a bias.
    pub ih: Linear,
    /// `[hidden, 4 · hidden]` and a bias.
    pub hh: Linear,
}

impl LstmCell {
    pub(crate) fn new([d_input, hidden]: [usize; 2], device: &Device) -> Self {
        let linear = |width| Init::glorot(device).linear([width, 4 * hidden], true);
        Self { ih: linear(d_input), hh: linear(hidden) }
    }

    /// Maps the parameter at `path` to the first layer of PyTorch's `LSTM`.
    pub(crate) fn param_mapping(prefix: &str, path: &str) -> ParamMapping {
        let (part, kind) = path.split_once('.').unwrap_or((path, ""));
        ParamMapping::same(format!("{prefix}{kind}_{part}_l0"))
    }

    /// Hidden size.
    pub(crate) fn hidden(&self) -> usize {
        self.hh.weight.val().dims()[0]
    }

    /// Computes the states `(h, c)` after one more input.
    pub(crate) fn step(
        &self,
        x: Tensor<2>,
        (h, c): (Tensor<2>, Tensor<2>),
    ) -> (Tensor<2>, Tensor<2>) {
        let d = self.hidden();
        let gates = apply(&self.ih, x) + apply(&self.hh, h);
        let gate = |k: usize| gates.clone().slice_dim(1, k * d..(k + 1) * d);
        let c = sigmoid(gate(1)) * c + sigmoid(gate(0)) * gate(2).tanh();
        (sigmoid(gate(3)) * c.clone().tanh(), c)
    }
}

/// Runs an LSTM over the sources of every destination, in the order of edge ids, and returns the last hidden state; 0
/// without in-edges.
///
/// Destinations are sorted by descending degree, so that those with more than `t` edges are the first ones at step `t`,
/// and one call of the cell processes all of them.
pub(crate) fn over_neighbours(cell: &LstmCell, relation: &Relation, x: Tensor<2>) -> Tensor<2> {
    let (csc, device, dtype) = (relation.csc(), x.device(), x.dtype());
    let plain = device.without_autodiff();
    let degree = |v: usize| csc.row(v).len();
    let mut order: Vec<usize> = (0..relation.num_dst()).filter(|&v| degree(v) > 0).collect();
    order.sort_by_key(|&v| std::cmp::Reverse(degree(v)));
    if order.is_empty() {
        // Zeros that depend on `x`: a rank without edges must take part in the halo exchange of backward.
        return copy_u_sum(relation, x);
    }
    let zeros = |rows| Tensor::<2>::zeros([rows, cell.hidden()], (&plain, dtype));
    let mut state = (zeros(order.len()), zeros(order.len()));
    let (mut active, mut finished) = (order.len(), vec![zeros(1)]);
    for t in 0..degree(order[0]) {
        let remaining = order.partition_point(|&v| degree(v) > t);
        if remaining < active {
            finished.push(state.0.clone().slice_dim(0, remaining..active));
            state = (state.0.slice_dim(0, 0..remaining), state.1.slice_dim(0, 0..remaining));
            active = remaining;
        }
        let sources = order[..active].iter().map(|&v| csc.indices()[csc.row(v).start + t] as usize);
        state = cell.step(x.clone().select(0, row_index(sources, &plain)), state);
    }
    finished.push(state.0);
    finished.reverse();
    // Restore the order of destinations. The last row, of zeros, is for those without in-edges.
    let mut rows = vec![order.len(); relation.num_dst()];
    order.iter().enumerate().for_each(|(i, &v)| rows[v] = i);
    Tensor::cat(finished, 0).select(0, row_index(rows.into_iter(), &plain))
}
