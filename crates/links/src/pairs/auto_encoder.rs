//! Implements graph auto-encoders: GCN embeddings whose inner products are the logits of links.

use std::time::Instant;

use burn::config::Config;
use burn::module::{Module, Param};
use burn::optim::GradientsParams;
use burn::tensor::activation::relu;
use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_data::NodePair;
use burn_gnn_graph::Graph;
use burn_gnn_models::{
    Conv, FusedAdamConfig, GcnConv, GcnConvConfig, ModelError, seeded, select_rows,
};
use burn_gnn_ops::{GraphView, Stream, glorot_uniform, matmul_rows, next_stream, normal_rows};

use crate::pairs::link_graph::LinkGraph;
use crate::pairs::link_scores::{LinkScores, absent_pairs, link_scores};
use crate::pairs::seal_training::binary_cross_entropy;

/// Describes and trains a [`GraphAutoEncoder`].
#[derive(Config, Debug)]
pub struct GraphAutoEncoderConfig {
    /// Whether embeddings are drawn from a normal distribution with learned means and deviations, with the divergence
    /// from the standard normal distribution in the loss (VGAE).
    #[config(default = false)]
    pub variational: bool,
    /// Hidden size.
    #[config(default = 32)]
    pub hidden: usize,
    /// Embedding size.
    #[config(default = 16)]
    pub dim: usize,
    /// Steps, each on the whole graph.
    #[config(default = 200)]
    pub steps: usize,
    /// Learning rate of Adam.
    #[config(default = 0.01)]
    pub lr: f64,
    /// Seed of parameters, absent pairs and draws.
    #[config(default = 0)]
    pub seed: u64,
}

/// Graph auto-encoder: two graph convolutions compute embeddings, and `z_a · z_b` is the logit of a link.
///
/// ```text
/// h = relu(A (x W_0)),   z = A (h W_1),   A = D^-1/2 (adjacency + I) D^-1/2
/// ```
///
/// Without features, `x` is the identity and `W_0` has a row for each node. The variational form draws
/// `z = μ + ε · exp(log σ)` while training, with `μ = A (h W_μ)` and `log σ = A (h W_σ)`, and scores by `μ`.
///
/// # Source
/// Kipf and Welling, "Variational graph auto-encoders", NeurIPS workshop 2016.
#[derive(Module, Debug)]
pub struct GraphAutoEncoder {
    /// `[features or nodes, hidden]`.
    first: Param<Tensor<2>>,
    spread: GcnConv,
    mean: GcnConv,
    log_deviation: Option<GcnConv>,
}

/// The model of the best validation.
#[derive(Clone, Debug)]
pub struct TrainedAutoEncoder {
    /// The model, on the device without autodiff.
    pub model: GraphAutoEncoder,
    /// Number of steps after which validation was best.
    pub step: usize,
    /// Scores of validation pairs at that step.
    pub valid: LinkScores,
    /// Seconds of training and validation.
    pub seconds: f64,
    features: Option<Tensor<2>>,
}

/// Steps between two validations.
const VALIDATE_EVERY: usize = 10;

impl GraphAutoEncoderConfig {
    /// Trains on the links of `graph` against absent pairs, which are drawn for every step. `features` are
    /// `[nodes, features]`, or the identity. The step with the largest area under the ROC curve of `valid` (links and
    /// absent pairs) is returned.
    ///
    /// # Errors
    /// A setting is out of range, `features` has another number of rows than the graph has nodes, a pair has a node that is
    /// not in the graph, or there are no links or no validation pairs.
    pub fn train(
        &self,
        graph: &LinkGraph,
        links: &[NodePair],
        features: Option<Tensor<2>>,
        valid: (&[NodePair], &[NodePair]),
        device: &Device,
    ) -> Result<TrainedAutoEncoder, ModelError> {
        for (arg, value) in [
            ("hidden", self.hidden),
            ("dim", self.dim),
            ("steps", self.steps),
            ("links", links.len()),
        ] {
            ModelError::check_range(arg, "1..", value, value > 0)?;
        }
        let lr = self.lr;
        ModelError::check_range("lr", "numbers above 0", lr, lr.is_finite() && lr > 0.0)?;
        for pairs in [links, valid.0, valid.1] {
            graph.check(pairs)?;
        }
        let nodes = graph.num_nodes();
        let feature_rows = features.as_ref().map_or(nodes, |x| x.dims()[0]);
        ModelError::check_length("features", "one row per node", nodes, feature_rows)?;
        let started = Instant::now();
        let edges = graph.with_self_loops()?;
        let autodiff = device.clone().autodiff();
        let rows = features.as_ref().map_or(nodes, |x| x.dims()[1]);
        let mut model = seeded(self.seed, || self.model(rows, &autodiff));
        let mut optimizer = FusedAdamConfig::new().with_epsilon(1e-8).init();
        let mut best: Option<(LinkScores, usize, GraphAutoEncoder)> = None;
        for step in 1..=self.steps {
            let seed = Stream::new(self.seed, "absent pairs of a step", step as u64);
            let [low, high, ..] = seed.words(0, 0);
            let absent = absent_pairs(graph, links.len(), u64::from(high) << 32 | u64::from(low));
            let (mean, log_deviation) = model.moments(&edges, features.clone())?;
            let z = match &log_deviation {
                Some(log_deviation) => {
                    let stream = Stream::new(self.seed, "draws of embeddings", step as u64);
                    let noise = normal_rows(stream, None, nodes, self.dim, 0.0, 1.0);
                    let noise = Tensor::<2>::from_data(noise, device);
                    mean.clone() + noise * log_deviation.clone().exp()
                }
                None => mean.clone(),
            };
            let mut loss = binary_cross_entropy(
                Tensor::cat(vec![inner(&z, links), inner(&z, &absent)], 0),
                signs(links.len(), absent.len(), device),
            );
            if let Some(log_deviation) = log_deviation {
                let divergence = log_deviation.clone() * 2.0 + 1.0
                    - mean.clone() * mean
                    - (log_deviation * 2.0).exp();
                // As in the paper, once more divided by the number of nodes.
                loss = loss - divergence.sum_dim(1).mean() * (0.5 / nodes as f64);
            }
            let grads = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(lr, model, grads);
            if step % VALIDATE_EVERY == 0 || step == self.steps {
                let plain = model.valid();
                let z = plain.embeddings(&edges, features.clone())?;
                let scores = |pairs| values(inner(&z, pairs));
                let found = link_scores(&scores(valid.0), &scores(valid.1))?;
                if best.as_ref().is_none_or(|b| found.auc > b.0.auc) {
                    best = Some((found, step, plain));
                }
            }
        }
        let Some((valid, step, model)) = best else { unreachable!("the last step is validated") };
        let seconds = started.elapsed().as_secs_f64();
        Ok(TrainedAutoEncoder { model, step, valid, seconds, features })
    }

    /// A model for inputs of `rows` features.
    fn model(&self, rows: usize, device: &Device) -> GraphAutoEncoder {
        let first = glorot_uniform(next_stream(device), rows, self.hidden, [rows, self.hidden]);
        let conv = || GcnConvConfig::new(self.hidden, self.dim).with_bias(false).init(device);
        GraphAutoEncoder {
            first: Param::from_tensor(Tensor::from_data(first, device)),
            spread: GcnConvConfig::new(self.hidden, self.hidden)
                .with_weight(false)
                .with_bias(false)
                .init(device),
            mean: conv(),
            log_deviation: self.variational.then(conv),
        }
    }
}

impl GraphAutoEncoder {
    /// Embeddings `[nodes, dim]`; of the variational form, their means. `graph` has an edge in each direction and self
    /// loops ([`LinkGraph::with_self_loops`]).
    ///
    /// # Errors
    /// The graph has several edge types.
    ///
    /// # Panics
    /// `features` has another number of rows than the graph has nodes, or another number of columns than in training.
    pub fn embeddings(
        &self,
        graph: &Graph,
        features: Option<Tensor<2>>,
    ) -> Result<Tensor<2>, ModelError> {
        Ok(self.moments(graph, features)?.0)
    }

    /// Means, and logarithms of deviations of the variational form.
    fn moments(
        &self,
        graph: &Graph,
        features: Option<Tensor<2>>,
    ) -> Result<(Tensor<2>, Option<Tensor<2>>), ModelError> {
        let edges = graph.edge_type("_E")?;
        let x = match features {
            Some(x) => matmul_rows(x, self.first.val()),
            None => self.first.val(),
        };
        let h = relu(self.spread.forward(&edges, x));
        let log_deviation = self.log_deviation.as_ref().map(|c| c.forward(&edges, h.clone()));
        Ok((self.mean.forward(&edges, h), log_deviation))
    }
}

impl TrainedAutoEncoder {
    /// Logits of pairs, with messages along the links of `graph`.
    ///
    /// # Errors
    /// A node of a pair is not in the graph, or the graph has another number of nodes than in training.
    pub fn score(&self, graph: &LinkGraph, pairs: &[NodePair]) -> Result<Vec<f64>, ModelError> {
        graph.check(pairs)?;
        let expected = match &self.features {
            Some(x) => x.dims()[0],
            None => self.model.first.val().dims()[0],
        };
        ModelError::check_length(
            "nodes of the graph",
            "as in training",
            expected,
            graph.num_nodes(),
        )?;
        let edges = graph.with_self_loops()?;
        let z = self.model.embeddings(&edges, self.features.clone())?;
        Ok(values(inner(&z, pairs)))
    }
}

/// Inner products of the embeddings of pairs.
fn inner(z: &Tensor<2>, pairs: &[NodePair]) -> Tensor<1> {
    let of = |i: usize| {
        let ids: Vec<u32> = pairs.iter().map(|pair| pair[i]).collect();
        select_rows(z.clone(), ids)
    };
    (of(0) * of(1)).sum_dim(1).reshape([pairs.len()])
}

/// 1 for links, -1 for absent pairs.
fn signs(links: usize, absent: usize, device: &Device) -> Tensor<1> {
    let mut signs = vec![1.0f32; links];
    signs.resize(links + absent, -1.0);
    Tensor::from_data(TensorData::new(signs, [links + absent]), device)
}

fn values(scores: Tensor<1>) -> Vec<f64> {
    scores.into_data_dtype(DType::F64).iter::<f64>().collect()
}
