//! Defines a GIN with its steps for `burn::train`, and batches graphs for it.

use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use burn::train::{ClassificationOutput, InferenceStep, TrainOutput, TrainStep};
use burn_gnn::graph::{Graph, GraphError, batch};
use burn_gnn::models::{Gin, id_tensor};
use burn_gnn::ops::{LossReduction, Segments, cross_entropy_rows};
use burn_gnn::sampling::{LoadedBatch, SampleKey, SampledBatch, Sampler, SeedKind, Seeds};

use crate::rings::Ring;

/// Largest degree of a ring with tails; features are degrees, one column each.
pub(crate) const DEGREES: usize = 3;

/// Many graphs as one.
#[derive(Clone, Debug)]
pub(crate) struct Graphs {
    graph: Graph,
    /// Nodes of each graph.
    segments: Segments,
    labels: Arc<[u32]>,
}

impl SampledBatch for Graphs {
    type Id = u32;

    fn num_edges(&self) -> usize {
        self.graph.total_edges()
    }
}

/// Batches graphs; seeds are their positions in the list. Nothing is drawn but the order of seeds, by the loader.
#[derive(Clone)]
pub(crate) struct Collate(pub(crate) Arc<[Ring]>);

impl Sampler for Collate {
    type Seed = u32;
    type Batch = Graphs;
    type Error = GraphError;

    fn sample_batch(&self, seeds: &Seeds, _: SampleKey) -> Result<Graphs, GraphError> {
        let rings: Vec<&Ring> = seeds.ids()[0].iter().map(|&i| &self.0[i as usize]).collect();
        let sizes: Vec<usize> = rings.iter().map(|r| r.graph.total_nodes()).collect();
        Ok(Graphs {
            graph: batch(rings.iter().map(|r| &r.graph))?.into_graph(),
            segments: Segments::from_lengths(&sizes),
            labels: rings.iter().map(|r| r.label).collect(),
        })
    }
    fn check(&self, seeds: &Seeds) -> Result<(), GraphError> {
        seeds.expect(SeedKind::Other, 1)
    }
}

/// The model that is trained.
#[derive(Module, Debug)]
pub(crate) struct Classifier {
    pub(crate) gin: Gin,
}

/// Degrees of all nodes, one-hot.
fn degrees(graph: &Graph, device: &Device) -> Tensor<2> {
    let one_hot = |d| (1..=DEGREES as u32).map(move |k| f32::from(u8::from(d == k)));
    let x: Vec<f32> = graph.relations()[0].in_degrees().flat_map(one_hot).collect();
    Tensor::from_data(TensorData::new(x, [graph.total_nodes(), DEGREES]), device)
}

impl Classifier {
    pub(crate) fn classify(&self, item: &Graphs) -> ClassificationOutput {
        let x = degrees(&item.graph, &self.devices()[0]);
        let logits = self.gin.forward_graphs(&item.graph, x, &item.segments);
        let n = item.labels.len() as u32;
        let loss = cross_entropy_rows(
            logits.clone(),
            &(0..n).collect(),
            &item.labels,
            LossReduction::Mean,
        );
        let labels = id_tensor(&item.labels, &logits.device());
        ClassificationOutput::new(loss, logits, labels)
    }
}

impl TrainStep for Classifier {
    type Input = LoadedBatch<Graphs>;
    type Output = ClassificationOutput;

    fn step(&self, item: LoadedBatch<Graphs>) -> TrainOutput<ClassificationOutput> {
        let out = self.classify(&item.batch);
        TrainOutput::new(self, out.loss.backward(), out)
    }
}

impl InferenceStep for Classifier {
    type Input = LoadedBatch<Graphs>;
    type Output = ClassificationOutput;

    fn step(&self, item: LoadedBatch<Graphs>) -> ClassificationOutput {
        self.classify(&item.batch)
    }
}
