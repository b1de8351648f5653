//! Rows of inductive link prediction: NBFNet on a graph of entities that were not there in training.

use anyhow::{Context, Result};
use burn::tensor::Device;
use burn_gnn::data::{InductiveKnowledgeGraph, KnowledgeGraph, load_inductive_triples};
use burn_gnn_links::{
    FactGraph, HiddenFacts, NbfnetConfig, NbfnetTraining, PathAggregation, candidate_queries,
    candidate_ranks, nearness_scores, popularity_scores, train_nbfnet,
};
use serde::Deserialize;

use super::Args;
use super::row::Row;
use super::sets::Sets;

const PROTOCOL: &str = "heads and tails of the test triples of the second graph among 50 stored false ones, mean of ties; baseline: the better of popularity and nearness on test triples; options and epoch chosen on the validation triples of the first graph, thinned to the density of the second";

/// Published hits@10 of NBFNet (Zhu et al., NeurIPS 2021).
const PUBLISHED: [(&str, f64); 8] = [
    ("grail_fb237_v1", 0.834),
    ("grail_fb237_v2", 0.949),
    ("grail_fb237_v3", 0.951),
    ("grail_fb237_v4", 0.960),
    ("grail_wn18rr_v1", 0.948),
    ("grail_wn18rr_v2", 0.905),
    ("grail_wn18rr_v3", 0.893),
    ("grail_wn18rr_v4", 0.890),
];

pub(super) fn rows(args: &Args, sets: &Sets, emit: &mut dyn FnMut(Row)) -> Result<()> {
    for set in sets.of_layout("inductive_triples").filter(|set| args.wants(&set.name, "nbfnet")) {
        let data = load_inductive_triples(&set.folder)
            .with_context(|| format!("loading {}", set.folder.display()))?;
        let (ours, seconds, baseline) = hits(args, &set.name, &data)?;
        emit(Row {
            set: set.name.clone(),
            model: "nbfnet".into(),
            protocol: PROTOCOL.into(),
            metric: if args.tune { "valid hits@10" } else { "hits@10" }.into(),
            published: PUBLISHED.iter().find(|p| p.0 == set.name).map(|p| p.1),
            baseline,
            ours,
            seconds,
        });
    }
    Ok(())
}

/// Hits@10 of each seed, seconds of all, and hits@10 of the baseline. With `--tune`, hits@10 are those of validation, and
/// there is no baseline.
fn hits(
    args: &Args,
    set: &str,
    data: &InductiveKnowledgeGraph,
) -> Result<(Vec<f64>, f64, Option<f64>)> {
    let graph = FactGraph::of_training(&data.unseen)?;
    let (test, negatives) = (&data.unseen.test, &data.negatives);
    let baseline = if args.tune { None } else { Some(baseline(args, &graph, data)?) };
    let (mut ours, mut seconds) = (vec![], 0.0);
    let valid = validation(data);
    let settings = settings(args, set, data, &valid)?;
    for seed in 0..args.seeds {
        let config = settings.clone().with_seed(seed);
        let progress = |epoch, loss, valid: Option<&_>| {
            args.note(format_args!("epoch {epoch}  loss {loss:.4}  valid {valid:?}"));
        };
        let trained = train_nbfnet(&config, &data.known, &valid, &Device::flex(), progress)?;
        seconds += trained.seconds;
        if args.tune {
            ours.push(trained.valid[trained.epoch - 1].hits_at_10);
            continue;
        }
        let ranks = trained.rank(&graph, test, negatives)?;
        args.note(format_args!("epoch {} of seed {seed}: test {ranks:?}", trained.epoch));
        ours.push(ranks.hits_at_10);
    }
    Ok((ours, seconds, baseline))
}

/// Hits@10 of the better of popularity and nearness on the test triples.
fn baseline(args: &Args, graph: &FactGraph, data: &InductiveKnowledgeGraph) -> Result<f64> {
    let queries = candidate_queries(&data.unseen.test, graph.num_relations(), &data.negatives)?;
    let nearness = candidate_ranks(&queries, &nearness_scores(graph, &queries))?;
    let popularity = candidate_ranks(&queries, &popularity_scores(graph, &queries))?;
    args.note(format_args!("nearness {nearness:?}\npopularity {popularity:?}"));
    Ok(nearness.hits_at_10.max(popularity.hits_at_10))
}

/// Options of a training, in Rust or in a JSON file.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    dim: usize,
    layers: usize,
    aggregation: PathAggregation,
    query_dependent: bool,
    hidden: HiddenFacts,
    fact_dropout: f64,
    negatives: usize,
    batch: usize,
    temperature: f64,
    lr: f64,
    lr_decay: f64,
    epochs: usize,
    /// Queries of an epoch at most.
    queries: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dim: 16,
            layers: 4,
            aggregation: PathAggregation::Sum,
            query_dependent: true,
            hidden: HiddenFacts::Answer,
            fact_dropout: 0.0,
            negatives: 32,
            batch: 32,
            temperature: 0.5,
            lr: 5e-3,
            lr_decay: 0.8,
            epochs: 4,
            queries: 6_000,
        }
    }
}

impl Options {
    fn training(&self, relations: usize) -> NbfnetTraining {
        let model = NbfnetConfig::new(relations)
            .with_dim(self.dim)
            .with_num_layers(self.layers)
            .with_aggregation(self.aggregation)
            .with_query_dependent(self.query_dependent);
        NbfnetTraining::new(model)
            .with_hidden(self.hidden)
            .with_fact_dropout(self.fact_dropout)
            .with_negatives(self.negatives)
            .with_batch(self.batch)
            .with_temperature(self.temperature)
            .with_lr(self.lr)
            .with_lr_decay(self.lr_decay)
            .with_epochs(self.epochs)
            .with_queries_per_epoch(self.queries)
    }
}

/// Options in files, chosen on the validation triples of the first graph.
const SETTINGS: [(&str, &str); 2] = [
    ("grail_fb237_v1", include_str!("../../settings/grail_fb237_v1.nbfnet.json")),
    ("grail_wn18rr_v1", include_str!("../../settings/grail_wn18rr_v1.nbfnet.json")),
];

/// Numbers in the messages of an epoch.
const QUERY_NUMBERS: usize = 8_000_000_000;

/// Facts per entity of the second graph, as a part of those of the first; at most 1.
fn density(data: &InductiveKnowledgeGraph) -> f64 {
    let of = |kg: &KnowledgeGraph| kg.train.len() as f64 / kg.entities.len().max(1) as f64;
    (of(&data.unseen) / of(&data.known).max(f64::MIN_POSITIVE)).min(1.0)
}

/// The first graph for validation. If the second graph has fewer facts per entity, a part of the facts, evenly spaced, is
/// left out, so that validation and test read graphs of equal density: a model that has only read a dense graph ranks
/// badly in a sparse one, and validation on the dense one would not show it.
fn validation(data: &InductiveKnowledgeGraph) -> KnowledgeGraph {
    let kept = density(data);
    let mut thin = data.known.clone();
    let last = |i: usize| (i as f64 * kept) as usize;
    thin.train = (0..)
        .zip(&data.known.train)
        .filter(|&(i, _)| last(i + 1) > last(i))
        .map(|(_, t)| *t)
        .collect();
    thin
}

/// The options of a file, or the best of a few in a short training of each.
fn settings(
    args: &Args,
    set: &str,
    data: &InductiveKnowledgeGraph,
    valid: &KnowledgeGraph,
) -> Result<NbfnetTraining> {
    let (known, relations) = (&data.known, data.known.relations.len());
    if let Some(file) = &args.settings {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        let options: Options =
            serde_json::from_str(&text).with_context(|| format!("reading {}", file.display()))?;
        return Ok(options.training(relations));
    }
    if let Some((_, text)) = SETTINGS.iter().find(|(name, _)| *name == set) {
        return Ok(serde_json::from_str::<Options>(text)?.training(relations));
    }
    // Paths in a sparse graph are longer, and an entity reaches fewer others by them.
    let degree = 2.0 * valid.train.len() as f64 / valid.entities.len().max(1) as f64;
    let layers = match degree {
        ..6.0 => 6,
        6.0..9.0 => 5,
        _ => 4,
    };
    let base = Options { layers, ..Options::default() };
    // An epoch of about a minute on one core.
    let per_query = (2 * known.train.len() * layers * base.dim).max(1);
    let base = Options { queries: (QUERY_NUMBERS / per_query).clamp(1_500, 8_000), ..base };
    if valid.valid.is_empty() {
        return Ok(base.training(relations));
    }
    let mut best: Option<(f64, Options)> = None;
    // Training drops facts to the density of the second graph, or more.
    let dropped = 1.0 - density(data);
    for (more, temperature) in [(0.0, 0.5), (0.0, 1.0), (0.15, 0.5)] {
        let fact_dropout = (dropped + more).min(0.6);
        let options = Options { fact_dropout, temperature, ..base.clone() };
        let trial = options.training(relations).with_epochs(1);
        let trial = trial.with_queries_per_epoch(base.queries / 2).with_valid_triples(250);
        let trained = train_nbfnet(&trial, known, valid, &Device::flex(), |_, _, _| {})?;
        let value = trained.valid.first().map_or(0.0, |r| r.mrr + r.hits_at_10);
        args.note(format_args!("{options:?}: valid {:?}", trained.valid));
        if best.as_ref().is_none_or(|b| value > b.0) {
            best = Some((value, options));
        }
    }
    Ok(best.map_or(base, |b| b.1).training(relations))
}
