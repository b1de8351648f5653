//! Implements EdgeConv: convolution over feature differences to neighbours.

use burn::config::Config;
use burn::module::Module;
use burn::nn::{Initializer, Linear};
use burn::tensor::{Device, Tensor, activation};
use burn_gnn_ops::{Edges, Endpoints, Reduce, Side, gspmm_copy, matmul_rows, u_add_v};

use crate::error::ModelError;
use crate::layers::conv::{Conv, multiplies_first, where_reached};
use crate::layers::dense::mlp::{Mlp, apply};
use crate::params::init::{Init, panicking_init};
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained, indexed};

/// Describes an [`EdgeConv`].
#[derive(Config, Debug)]
pub struct EdgeConvConfig {
    /// Input feature size.
    pub d_input: usize,
    /// Output feature sizes of the layers of `h`; at least one.
    pub widths: Vec<usize>,
    /// How messages are aggregated.
    #[config(default = "Reduce::Max")]
    pub aggregator: Reduce,
    /// Initializer of weights. Biases start at 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Edge convolution (EdgeConv): aggregates functions of the difference between a node and its neighbours, for point
/// clouds and other graphs with positions.
///
/// `y[v] = max over (u, v) of h((x[u] - x[v]) Θ + x[v] Φ + b)`. With one entry in `widths`, `h` is the identity;
/// otherwise it is ReLU and a perceptron with the other widths.
///
/// # Shapes
/// Source and destination features `[num_input, d_input]`, output `[num_dst, d_output]` where `d_output` is the last of
/// `widths`. The output of a node without in-edges is 0.
///
/// # Differences from the paper and from other libraries
/// With one width no ReLU follows, as in DGL: the caller can apply it to the result, because ReLU of a maximum is the
/// maximum of ReLUs. PyG takes `h` as a user-defined module.
///
/// # Cost
/// The first layer is computed per node: `x Θ` for sources, `x (Φ - Θ) + b` for destinations. With one width and a mean,
/// maximum or minimum, nothing is allocated per edge; otherwise one row per edge and layer.
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
    /// The layers of `h` after the first.
    pub nn: Option<Mlp>,
    #[module(skip)]
    aggregator: Reduce,
}

impl EdgeConvConfig {
    /// Initializes a layer: weights by [`initializer`](Self::initializer) (Glorot by default), biases 0.
    ///
    /// # Errors
    /// `widths` is empty.
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
    /// DGL multiplies `Θ` by `x[v] - x[u]`, so its sign is inverted.
    ///
    /// PyG's layer has one matrix for `[x[v], x[u] - x[v]]`, in a `Linear` or a `Sequential` with ReLU between layers,
    /// and one bias; this layer and DGL's have two biases, which are added.
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
