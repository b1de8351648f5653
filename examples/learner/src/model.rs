//! Defines a GIN with its steps for `burn::train`, and batches graphs for it.

use std::sync::Arc;

use burn::data::dataloader::batcher::Batcher;
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use burn::train::{ClassificationOutput, InferenceStep, TrainOutput, TrainStep};
use burn_gnn::graph::{Graph, batch};
use burn_gnn::models::Gin;
use burn_gnn::ops::{LossReduction, Segments, cross_entropy_rows};

use crate::rings::Ring;

/// Largest degree of a ring with tails; features are degrees, one column each.
pub(crate) const DEGREES: usize = 3;

/// Many graphs as one.
#[derive(Clone, Debug)]
pub(crate) struct Graphs {
    graph: Graph,
    /// Degrees, one-hot.
    x: Tensor<2>,
    /// Nodes of each graph.
    segments: Segments,
    labels: Arc<[u32]>,
}

/// Lays graphs side by side.
#[derive(Clone)]
pub(crate) struct Collate;

impl Batcher<Ring, Graphs> for Collate {
    fn batch(&self, rings: Vec<Ring>, device: &Device) -> Graphs {
        let sizes: Vec<usize> = rings.iter().map(|r| r.graph.total_nodes()).collect();
        let graph = batch(rings.iter().map(|r| &r.graph))
            .unwrap_or_else(|e| panic!("rings have the same types: {e}"))
            .into_graph();
        let degrees = graph.relations()[0].in_degrees();
        let x: Vec<f32> = degrees
            .flat_map(|d| (1..=DEGREES as u32).map(move |k| f32::from(u8::from(d == k))))
            .collect();
        let x = Tensor::from_data(TensorData::new(x, [graph.total_nodes(), DEGREES]), device);
        Graphs {
            graph,
            x,
            segments: Segments::from_lengths(&sizes),
            labels: rings.iter().map(|r| r.label).collect(),
        }
    }
}

/// The model that is trained.
#[derive(Module, Debug)]
pub(crate) struct Classifier {
    pub(crate) gin: Gin,
}

impl Classifier {
    pub(crate) fn classify(&self, item: Graphs) -> ClassificationOutput {
        let logits = self.gin.forward_graphs(&item.graph, item.x, &item.segments);
        let n = item.labels.len();
        let loss = cross_entropy_rows(
            logits.clone(),
            &(0..n as u32).collect(),
            &item.labels,
            LossReduction::Mean,
        );
        let labels =
            TensorData::new(item.labels.iter().map(|&l| i64::from(l)).collect::<Vec<_>>(), [n]);
        let labels = Tensor::<1, Int>::from_data(labels, &logits.device());
        ClassificationOutput::new(loss, logits, labels)
    }
}

impl TrainStep for Classifier {
    type Input = Graphs;
    type Output = ClassificationOutput;

    fn step(&self, item: Graphs) -> TrainOutput<ClassificationOutput> {
        let out = self.classify(item);
        TrainOutput::new(self, out.loss.backward(), out)
    }
}

impl InferenceStep for Classifier {
    type Input = Graphs;
    type Output = ClassificationOutput;

    fn step(&self, item: Graphs) -> ClassificationOutput {
        self.classify(item)
    }
}
