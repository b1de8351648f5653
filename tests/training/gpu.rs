//! Training on a graphics backend is the CPU's training: the same initial weights and keyed dropout, so the same losses.

use burn::tensor::{Device, FloatDType};
use burn_gnn::graph::Dataset;
use burn_gnn::models::{Alone, GatConfig, GcnConfig, NodeClassifier, RgcnConfig, TrainConfig, TypeInput, train};

use crate::common::data::{Loaded, load};
use crate::{shared, wgpu};

const EPOCHS: usize = 20;

/// Relative: f32 in another order, which Adam and relus near 0 carry on from epoch to epoch.
const TOLERANCE: f64 = 1e-3;

/// Losses of both devices, which must fall and be near each other.
fn compare<M: NodeClassifier>(set: &Dataset, config: &TrainConfig, model: impl Fn(&Loaded, &Device) -> M) {
    let Some(gpu) = wgpu() else { return };
    let losses = |device: &Device| -> Vec<f64> {
        let data = load(set.clone(), None, device, FloatDType::F32).unwrap();
        let model = model(&data, &device.clone().autodiff());
        let config = config.clone().with_epochs(EPOCHS).with_progress(false);
        train(model, &data.task(&data.graph), &config, &Alone, |_| {}).unwrap().history.iter().map(|e| e.loss).collect()
    };
    let (want, got) = (losses(&Device::flex()), losses(&gpu));
    assert!(want[EPOCHS - 1] < want[0], "{want:?}");
    let worst = want.iter().zip(&got).map(|(a, b)| (a - b).abs() / a.abs()).fold(0.0, f64::max);
    println!("{} on {gpu:?}: worst relative difference of losses {worst:.1e}", set.name);
    assert!(got.len() == EPOCHS && worst <= TOLERANCE, "{worst:e}: {got:?} instead of {want:?}");
}

fn width(data: &Loaded) -> usize {
    match data.inputs()[0] {
        TypeInput::Features(d) => d,
        TypeInput::Embedding => panic!("{} has features", data.name),
    }
}

fn cora() -> Option<Dataset> {
    let mut set = shared("cora")?;
    set.graph = set.graph.add_self_loops(0).unwrap();
    Some(set)
}

#[test]
fn gcn_on_cora() {
    let Some(set) = cora() else { return };
    let model = |data: &Loaded, device: &Device| GcnConfig::new(width(data), data.num_classes).init(device);
    compare(&set, &TrainConfig::new().with_weight_decay(5e-4), model);
}

#[test]
fn gat_on_cora() {
    let Some(set) = cora() else { return };
    let model = |data: &Loaded, device: &Device| GatConfig::new(width(data), data.num_classes).init(device);
    compare(&set, &TrainConfig::new().with_weight_decay(5e-4), model);
}

#[test]
fn rgcn_on_aifb() {
    let Some(mut set) = shared("aifb") else { return };
    set.graph = set.graph.with_inverse_relations("-inv").unwrap();
    let config = RgcnConfig::new(set.num_classes).with_hidden(32).with_dropout(0.3);
    compare(&set, &TrainConfig::new(), |data, device| config.init(&data.graph, &data.inputs(), device).unwrap());
}
