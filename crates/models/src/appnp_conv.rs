//! Personalised propagation of predictions.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::Tensor;
use burn_gnn_ops::{AggregateOptions, EdgeDropout, GraphView, dropout, weighted_aggregate};

use crate::conv::{check_hops, src_rows};
use crate::{DegreeNorm, Mode, ModelError};

/// Describes an [`AppnpConv`].
#[derive(Config, Debug)]
pub struct AppnpConvConfig {
    /// Number of hops.
    #[config(default = 10)]
    pub hops: usize,
    /// Probability to go back to the start, the weight of the input in every hop.
    #[config(default = 0.1)]
    pub alpha: f64,
    /// Probability that an edge is left out of a hop.
    #[config(default = 0.0)]
    pub edge_dropout: f64,
    /// Name that keys dropout; give layers of one model different names.
    #[config(default = "String::from(\"appnp_conv\")")]
    pub name: String,
}

/// Propagation by personalised PageRank, without parameters:
///
/// ```text
/// z⁰ = x,    zᵏ⁺¹[v] = (1 - α) · Σ_(u,v,e) w_e · zᵏ[u] / sqrt(deg_out(u) deg_in(v)) + α · x[v],    y = z^hops
/// ```
///
/// # Shapes
/// `x: [num_input, d]` (predictions of a perceptron), `w: [num_edges]`, output `[num_dst, d]`. All input rows must be
/// computed rows: a whole graph or a partition, no block. A node without in-edges gets `α x[v]`.
///
/// # Departures from the paper
/// None; self loops are the graph's affair (the paper adds them). Edges are dropped as in DGL, per hop.
///
/// # Cost
/// One pass over the edges and one exchange per hop.
///
/// # Paper
/// Klicpera, Bojchevski, Günnemann, "Predict then propagate", ICLR 2019.
#[derive(Module, Debug)]
pub struct AppnpConv {
    #[module(skip)]
    config: AppnpConvConfig,
}

impl AppnpConvConfig {
    /// A layer.
    ///
    /// # Errors
    /// `alpha` outside `0.0..=1.0`, dropout outside `0.0..1.0`.
    pub fn try_init(&self) -> Result<AppnpConv, ModelError> {
        ModelError::check_sizes(&[], self.edge_dropout)?;
        if !(0.0..=1.0).contains(&self.alpha) {
            return Err(ModelError::OutOfRange { arg: "alpha".into(), range: "0.0..=1.0".into(), value: self.alpha.to_string() });
        }
        Ok(AppnpConv { config: self.clone() })
    }

    /// [`try_init`](Self::try_init), panicking with its message.
    ///
    /// # Panics
    /// As [`try_init`](Self::try_init) errs.
    #[track_caller]
    pub fn init(&self) -> AppnpConv {
        self.try_init().unwrap_or_else(|e| panic!("{e}"))
    }
}

impl AppnpConv {
    /// On edge type 0 of a graph of one type.
    ///
    /// # Panics
    /// Shapes that disagree with the graph.
    #[track_caller]
    pub fn forward<G: GraphView + ?Sized>(&self, g: &G, x: Tensor<2>, mode: Mode) -> Tensor<2> {
        self.forward_on(g, 0, x, None, mode)
    }

    /// On one edge type that joins nodes of one type, with one weight per edge or none.
    ///
    /// # Panics
    /// Shapes that disagree with the graph, an edge type between two node types, a block.
    #[track_caller]
    pub fn forward_on<G: GraphView + ?Sized>(
        &self,
        g: &G,
        etype: usize,
        x: Tensor<2>,
        edge_weight: Option<Tensor<1>>,
        mode: Mode,
    ) -> Tensor<2> {
        let AppnpConvConfig { hops, alpha, edge_dropout, ref name } = self.config;
        check_hops(g, "appnp_conv", etype, &x);
        let (relation, ntype) = (g.relation(etype), g.schema().ends(etype).0);
        let (source, destination) = DegreeNorm::Both.scales(g, etype);
        let options = AggregateOptions { source, destination, ..Default::default() };
        (0..hops).fold(x.clone(), |z, k| {
            let weight = match mode.edge_dropout(g, etype, &format!("{name}/{k}"), edge_dropout) {
                Some(EdgeDropout { prob, stream, ids }) => {
                    let all = edge_weight.clone().unwrap_or_else(|| Tensor::ones([relation.num_edges()], (&x.device(), x.dtype())));
                    Some(dropout(all.unsqueeze_dim(1), prob, stream, ids).squeeze_dim(1))
                }
                None => edge_weight.clone(),
            };
            let h = weighted_aggregate(relation, src_rows(g, "appnp_conv", ntype, z), weight, None, &options);
            h * (1.0 - alpha) + x.clone() * alpha
        })
    }
}
