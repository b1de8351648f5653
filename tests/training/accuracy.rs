//! Accuracy on real data with the examples' settings: means over seeds 0..10 where a published figure must be met; one
//! run of one seed for the other sets, with a floor a few points below what ten seeds reach (the README has their means).

use std::ops::Range;

use burn::tensor::{Device, FloatDType};
use burn_gnn::graph::Dataset;
use burn_gnn::models::{Alone, GatConfig, GcnConfig, NodeClassifier, RgcnConfig, TrainConfig, TypeInput, evaluate, train};

use crate::common::data::{Loaded, load};
use crate::dataset;

/// The set with inverse relations or self loops, as the examples make it.
fn ready(name: &str, split: Option<&str>) -> Option<Loaded> {
    let mut set: Dataset = dataset(name)?;
    set.graph = if set.graph.schema().is_homogeneous() {
        set.graph.add_self_loops(0).unwrap()
    } else {
        set.graph.with_inverse_relations("-inv").unwrap()
    };
    Some(load(set, split, &Device::flex(), FloatDType::F32).unwrap())
}

fn device() -> Device {
    Device::flex().autodiff()
}

/// Mean test accuracy over trainings from `seeds`, which must reach `floor`.
fn reaches<M: NodeClassifier>(data: &Loaded, seeds: Range<u64>, model: impl Fn(u64) -> M, config: &TrainConfig, floor: f64) {
    let (task, runs) = (data.task(&data.graph), (seeds.end - seeds.start) as f64);
    let accuracy = |seed| {
        let config = config.clone().with_seed(seed).with_progress(false);
        let trained = train(model(seed), &task, &config, &Alone, |_| {}).unwrap();
        evaluate(&trained.model, &task, &data.test, &Alone).accuracy()
    };
    let mean = seeds.map(accuracy).sum::<f64>() / runs;
    println!("{}: mean {mean:.4} of {runs} runs (floor {floor})", data.name);
    assert!(mean >= floor, "{}: {mean} below {floor}", data.name);
}

fn width(data: &Loaded) -> usize {
    match data.inputs()[0] {
        TypeInput::Features(d) => d,
        TypeInput::Embedding => panic!("{} has features", data.name),
    }
}

/// Kipf and Welling report 81.5 % on Cora and 70.3 % on Citeseer.
#[test]
fn gcn_on_citations() {
    for (name, seeds, floor) in [("cora", 0..10, 0.81), ("citeseer", 0..1, 0.67)] {
        let Some(data) = ready(name, None) else { continue };
        let model = |seed| GcnConfig::new(width(&data), data.num_classes).with_seed(seed).init(&device());
        reaches(&data, seeds, model, &TrainConfig::new().with_epochs(200).with_weight_decay(5e-4), floor);
    }
}

#[test]
fn gat_on_citations() {
    for (name, floor) in [("cora", 0.79), ("citeseer", 0.67)] {
        let Some(data) = ready(name, None) else { continue };
        let model = |seed| GatConfig::new(width(&data), data.num_classes).with_seed(seed).init(&device());
        reaches(&data, 0..1, model, &TrainConfig::new().with_epochs(60).with_lr(0.01).with_weight_decay(5e-4), floor);
    }
}

/// Schlichtkrull et al. report 95.83 %; 34 of 36 are 94.4 %.
#[test]
fn rgcn_on_aifb() {
    let Some(data) = ready("aifb", None) else { return };
    let config = RgcnConfig::new(data.num_classes).with_hidden(32).with_dropout(0.3);
    let model = |seed| config.clone().with_seed(seed).init(&data.graph, &data.inputs(), &device()).unwrap();
    reaches(&data, 0..10, model, &TrainConfig::new(), 0.944);
}

#[test]
fn rgcn_on_acm() {
    let Some(data) = ready("acm", Some("60")) else { return };
    let config = RgcnConfig::new(data.num_classes).with_hidden(64).with_dropout(0.5);
    let model = |seed| config.clone().with_seed(seed).init(&data.graph, &data.inputs(), &device()).unwrap();
    reaches(&data, 0..1, model, &TrainConfig::new().with_weight_decay(5e-4), 0.83);
}
