//! Implements attention readout: one feature vector per graph.

use burn::config::Config;
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{SegmentReduce, Segments, segment_reduce, segment_softmax};

use crate::layers::dense::mlp::{apply, apply_some};
use crate::params::init::Init;
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained};

/// Describes an [`AttentionReadout`].
#[derive(Config, Debug)]
pub struct AttentionReadoutConfig {
    /// Input feature size.
    pub d_input: usize,
    /// Feature size that node features are projected to before the sum. `None`: no projection.
    pub d_output: Option<usize>,
}

/// Attention readout: pools the node features of every graph of a batch to one row, by a weighted mean with learned
/// weights.
///
/// `y[k] = Σ_(i in graph k) softmax(x w + b)[i] · (x[i] W + c)`, with the softmax over the nodes of the graph. For a sum,
/// mean or maximum, use [`segment_reduce`].
///
/// # Shapes
/// `x: [rows, d_input]`, `graphs` the rows of each graph, output `[graphs, d_output]`. The output of a graph without nodes
/// is 0.
///
/// # Paper
/// Li, Tarlow, Brockschmidt, Zemel, "Gated graph sequence neural networks", ICLR 2016, equation 7 with the softmax of
/// DGL's `GlobalAttentionPooling` instead of a sigmoid.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_models::AttentionReadoutConfig;
/// use burn_gnn_ops::Segments;
/// let device = Device::flex();
/// let readout = AttentionReadoutConfig::new(3).init(&device);
/// let y = readout.forward(Tensor::ones([5, 3], &device), &Segments::from_lengths(&[2, 0, 3]));
/// assert_eq!(y.dims(), [3, 3]);
/// ```
#[derive(Module, Debug)]
pub struct AttentionReadout {
    /// `w: [d_input, 1]` and `b`.
    pub gate_nn: Linear,
    /// `W: [d_input, d_output]` and `c`, with `d_output`.
    pub feat_nn: Option<Linear>,
}

impl AttentionReadoutConfig {
    /// Initializes weights by Glorot, biases with 0.
    pub fn init(&self, device: &Device) -> AttentionReadout {
        let linear = |o| Init::glorot(device).linear([self.d_input, o], true);
        AttentionReadout { gate_nn: linear(1), feat_nn: self.d_output.map(linear) }
    }
}

impl AttentionReadout {
    /// Computes one row per graph.
    ///
    /// # Panics
    /// `x` does not have one row per node of `graphs`.
    #[track_caller]
    pub fn forward(&self, x: Tensor<2>, graphs: &Segments) -> Tensor<2> {
        let weights = segment_softmax(apply(&self.gate_nn, x.clone()), graphs);
        let x = apply_some(self.feat_nn.as_ref(), x);
        segment_reduce(x * weights, graphs, SegmentReduce::Sum)
    }
}

impl Pretrained for AttentionReadout {
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        ParamMapping::same(match from {
            Framework::Dgl => path.to_owned(),
            Framework::Pyg => path.replacen("feat_nn", "nn", 1),
        })
    }
}
