//! Trains knowledge graphs whose entities are spread over ranks.

use std::sync::Arc;

use burn::tensor::Device;
use burn_gnn_data::KnowledgeGraph;
use burn_gnn_dist::{
    Communicator, DistEmbedding, DistError, DistGraph, PartitionConfig, SparseOptimizer,
    partition_graph,
};
use burn_gnn_graph::Graph;
use burn_gnn_links::{EntityTable, KgeConfig, KgeEpoch, KgeOptimizer, TrainedKge};
use burn_gnn_models::ModelError;

use super::rank_sync::RankSync;

/// Trains embeddings of a knowledge graph by negatives, where each rank owns the embeddings of a part of the entities
/// ([`DistEmbedding`]) and computes a part of every batch. All ranks call it with equal graphs and options, and return the
/// same model; losses and embeddings equal those of [`train_kge`](burn_gnn_links::train_kge) on one machine up to rounding.
/// Rank 0 calls `on_epoch`. Collective.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn::data::{KnowledgeGraph, Triple};
/// use burn_gnn::dist::run_ranks;
/// use burn_gnn::links::{KgeConfig, KgeKind, KgeTraining, LinkLoss};
/// use burn_gnn::ranks::train_kge_on_ranks;
/// let train = (0..10).map(|i| Triple { head: i, relation: 0, tail: (i + 1) % 10 }).collect();
/// let entities = (0..10).map(|i| i.to_string()).collect();
/// let kg = KnowledgeGraph { entities, relations: vec!["next".into()], train, ..Default::default() };
/// let (loss, filtered, type_constrained) = (LinkLoss::SampledSoftmax, true, false);
/// let training = KgeTraining::Negatives { count: 4, loss, filtered, type_constrained };
/// let config = KgeConfig { d: 8, epochs: 5, training, ..KgeConfig::new(KgeKind::ComplEx) };
/// let trained = run_ranks(2, |comm| train_kge_on_ranks(&kg, &config, comm, &Device::flex(), |_| {}))?;
/// assert_eq!(trained[0].history.len(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`burn_gnn_links::train_kge_on_ranks`]; a rank failed.
///
/// # Cost
/// As [`burn_gnn_links::train_kge_on_ranks`], and 8 bytes per entity on every rank.
pub fn train_kge_on_ranks(
    kg: &KnowledgeGraph,
    config: &KgeConfig,
    comm: Arc<dyn Communicator>,
    device: &Device,
    on_epoch: impl FnMut(&KgeEpoch),
) -> Result<TrainedKge, ModelError> {
    let sync = RankSync::new(comm.clone());
    let table = |initial: Vec<f32>| -> Result<Box<dyn EntityTable>, ModelError> {
        let table = OwnedEntities::new(kg.entities.len(), config, &initial, comm);
        Ok(Box::new(table.map_err(of_ranks)?))
    };
    burn_gnn_links::train_kge_on_ranks(kg, config, device, &sync, table, on_epoch)
}

fn of_ranks(e: DistError) -> ModelError {
    ModelError::Ranks(e.into())
}

/// Embeddings of entities in a [`DistEmbedding`].
struct OwnedEntities {
    embedding: DistEmbedding<f32>,
    /// Id of each entity in the partitioned graph.
    ids: Vec<u64>,
}

impl OwnedEntities {
    fn new(
        entities: usize,
        config: &KgeConfig,
        initial: &[f32],
        comm: Arc<dyn Communicator>,
    ) -> Result<Self, DistError> {
        let nodes = Graph::homogeneous(entities, vec![], vec![])?;
        let parts = PartitionConfig::new("entities", comm.size()).with_progress(false);
        let parts = partition_graph(&nodes, &parts)?;
        let graph = DistGraph::from_partition(parts.part(comm.rank())?, comm)?;
        let everyone: Vec<u64> = (0..entities as u64).collect();
        let ids = graph.find_nodes(0, &everyone)?;
        let optimizer = match config.optimizer {
            KgeOptimizer::Adagrad => SparseOptimizer::adagrad(config.lr),
            KgeOptimizer::Adam => SparseOptimizer::adam(config.lr),
        };
        let (d, policy) = (config.d, graph.node_policy(0)?);
        let value = |id: u64, column: usize| initial[id as usize * d + column];
        let embedding = DistEmbedding::new(&graph, "entities", d, policy, optimizer, value)?;
        Ok(Self { embedding, ids })
    }

    fn ids(&self, entities: &[u32]) -> Vec<u64> {
        entities.iter().map(|&entity| self.ids[entity as usize]).collect()
    }
}

impl EntityTable for OwnedEntities {
    fn rows(&mut self, ids: &[u32]) -> Result<Vec<f32>, ModelError> {
        self.embedding.tensor().get(&self.ids(ids)).map_err(of_ranks)
    }
    fn step(&mut self, ids: &[u32], grads: &[f32], lr: f64) -> Result<(), ModelError> {
        self.embedding.set_lr(lr).map_err(of_ranks)?;
        self.embedding.step_with(&self.ids(ids), grads).map_err(of_ranks)
    }
}
