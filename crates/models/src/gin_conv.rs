//! The layers of graph isomorphism networks.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{GraphView, Side, gspmm_copy};

use crate::conv::{Aggregator, EndRows, Ends, RelationConv, end_rows};
use crate::mlp::{Mlp, MlpConfig};
use crate::pretrained::{Framework, Pretrained, Their};
use crate::{Mode, ModelError};

/// Describes a [`GinConv`].
#[derive(Config, Debug)]
pub struct GinConvConfig {
    /// Widths of the perceptron, input first; empty for the identity.
    pub widths: Vec<usize>,
    /// How neighbours become one row.
    #[config(default = "Aggregator::Sum")]
    pub aggregator: Aggregator,
    /// First value of ε.
    #[config(default = 0.0)]
    pub init_eps: f64,
    /// Whether ε is learned.
    #[config(default = false)]
    pub learn_eps: bool,
    /// Seed of the initial weights.
    #[config(default = 0)]
    pub seed: u64,
    /// Name that keys initial weights; give layers of one model different names.
    #[config(default = "String::from(\"gin_conv\")")]
    pub name: String,
}

/// Graph isomorphism convolution, `y[v] = MLP((1 + ε) · x[v] + AGG(x[u] : (u, v)))`.
///
/// # Shapes
/// Both ends `[num_input, d]` with the same `d`, output `[num_dst, last width]`. A node without in-edges gets
/// `MLP((1 + ε) x[v])`.
///
/// # Departures from the paper
/// No batch normalisation inside the perceptron: its statistics would depend on how a graph is cut.
///
/// # Paper
/// Xu, Hu, Leskovec, Jegelka, "How powerful are graph neural networks?", ICLR 2019.
#[derive(Module, Debug)]
pub struct GinConv {
    /// None for the identity.
    pub nn: Option<Mlp>,
    /// ε, `[1]`, if it is learned.
    pub eps: Option<Param<Tensor<1>>>,
    #[module(skip)]
    init_eps: f64,
    #[module(skip)]
    aggregator: Aggregator,
}

/// The perceptron and ε of GIN layers.
pub(crate) fn parts(
    widths: &[usize],
    (init_eps, learn_eps): (f64, bool),
    (seed, name): (u64, &str),
    device: &Device,
) -> Result<(Option<Mlp>, Option<Param<Tensor<1>>>), ModelError> {
    ModelError::check_finite("init_eps", init_eps)?;
    let config = MlpConfig::new(widths.to_vec()).with_seed(seed).with_name(format!("{name}/nn"));
    let nn = if widths.is_empty() { None } else { Some(config.try_init(device)?) };
    Ok((nn, learn_eps.then(|| Param::from_tensor(Tensor::full([1], init_eps, device)))))
}

/// `MLP((1 + ε) own + sum)`.
pub(crate) fn combine(nn: Option<&Mlp>, eps: Option<&Param<Tensor<1>>>, init_eps: f64, own: Tensor<2>, sum: Tensor<2>) -> Tensor<2> {
    let own = match eps {
        Some(eps) => own * (eps.val() + 1.0).unsqueeze(),
        None => own * (1.0 + init_eps),
    };
    match nn {
        Some(nn) => nn.forward(own + sum),
        None => own + sum,
    }
}

/// Where the perceptron and ε of GIN layers are kept: a single map, or a `Sequential` with ReLU between.
pub(crate) fn their(nn: Option<&Mlp>, from: Framework, path: &str) -> Their {
    let their = if from == Framework::Dgl { "apply_func" } else { "nn" };
    let mut parts = path.splitn(4, '.');
    match (parts.next(), parts.next(), parts.next().and_then(|i| i.parse::<usize>().ok()), parts.next()) {
        (Some("nn"), Some("layers"), Some(i), Some(field)) => match nn.map(|nn| nn.layers.len()) {
            Some(1) => Their::same(format!("{their}.{field}")),
            _ => Their::same(format!("{their}.{}.{field}", 2 * i)),
        },
        _ => Their::same(path),
    }
}

impl GinConvConfig {
    /// Weights by Glorot's rule, biases 0.
    ///
    /// # Errors
    /// One width only, or an ε that is not finite.
    pub fn try_init(&self, device: &Device) -> Result<GinConv, ModelError> {
        let (nn, eps) = parts(&self.widths, (self.init_eps, self.learn_eps), (self.seed, &self.name), device)?;
        Ok(GinConv { nn, eps, init_eps: self.init_eps, aggregator: self.aggregator })
    }

    /// [`try_init`](Self::try_init), panicking with its message.
    ///
    /// # Panics
    /// As [`try_init`](Self::try_init) errs.
    #[track_caller]
    pub fn init(&self, device: &Device) -> GinConv {
        self.try_init(device).unwrap_or_else(|e| panic!("{e}"))
    }
}

impl GinConv {
    /// On edge type 0 of a graph of one type.
    ///
    /// # Panics
    /// Shapes that disagree with the graph.
    #[track_caller]
    pub fn forward<G: GraphView + ?Sized>(&self, g: &G, x: Tensor<2>) -> Tensor<2> {
        self.forward_on(g, 0, x)
    }

    /// On one edge type.
    ///
    /// # Panics
    /// Shapes that disagree with the graph.
    #[track_caller]
    pub fn forward_on<G: GraphView + ?Sized>(&self, g: &G, etype: usize, x: impl Into<Ends>) -> Tensor<2> {
        let rows = end_rows(g, "gin_conv", etype, x.into(), |x| x);
        self.aggregate(g, etype, rows, Mode::Eval)
    }
}

impl RelationConv for GinConv {
    #[track_caller]
    fn aggregate<G: GraphView + ?Sized>(&self, g: &G, etype: usize, rows: EndRows, _mode: Mode) -> Tensor<2> {
        let sum = gspmm_copy(g.relation(etype), Side::Lhs, self.aggregator.into(), rows.src);
        combine(self.nn.as_ref(), self.eps.as_ref(), self.init_eps, rows.dst, sum)
    }
}

impl Pretrained for GinConv {
    fn their(&self, from: Framework, path: &str) -> Their {
        their(self.nn.as_ref(), from, path)
    }
}
