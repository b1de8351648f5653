//! Rows of inductive link prediction: NBFNet on a graph of entities that were not there in training.

use anyhow::{Context, Result};
use burn::tensor::Device;
use burn_gnn::data::{InductiveKnowledgeGraph, load_inductive_triples};
use burn_gnn_links::{
    FactGraph, HiddenFacts, NbfnetConfig, NbfnetTraining, candidate_queries, candidate_ranks,
    nearness_scores, popularity_scores, train_nbfnet,
};

use super::Args;
use super::row::Row;
use super::sets::Sets;

const PROTOCOL: &str = "heads and tails of the test triples of the second graph among 50 stored false ones, mean of ties; baseline: the better of popularity and nearness on test triples; settings and epoch chosen on the validation triples of the first graph";

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
        let (ours, seconds, baseline) = hits(args, &data)?;
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
fn hits(args: &Args, data: &InductiveKnowledgeGraph) -> Result<(Vec<f64>, f64, Option<f64>)> {
    let graph = FactGraph::of_training(&data.unseen)?;
    let (test, negatives) = (&data.unseen.test, &data.negatives);
    let baseline = if args.tune { None } else { Some(baseline(args, &graph, data)?) };
    let (mut ours, mut seconds) = (vec![], 0.0);
    let settings = settings(args, data)?;
    for seed in 0..args.seeds {
        let config = settings.clone().with_seed(seed);
        let progress = |epoch, loss, valid: Option<&_>| {
            args.note(format_args!("epoch {epoch}  loss {loss:.4}  valid {valid:?}"));
        };
        let trained = train_nbfnet(&config, &data.known, &data.known, &Device::flex(), progress)?;
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

/// Epochs of a training.
const EPOCHS: usize = 6;
/// Queries of an epoch at most, and of the trial of a setting.
const QUERIES: usize = 20_000;
const TRIAL: usize = 4000;

/// Chooses settings by a short training of each, on the validation triples of the first graph.
fn settings(args: &Args, data: &InductiveKnowledgeGraph) -> Result<NbfnetTraining> {
    let known = &data.known;
    // Paths in a sparse graph are longer, and an entity reaches fewer others by them.
    let degree = 2.0 * known.train.len() as f64 / known.entities.len().max(1) as f64;
    let layers = match degree {
        ..6.0 => 6,
        6.0..9.0 => 5,
        _ => 4,
    };
    let model = NbfnetConfig::new(known.relations.len()).with_num_layers(layers);
    let base = NbfnetTraining::new(model).with_epochs(EPOCHS).with_queries_per_epoch(QUERIES);
    let mut best: Option<(f64, NbfnetTraining)> = None;
    for (hidden, dropout) in
        [(HiddenFacts::Answer, 0.0), (HiddenFacts::Answer, 0.4), (HiddenFacts::AllBetween, 0.4)]
    {
        let config = base.clone().with_hidden(hidden).with_fact_dropout(dropout);
        let trial = config.clone().with_epochs(1).with_queries_per_epoch(TRIAL);
        let trained = train_nbfnet(&trial, known, known, &Device::flex(), |_, _, _| {})?;
        let value = trained.valid.first().map_or(0.0, |r| r.mrr + r.hits_at_10);
        args.note(format_args!("{hidden:?} {dropout}, {layers} layers: valid {:?}", trained.valid));
        if best.as_ref().is_none_or(|b| value > b.0) {
            best = Some((value, config));
        }
    }
    Ok(best.map_or(base, |b| b.1))
}
