//! Implements EdgeConv: convolution over feature differences to neighbours.

use burn::config::Config;
use burn::module::Module;
use burn::nn::{Initializer, Linear};
use burn::tensor::{Device, Tensor, activation};
use burn_gnn_ops::{Edges, Reduce, Side, gspmm_copy, matmul_rows, u_add_v};

use crate::error::ModelError;
use crate::layers::conv::{Conv, Endpoints, multiplies_first, where_reached};
use crate::layers::dense::mlp::{Mlp, apply};
use crate::params::init::{Init, panicking_init};
use crate::pretrained::{Framework, ParamMapping, Pretrained, indexed};

/// Describes an [`EdgeConv`].
#[derive(Config, Debug)]
pub struct EdgeConvConfig {
    /// Input feature size.
    pub d_input: usize,
    /// Output feature sizes of the layers of `h`, at least one.
    pub widths: Vec<usize>,
    /// How the edges of a node become one row.
    #[config(default = "Reduce::Max")]
    pub aggregator: Reduce,
    /// How weights are drawn; biases begin with 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Edge convolution, `y[v] = max over (u, v) of h((x[u] - x[v]) Θ + x[v] Φ + b)`.
///
/// `h` is the identity for one width, otherwise ReLU and a perceptron through the other widths.
///
/// # Shapes
/// Source and destination features `[num_input, d_input]`, output `[num_dst, d_output]` with `d_output` the last
/// feature size. A node without in-edges gets 0.
///
/// # Departures from the paper
/// With one layer there is no ReLU behind the sum, as in DGL: ReLU of a maximum is the maximum of ReLUs.
///
/// # Cost
/// The first layer is one product per node, `x Θ` for sources and `x (Φ - Θ) + b` for destinations. With one width the
/// maximum runs over `x[u] Θ` alone and nothing is made per edge; otherwise one row per edge and layer.
///
/// # Paper
/// Wang, Sun, Liu, Sarma, Bronstein, Solomon, "Dynamic graph CNN for learning on point clouds", ACM TOG 2019.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::{Conv, EdgeConvConfig};
/// let (device, g) = (Device::flex(), Graph::homogeneous(3, vec![0, 2], vec![1, 1])?);
/// let y = EdgeConvConfig::new(4, vec![8, 2]).init(&device).forward(&g, Tensor::ones([3, 4], &device));
/// assert_eq!(y.dims(), [3, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct EdgeConv {
    /// `Θ: [d_input, first feature size]` and a bias.
    pub theta: Linear,
    /// `Φ: [d_input, first feature size]` and a bias.
    pub phi: Linear,
    /// The other layers of `h`.
    pub nn: Option<Mlp>,
    #[module(skip)]
    aggregator: Reduce,
}

impl EdgeConvConfig {
    /// Weights by [`initializer`](Self::initializer), Glorot's rule by default, biases 0.
    ///
    /// # Errors
    /// No feature sizes.
    pub fn try_init(&self, device: &Device) -> Result<EdgeConv, ModelError> {
        let Some(&first) = self.widths.first() else {
            return Err(ModelError::out_of_range("number of widths", "1..", 0));
        };
        let init = Init { initializer: &self.initializer, device };
        let linear = || init.linear([self.d_input, first], true);
        let has_more = self.widths.len() > 1;
        let nn = has_more.then(|| Mlp::new(&self.widths, true, init)).transpose()?;
        Ok(EdgeConv { theta: linear(), phi: linear(), nn, aggregator: self.aggregator })
    }
}

panicking_init!(EdgeConvConfig => EdgeConv);

impl Conv for EdgeConv {
    const NAME: &'static str = "edge_conv";

    fn input_sizes(&self) -> [Option<usize>; 2] {
        [Some(self.theta.weight.val().dims()[0]); 2]
    }

    fn project(&self, _edges: &Edges<'_>, x: Tensor<2>) -> Tensor<2> {
        let theta = self.theta.weight.val();
        if multiplies_first(&theta) { matmul_rows(x, theta) } else { x }
    }

    #[track_caller]
    fn aggregate(&self, edges: &Edges<'_>, rows: Endpoints) -> Tensor<2> {
        let relation = edges.relation();
        let theta = self.theta.weight.val();
        let src =
            if multiplies_first(&theta) { rows.src } else { matmul_rows(rows.src, theta.clone()) };
        let mut dst = apply(&self.phi, rows.dst.clone()) - matmul_rows(rows.dst, theta);
        if let Some(b) = &self.theta.bias {
            dst = dst + b.val().unsqueeze();
        }
        match (&self.nn, self.aggregator) {
            (None, Reduce::Mean | Reduce::Max | Reduce::Min) => {
                where_reached(relation, gspmm_copy(relation, Side::Lhs, self.aggregator, src) + dst)
            }
            (nn, by) => {
                let edges: Tensor<2> = u_add_v(relation, src, dst);
                let edges = match nn {
                    Some(nn) => nn.forward(activation::relu(edges)),
                    None => edges,
                };
                gspmm_copy(relation, Side::Rhs, by, edges)
            }
        }
    }
}

impl Pretrained for EdgeConv {
    /// DGL's `Θ` is multiplied with `x[v] - x[u]`, the opposite of ours: its sign is changed.
    ///
    /// PyG's layer has one matrix for `[x[v], x[u] - x[v]]`, in a single map or a `Sequential` with ReLU between, and
    /// one bias where ours (and DGL's) have two that add up.
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        if from == Framework::Dgl {
            let mapping = ParamMapping::same(path);
            return if path == "theta.weight" { mapping.negated() } else { mapping };
        }
        let ([d, _], first) =
            (self.theta.weight.val().dims(), if self.nn.is_some() { "nn.0" } else { "nn" });
        match path {
            "phi.weight" => ParamMapping::same(format!("{first}.weight")).rows(0..d, 2 * d),
            "theta.weight" => ParamMapping::same(format!("{first}.weight")).rows(d..2 * d, 2 * d),
            "phi.bias" => ParamMapping::same(format!("{first}.bias")),
            "theta.bias" => ParamMapping::same(format!("{first}.bias")).term(),
            _ => match path.strip_prefix("nn.").and_then(indexed) {
                Some((_, i, field)) => ParamMapping::same(format!("nn.{}.{field}", 2 * (i + 1))),
                None => ParamMapping::same(path),
            },
        }
    }
}
