//! Trains by cross entropy against all entities.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use burn::module::Module;
use burn::tensor::Device;
use burn_gnn::data::{KnowledgeGraph, Triple};
use burn_gnn::models::{FusedAdamConfig, seeded};
use burn_gnn::sampling::Loader;
use burn_gnn_links::{LinkMetrics, TrueTails, rank_links};
use clap::Args;

use super::messages::Messages;
use super::net::Net;
use super::sampled::{self, TripleSampler};
use super::whole::Queries;

#[derive(Clone, Debug, Args)]
pub(crate) struct Settings {
    /// Passes over the queries.
    #[arg(long, default_value_t = 20)]
    pub(crate) epochs: usize,
    /// Queries (head, relation) per step; 200 on the crates graph, 2000 on other data.
    #[arg(long)]
    pub(crate) batch: Option<usize>,
    /// Embedding size of entities and relations.
    #[arg(long, default_value_t = 128)]
    pub(crate) dim: usize,
    /// Edges per node and relation that a step draws (mini-batches of `--batch` triples); without it every step sees
    /// the whole graph.
    #[arg(long)]
    pub(crate) fanout: Option<i64>,
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
    #[arg(long, default_value_t = 1, conflicts_with = "plot")]
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
    messages: Arc<Messages>,
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

/// What an epoch goes through.
enum Steps {
    Whole(Queries),
    Sampled(Loader<TripleSampler>),
}

pub(crate) fn fit(kg: &KnowledgeGraph, s: &Settings, device: &Device) -> Result<Fitted> {
    let (Some(batch), Some(lr)) = (s.batch, s.lr) else {
        bail!("`--batch` and `--lr` have no values yet")
    };
    ensure!(
        s.epochs > 0 && batch > 0 && s.eval_every > 0,
        "`--epochs`, `--batch` and `--eval-every` must be at least 1"
    );
    ensure!(!kg.train.is_empty() && !kg.valid.is_empty(), "there must be train and valid triples");
    let messages = Arc::new(Messages::new(kg)?);
    let known = TrueTails::new(
        [&kg.train, &kg.valid, &kg.test].into_iter().flat_map(|part| both_ways(part, kg)),
    );
    let step_by = kg.valid.len().div_ceil(s.eval_triples.max(1));
    let valid: Vec<Triple> =
        both_ways(&kg.valid.iter().step_by(step_by).copied().collect::<Vec<_>>(), kg);
    let mut net = seeded(s.seed, || Net::new(&messages.graph, s, &device.clone().autodiff()))?;
    let mut optimizer = FusedAdamConfig::new().with_epsilon(1e-8).init();
    let steps = match s.fanout {
        None => Steps::Whole(Queries::new(kg)),
        Some(fanout) => Steps::Sampled(sampled::loader(kg, &messages, s, fanout, batch)?),
    };
    let mut best: Option<(LinkMetrics, usize, Net)> = None;
    let (mut losses, mut mrrs) = (vec![], vec![]);
    for epoch in 1..=s.epochs {
        let start = Instant::now();
        let loss;
        (net, loss) = match &steps {
            Steps::Whole(queries) => {
                queries.pass(net, &mut optimizer, &messages, s, (epoch, batch, lr))?
            }
            Steps::Sampled(loader) => sampled::pass(loader, net, &mut optimizer, (epoch, lr))?,
        };
        ensure!(
            loss.is_finite(),
            "epoch {epoch}: the loss is {loss}; lower the learning rate (now {lr})"
        );
        losses.push(loss);
        let trained = start.elapsed().as_secs_f64();
        if epoch % s.eval_every != 0 && epoch != s.epochs {
            continue;
        }
        let plain = net.valid();
        let m = judge(&plain, &messages, &known, &valid)?;
        println!(
            "epoch {epoch:>3}  loss {:.4}  valid MRR {:.4}  Hits@10 {:.4}  {trained:.1} s",
            losses[epoch - 1],
            m.mrr,
            m.hits_at_10
        );
        mrrs.push(m.mrr);
        if best.as_ref().is_none_or(|b| m.mrr > b.0.mrr) {
            best = Some((m, epoch, plain));
        }
    }
    match best {
        Some((valid, epoch, net)) => {
            Ok(Fitted { net, messages, known, valid, epoch, losses, mrrs })
        }
        None => unreachable!("the last epoch is judged"),
    }
}

/// Every triple, then every reciprocal one.
pub(crate) fn both_ways(triples: &[Triple], kg: &KnowledgeGraph) -> Vec<Triple> {
    let relations = kg.relations.len() as u32;
    triples.iter().copied().chain(triples.iter().map(|t| t.reciprocal(relations))).collect()
}

fn judge(
    net: &Net,
    messages: &Messages,
    known: &TrueTails,
    triples: &[Triple],
) -> Result<LinkMetrics> {
    let entities = net.entities(messages, &[], (0, 0));
    Ok(rank_links(triples, known, 500, |part| {
        net.scores(&entities, part.iter().map(|t| (t.head, t.relation)))
    })?)
}
