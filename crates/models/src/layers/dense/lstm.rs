//! Runs an LSTM over the neighbours of nodes, or over the layers of a model.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::{Relation, row_index};
use burn_gnn_ops::copy_u_sum;

use crate::layers::dense::mlp::{apply, sigmoid};
use crate::params::init::Init;
use crate::pretrained::ParamMapping;

/// One step of an LSTM (Hochreiter and Schmidhuber, 1997), with PyTorch's order of gates `i, f, g, o`:
/// `c' = σ(f) c + σ(i) tanh(g)`, `h' = σ(o) tanh(c')`.
///
/// Part of [`SageConv`](crate::SageConv) with the LSTM aggregator and of [`JumpingKnowledge`](crate::JumpingKnowledge):
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
    /// `[d_input, 4 · hidden]` and its bias.
    pub ih: Linear,
    /// `[hidden, 4 · hidden]` and its bias.
    pub hh: Linear,
}

impl LstmCell {
    pub(crate) fn new([d_input, hidden]: [usize; 2], device: &Device) -> Self {
        let linear = |width| Init::glorot(device).linear([width, 4 * hidden], true);
        Self { ih: linear(d_input), hh: linear(hidden) }
    }

    /// Where PyTorch keeps `path` of the first layer of an LSTM.
    pub(crate) fn param_mapping(prefix: &str, path: &str) -> ParamMapping {
        let (part, kind) = path.split_once('.').unwrap_or((path, ""));
        ParamMapping::same(format!("{prefix}{kind}_{part}_l0"))
    }

    /// Hidden size.
    pub(crate) fn hidden(&self) -> usize {
        self.hh.weight.val().dims()[0]
    }

    /// States `(h, c)` after one more row each.
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

/// The last state of an LSTM over the sources of every destination, edges in the order of their ids; 0 without
/// in-edges. Step `t` runs for all destinations with more than `t` edges at once. The cell's states have the feature
/// size of `x`.
pub(crate) fn over_neighbours(cell: &LstmCell, relation: &Relation, x: Tensor<2>) -> Tensor<2> {
    let (csc, device, dtype) = (relation.csc(), x.device(), x.dtype());
    let plain = device.without_autodiff();
    let degree = |v: usize| csc.row(v).len();
    // By falling degree: the destinations that go on are the first ones, at every step.
    let mut order: Vec<usize> = (0..relation.num_dst()).filter(|&v| degree(v) > 0).collect();
    order.sort_by_key(|&v| std::cmp::Reverse(degree(v)));
    if order.is_empty() {
        // Zeros that depend on `x`: ranks without edges must not lose the way to an exchange.
        return copy_u_sum(relation, x);
    }
    let zeros = |rows| Tensor::<2>::zeros([rows, cell.hidden()], (&plain, dtype));
    let mut state = (zeros(order.len()), zeros(order.len()));
    let (mut active, mut finished) = (order.len(), vec![zeros(1)]);
    for t in 0..degree(order[0]) {
        let going = order.partition_point(|&v| degree(v) > t);
        if going < active {
            finished.push(state.0.clone().slice_dim(0, going..active));
            state = (state.0.slice_dim(0, 0..going), state.1.slice_dim(0, 0..going));
            active = going;
        }
        let sources = order[..active].iter().map(|&v| csc.indices()[csc.row(v).start + t] as usize);
        state = cell.step(x.clone().select(0, row_index(sources, &plain)), state);
    }
    finished.push(state.0);
    finished.reverse();
    // Back to the order of destinations; the row of zeros stands last.
    let mut place = vec![order.len(); relation.num_dst()];
    order.iter().enumerate().for_each(|(i, &v)| place[v] = i);
    Tensor::cat(finished, 0).select(0, row_index(place.into_iter(), &plain))
}
