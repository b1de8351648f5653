//! Accuracy on real data, one run of one seed per set; floors lie a few points below what the published settings reach.

use burn::tensor::{Device, FloatDType};
use burn_gnn::graph::Dataset;
use burn_gnn::models::{Alone, GatConfig, GcnConfig, NodeClassifier, RgcnConfig, TrainConfig, TypeInput, evaluate, train};

use crate::common::data::{Loaded, load};
use crate::shared;

/// The set with inverse relations or self loops, as the examples make it.
fn ready(name: &str, split: Option<&str>) -> Option<Loaded> {
    let mut set: Dataset = shared(name)?;
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

/// Test accuracy after one training, which must reach `floor`.
fn reaches<M: NodeClassifier>(data: &Loaded, model: M, config: &TrainConfig, floor: f64) {
    let task = data.task(&data.graph);
    let trained = train(model, &task, &config.clone().with_progress(false), &Alone, |_| {}).unwrap();
    let accuracy = evaluate(&trained.model, &task, &data.test, &Alone).accuracy();
    println!("{}: {accuracy:.4} (floor {floor})", data.name);
    assert!(accuracy >= floor, "{}: {accuracy} below {floor}", data.name);
}

fn width(data: &Loaded) -> usize {
    match data.inputs()[0] {
        TypeInput::Features(d) => d,
        TypeInput::Embedding => panic!("{} has features", data.name),
    }
}

#[test]
fn gcn_on_citations() {
    for (name, floor) in [("cora", 0.79), ("citeseer", 0.67)] {
        let Some(data) = ready(name, None) else { continue };
        let model = GcnConfig::new(width(&data), data.num_classes).init(&device());
        reaches(&data, model, &TrainConfig::new().with_epochs(200).with_weight_decay(5e-4), floor);
    }
}

#[test]
fn gat_on_citations() {
    for (name, floor) in [("cora", 0.79), ("citeseer", 0.67)] {
        let Some(data) = ready(name, None) else { continue };
        let model = GatConfig::new(width(&data), data.num_classes).init(&device());
        reaches(&data, model, &TrainConfig::new().with_epochs(60).with_lr(0.01).with_weight_decay(5e-4), floor);
    }
}

#[test]
fn rgcn_on_aifb() {
    let Some(data) = ready("aifb", None) else { return };
    let model = RgcnConfig::new(data.num_classes).with_hidden(32).with_dropout(0.3).init(&data.graph, &data.inputs(), &device()).unwrap();
    reaches(&data, model, &TrainConfig::new(), 0.91);
}

#[test]
fn rgcn_on_acm() {
    let Some(data) = ready("acm", Some("60")) else { return };
    let model = RgcnConfig::new(data.num_classes).with_hidden(64).with_dropout(0.5).init(&data.graph, &data.inputs(), &device()).unwrap();
    reaches(&data, model, &TrainConfig::new().with_weight_decay(5e-4), 0.83);
}
