//! Trains on batches of whole graphs.

use burn::module::Module;
use burn::tensor::Tensor;
use burn_gnn_graph::Batch;
use burn_gnn_sampling::SampleKey;

use crate::error::ModelError;
use crate::layers::type_map::NodeTensors;
use crate::metrics::outcome::Outcome;
use crate::metrics::rows::Rows;
use crate::training::task::Task;

/// A model that computes one row for each graph of a batch.
pub trait GraphClassifier: Module {
    /// Logits `[graphs, num_classes]`; `x` holds the features of the nodes of all graphs by type.
    ///
    /// # Panics
    /// Features that are missing or do not fit the model.
    #[track_caller]
    fn graph_logits(&self, graphs: &Batch, x: &NodeTensors) -> Tensor<2>;
}

/// Many graphs as one, with the class of each.
#[derive(Clone, Debug)]
pub struct LabelledGraphs {
    /// The graphs; the column `x` of their nodes holds features.
    pub graphs: Batch,
    /// The class of each graph; -1 where it is unknown.
    pub labels: Vec<i64>,
}

/// Learns the class of whole graphs: batches are [`LabelledGraphs`], models [`GraphClassifier`]s such as
/// [`Gin`](crate::Gin).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::{Graph, batch};
/// use burn_gnn_models::{FitConfig, GinConfig, GraphTask, LabelledGraphs, evaluate, fit, seeded};
/// let mut triangle = Graph::homogeneous(3, vec![0, 1, 2], vec![1, 2, 0])?;
/// let mut path = Graph::homogeneous(3, vec![0, 1], vec![1, 2])?;
/// for g in [&mut triangle, &mut path] {
///     g.nodes_mut("_N")?.insert("x", Tensor::<2>::ones([3, 1], &Device::flex()))?;
/// }
/// let data = vec![LabelledGraphs { graphs: batch([&triangle, &path])?, labels: vec![1, 0] }];
/// let model = seeded(0, || GinConfig::new(1, 2).init(&Device::flex().autodiff()));
/// let trained = fit(model, &GraphTask, &data, &(), &FitConfig::new().with_progress(false))?;
/// assert_eq!(evaluate(&trained.model, &GraphTask, &data)?.accuracy(), 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphTask;

impl<M: GraphClassifier> Task<M, LabelledGraphs> for GraphTask {
    fn step(&self, model: &M, batch: &LabelledGraphs, _: SampleKey) -> Result<Outcome, ModelError> {
        let LabelledGraphs { graphs, labels } = batch;
        ModelError::check_length("labels", "one per graph", graphs.len(), labels.len())?;
        let graph = graphs.graph();
        let of_type = graph.node_frames().iter().map(|f| f.get::<2>("x").ok());
        let x = NodeTensors::from_list(graph.schema(), of_type);
        let logits = model.graph_logits(graphs, &x.map(|_, x| x.without_autodiff()));
        let known: Vec<u32> = (0..).zip(labels).filter(|of| *of.1 >= 0).map(|of| of.0).collect();
        let rows = Rows::new(&known, labels, logits.dims()[1])?;
        Ok(Outcome::classes(logits, &rows))
    }
}
