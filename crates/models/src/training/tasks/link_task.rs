//! Trains an encoder on the edges of a full graph.

use burn::tensor::Tensor;
use burn_gnn_data::Links;
use burn_gnn_graph::{EdgeKey, Graph};
use burn_gnn_ops::GraphView;
use burn_gnn_sampling::{NegativeSampler, SampleKey};

use crate::error::ModelError;
use crate::layers::type_map::NodeTensors;
use crate::metrics::outcome::Outcome;
use crate::training::select_rows::select_rows;
use crate::training::task::Task;
use crate::training::tasks::node_classifier::NodeClassifier;

/// Learns which pairs of nodes of a full graph have an edge: `p(u, v) = σ(⟨z_u, z_v⟩)`, where the model's output
/// `z`, of any size, is the embedding of a node.
///
/// A batch is [`Links`](burn_gnn_data::Links), the pairs of a [`LinkSplit`](burn_gnn_data::LinkSplit). Training draws
/// as many pairs without an edge as there are edges, others in each step; validation and tests take the negatives of the
/// links. A score with weights, or edges of several types, are a task of the caller ([`Task`](crate::Task)).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_data::{RandomLinkSplit, karate_club};
/// use burn_gnn_models::{FitConfig, GcnConfig, LinkTask, Metric, evaluate, fit, seeded};
/// let split = RandomLinkSplit::new().undirected().with_edges("_E").split(&karate_club().graph, 0)?;
/// let links = [&split.train, &split.val, &split.test].map(|part| &part.links[0]);
/// let x = Tensor::<2>::eye(34, &Device::flex());
/// let task = LinkTask::new(&split.train.graph, [("_N", x)], "_E")?;
/// let model = seeded(0, || GcnConfig::new(34, 8).init(&Device::flex().autodiff()));
/// let config = FitConfig::new().with_metric(Metric::roc_auc()).with_progress(false);
/// let trained = fit(model, &task, links[0], links[1], &config)?;
/// let auc = evaluate(&trained.model, &task, links[2])?.score(&Metric::roc_auc())?;
/// assert!(auc > 0.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LinkTask<'a> {
    graph: &'a Graph,
    features: NodeTensors,
    negatives: NegativeSampler,
}

impl<'a> LinkTask<'a> {
    /// `graph` carries messages, and edges of type `etype` are predicted; `features` are those of its nodes by type.
    ///
    /// # Errors
    /// Unknown or ambiguous edge type.
    pub fn new(
        graph: &'a Graph,
        features: impl Into<NodeTensors>,
        etype: impl EdgeKey,
    ) -> Result<Self, ModelError> {
        let negatives = NegativeSampler::new(graph, etype)?;
        Ok(Self { graph, features: features.into(), negatives })
    }
}

impl<M: NodeClassifier> Task<M, Links> for LinkTask<'_> {
    fn step(&self, model: &M, batch: &Links, key: SampleKey) -> Result<Outcome, ModelError> {
        let view = GraphView::at_step(self.graph, key.seed, key.step);
        let x = self.features.clone().map(|_, x| x.without_autodiff());
        let embedding = |ntype: &str| model.logits(&view, &x, ntype);
        let z_src = embedding(&batch.etype.src);
        let z_dst = if batch.etype.src == batch.etype.dst {
            z_src.clone()
        } else {
            embedding(&batch.etype.dst)
        };
        let scores = |src: &[u32], dst: &[u32]| -> Tensor<1> {
            let products = select_rows(z_src.clone(), src) * select_rows(z_dst.clone(), dst);
            products.sum_dim(1).squeeze_dim(1)
        };
        let positive = scores(&batch.src, &batch.dst);
        let negative = if z_src.is_autodiff() {
            let drawn = self.negatives.global(batch.src.len(), key)?;
            scores(&drawn.src, &drawn.dst)
        } else {
            scores(&batch.negative_src, &batch.negative_dst)
        };
        Ok(Outcome::links(positive, negative))
    }
}
