//! Implements residual gated graph convolution (GatedGCN).

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::{Initializer, Linear};
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{
    Edges, Endpoints, copy_e_sum, matmul_rows, matmul_rows_onto, u_add_v, u_mul_e_sum,
};

use crate::error::ModelError;
use crate::layers::conv::{Conv, edge_features, residual};
use crate::layers::dense::mlp::{add_bias, apply, sigmoid};
use crate::params::init;
use crate::params::init::{Init, panicking_init};
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained};

/// Describes a [`ResGatedGraphConv`].
#[derive(Config, Debug)]
pub struct ResGatedGraphConvConfig {
    /// Feature size of source nodes.
    pub d_input: usize,
    /// Output feature size.
    pub d_output: usize,
    /// Feature size of destination nodes. `None`: `d_input`.
    pub d_dst: Option<usize>,
    /// Feature size of edges, if the layer reads edge features.
    pub d_edge: Option<usize>,
    /// Whether `x[v] W_r` is added.
    #[config(default = true)]
    pub root_weight: bool,
    /// Whether a bias is added to the result.
    #[config(default = true)]
    pub bias: bool,
    /// Initializer of weights. Biases start at 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Residual gated graph convolution (GatedGCN): every feature of a message is multiplied by a gate that depends on both
/// endpoints.
///
/// ```text
/// η[e] = σ([x[v], f[e]] W_k + b_k + [x[u], f[e]] W_q + b_q)
/// y[v] = Σ_(u,v,e) η[e] ⊙ ([x[u], f[e]] W_v + b_v) + x[v] W_r + b
/// ```
///
/// Without edge features, `f` is omitted.
///
/// # Shapes
/// Sources `[num_input, d_input]`, destinations `[num_input, d_dst]`, `f: [num_edges, d_edge]`, output
/// `[num_dst, d_output]`. The output of a node without in-edges is `x[v] W_r + b`.
///
/// # Departures from the paper
/// As in PyTorch Geometric: products have biases, destination features are multiplied by a weight before they are added,
/// and neither batch normalisation, nor an activation, nor a state of edges follows.
///
/// # Cost
/// Gates take memory of edges × `d_output`, twice that with edge features. The halo exchange moves input features.
///
/// # Paper
/// Bresson, Laurent, "Residual gated graph ConvNets", 2017.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::{Conv, ResGatedGraphConvConfig};
/// let (device, g) = (Device::flex(), Graph::homogeneous(3, vec![0, 2], vec![1, 1])?);
/// let conv = ResGatedGraphConvConfig::new(4, 2).init(&device);
/// assert_eq!(conv.forward(&g, Tensor::ones([3, 4], &device)).dims(), [3, 2]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Module, Debug)]
pub struct ResGatedGraphConv {
    /// `W_k: [d_dst + d_edge, d_output]` and `b_k`.
    pub lin_key: Linear,
    /// `W_q: [d_input + d_edge, d_output]` and `b_q`.
    pub lin_query: Linear,
    /// `W_v: [d_input + d_edge, d_output]` and `b_v`.
    pub lin_value: Linear,
    /// `W_r: [d_dst, d_output]`.
    pub lin_skip: Option<Linear>,
    /// `b: [d_output]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    config: ResGatedGraphConvConfig,
}

impl ResGatedGraphConvConfig {
    /// Initializes a layer: weights by [`initializer`](Self::initializer) (Glorot by default), biases 0.
    ///
    /// # Errors
    /// `d_output` is 0.
    pub fn try_init(&self, device: &Device) -> Result<ResGatedGraphConv, ModelError> {
        ModelError::check_sizes(&[("d_output", self.d_output)], 0.0)?;
        let (d_dst, d_edge) = (self.d_dst.unwrap_or(self.d_input), self.d_edge.unwrap_or(0));
        let init = Init { initializer: &self.initializer, device };
        let linear = |d: usize, bias| init.linear([d, self.d_output], bias);
        Ok(ResGatedGraphConv {
            lin_key: linear(d_dst + d_edge, true),
            lin_query: linear(self.d_input + d_edge, true),
            lin_value: linear(self.d_input + d_edge, true),
            lin_skip: self.root_weight.then(|| linear(d_dst, false)),
            bias: self.bias.then(|| init::zeros(self.d_output, device)),
            config: self.clone(),
        })
    }
}

panicking_init!(ResGatedGraphConvConfig => ResGatedGraphConv);

/// Computes `x W + b` with the rows of `W` for node features, which are the first rows.
fn of_nodes(layer: &Linear, x: Tensor<2>) -> Tensor<2> {
    let ([_, d], weight) = (x.dims(), layer.weight.val());
    if weight.dims()[0] == d {
        return apply(layer, x);
    }
    let y = matmul_rows(x, weight.slice_dim(0, 0..d));
    add_bias(y, layer.bias.as_ref().map(|b| b.val()))
}

/// Returns the rows of `W` for edge features.
fn edge_weight(layer: &Linear, d_edge: usize) -> Tensor<2> {
    let weight = layer.weight.val();
    let [d, _] = weight.dims();
    weight.slice_dim(0, d - d_edge..d)
}

impl Conv for ResGatedGraphConv {
    const NAME: &'static str = "res_gated_graph_conv";
    const READS_FEATURES: bool = true;

    fn input_sizes(&self) -> [Option<usize>; 2] {
        [Some(self.config.d_input), Some(self.config.d_dst.unwrap_or(self.config.d_input))]
    }

    #[track_caller]
    fn aggregate(&self, edges: &Edges<'_>, rows: Endpoints) -> Tensor<2> {
        let (relation, call, d_edge) = (edges.relation(), Self::NAME, self.config.d_edge);
        let (f, n) = (edge_features(call, edges, d_edge), relation.num_edges());
        if let (Some(f), Some(d)) = (&f, d_edge) {
            let dims = f.dims();
            assert!(
                dims == [n, d],
                "{call}: edge features: expected [{n}, {d}] (`d_edge`), got {dims:?}"
            );
        }
        let of_edges = |layer| edge_weight(layer, d_edge.unwrap_or(0));
        let key = of_nodes(&self.lin_key, rows.dst.clone());
        let query = of_nodes(&self.lin_query, rows.src.clone());
        let value = of_nodes(&self.lin_value, rows.src);
        let logits: Tensor<2> = u_add_v(relation, query, key);
        // Edge features contribute to both terms of the gate: one product with the sum of both weights.
        let logits = match &f {
            Some(f) => {
                let weight = of_edges(&self.lin_key) + of_edges(&self.lin_query);
                matmul_rows_onto(f.clone(), weight, logits)
            }
            None => logits,
        };
        let gate = sigmoid(logits);
        let y: Tensor<2> = u_mul_e_sum(relation, value, gate.clone());
        let y = match f {
            Some(f) => y + copy_e_sum(relation, gate * matmul_rows(f, of_edges(&self.lin_value))),
            None => y,
        };
        let y = residual(y, false, self.lin_skip.as_ref(), rows.dst);
        add_bias(y, self.bias.as_ref().map(|b| b.val()))
    }
}

impl Pretrained for ResGatedGraphConv {
    /// Names of PyTorch Geometric. DGL has no such layer.
    fn param_mapping(&self, _from: Framework, path: &str) -> ParamMapping {
        ParamMapping::same(path)
    }
}
