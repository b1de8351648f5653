//! Losses on 1, 2 and 4 parts equal those of a single machine up to 1e-9 relative in f64 and 1e-4
//! in f32, over 20 epochs with dropout, from partition files, with one rank per part.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use burn::tensor::{Device, FloatDType};
use burn_gnn::data::{Dataset, crates_graph, karate_club};
use burn_gnn::dist::{
    Communicator, LocalPartition, PartitionConfig, PartitionMethod, broadcast_seed, load_partition,
    partition_graph, run_ranks,
};
use burn_gnn::models::{
    FitConfig, GcnConfig, NodeClassifier, NodeTask, RelWeights, RgcnConfig, fit, fit_on_ranks,
    seeded, to_dtype,
};
use burn_gnn::ops::GraphView;
use burn_gnn::ranks::RankSync;

use crate::common::data::{Loaded, load};
use crate::dataset;

const EPOCHS: usize = 20;

/// Compares the losses of a single machine and of each number of `parts`; returns the largest
/// relative difference.
fn compare<M, B>(
    set: Dataset,
    parts: &[usize],
    method: &PartitionMethod,
    device: &Device,
    dtype: FloatDType,
    build: B,
) where
    M: NodeClassifier + Send,
    B: Fn(&dyn GraphView, &Loaded, &Device) -> M + Sync,
{
    let data = load(set, None, device, dtype).unwrap();
    let config = FitConfig::new().with_epochs(EPOCHS).with_weight_decay(5e-4).with_progress(false);
    let task = data.task(&data.graph);
    let losses =
        |history: &[burn_gnn::models::Epoch]| history.iter().map(|e| e.loss).collect::<Vec<_>>();
    let model = to_dtype(
        seeded(config.seed, || build(&data.graph, &data, &device.clone().autodiff())),
        dtype,
    );
    let one = losses(&fit(model, &task, &task.train, &task.val, &config).unwrap().history);
    assert!(one[EPOCHS - 1] < one[0], "{one:?}");
    let bound = if dtype == FloatDType::F64 { 1e-9 } else { 1e-4 };
    for &n in parts {
        let dir = tempfile::tempdir().unwrap();
        let cut =
            partition_graph(&data.graph, &PartitionConfig::new("g", n).with_method(method.clone()))
                .unwrap();
        let index = cut.write(dir.path()).unwrap();
        let rank = |comm: Arc<dyn Communicator>| -> Result<_> {
            let part =
                LocalPartition::new(&load_partition(&index, comm.rank())?, comm.clone(), device)?;
            let sync = RankSync::new(comm);
            let task = NodeTask::on_ranks(&part, data.target_type(), &sync)?;
            let model = seeded(config.seed, || {
                to_dtype(build(&part, &data, &device.clone().autodiff()), dtype)
            });
            Ok(fit_on_ranks(model, &task, &task.train, &task.val, &config, &sync)?)
        };
        let ranks = run_ranks(n, |comm| rank(comm).map_err(|e| format!("{e:#}"))).unwrap();
        for trained in &ranks {
            let many = losses(&trained.history);
            let worst =
                one.iter().zip(&many).map(|(a, b)| (a - b).abs() / a.abs()).fold(0.0, f64::max);
            assert!(worst <= bound, "{} on {n} parts: {worst:e} above {bound:e}", data.name);
            assert_eq!(trained.kept_epoch, ranks[0].kept_epoch);
        }
        let worst = one
            .iter()
            .zip(losses(&ranks[0].history))
            .map(|(a, b)| (a - b).abs() / a.abs())
            .fold(0.0, f64::max);
        println!("{} {dtype:?} {n} parts: worst relative difference {worst:.1e}", data.name);
    }
}

/// In f32, rounding can cross the threshold of a ReLU, or Adam amplifies it if gradients almost
/// cancel. Other sizes and seeds also gave 1e-6; one of about forty gave 1.3e-4 (f64: 1e-15).
fn rgcn(
    weights: RelWeights,
    hidden: usize,
    dropout: f64,
) -> impl Fn(&dyn GraphView, &Loaded, &Device) -> burn_gnn::models::Rgcn + Sync {
    move |g, data, device| {
        let config = RgcnConfig::new(data.num_classes)
            .with_hidden(hidden)
            .with_weights(weights)
            .with_dropout(dropout);
        config.try_init(g, data.inputs(), device).unwrap()
    }
}

fn crates() -> Dataset {
    let mut set = crates_graph();
    set.graph = set.graph.with_inverse_relations("-inv").unwrap();
    set
}

#[test]
fn crates_graph_rgcn() {
    for device in burn_gnn_testutil::devices() {
        compare(
            crates(),
            &[1, 2, 4],
            &PartitionMethod::Metis,
            &device,
            FloatDType::F64,
            rgcn(RelWeights::Full, 64, 0.5),
        );
        compare(
            crates(),
            &[1, 2, 4],
            &PartitionMethod::Metis,
            &device,
            FloatDType::F32,
            rgcn(RelWeights::Basis(3), 64, 0.5),
        );
    }
    compare(
        crates(),
        &[3],
        &PartitionMethod::Random,
        &Device::flex(),
        FloatDType::F64,
        rgcn(RelWeights::BlockDiagonal(4), 32, 0.3),
    );
}

#[test]
fn karate_gcn() {
    let set = || {
        let mut set = karate_club();
        set.graph = set.graph.add_self_loops(0).unwrap();
        set
    };
    for device in burn_gnn_testutil::devices() {
        for dtype in [FloatDType::F64, FloatDType::F32] {
            // Two labelled nodes, so that on four parts some ranks have none.
            compare(
                set(),
                &[1, 2, 4],
                &PartitionMethod::Metis,
                &device,
                dtype,
                |_, data, device| {
                    let d = data.width().unwrap();
                    GcnConfig::new(d, 2).with_dropout(0.2).init(device)
                },
            );
        }
    }
}

#[test]
fn aifb_rgcn() {
    let set = || {
        dataset("aifb").map(|mut set| {
            set.graph = set.graph.with_inverse_relations("-inv").unwrap();
            set
        })
    };
    let Some(first) = set() else { return };
    compare(
        first,
        &[1, 2, 4],
        &PartitionMethod::Metis,
        &Device::flex(),
        FloatDType::F64,
        rgcn(RelWeights::Full, 32, 0.3),
    );
    for (device, parts, dtype) in [
        (Device::flex(), &[1, 2, 4][..], FloatDType::F32),
        (burn_gnn_testutil::other_device(), &[2], FloatDType::F64),
    ] {
        if let Some(set) = set() {
            compare(
                set,
                parts,
                &PartitionMethod::Metis,
                &device,
                dtype,
                rgcn(RelWeights::Full, 32, 0.3),
            );
        }
    }
}

/// Models that ranks initialize outside of a seeded scope are an error before the first step; a
/// common seed makes them equal.
#[test]
fn ranks_must_begin_with_one_model() {
    let (data, device) =
        (load(karate_club(), None, &Device::flex(), FloatDType::F32).unwrap(), Device::flex());
    let parts = partition_graph(&data.graph, &PartitionConfig::new("g", 3)).unwrap();
    let d = data.width().unwrap();
    let config = FitConfig::new().with_epochs(2).with_progress(false);
    let run = |comm: Arc<dyn Communicator>, scope: bool| -> Result<(usize, Result<f64, String>)> {
        let part = LocalPartition::new(&parts.part(comm.rank())?, comm.clone(), &device)?;
        let sync = RankSync::new(comm.clone());
        let task = NodeTask::on_ranks(&part, data.target_type(), &sync)?;
        let init = || GcnConfig::new(d, 2).with_dropout(0.2).init(&device.clone().autodiff());
        let model = if scope { seeded(broadcast_seed(&*comm)?, init) } else { init() };
        let epochs = Arc::new(AtomicUsize::new(0));
        let count = epochs.clone();
        let config = config.clone().on_epoch(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let trained = fit_on_ranks(model, &task, &task.train, &task.val, &config, &sync);
        Ok((
            epochs.load(Ordering::Relaxed),
            trained.map(|t| t.history[1].loss).map_err(|e| e.to_string()),
        ))
    };
    let all = |scope| run_ranks(3, |comm| run(comm, scope).map_err(|e| format!("{e:#}"))).unwrap();
    for (epochs, trained) in all(false) {
        let error = trained.unwrap_err();
        assert!(
            epochs == 0
                && error.contains("on rank 1: expected values with hash")
                && error.contains("broadcast_module"),
            "{error}"
        );
    }
    let trained = all(true);
    assert!(trained.iter().all(|t| t.0 == 2 && t.1 == trained[0].1 && t.1.is_ok()), "{trained:?}");
}

/// Features of a wrong size on one rank are an error on all ranks, so that no rank waits.
#[test]
fn features_of_another_size_on_one_rank() {
    let (data, device) =
        (load(karate_club(), None, &Device::flex(), FloatDType::F32).unwrap(), Device::flex());
    let parts = partition_graph(&data.graph, &PartitionConfig::new("g", 2)).unwrap();
    let d = data.width().unwrap();
    let run = |comm: Arc<dyn Communicator>| -> Result<String> {
        let part = LocalPartition::new(&parts.part(comm.rank())?, comm.clone(), &device)?;
        let sync = RankSync::new(comm.clone());
        let mut task = NodeTask::on_ranks(&part, data.target_type(), &sync)?;
        if comm.rank() == 1 {
            let x = task.features["_N"].clone();
            task.features = x.narrow(1, 0, d - 1).into();
        }
        let model = seeded(0, || GcnConfig::new(d, 2).init(&device.clone().autodiff()));
        let config = FitConfig::new().with_epochs(1).with_progress(false);
        Ok(fit_on_ranks(model, &task, &task.train, &task.val, &config, &sync)
            .unwrap_err()
            .to_string())
    };
    let errors = run_ranks(2, |comm| run(comm).map_err(|e| format!("{e:#}"))).unwrap();
    assert!(errors[0].contains("of another rank"), "{errors:?}");
    assert!(errors[1].contains(&format!("expected {d} (as the model")), "{errors:?}");
}
