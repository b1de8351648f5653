//! Trains on the whole graph: some queries per step, messages along all other triples.

use anyhow::Result;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn_gnn::data::KnowledgeGraph;
use burn_gnn::ops::Stream;

use super::fit::{Settings, both_ways};
use super::messages::Messages;
use super::net::{Fact, Net};

/// Train triples both ways with their numbers; those of one query (head, relation) stand together.
pub(crate) struct Queries {
    facts: Vec<Fact>,
}

impl Queries {
    pub(crate) fn new(kg: &KnowledgeGraph) -> Self {
        let mut facts: Vec<Fact> =
            both_ways(&kg.train, kg).into_iter().zip((0..kg.train.len() as u32).cycle()).collect();
        facts.sort_unstable();
        Self { facts }
    }

    /// One pass; mean loss of a query.
    pub(crate) fn pass(
        &self,
        mut net: Net,
        optimizer: &mut ModuleOptimizer,
        messages: &Messages,
        s: &Settings,
        (epoch, batch, lr): (usize, usize, f64),
    ) -> Result<(Net, f64)> {
        let queries: Vec<&[Fact]> = self
            .facts
            .chunk_by(|a, b| (a.0.head, a.0.relation) == (b.0.head, b.0.relation))
            .collect();
        let draws = Stream::new(s.seed, "order of queries", epoch as u64);
        let mut order: Vec<usize> = (0..queries.len()).collect();
        order.sort_by_cached_key(|&q| draws.words(q as u64, 0));
        let (mut sum, first) = (0.0, (epoch - 1) * queries.len().div_ceil(batch));
        for (i, part) in order.chunks(batch).enumerate() {
            let asked: Vec<&[Fact]> = part.iter().map(|&q| queries[q]).collect();
            let hidden: Vec<u32> = asked.iter().copied().flatten().map(|f| f.1).collect();
            let entities = net.entities(messages, &hidden, (s.seed, (first + i) as u64));
            let loss = net.loss(&entities, &asked)?;
            sum += loss.clone().inner().into_scalar::<f64>() * asked.len() as f64;
            let grads = GradientsParams::from_grads(loss.backward(), &net);
            net = optimizer.step(lr, net, grads);
        }
        Ok((net, sum / queries.len() as f64))
    }
}
