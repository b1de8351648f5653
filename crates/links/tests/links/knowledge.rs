//! Models of knowledge graphs: training, ranks, options.

use burn::tensor::Device;
use burn_gnn_data::{KnowledgeGraph, Triple, load_knowledge_graph, load_triple_negatives};
use burn_gnn_links::*;
use burn_gnn_ops::Stream;
use burn_gnn_testutil::{assert_close, assert_same_bits_on_threads, data, values};

/// Entities on a ring: relation 0 leads to the next, relation 1 to the one after it.
fn ring(n: u32) -> KnowledgeGraph {
    let step = |relation, by| (0..n).map(move |i| Triple { head: i, relation, tail: (i + by) % n });
    KnowledgeGraph {
        name: "ring".into(),
        entities: (0..n).map(|i| i.to_string()).collect(),
        relations: vec!["next".into(), "second".into()],
        train: step(0, 1).chain(step(1, 2)).collect(),
        ..KnowledgeGraph::default()
    }
}

fn negatives(loss: LinkLoss) -> KgeTraining {
    KgeTraining::Negatives { count: 8, loss, filtered: true, type_constrained: false }
}

/// TransE is tested on a path, because repeated translations do not return to their start.
#[test]
fn models_learn_a_ring() {
    let kg = ring(12);
    let self_adversarial = LinkLoss::SelfAdversarial { margin: 2.0, temperature: 1.0 };
    let one = KgeTraining::OneVsAll;
    let bce = KgeTraining::KvsAll { objective: KvsAllObjective::Bce, answer_power: 0.0 };
    let softmax = KgeTraining::KvsAll { objective: KvsAllObjective::Softmax, answer_power: 0.0 };
    for (kind, training, reciprocal) in [
        (KgeKind::ComplEx, one, true),
        (KgeKind::ComplEx, one, false),
        (KgeKind::ComplEx, bce, true),
        (KgeKind::ComplEx, softmax, false),
        (KgeKind::ComplEx, negatives(LinkLoss::SampledSoftmax), true),
        (KgeKind::DistMult, one, true),
        (KgeKind::Rescal, one, false),
        (KgeKind::TuckEr { d_relation: 4 }, one, true),
        (KgeKind::RotatEL2, one, false),
        (KgeKind::RotatE, negatives(self_adversarial), false),
    ] {
        let config = KgeConfig {
            d: 24,
            epochs: 150,
            batch: 16,
            optimizer: KgeOptimizer::Adam,
            lr: 0.02,
            training,
            reciprocal,
            ..KgeConfig::new(kind)
        };
        let trained = train_kge(&kg, &config, &Device::flex(), |_| {}).unwrap();
        let ranks = trained.model.ranks(&kg.train, &known_both_ways(&kg), None).unwrap();
        let metrics = ranks.metrics();
        // DistMult is symmetric: the next entity and the previous one have the same score.
        let least = if kind == KgeKind::DistMult { 0.6 } else { 0.9 };
        assert!(metrics.mrr > least, "{kind:?} {training:?} reciprocal {reciprocal}: {metrics}");
        let loss = |at: usize| trained.history[at].loss;
        assert!(loss(149) < loss(0), "{kind:?}");
    }
}

/// On a path, `next` and `second` are translations by one vector and by twice this vector.
#[test]
fn trans_e_learns_a_path() {
    let mut kg = ring(12);
    kg.train.retain(|t| t.head < t.tail);
    let self_adversarial = LinkLoss::SelfAdversarial { margin: 2.0, temperature: 1.0 };
    for (kind, training, reciprocal) in [
        (KgeKind::TransEL1, negatives(self_adversarial), false),
        (KgeKind::TransEL2, negatives(LinkLoss::Margin { margin: 1.0 }), false),
        (KgeKind::TransEL2, negatives(self_adversarial), true),
        (KgeKind::TransEL2, KgeTraining::OneVsAll, false),
    ] {
        let config = KgeConfig {
            d: 16,
            epochs: 150,
            batch: 16,
            optimizer: KgeOptimizer::Adam,
            lr: 0.02,
            training,
            reciprocal,
            ..KgeConfig::new(kind)
        };
        let trained = train_kge(&kg, &config, &Device::flex(), |_| {}).unwrap();
        let ranks = trained.model.ranks(&kg.train, &known_both_ways(&kg), None).unwrap();
        let metrics = ranks.metrics();
        assert!(metrics.mrr > 0.9, "{kind:?} {training:?} reciprocal {reciprocal}: {metrics}");
    }
}

/// Training continues after the best epoch, so that the last model differs from the returned one.
#[test]
fn the_model_of_the_best_epoch_is_returned() {
    let mut kg = ring(12);
    kg.valid = kg.train.split_off(20);
    let run = |training, epochs| {
        let config = KgeConfig {
            d: 16,
            epochs,
            batch: 8,
            training,
            eval_every: 1,
            patience: 3,
            ..KgeConfig::new(KgeKind::ComplEx)
        };
        train_kge(&kg, &config, &Device::flex(), |_| {}).unwrap()
    };
    for training in [KgeTraining::OneVsAll, negatives(LinkLoss::SampledSoftmax)] {
        let trained = run(training, 60);
        assert_eq!(trained.history.len(), trained.best_epoch + 3, "{training:?}");
        let mrr = |e: &KgeEpoch| e.valid.unwrap().mrr;
        let best = trained.history.iter().map(mrr).fold(0.0, f64::max);
        let valid = trained.valid().unwrap();
        assert_eq!(valid.mrr, best, "{training:?}");
        let ranks = trained.model.ranks(&kg.valid, &known_both_ways(&kg), None).unwrap();
        assert_eq!(ranks.metrics(), valid, "{training:?}");
        let shorter = run(training, trained.best_epoch);
        let entities = |trained: &TrainedKge| values(&trained.model.entities.val());
        assert_eq!(entities(&trained), entities(&shorter), "{training:?}");
    }
}

#[test]
fn numbers_out_of_range_are_errors() {
    let wrong = Triple { head: 0, relation: 2, tail: 0 };
    let config = KgeConfig { d: 4, epochs: 1, ..KgeConfig::default() };
    for part in ["train", "valid", "test"] {
        let mut kg = ring(3);
        let at = if part == "train" { 6 } else { 0 };
        match part {
            "train" => kg.train.push(wrong),
            "valid" => kg.valid.push(wrong),
            _ => kg.test.push(wrong),
        }
        let e = train_kge(&kg, &config, &Device::flex(), |_| {}).unwrap_err().to_string();
        assert_eq!(e, format!("`{part}[{at}].relation` must lie in 0..2, got 2"));
    }
    let (kg, known) = (ring(3), TrueTails::default());
    let far = [Triple { head: 3, relation: 0, tail: 0 }];
    let e = popularity_ranks(&kg, &far, &known, &Device::flex()).unwrap_err().to_string();
    assert_eq!(e, "`triples[0].head` must lie in 0..3, got 3");
    let kg = KnowledgeGraph { train: far.to_vec(), ..kg };
    let e = popularity_ranks(&kg, &[], &known, &Device::flex()).unwrap_err().to_string();
    assert_eq!(e, "`train[0].head` must lie in 0..3, got 3");
}

/// Every pair of entity and relation of the ring has one answer, in both directions.
#[test]
fn one_and_all_answers_are_the_same_for_single_answers() {
    let kg = ring(9);
    let losses = |training| {
        let config = KgeConfig {
            d: 8,
            epochs: 3,
            batch: 1000,
            training,
            label_smoothing: 0.1,
            entity_regularization: 0.1,
            relation_regularization: 0.1,
            ..KgeConfig::new(KgeKind::ComplEx)
        };
        let trained = train_kge(&kg, &config, &Device::flex(), |_| {}).unwrap();
        trained.history.iter().map(|e| e.loss).collect::<Vec<_>>()
    };
    let all = KgeTraining::KvsAll { objective: KvsAllObjective::Softmax, answer_power: 0.0 };
    assert_close("losses", &losses(KgeTraining::OneVsAll), &losses(all), 1e-5);
}

/// A step on all weighted answers is a step on all train triples.
#[test]
fn weighted_answers_equal_triples() {
    let mut kg = ring(9);
    // Several answers of an entity and relation.
    kg.train.extend([3, 5, 7].map(|tail| Triple { head: 0, relation: 0, tail }));
    let entities = |training| {
        let config = KgeConfig {
            d: 8,
            epochs: 2,
            batch: 1000,
            training,
            entity_regularization: 0.1,
            relation_regularization: 0.1,
            ..KgeConfig::new(KgeKind::ComplEx)
        };
        let trained = train_kge(&kg, &config, &Device::flex(), |_| {}).unwrap();
        values(&trained.model.entities.val())
    };
    let all = KgeTraining::KvsAll { objective: KvsAllObjective::Softmax, answer_power: 1.0 };
    assert_close("entities", &entities(KgeTraining::OneVsAll), &entities(all), 1e-3);
}

#[test]
fn training_has_the_same_bits_on_any_number_of_threads() {
    let kg = ring(60);
    let all = KgeTraining::KvsAll { objective: KvsAllObjective::Softmax, answer_power: 0.0 };
    for training in [KgeTraining::OneVsAll, all, negatives(LinkLoss::SampledSoftmax)] {
        assert_same_bits_on_threads(format!("{training:?}"), || {
            let config = KgeConfig {
                d: 8,
                epochs: 2,
                batch: 50,
                training,
                entity_dropout: 0.2,
                query_dropout: 0.1,
                entity_regularization: 0.1,
                ..KgeConfig::new(KgeKind::ComplEx)
            };
            let trained = train_kge(&kg, &config, &Device::flex(), |_| {}).unwrap();
            values(&trained.model.entities.val())
        });
    }
}

#[test]
fn scores_and_ranks_of_both_sides() {
    let kg = ring(7);
    let config = KgeConfig { d: 8, reciprocal: false, ..KgeConfig::new(KgeKind::ComplEx) };
    let model = Kge::try_new(&config, 7, 2, &Device::flex()).unwrap();
    let tails = &kg.train[2..5];
    let heads: Vec<Triple> = tails.iter().map(|t| t.reciprocal(2)).collect();
    let mixed = [heads[0], tails[0], tails[1], heads[1], heads[2], tails[2]];
    let got = values(&model.score_tails(&mixed).unwrap());
    let row = |all: &[f64], i: usize| all[7 * i..][..7].to_vec();
    let (t, h) =
        (values(&model.score_tails(tails).unwrap()), values(&model.score_tails(&heads).unwrap()));
    let want: Vec<f64> =
        [row(&h, 0), row(&t, 0), row(&t, 1), row(&h, 1), row(&h, 2), row(&t, 2)].concat();
    assert_close("mixed sides", &got, &want, 1e-6);
    // Scores of triples are entries of both.
    let pairs = values(&model.score(tails).unwrap());
    for (i, triple) in tails.iter().enumerate() {
        assert_close("tail", &[t[7 * i + triple.tail as usize]], &[pairs[i]], 1e-5);
        assert_close("head", &[h[7 * i + triple.head as usize]], &[pairs[i]], 1e-5);
    }
    let known = known_both_ways(&kg);
    let ranks = model.ranks(&kg.train, &known, None).unwrap();
    let all = model.score_tails(&kg.train).unwrap();
    assert_eq!(ranks.tails, filtered_ranks(all, &kg.train, &known).unwrap());
    // Every entity occurs at both ends of both relations: types change nothing.
    let types = TypeConstraints::new(&kg.train, 2);
    assert_eq!(model.ranks(&kg.train, &known, Some(&types)).unwrap(), ranks);
    let few = TypeConstraints::new(&kg.train[..1], 2);
    let best = model.ranks(&kg.train[..1], &TrueTails::default(), Some(&few)).unwrap();
    assert_eq!((&best.tails[..], &best.heads[..]), (&[1.0][..], &[1.0][..]));
    // Entities that the model does not have are no candidates.
    let more = TypeConstraints::new(&[tails[0], Triple { tail: 9, ..tails[0] }], 2);
    model.ranks(&tails[..1], &known, Some(&more)).unwrap();
    let wrong = [Triple { head: 0, relation: 4, tail: 0 }];
    let e = model.score_tails(&wrong).unwrap_err().to_string();
    assert_eq!(e, "`triples[0].relation` must lie in 0..4, got 4");
}

#[test]
fn options_are_checked() {
    let rejected = |text: &str, why: &str| {
        let e = KgeConfig::from_json(text).unwrap_err().to_string();
        assert!(e.contains(why), "{text}: {e}");
    };
    rejected(r#"{ "dim": 3 }"#, "unknown field `dim`");
    rejected(r#"{ "d": 0 }"#, "`d` must lie in 1.., got 0");
    rejected(r#"{ "kind": "transe_l1" }"#, "`training` must lie in `negatives`");
    rejected(r#"{ "label_smoothing": 1.0 }"#, "`label_smoothing`");
    rejected(r#"{ "lr": 0 }"#, "`lr`");
    rejected(r#"{ "init": { "normal": -0.1 } }"#, "`init.normal` must lie in numbers above 0");
    rejected(r#"{ "init": { "uniform": 0 } }"#, "`init.uniform`");
    rejected(r#"{ "regularization_power": 4 }"#, "`regularization_power` must lie in 2..=3, got 4");
    let config = KgeConfig {
        training: negatives(LinkLoss::SelfAdversarial { margin: 6.0, temperature: 1.0 }),
        init: KgeInit::Uniform(0.3),
        ..KgeConfig::new(KgeKind::TuckEr { d_relation: 30 })
    };
    let text = serde_json::to_string(&config).unwrap();
    assert_eq!(KgeConfig::from_json(&text).unwrap(), config);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("options.json");
    std::fs::write(&file, &text).unwrap();
    assert_eq!(KgeConfig::load(&file).unwrap(), config);
    std::fs::write(&file, "{").unwrap();
    assert!(KgeConfig::load(&file).unwrap_err().to_string().contains("options.json"));
    let none = KnowledgeGraph { train: vec![], ..ring(3) };
    let e = train_kge(&none, &KgeConfig::default(), &Device::flex(), |_| {}).unwrap_err();
    assert!(e.to_string().contains("no labelled row"), "{e}");
}

/// Every threshold that could be chosen, and the counts by their definition.
#[test]
fn thresholds_classify_most_triples() {
    let s = Stream::new(4, "scores", 0);
    // Relation 3 has no validation triple; scores of few values, so that many are equal.
    let list = |purpose: u64, n: u64| -> (Vec<Triple>, Vec<f64>) {
        let relation = |i| (s.uniform(i, purpose) * 3.0) as u32;
        let score = |i| (s.uniform(i, purpose + 1) * 6.0).floor() - purpose as f64 / 2.0;
        (
            (0..n).map(|i| Triple { head: 0, relation: relation(i), tail: 0 }).collect(),
            (0..n).map(score).collect(),
        )
    };
    let (facts, false_ones) = (list(0, 40), list(2, 50));
    let of =
        |(triples, scores): &(Vec<Triple>, Vec<f64>), keep: &dyn Fn(u32) -> bool| -> Vec<f64> {
            let kept = triples.iter().zip(scores).filter(|(t, _)| keep(t.relation));
            kept.map(|(_, &score)| score).collect()
        };
    let by =
        TripleThresholds::fit(4, (&facts.0, &facts.1), (&false_ones.0, &false_ones.1)).unwrap();
    for relation in 0..4 {
        let keep = |r: u32| relation == 3 || r == relation;
        let (p, n) = (of(&facts, &keep), of(&false_ones, &keep));
        let correct = |threshold: f64| {
            p.iter().filter(|&&s| s >= threshold).count()
                + n.iter().filter(|&&s| s < threshold).count()
        };
        let candidates = p.iter().chain(&n).copied().chain([f64::INFINITY]);
        assert_eq!(Some(correct(by.of(relation))), candidates.map(correct).max(), "{relation}");
    }
    let found = by.evaluate((&facts.0, &facts.1), (&false_ones.0, &false_ones.1)).unwrap();
    let true_ones = |(triples, scores): &(Vec<Triple>, Vec<f64>)| {
        triples.iter().zip(scores).filter(|(t, s)| **s >= by.of(t.relation)).count() as f64
    };
    let (hits, wrong) = (true_ones(&facts), true_ones(&false_ones));
    let (precision, recall) = (hits / (hits + wrong), hits / 40.0);
    assert_close(
        "figures",
        &[found.accuracy, found.precision, found.recall, found.f1],
        &[
            (hits + 50.0 - wrong) / 90.0,
            precision,
            recall,
            2.0 * precision * recall / (precision + recall),
        ],
        1e-12,
    );
    let e = |relations, scores: &[f64]| {
        TripleThresholds::fit(relations, (&facts.0[..1], scores), (&[], &[]))
            .unwrap_err()
            .to_string()
    };
    assert!(e(0, &[1.0]).contains("`relation` must lie in 0..0"));
    assert!(e(4, &[]).contains("`scores`: expected 1 (one per triple), got 0"));
    assert!(e(4, &[f64::NAN]).contains("`scores` must lie in numbers, got NaN"));
    assert!(TripleThresholds::fit(4, (&[], &[]), (&[], &[])).is_err());
}

/// Hard negatives of CoDEx by the number of facts that a tail has with the relation: the figure of the set's notes is 0.805.
#[test]
fn hard_negatives_of_codex_by_popularity() {
    let Some(folder) = data("codex_s") else { return };
    let kg = load_knowledge_graph(&folder).unwrap();
    let negatives = load_triple_negatives(&folder, &kg).unwrap().unwrap();
    let mut counts = std::collections::HashMap::new();
    kg.train.iter().for_each(|t| *counts.entry((t.relation, t.tail)).or_insert(0) += 1);
    let scores = |triples: &[Triple]| -> Vec<f64> {
        let count = |t: &Triple| counts.get(&(t.relation, t.tail)).copied().unwrap_or(0);
        triples.iter().map(|t| f64::from(count(t))).collect()
    };
    let of = |facts: &[Triple], false_ones: &[Triple]| (scores(facts), scores(false_ones));
    let (p, n) = of(&kg.valid, &negatives.valid);
    let by =
        TripleThresholds::fit(kg.relations.len(), (&kg.valid, &p), (&negatives.valid, &n)).unwrap();
    let (p, n) = of(&kg.test, &negatives.test);
    let found = by.evaluate((&kg.test, &p), (&negatives.test, &n)).unwrap();
    assert_eq!(found.triples, 2 * 1828);
    assert!((found.accuracy - 0.805).abs() < 0.005, "{found:?}");
}

#[test]
fn umls_is_learned_above_popularity() {
    let Some(folder) = data("umls") else { return };
    let kg = load_knowledge_graph(folder).unwrap();
    let device = Device::flex();
    let config = KgeConfig {
        d: 64,
        epochs: 20,
        batch: 256,
        entity_regularization: 0.01,
        relation_regularization: 0.01,
        eval_every: 10,
        ..KgeConfig::new(KgeKind::ComplEx)
    };
    let trained = train_kge(&kg, &config, &device, |_| {}).unwrap();
    let known = known_both_ways(&kg);
    let ours = trained.model.ranks(&kg.test, &known, None).unwrap().metrics().mrr;
    let popular = popularity_ranks(&kg, &kg.test, &known, &device).unwrap().metrics().mrr;
    assert!(ours > 0.85 && ours > popular + 0.2, "{ours} and {popular}");
}
