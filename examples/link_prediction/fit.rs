//! Training by cross entropy against all entities.

use std::time::Instant;

use anyhow::{Result, bail, ensure};
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::Device;
use burn_gnn::graph::{KnowledgeGraph, Triple};
use burn_gnn::models::{FusedAdamConfig, LinkMetrics, Mode, TrueTails, rank_links};
use burn_gnn::ops::Stream;
use clap::Args;

use crate::net::{Fact, Messages, Net};

#[derive(Clone, Debug, Args)]
pub(crate) struct Settings {
    /// Passes over the queries.
    #[arg(long, default_value_t = 20)]
    pub(crate) epochs: usize,
    /// Queries (head, relation) per step; 200 on the crates graph, 2000 on other data.
    #[arg(long)]
    pub(crate) batch: Option<usize>,
    /// Columns of entities and relations.
    #[arg(long, default_value_t = 128)]
    pub(crate) dim: usize,
    /// Layers of the R-GCN.
    #[arg(long, default_value_t = 1)]
    pub(crate) layers: usize,
    /// Blocks on the diagonal of its weights.
    #[arg(long, default_value_t = 16)]
    pub(crate) blocks: usize,
    /// Learning rate of Adam; 0.01 on the crates graph, 0.005 on other data.
    #[arg(long)]
    pub(crate) lr: Option<f64>,
    /// Dropout of rows.
    #[arg(long, default_value_t = 0.3)]
    pub(crate) dropout: f64,
    /// Epochs between validations; the best one is kept.
    #[arg(long, default_value_t = 1)]
    pub(crate) eval_every: usize,
    /// Validation triples to choose by, evenly spaced; each asks for its tail and for its head.
    #[arg(long, default_value_t = 1000)]
    pub(crate) eval_triples: usize,
    /// Seed of initial values, dropout and the order of batches.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

impl Settings {
    /// Batch and learning rate for the crates graph, or for larger data.
    pub(crate) fn with_defaults(mut self, large: bool) -> Self {
        self.batch.get_or_insert(if large { 2000 } else { 200 });
        self.lr.get_or_insert(if large { 0.005 } else { 0.01 });
        self
    }
}

/// The model of the best validation.
pub(crate) struct Fitted {
    net: Net,
    messages: Messages,
    known: TrueTails,
    pub(crate) valid: LinkMetrics,
    /// From 1.
    pub(crate) epoch: usize,
    /// Of every epoch; MRR where it was judged.
    pub(crate) losses: Vec<f64>,
    pub(crate) mrrs: Vec<f64>,
}

impl Fitted {
    /// Judged on all test triples.
    pub(crate) fn test(&self, kg: &KnowledgeGraph) -> Result<LinkMetrics> {
        judge(&self.net, &self.messages, &self.known, &both_ways(&kg.test, kg))
    }
}

pub(crate) fn fit(kg: &KnowledgeGraph, s: &Settings, device: &Device) -> Result<Fitted> {
    let (Some(batch), Some(lr)) = (s.batch, s.lr) else { bail!("`--batch` and `--lr` have no values yet") };
    ensure!(s.epochs > 0 && batch > 0 && s.eval_every > 0, "`--epochs`, `--batch` and `--eval-every` must be at least 1");
    ensure!(!kg.train.is_empty() && !kg.valid.is_empty(), "there must be train and valid triples");
    let messages = Messages::new(kg)?;
    let known = TrueTails::new([&kg.train, &kg.valid, &kg.test].into_iter().flat_map(|part| both_ways(part, kg)));
    let step_by = kg.valid.len().div_ceil(s.eval_triples.max(1));
    let valid: Vec<Triple> = both_ways(&kg.valid.iter().step_by(step_by).copied().collect::<Vec<_>>(), kg);
    // Train triples both ways with their numbers, sorted: those of one query (head, relation) stand together.
    let mut facts: Vec<Fact> = both_ways(&kg.train, kg).into_iter().zip((0..kg.train.len() as u32).cycle()).collect();
    facts.sort_unstable();
    let queries: Vec<&[Fact]> = facts.chunk_by(|a, b| (a.0.head, a.0.relation) == (b.0.head, b.0.relation)).collect();

    let mut net = Net::new(&messages.graph, s, &device.clone().autodiff())?;
    let mut optimizer = FusedAdamConfig::new().with_epsilon(1e-8).init();
    let mut best: Option<(LinkMetrics, usize, Net)> = None;
    let (mut losses, mut mrrs, mut step) = (vec![], vec![], 0);
    for epoch in 1..=s.epochs {
        let start = Instant::now();
        let draws = Stream::new(s.seed, "order of queries", epoch as u64);
        let mut order: Vec<usize> = (0..queries.len()).collect();
        order.sort_by_cached_key(|&q| draws.words(q as u64, 0));
        let mut loss_sum = 0.0;
        for part in order.chunks(batch) {
            let asked: Vec<&[Fact]> = part.iter().map(|&q| queries[q]).collect();
            let hidden: Vec<u32> = asked.iter().copied().flatten().map(|f| f.1).collect();
            let entities = net.entities(&messages, &hidden, Mode::Train { seed: s.seed, step });
            let loss = net.loss(&entities, &asked)?;
            loss_sum += loss.clone().inner().into_scalar::<f64>() * asked.len() as f64;
            let grads = GradientsParams::from_grads(loss.backward(), &net);
            net = optimizer.step(lr, net, grads);
            step += 1;
        }
        ensure!(loss_sum.is_finite(), "epoch {epoch}: the loss is {loss_sum}; lower the learning rate (now {lr})");
        losses.push(loss_sum / queries.len() as f64);
        let trained = start.elapsed().as_secs_f64();
        if epoch % s.eval_every != 0 && epoch != s.epochs {
            continue;
        }
        let plain = net.valid();
        let m = judge(&plain, &messages, &known, &valid)?;
        println!("epoch {epoch:>3}  loss {:.4}  valid MRR {:.4}  Hits@10 {:.4}  {trained:.1} s", losses[epoch - 1], m.mrr, m.hits_at_10);
        mrrs.push(m.mrr);
        if best.as_ref().is_none_or(|b| m.mrr > b.0.mrr) {
            best = Some((m, epoch, plain));
        }
    }
    match best {
        Some((valid, epoch, net)) => Ok(Fitted { net, messages, known, valid, epoch, losses, mrrs }),
        None => unreachable!("the last epoch is judged"),
    }
}

/// Every triple, then every reciprocal one.
fn both_ways(triples: &[Triple], kg: &KnowledgeGraph) -> Vec<Triple> {
    let relations = kg.relations.len() as u32;
    triples.iter().copied().chain(triples.iter().map(|t| t.reciprocal(relations))).collect()
}

fn judge(net: &Net, messages: &Messages, known: &TrueTails, triples: &[Triple]) -> Result<LinkMetrics> {
    let entities = net.entities(messages, &[], Mode::Eval);
    Ok(rank_links(triples, known, 500, |part| net.scores(&entities, part.iter().map(|t| (t.head, t.relation))))?)
}
