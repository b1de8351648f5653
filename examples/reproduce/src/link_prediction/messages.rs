//! Builds the graph of training triples, and weighs its messages.

use anyhow::Result;
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn::data::{KnowledgeGraph, Triple};
use burn_gnn::graph::{Graph, Relation};

/// The graph of train triples both ways, and what each message weighs.
pub(crate) struct Messages {
    pub(crate) graph: Graph,
    /// One over the in-degree in all relations, per edge type.
    full: Vec<Vec<f32>>,
    /// Relation of each train triple, and its edge there.
    place: Vec<(usize, usize)>,
}

impl Messages {
    pub(crate) fn new(kg: &KnowledgeGraph) -> Result<Self> {
        let graph = kg.train_graph()?;
        let full = over_degrees(graph.relations());
        let mut seen = vec![0; kg.relations.len()];
        let place = |t: &Triple| {
            let r = t.relation as usize;
            seen[r] += 1;
            (r, seen[r] - 1)
        };
        Ok(Self { graph, full, place: kg.train.iter().map(place).collect() })
    }

    /// Weights per edge type, 0 both ways for the train triples `hidden`.
    pub(crate) fn weights(&self, hidden: &[u32], device: &Device) -> Vec<Tensor<1>> {
        let mut weights = self.full.clone();
        for &i in hidden {
            let (r, edge) = self.place[i as usize];
            weights[2 * r][edge] = 0.0;
            weights[2 * r + 1][edge] = 0.0;
        }
        weights.into_iter().map(|w| vector(w, device)).collect()
    }

    /// Relation of a train triple, and its edge there.
    pub(crate) fn place(&self, triple: usize) -> (usize, usize) {
        self.place[triple]
    }
}

/// One over the in-degree in all relations, per edge of each.
pub(crate) fn over_degrees(relations: &[Relation]) -> Vec<Vec<f32>> {
    let mut degree = vec![0f32; relations.first().map_or(0, Relation::num_dst)];
    relations.iter().flat_map(|r| r.dst()).for_each(|&v| degree[v as usize] += 1.0);
    relations.iter().map(|r| r.dst().iter().map(|&v| 1.0 / degree[v as usize]).collect()).collect()
}

pub(crate) fn vector(v: Vec<f32>, device: &Device) -> Tensor<1> {
    let n = v.len();
    Tensor::from_data(TensorData::new(v, [n]), device)
}
