//! Rows of knowledge graphs: filtered MRR of embeddings.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use burn::tensor::Device;
use burn_gnn::data::{KnowledgeGraph, Triple, load_knowledge_graph, load_triple_negatives};
use burn_gnn_links::{
    KgeConfig, KgeInit, KgeKind, KgeOptimizer, KgeTraining, KvsAllObjective, LinkLoss, TrueTails,
    known_both_ways, popularity_ranks, train_kge,
};

use super::row::Row;
use super::sets::{Set, Sets};
use super::{Args, hard_negatives};

const PROTOCOL: &str = "filtered ranks of heads and tails among all entities, mean of ties; options and epoch chosen on validation triples";

/// Models in the order of their rows, with their default decoders.
const MODELS: [(&str, KgeKind); 6] = [
    ("complex", KgeKind::ComplEx),
    ("distmult", KgeKind::DistMult),
    ("rescal", KgeKind::Rescal),
    ("rotate", KgeKind::RotatEL2),
    ("transe", KgeKind::TransEL2),
    ("tucker", KgeKind::TuckEr { d_relation: 64 }),
];

/// Published MRR: LibKGE (Ruffinelli, Broscheit, Gemulla, ICLR 2020, and its repository) and CoDEx (Safavi, Koutra, EMNLP
/// 2020).
const PUBLISHED: [(&str, &str, f64); 13] = [
    ("codex_m", "complex", 0.337),
    ("codex_m", "rescal", 0.317),
    ("codex_s", "complex", 0.465),
    ("codex_s", "rescal", 0.404),
    ("codex_s", "transe", 0.354),
    ("codex_s", "tucker", 0.444),
    ("fb15k237", "complex", 0.348),
    ("fb15k237", "distmult", 0.343),
    ("fb15k237", "rescal", 0.356),
    ("fb15k237", "rotate", 0.333),
    ("fb15k237", "transe", 0.313),
    ("wn18rr", "complex", 0.475),
    ("wn18rr", "rotate", 0.478),
];

/// Options in files, chosen on validation triples.
const SETTINGS: [(&str, &str, &str); 1] =
    [("codex_s", "complex", include_str!("../../settings/codex_s.complex.json"))];

pub(super) fn rows(args: &Args, sets: &Sets, emit: &mut dyn FnMut(Row)) -> Result<()> {
    for set in sets.of_layout("triples").filter(|set| args.wants_set(&set.name)) {
        let wanted = |&(name, _): &(&str, KgeKind)| args.wants(&set.name, name);
        let models: Vec<_> = MODELS.into_iter().filter(wanted).collect();
        if models.is_empty() {
            continue;
        }
        let kg = load_knowledge_graph(&set.folder)
            .with_context(|| format!("loading {}", set.folder.display()))?;
        let known = known_both_ways(&kg);
        let device = Device::flex();
        let baseline = popularity_ranks(&kg, ranked(args, &kg), &known, &device)?.metrics().mrr;
        for (name, kind) in models {
            for row in model_rows(args, set, (&kg, &known), (name, kind), baseline)? {
                emit(row);
            }
        }
    }
    Ok(())
}

/// Triples of the figure: those of test, or of validation with `--tune`.
fn ranked<'a>(args: &Args, kg: &'a KnowledgeGraph) -> &'a [Triple] {
    if args.tune { &kg.valid } else { &kg.test }
}

/// The row of the ranks of a model, and that of its classification of hard negatives where the set has some.
fn model_rows(
    args: &Args,
    set: &Set,
    (kg, known): (&KnowledgeGraph, &TrueTails),
    (name, kind): (&str, KgeKind),
    baseline: f64,
) -> Result<Vec<Row>> {
    let negatives = if args.tune { None } else { load_triple_negatives(&set.folder, kg)? };
    let (start, device) = (Instant::now(), Device::flex());
    let config = settings(args, set, kg, (name, kind))?;
    let (mut ours, mut accuracies) = (vec![], vec![]);
    for seed in 0..args.seeds {
        let config = KgeConfig { seed, ..config.clone() };
        let trained = train_kge(kg, &config, &device, |e| progress(args, e))?;
        let metrics = trained.model.ranks(ranked(args, kg), known, None)?.metrics();
        args.note(format!("{}/{name}, seed {seed}: {metrics}", set.name));
        ours.push(metrics.mrr);
        if let Some(negatives) = &negatives {
            accuracies.push(hard_negatives::accuracy(&trained.model, kg, negatives)?);
        }
    }
    let published = PUBLISHED.iter().find(|(s, m, _)| (*s, *m) == (&set.name[..], name));
    let mut rows = vec![Row {
        set: set.name.clone(),
        model: name.to_owned(),
        protocol: PROTOCOL.to_owned(),
        metric: if args.tune { "valid MRR" } else { "MRR" }.to_owned(),
        published: published.map(|p| p.2),
        baseline: Some(baseline),
        ours,
        seconds: start.elapsed().as_secs_f64(),
    }];
    if let Some(negatives) = &negatives {
        let published = hard_negatives::PUBLISHED.iter().find(|(s, _)| *s == set.name);
        rows.push(Row {
            set: set.name.clone(),
            model: name.to_owned(),
            protocol: hard_negatives::PROTOCOL.to_owned(),
            metric: "accuracy".to_owned(),
            published: published.map(|p| p.1),
            baseline: Some(hard_negatives::baseline(kg, negatives)?),
            ours: accuracies,
            seconds: start.elapsed().as_secs_f64(),
        });
    }
    Ok(rows)
}

fn progress(args: &Args, e: &burn_gnn_links::KgeEpoch) {
    let valid = e.valid.map_or_else(String::new, |m| format!("  valid {m}"));
    args.note(format!("epoch {:>3}  loss {:.4}  {:.1} s{valid}", e.epoch, e.loss, e.seconds));
}

/// The options of a file, or the best of a few on validation triples.
fn settings(
    args: &Args,
    set: &Set,
    kg: &KnowledgeGraph,
    (name, kind): (&str, KgeKind),
) -> Result<KgeConfig> {
    if let Some(file) = &args.settings {
        let config = KgeConfig::load(file)?;
        ensure!(
            name == name_of(config.kind),
            "`--settings`: expected options of `{name}`, got `{}`; add `--only /{}`",
            name_of(config.kind),
            name_of(config.kind)
        );
        return Ok(config);
    }
    if let Some((.., text)) = SETTINGS.iter().find(|(s, m, _)| (*s, *m) == (&set.name[..], name)) {
        return Ok(KgeConfig::from_json(text)?);
    }
    let candidates = candidates(kind, kg);
    let mut best: Option<(f64, KgeConfig)> = None;
    for config in candidates {
        if kg.valid.is_empty() {
            return Ok(config);
        }
        let trial = KgeConfig { epochs: TRIAL, eval_every: TRIAL, seed: 1_000, ..config.clone() };
        let trained = train_kge(kg, &trial, &Device::flex(), |e| progress(args, e))?;
        let mrr = trained.valid().map_or(0.0, |m| m.mrr);
        let (lr, weight) = (config.lr, config.entity_regularization);
        args.note(format!("{}/{name}: lr {lr}, regularisation {weight}: {mrr:.4}", set.name));
        if best.as_ref().is_none_or(|(other, _)| mrr > *other) {
            best = Some((mrr, config));
        }
    }
    best.map(|(_, config)| config).context("no options were tried")
}

/// Name of the rows of a decoder.
fn name_of(kind: KgeKind) -> &'static str {
    match kind {
        KgeKind::ComplEx => "complex",
        KgeKind::DistMult => "distmult",
        KgeKind::Rescal => "rescal",
        KgeKind::RotatE | KgeKind::RotatEL2 => "rotate",
        KgeKind::TransEL1 | KgeKind::TransEL2 => "transe",
        KgeKind::TuckEr { .. } => "tucker",
    }
}

/// Epochs of the trial of an option.
const TRIAL: usize = 8;

/// Operations of an epoch above which negatives are drawn.
const LARGE: f64 = 2e12;

/// Options for a set without a file: those that are good on several sets, with three weights of regularisation, or three
/// learning rates of distances, which are not regularised.
fn candidates(kind: KgeKind, kg: &KnowledgeGraph) -> Vec<KgeConfig> {
    let softmax = KvsAllObjective::Softmax;
    let base = KgeConfig {
        d: 256,
        init: KgeInit::Normal(1e-3),
        training: KgeTraining::KvsAll { objective: softmax, answer_power: 1.0 },
        batch: 128,
        epochs: 40,
        eval_every: 4,
        eval_triples: 2_000,
        ..KgeConfig::new(kind)
    };
    // About half of the triples share their query with another.
    let operations = 6.0 * (kg.train.len() * base.d) as f64 * kg.entities.len() as f64;
    let negatives = KgeTraining::Negatives {
        count: 1_000,
        loss: LinkLoss::SampledSoftmax,
        filtered: false,
        type_constrained: false,
    };
    let base = match operations < LARGE {
        true => base,
        false => KgeConfig { training: negatives, batch: 1_000, epochs: 24, ..base },
    };
    let regularized = |base: KgeConfig| {
        let of = |weight| KgeConfig {
            entity_regularization: weight,
            relation_regularization: weight,
            ..base.clone()
        };
        [0.003, 0.01, 0.03].map(of).to_vec()
    };
    match kind {
        KgeKind::ComplEx | KgeKind::DistMult => regularized(base),
        // Matrices of relations have `d²` entries.
        KgeKind::Rescal => {
            let base = KgeConfig { d: 64, init: KgeInit::Glorot, ..base };
            let of = |weight| KgeConfig { entity_regularization: weight, ..base.clone() };
            [0.003, 0.01, 0.03].map(of).to_vec()
        }
        KgeKind::TuckEr { .. } => {
            let of = |dropout| KgeConfig {
                d: 128,
                init: KgeInit::Glorot,
                optimizer: KgeOptimizer::Adam,
                lr: 2e-3,
                lr_decay: 0.97,
                label_smoothing: if operations < LARGE { 0.1 } else { 0.0 },
                entity_dropout: dropout,
                query_dropout: dropout,
                ..base.clone()
            };
            [0.1, 0.2, 0.3].map(of).to_vec()
        }
        KgeKind::RotatE | KgeKind::RotatEL2 | KgeKind::TransEL1 | KgeKind::TransEL2 => {
            let of = |lr| KgeConfig { init: KgeInit::Glorot, lr, ..base.clone() };
            [0.03, 0.1, 0.3].map(of).to_vec()
        }
    }
}
