//! Means over seeds 0..9 with the examples' settings.

use burn::tensor::{Device, FloatDType};
use burn_gnn::graph::Dataset;
use burn_gnn::models::{Alone, GcnConfig, NodeTask, RgcnConfig, TrainConfig, TypeInput, evaluate, train};

use crate::common::data::{Loaded, load};
use crate::shared;

fn ready(set: Dataset) -> Loaded {
    load(set, None, &Device::flex(), FloatDType::F32).unwrap()
}

fn task(data: &Loaded) -> NodeTask<'_, burn_gnn::graph::Graph> {
    NodeTask { graph: &data.graph, features: data.features(), target: data.target, train: data.train.clone(), val: data.val.clone() }
}

/// Schlichtkrull et al. report 95.83 %; 34 of 36 are 94.4 %.
#[test]
fn rgcn_on_aifb() {
    let Some(mut set) = shared("aifb") else { return };
    set.graph = set.graph.with_inverse_relations("-inv").unwrap();
    let data = ready(set);
    let mut sum = 0.0;
    for seed in 0..10 {
        let config = RgcnConfig::new(data.num_classes).with_hidden(32).with_dropout(0.3).with_seed(seed);
        let model = config.init(&data.graph, &data.inputs(), &Device::flex().autodiff()).unwrap();
        let trained = train(model, &task(&data), &TrainConfig::new().with_seed(seed).with_progress(false), &Alone, |_| {}).unwrap();
        sum += evaluate(&trained.model, &task(&data), &data.test, &Alone).accuracy();
    }
    println!("aifb: mean {:.4} over 10 seeds", sum / 10.0);
    assert!(sum / 10.0 >= 0.944, "mean {}", sum / 10.0);
}

/// Kipf and Welling report 81.5 %.
#[test]
fn gcn_on_cora() {
    let Some(mut set) = shared("cora") else { return };
    set.graph = set.graph.add_self_loops(0).unwrap();
    let data = ready(set);
    let TypeInput::Features(d) = data.inputs()[0] else { panic!("cora has features") };
    let mut sum = 0.0;
    for seed in 0..10 {
        let model = GcnConfig::new(d, data.num_classes).with_seed(seed).init(&Device::flex().autodiff());
        let config = TrainConfig::new().with_epochs(200).with_weight_decay(5e-4).with_seed(seed).with_progress(false);
        let trained = train(model, &task(&data), &config, &Alone, |_| {}).unwrap();
        sum += evaluate(&trained.model, &task(&data), &data.test, &Alone).accuracy();
    }
    println!("cora: mean {:.4} over 10 seeds", sum / 10.0);
    assert!(sum / 10.0 >= 0.81, "mean {}", sum / 10.0);
}
