//! Implements SEAL: a deep graph convolutional network with sort pooling on subgraphs around pairs.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::activation::relu;
use burn::tensor::{Bool, DType, Device, Tensor, TensorData};
use burn_gnn_graph::{GraphError, Relation, Stream};
use burn_gnn_models::{Mlp, MlpConfig, ModelError, select_rows};
use burn_gnn_ops::{copy_u_mean, copy_u_sum, next_stream, normal_rows};

use crate::pairs::enclosing::{EnclosingSubgraph, PAIR_FEATURES};

/// Describes a [`Seal`].
#[derive(Config, Debug)]
pub struct SealConfig {
    /// Number of nodes that sort pooling keeps of each subgraph, at least 10.
    #[config(default = 30)]
    pub num_sorted: usize,
    /// Feature size of each convolution.
    #[config(default = 32)]
    pub dim: usize,
    /// Number of convolutions before the one that sorts.
    #[config(default = 3)]
    pub num_layers: usize,
    /// Labels above this one share an embedding.
    #[config(default = 60)]
    pub max_label: u32,
    /// Probability that a hidden unit of the classifier is dropped while training.
    #[config(default = 0.5)]
    pub dropout: f64,
}

/// SEAL: scores a pair of nodes by a graph neural network on the subgraph around it.
///
/// ```text
/// x_0[v] = embedding of the label of v + embedding of its degree in the whole graph
/// x_l[v] = tanh(mean over u in N(v) and v of W_l x_(l-1)[u])
/// ```
///
/// The last convolution has one feature. Nodes are sorted by it in descending order, and the first `num_sorted` rows of
/// all features form a sequence, on which two convolutions and a multi-layer perceptron compute the score (DGCNN). The
/// sequence of a smaller subgraph is padded with zeros. The perceptron also reads features of the pair: common neighbours,
/// Adamic-Adar, resource allocation and degrees, which a subgraph with a limited number of nodes does not contain.
///
/// # Cost
/// `O(links · dim + nodes · dim²)` of the subgraphs.
///
/// # Source
/// Zhang and Chen, "Link prediction based on graph neural networks", NeurIPS 2018; Zhang et al., "An end-to-end deep
/// learning architecture for graph classification", AAAI 2018.
#[derive(Module, Debug)]
pub struct Seal {
    /// `[max_label + 1, dim]`.
    labels: Param<Tensor<2>>,
    /// `[DEGREES, dim]`.
    degrees: Param<Tensor<2>>,
    layers: Vec<Mlp>,
    /// Applied to each node of the sequence.
    rows: Mlp,
    /// Applied to five nodes in a row.
    windows: Mlp,
    hidden: Mlp,
    score: Mlp,
    #[module(skip)]
    num_sorted: usize,
    #[module(skip)]
    dropout: f64,
}

/// Channels of the two convolutions of DGCNN on the sequence, the length of the second one, and the hidden size.
const CHANNELS: [usize; 2] = [16, 32];
const WINDOW: usize = 5;
const HIDDEN: usize = 128;
/// Number of embeddings of degrees, by their logarithm of base 2.
const DEGREES: u32 = 16;

/// Subgraphs of a batch as one graph.
#[derive(Debug)]
pub(super) struct SubgraphBatch {
    edges: Relation,
    labels: Vec<u32>,
    degrees: Vec<u32>,
    /// Features of each pair.
    pairs: Vec<f32>,
    /// First node of each subgraph, and the number of all nodes.
    offsets: Vec<usize>,
}

impl SubgraphBatch {
    pub(super) fn new<'a>(
        subgraphs: impl IntoIterator<Item = &'a EnclosingSubgraph>,
        max_label: u32,
    ) -> Result<Self, GraphError> {
        let (mut src, mut dst, mut labels, mut offsets) = (vec![], vec![], vec![], vec![0]);
        let (mut degrees, mut pairs) = (vec![], vec![]);
        for s in subgraphs {
            let base = labels.len() as u32;
            for &[a, b] in &s.links {
                src.extend([base + a, base + b]);
                dst.extend([base + b, base + a]);
            }
            labels.extend(s.labels.iter().map(|&l| l.min(max_label)));
            degrees.extend(s.degrees.iter().map(|&d| (d + 1).ilog2().min(DEGREES - 1)));
            pairs.extend(s.pair_features);
            let nodes = base..labels.len() as u32;
            src.extend(nodes.clone());
            dst.extend(nodes);
            offsets.push(labels.len());
        }
        let edges = Relation::from_coo(labels.len(), labels.len(), src, dst)?;
        Ok(Self { edges, labels, degrees, pairs, offsets })
    }
}

impl SealConfig {
    /// Initializes the parameters.
    ///
    /// # Errors
    /// `num_sorted` is below 10, a size is 0, or `dropout` is not in `0.0..1.0`.
    pub fn try_init(&self, device: &Device) -> Result<Seal, ModelError> {
        let sorted = self.num_sorted;
        ModelError::check_range("num_sorted", "10..", sorted, sorted >= 10)?;
        let sizes = [("dim", self.dim), ("num_layers", self.num_layers)];
        ModelError::check_sizes(&sizes, self.dropout)?;
        let mlp = |widths: &[usize]| MlpConfig::new(widths.to_vec()).try_init(device);
        let d = self.dim;
        let mut layers =
            (0..self.num_layers).map(|_| mlp(&[d, d])).collect::<Result<Vec<_>, _>>()?;
        layers.push(mlp(&[d, 1])?);
        let rows = self.max_label as usize + 1;
        let table = |rows: usize| {
            let std = 1.0 / (d as f64).sqrt();
            let values = normal_rows(next_stream(device), None, rows, d, 0.0, std);
            Param::from_tensor(Tensor::from_data(values, device))
        };
        let windows = self.num_sorted / 2 - (WINDOW - 1);
        Ok(Seal {
            labels: table(rows),
            degrees: table(DEGREES as usize),
            layers,
            rows: mlp(&[self.num_layers * d + 1, CHANNELS[0]])?,
            windows: mlp(&[WINDOW * CHANNELS[0], CHANNELS[1]])?,
            hidden: mlp(&[windows * CHANNELS[1] + PAIR_FEATURES, HIDDEN])?,
            score: mlp(&[HIDDEN + PAIR_FEATURES, 1])?,
            num_sorted: self.num_sorted,
            dropout: self.dropout,
        })
    }

    /// As [`try_init`](Self::try_init), but panics.
    ///
    /// # Panics
    /// [`try_init`](Self::try_init) returns an error.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Seal {
        match self.try_init(device) {
            Ok(model) => model,
            Err(e) => panic!("{e}"),
        }
    }
}

impl Seal {
    /// Scores of the pairs of subgraphs, `[subgraphs]`: the logit of a link.
    ///
    /// # Errors
    /// The batch has too many edges.
    pub fn score(&self, subgraphs: &[EnclosingSubgraph]) -> Result<Tensor<1>, ModelError> {
        if subgraphs.is_empty() {
            let weight = self.labels.val();
            return Ok(Tensor::zeros([0], (&weight.device(), weight.dtype())));
        }
        Ok(self.forward(&SubgraphBatch::new(subgraphs, self.max_label())?, None))
    }

    /// The largest label with an embedding.
    pub(super) fn max_label(&self) -> u32 {
        self.labels.val().dims()[0] as u32 - 1
    }

    /// Logits of a batch; hidden units are dropped by the draws of `dropout`, if there are some.
    pub(super) fn forward(&self, batch: &SubgraphBatch, dropout: Option<Stream>) -> Tensor<1> {
        let graphs = batch.offsets.len() - 1;
        let mut x = select_rows(self.labels.val(), &batch.labels)
            + select_rows(self.degrees.val(), &batch.degrees);
        let pairs = TensorData::new(batch.pairs.clone(), [graphs, PAIR_FEATURES]);
        let pairs = Tensor::<2>::from_data(pairs, (&x.device(), x.dtype()));
        let mut all = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            x = copy_u_mean(&batch.edges, layer.forward(x)).tanh();
            all.push(x.clone());
        }
        let sorted = self.sorted(batch, &x);
        let kept = copy_u_sum(&sorted, Tensor::cat(all, 1));
        // [graphs · num_sorted, 16], then the larger of two nodes in a row.
        let (k, [first, second]) = (self.num_sorted, CHANNELS);
        let rows = relu(self.rows.forward(kept)).reshape([graphs, k, first]);
        let rows = rows.slice([0..graphs, 0..k / 2 * 2, 0..first]);
        let rows = rows.reshape([graphs * (k / 2), 2, first]).max_dim(1);
        let rows = rows.reshape([graphs, k / 2, first]);
        let windows = k / 2 - (WINDOW - 1);
        let shifted: Vec<Tensor<3>> = (0..WINDOW)
            .map(|i| rows.clone().slice([0..graphs, i..i + windows, 0..first]))
            .collect();
        let joined = Tensor::cat(shifted, 2).reshape([graphs * windows, WINDOW * first]);
        let joined = relu(self.windows.forward(joined)).reshape([graphs, windows * second]);
        let hidden = relu(self.hidden.forward(Tensor::cat(vec![joined, pairs.clone()], 1)));
        let hidden = match dropout {
            Some(stream) if self.dropout > 0.0 => dropped(hidden, self.dropout, stream),
            _ => hidden,
        };
        self.score.forward(Tensor::cat(vec![hidden, pairs], 1)).reshape([graphs])
    }

    /// From nodes to the positions `subgraph · num_sorted + rank`; positions beyond a small subgraph have no edge.
    fn sorted(&self, batch: &SubgraphBatch, key: &Tensor<2>) -> Relation {
        let keys: Vec<f32> = key.clone().into_data_dtype(DType::F32).iter::<f32>().collect();
        let (mut src, mut offsets) = (Vec::new(), vec![0]);
        for nodes in batch.offsets.windows(2) {
            let mut order: Vec<u32> = (nodes[0] as u32..nodes[1] as u32).collect();
            order.sort_by(|&a, &b| keys[b as usize].total_cmp(&keys[a as usize]));
            for i in 0..self.num_sorted {
                src.extend(order.get(i));
                offsets.push(src.len() as u32);
            }
        }
        match Relation::from_rows(keys.len(), offsets, src) {
            Ok(relation) => relation,
            Err(e) => unreachable!("a part of the nodes of a graph: {e}"),
        }
    }
}

/// Sets entries to 0 with probability `prob`, and scales the others.
fn dropped(x: Tensor<2>, prob: f64, stream: Stream) -> Tensor<2> {
    let [rows, columns] = x.dims();
    let mut drop = Vec::with_capacity(rows * columns);
    for r in 0..rows as u64 {
        drop.extend((0..columns as u64).map(|c| stream.uniform(r, c) < prob));
    }
    let device = x.device().without_autodiff();
    let drop = Tensor::<2, Bool>::from_data(TensorData::new(drop, [rows, columns]), &device);
    x.mask_fill(drop, 0.0) * (1.0 / (1.0 - prob))
}
