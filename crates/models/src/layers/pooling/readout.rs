//! Implements attention readout: one feature vector per graph.

use burn::config::Config;
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{SegmentReduce, Segments, segment_reduce, segment_softmax};

use crate::layers::dense::mlp::{apply, apply_some};
use crate::params::init::Init;
use crate::pretrained::{Framework, ParamMapping, Pretrained};

/// Describes an [`AttentionReadout`].
#[derive(Config, Debug)]
pub struct AttentionReadoutConfig {
    /// Input feature size.
    pub d_input: usize,
    /// Feature size that node features are mapped to before they are summed; none: no mapping.
    pub d_output: Option<usize>,
}

/// One row per graph of a batch, `y[k] = Σ_(i in graph k) softmax(x w + b)[i] · (x[i] W + c)`, the softmax over the
/// nodes of the graph. Sum, mean and maximum over graphs are [`segment_reduce`] itself.
///
/// # Shapes
/// `x: [rows, d_input]`, `graphs` the rows of each graph, output `[graphs, d_output]`. A graph without nodes gets 0.
///
/// # Paper
/// Li, Tarlow, Brockschmidt, Zemel, "Gated graph sequence neural networks", ICLR 2016, equation 7 with the softmax of
/// DGL's `GlobalAttentionPooling` in place of a sigmoid.
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
    /// `[d_input, 1]` and a bias.
    pub gate_nn: Linear,
    /// `[d_input, d_output]` and a bias.
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
    /// One row per graph.
    ///
    /// # Panics
    /// Rows that are not those of the graphs.
    #[track_caller]
    pub fn forward(&self, x: Tensor<2>, graphs: &Segments) -> Tensor<2> {
        let shares = segment_softmax(apply(&self.gate_nn, x.clone()), graphs);
        let x = apply_some(self.feat_nn.as_ref(), x);
        segment_reduce(x * shares, graphs, SegmentReduce::Sum)
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
