//! Trains on sampled neighbourhoods, for graphs too large for full-graph steps.
//!
//! A worker makes batches while the network trains.

use std::sync::Arc;

use anyhow::Result;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::{Tensor, TensorData};
use burn_gnn::data::{KnowledgeGraph, Triple};
use burn_gnn::graph::{GraphError, Stream};
use burn_gnn::models::{id_tensor, select_rows};
use burn_gnn::ops::{LossReduction, cross_entropy_rows};
use burn_gnn::sampling::{
    Loader, MiniBatch, NeighborSampler, SampleKey, SampledBatch, Sampler, Seeds,
};
use burn_gnn_links::{Decoder, Side, TrueTails};

use super::fit::{Settings, both_ways};
use super::messages::Messages;
use super::net::Net;

/// Candidate tails of the queries of a batch, in addition to the true one.
const DRAWN: u64 = 1000;

/// Makes batches of train triples, by number.
pub(crate) struct TripleSampler {
    sampler: NeighborSampler,
    messages: Arc<Messages>,
    /// Tails of train triples.
    known: TrueTails,
    train: Vec<Triple>,
}

/// Queries both ways, as rows of the blocks' output nodes.
pub(crate) struct TripleBatch {
    blocks: MiniBatch,
    heads: Vec<u32>,
    relations: Vec<u32>,
    tails: Vec<u32>,
    /// Entities that all queries choose from, and for each query and entity whether that is a true tail.
    drawn: Vec<u32>,
    is_true: Vec<bool>,
}

impl Sampler for TripleSampler {
    type Seed = u32;
    type Batch = TripleBatch;
    type Error = GraphError;

    fn sample_batch(&self, triples: &Seeds, key: SampleKey) -> Result<TripleBatch, GraphError> {
        let g = &self.messages.graph;
        let (entities, relations) = (g.node_counts()[0] as u64, g.relations().len() as u32 / 2);
        let draws = Stream::new(key.seed, "tails", key.step);
        let drawn: Vec<u32> = (0..DRAWN.min(entities))
            .map(|i| (draws.uniform(i, 0) * entities as f64) as u32)
            .collect();
        let numbers: Vec<usize> = triples.ids().concat().iter().map(|&i| i as usize).collect();
        let one_way = numbers.iter().map(|&i| self.train[i]);
        let queries: Vec<Triple> =
            one_way.clone().chain(one_way.map(|t| t.reciprocal(relations))).collect();
        let is_true = queries.iter().flat_map(|q| {
            let tails = self.known.of(q.head, q.relation);
            drawn.iter().map(move |e| tails.binary_search(e).is_ok())
        });
        let is_true = is_true.collect();
        // No messages along the triples that are asked about, in either direction.
        let mut asked = vec![vec![]; g.relations().len()];
        for &i in &numbers {
            let (r, edge) = self.messages.place(i);
            asked[2 * r].push(edge as u32);
            asked[2 * r + 1].push(edge as u32);
        }
        let endpoints = queries
            .iter()
            .map(|q| q.head)
            .chain(queries.iter().map(|q| q.tail))
            .chain(drawn.iter().copied());
        let blocks = self.sampler.sample_excluding(
            [(&g.schema().ntypes()[0], endpoints.collect::<Vec<_>>())],
            asked.iter().enumerate(),
            key,
        )?;
        let (rows, n) = (&blocks.seeds[0], queries.len());
        let (heads, tails, drawn) =
            (rows[..n].to_vec(), rows[n..2 * n].to_vec(), rows[2 * n..].to_vec());
        Ok(TripleBatch {
            heads,
            tails,
            drawn,
            relations: queries.iter().map(|q| q.relation).collect(),
            is_true,
            blocks,
        })
    }
}

impl SampledBatch for TripleBatch {
    type Id = u32;

    fn num_edges(&self) -> usize {
        self.blocks.total_edges()
    }
}

impl TripleBatch {
    /// Cross entropy of the true tail against the drawn ones that are no tails of the query, mean over queries.
    fn loss(&self, net: &Net) -> Tensor<1> {
        let rows = net.over_blocks(&self.blocks.blocks);
        let (device, n) = (rows.device(), self.heads.len());
        let of = |v: &[u32]| select_rows(rows.clone(), v);
        let relations = id_tensor(&self.relations, &device);
        let right = net
            .scorer()
            .score(of(&self.heads), Some(relations.clone()), of(&self.tails))
            .reshape([n, 1]);
        let never: Vec<f32> =
            self.is_true.iter().map(|&t| if t { f32::NEG_INFINITY } else { 0.0 }).collect();
        let never = Tensor::<2>::from_data(TensorData::new(never, [n, self.drawn.len()]), &device);
        let queries = net.scorer().query(of(&self.heads), Some(relations), Side::Tail);
        let others = net.scorer().score_all(queries, of(&self.drawn), Side::Tail) + never;
        let every: Vec<u32> = (0..n as u32).collect();
        cross_entropy_rows(
            Tensor::cat(vec![right, others], 1),
            &every.into(),
            &vec![0; n].into(),
            LossReduction::Mean,
        )
    }
}

/// Batches of all train triples, up to `fanout` edges into a node of each relation.
pub(crate) fn loader(
    kg: &KnowledgeGraph,
    messages: &Arc<Messages>,
    s: &Settings,
    fanout: i64,
    batch: usize,
) -> Result<Loader<TripleSampler>> {
    // Plain rows look at no neighbour; a block without edges names the rows.
    let fanouts = if s.layers == 0 { vec![0] } else { vec![fanout; s.layers] };
    let sampler = TripleSampler {
        sampler: NeighborSampler::new(&messages.graph, fanouts)?,
        messages: messages.clone(),
        known: TrueTails::new(both_ways(&kg.train, kg)),
        train: kg.train.clone(),
    };
    let seeds = Seeds::of((0..kg.train.len() as u32).collect())?;
    Ok(Loader::new(sampler, seeds, batch)?.with_seed(s.seed))
}

/// One pass; mean loss of a query.
pub(crate) fn pass(
    loader: &Loader<TripleSampler>,
    mut net: Net,
    optimizer: &mut ModuleOptimizer,
    (epoch, lr): (usize, f64),
) -> Result<(Net, f64)> {
    let (mut sum, mut count, epoch) = (0.0, 0, epoch as u64 - 1);
    for batch in loader.epoch(epoch) {
        let batch = batch?.batch;
        let loss = batch.loss(&net);
        sum += loss.clone().inner().into_scalar::<f64>() * batch.heads.len() as f64;
        count += batch.heads.len();
        let grads = GradientsParams::from_grads(loss.backward(), &net);
        net = optimizer.step(lr, net, grads);
    }
    Ok((net, sum / count as f64))
}
