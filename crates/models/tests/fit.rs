//! The training loop against loops written out: the same bits; resuming, early stopping, custom tasks and metrics, errors.

use std::path::Path;
use std::sync::{Arc, Mutex};

use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::{GradientsParams, ModuleOptimizer, SgdConfig};
use burn::tensor::activation::{log_sigmoid, log_softmax};
use burn::tensor::{Device, Tensor};
use burn_gnn_data::{Links, RandomLinkSplit, karate_club};
use burn_gnn_graph::{Graph, GraphError, batch};
use burn_gnn_models::*;
use burn_gnn_ops::{GraphView, Segments};
use burn_gnn_sampling::{
    GraphFeatures, Loader, MemoryRows, NegativeSampler, NeighborSampler, RowType, SampleKey, Seeds,
};

/// All numbers of a module.
#[derive(Default)]
struct Numbers(Vec<f32>);

impl ModuleVisitor for Numbers {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.extend(param.val().into_data().iter::<f32>());
    }
}

fn numbers<M: Module>(model: &M) -> Vec<f32> {
    let mut all = Numbers::default();
    model.visit(&mut all);
    all.0
}

fn plain() -> Device {
    Device::flex()
}

fn autodiff() -> Device {
    Device::flex().autodiff()
}

fn quiet(epochs: usize) -> FitConfig {
    FitConfig::new().with_epochs(epochs).with_progress(false)
}

fn adam() -> ModuleOptimizer {
    FusedAdamConfig::new().with_epsilon(1e-8).init()
}

fn losses<M>(trained: &Trained<M>) -> Vec<f64> {
    trained.history.iter().map(|e| e.loss).collect()
}

/// One step of a loop written out.
fn step<M: Module>(model: M, adam: &mut ModuleOptimizer, loss: Tensor<1>) -> (M, f64) {
    let value = loss.clone().into_scalar::<f64>();
    let grads = GradientsParams::from_grads(loss.backward(), &model);
    (adam.step(0.01, model, grads), value)
}

fn club() -> Graph {
    karate_club().to_graph(&plain()).unwrap()
}

fn gcn(dropout: f64) -> Gcn {
    seeded(3, || GcnConfig::new(34, 2).with_dropout(dropout).init(&autodiff()))
}

#[test]
fn full_graphs() {
    let g = club();
    let task = NodeTask::from_columns(&g, "_N").unwrap();
    let config = quiet(6).with_seed(5);
    let trained = fit(gcn(0.5), &task, &task.train, &task.val, &config).unwrap();
    let (mut model, mut adam, mut expected) = (gcn(0.5), adam(), vec![]);
    for epoch in 0..6 {
        let logits = model.forward(&g.at_step(5, epoch), Tensor::<2>::eye(34, &plain()));
        let loss;
        (model, loss) = step(model, &mut adam, task.train.cross_entropy(logits));
        expected.push(loss);
    }
    assert_eq!(losses(&trained), expected);
    assert_eq!(numbers(&trained.model), numbers(&model));
    assert_eq!((trained.kept_epoch, trained.history[5].val_score), (5, None));
    let evaluation = evaluate(&trained.model, &task, &task.test).unwrap();
    let logits = model.valid().forward(&g, Tensor::<2>::eye(34, &plain()));
    assert_eq!(evaluation.accuracy(), Counts::new(&logits, &task.test).accuracy());
    assert_eq!(evaluation.count(), 32);
}

fn rings() -> Graph {
    Graph::homogeneous(6, vec![0, 1, 2, 3, 4, 5], vec![1, 2, 0, 4, 5, 3]).unwrap()
}

fn ring_loader(g: &Graph, ids: &[u32], size: usize) -> Loader<NeighborSampler, GraphFeatures> {
    let made = || -> Result<_, GraphError> {
        let x = MemoryRows::new(&[1.0, 0.8, 1.2, -1.0, -0.9, -1.1], 1, RowType::F32)?;
        let features = GraphFeatures::new(g, &plain())
            .with_nodes("_N", x)?
            .with_labels("_N", &[0, 0, 0, 1, 1, 1])?;
        let seeds = Seeds::nodes(g, [("_N", ids)])?;
        Ok(Loader::new(NeighborSampler::new(g, [2, 2])?, seeds, size)?.with_features(features))
    };
    made().unwrap()
}

fn sage() -> Sage {
    seeded(1, || SageConfig::new(1, 2).with_hidden(8).init(&autodiff()))
}

#[test]
fn mini_batches() {
    let g = rings();
    let (train, val) = (ring_loader(&g, &[0, 1, 3, 4, 5], 2), ring_loader(&g, &[2], 1));
    let task = SeedTask::classes("_N");
    let trained = fit(sage(), &task, &train, &val, &quiet(4)).unwrap();
    let (mut model, mut adam, mut expected) = (sage(), adam(), vec![]);
    for epoch in 0..4 {
        let mut sum = 0.0;
        for b in train.epoch(epoch) {
            let b = b.unwrap();
            let rows =
                Rows::of_batch(b.seed_rows("_N").unwrap(), b.labels("_N").unwrap(), b.global_seeds)
                    .unwrap();
            let logits = model.forward_blocks(b.blocks(), b.x("_N").unwrap());
            let loss;
            (model, loss) = step(model, &mut adam, rows.cross_entropy(logits));
            sum += loss * rows.total as f64;
        }
        expected.push(sum / 5.0);
    }
    assert_eq!(losses(&trained), expected);
    assert!(trained.history.iter().all(|e| e.val_score.is_some()));
    // The batch size does not change what is measured.
    let of = |size| evaluate(&trained.model, &task, &ring_loader(&g, &[0, 1, 2, 3], size)).unwrap();
    assert_eq!(of(1).accuracy(), of(3).accuracy());
    assert_eq!(of(4).count(), 4);
}

#[test]
fn links() {
    let split = RandomLinkSplit::new().undirected().with_edges("_E");
    let split = split.split(&karate_club().graph, 0).unwrap();
    let [train, val] = [&split.train, &split.val].map(|part| &part.links[0]);
    let g = &split.train.graph;
    let x = Tensor::<2>::eye(34, &plain());
    let encoder = || seeded(0, || GcnConfig::new(34, 8).with_dropout(0.0).init(&autodiff()));
    let task = LinkTask::new(g, [("_N", x.clone())], "_E").unwrap();
    let config = quiet(5).with_seed(2).with_metric(Metric::roc_auc());
    let trained = fit(encoder(), &task, train, val, &config).unwrap();
    let negatives = NegativeSampler::new(g, "_E").unwrap();
    let scores = |z: &Tensor<2>, src: &[u32], dst: &[u32]| -> Tensor<1> {
        (select_rows(z.clone(), src) * select_rows(z.clone(), dst)).sum_dim(1).squeeze_dim(1)
    };
    let (mut model, mut adam, mut expected) = (encoder(), adam(), vec![]);
    for epoch in 0..5 {
        let z = model.forward(g, x.clone());
        let none = negatives.global(train.src.len(), SampleKey::new(2).at(epoch, epoch)).unwrap();
        let positive = log_sigmoid(scores(&z, &train.src, &train.dst)).mean();
        let negative = log_sigmoid(-scores(&z, &none.src, &none.dst)).mean();
        let loss;
        (model, loss) = step(model, &mut adam, -positive - negative);
        expected.push(loss);
        // The validation AUC is that of all pairs at once.
        let z = model.valid().forward(g, x.clone());
        let (src, dst, labels) = val.labelled();
        let is_edge: Vec<bool> = labels.iter().map(|&y| y > 0.5).collect();
        let auc = roc_auc(scores(&z, &src, &dst), &is_edge).unwrap();
        assert_eq!(trained.history[epoch as usize].val_score, Some(auc));
    }
    assert_eq!(losses(&trained), expected);
    // No pairs, no validation.
    let none = Links { src: vec![], dst: vec![], ..val.clone() };
    let trained = fit(encoder(), &task, train, &none, &config).unwrap();
    assert_eq!(trained.history[0].val_score, None);
}

fn chains(sizes: &[u32]) -> LabelledGraphs {
    let graph = |&n: &u32| {
        let mut g = Graph::homogeneous(n as usize, (0..n - 1).collect(), (1..n).collect()).unwrap();
        let x = Tensor::<2>::ones([n as usize, 1], &plain());
        g.nodes_mut("_N").unwrap().insert("x", x).unwrap();
        g
    };
    let graphs: Vec<Graph> = sizes.iter().map(graph).collect();
    let labels = sizes.iter().map(|&n| i64::from(n > 4)).collect();
    LabelledGraphs { graphs: batch(&graphs).unwrap(), labels }
}

#[test]
fn graphs() {
    let train = vec![chains(&[2, 7, 3]), chains(&[6, 4])];
    let gin = || seeded(4, || GinConfig::new(1, 2).with_hidden(4).init(&autodiff()));
    let trained = fit(gin(), &GraphTask, &train, &(), &quiet(3)).unwrap();
    let (mut model, mut adam, mut expected) = (gin(), adam(), vec![]);
    for _ in 0..3 {
        let mut sum = 0.0;
        for LabelledGraphs { graphs, labels } in &train {
            let (g, n) = (graphs.graph(), graphs.num_nodes("_N").unwrap());
            let x = g.nodes("_N").unwrap().get::<2>("x").unwrap();
            let logits = model.forward_graphs(g, x, &Segments::from_lengths(n));
            let loss;
            (model, loss) = step(model, &mut adam, cross_entropy(logits, labels, ..));
            sum += loss * labels.len() as f64;
        }
        expected.push(sum / 5.0);
    }
    assert_eq!(losses(&trained), expected);
    assert_eq!(numbers(&trained.model), numbers(&model.valid()));
}

/// `y = x_0 + x_1`, with one target missing.
fn regression() -> (Tensor<2>, Tensor<2>) {
    let x = Tensor::from_data([[0.0f32, 1.0], [2.0, 1.0], [1.0, 3.0], [9.0, 9.0]], &plain());
    let y = Tensor::from_data([[1.0f32], [3.0], [4.0], [f32::NAN]], &plain());
    (x, y)
}

fn linear() -> Mlp {
    seeded(0, || MlpConfig::new(vec![2, 1]).init(&autodiff()))
}

fn sums(model: &Mlp, xy: &(Tensor<2>, Tensor<2>), _: SampleKey) -> Result<Outcome, ModelError> {
    Outcome::values(model.forward(xy.0.clone()), xy.1.clone())
}

#[test]
fn a_function_is_a_task_and_a_metric() {
    let data = vec![regression()];
    let worst = Metric::minimise("largest error", |all| {
        let errors = all.scores().iter().zip(all.labels()).filter(|(_, y)| !y.is_nan());
        Ok(errors.map(|(x, y)| (x - y).abs()).fold(0.0, f64::max))
    });
    let config = quiet(300).with_lr(0.05).with_metric(worst.clone());
    let trained = fit(linear(), &sums, &data, &data, &config).unwrap();
    let scores: Vec<f64> = trained.history.iter().map(|e| e.val_score.unwrap()).collect();
    let best = scores.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(best < 0.1 && scores[trained.kept_epoch] == best, "{best}");
    assert!(trained.to_string().contains("largest error"), "{trained}");
    let all = evaluate(&trained.model, &sums, &data).unwrap();
    assert_eq!((all.count(), all.score(&worst).unwrap()), (3, best));
    let (rmse, mae) = (all.score(&Metric::rmse()).unwrap(), all.score(&Metric::mae()).unwrap());
    assert!(mae <= rmse && rmse <= best && (rmse * rmse - all.mean_loss()).abs() < 1e-6);
    let text = all.score(&Metric::roc_auc()).unwrap_err().to_string();
    assert!(text.contains("ROC AUC") && text.contains("real values"), "{text}");
    // Without a metric the loss chooses.
    let trained = fit(linear(), &sums, &data, &data, &quiet(2)).unwrap();
    assert_eq!(trained.history[0].metric, "loss");
}

#[test]
fn metrics_of_known_scores() {
    let scores = |values: &[[f64; 2]]| {
        let flat: Vec<f64> = values.concat();
        Tensor::<1>::from_data(&flat[..], &plain()).reshape([values.len(), 2])
    };
    let of = |model: &Mlp, logits: &Tensor<2>, _: SampleKey| {
        let _ = model;
        let rows = Rows::new(&[0, 1, 2, 3], &[0, 1, 1, 0], 2)?;
        Ok::<_, ModelError>(Outcome::classes(logits.clone(), &rows))
    };
    let data = vec![scores(&[[1.0, 0.0], [0.0, 1.0], [1.0, 0.5], [2.0, 2.0]])];
    let all = evaluate(&linear(), &of, &data).unwrap();
    assert_eq!(all.accuracy(), 0.75);
    // Class 0: precision 2/3, recall 1; class 1: precision 1, recall 1/2.
    let f1 = all.score(&Metric::macro_f1()).unwrap();
    assert!((f1 - (0.8 + 2.0 / 3.0) / 2.0).abs() < 1e-12, "{f1}");
    assert_eq!(all.score(&Metric::hits(1)).unwrap(), 0.5);
    assert_eq!(all.score(&Metric::mrr()).unwrap(), (1.0 + 1.0 + 0.5 + 1.0 / 1.5) / 4.0);
    // Differences of logits: -1, 1, -0.5, 0 with labels 0, 1, 1, 0.
    assert_eq!(all.score(&Metric::roc_auc()).unwrap(), 0.75);

    let binary = |_: &Mlp, logits: &Tensor<2>, _: SampleKey| {
        let labels = scores(&[[0.0, 1.0], [1.0, f64::NAN], [1.0, 1.0], [0.0, 1.0]]);
        Outcome::binary(logits.clone(), labels)
    };
    let all = evaluate(&linear(), &binary, &data).unwrap();
    assert_eq!(all.count(), 7);
    // The second column has no 0; the first has scores 1, 0, 1, 2 with labels 0, 1, 1, 0.
    assert_eq!(all.score(&Metric::roc_auc()).unwrap(), 0.125);
}

#[test]
fn class_weights_multiply_losses() {
    let g = club();
    let task = NodeTask::from_columns(&g, "_N").unwrap();
    let (rows, weights) = (&task.train, [0.25f32, 3.0]);
    let trained =
        fit(gcn(0.0), &task, rows, &(), &quiet(3).with_class_weights(weights.to_vec())).unwrap();
    let (mut model, mut adam) = (gcn(0.0), adam());
    for epoch in &trained.history {
        let logits = model.forward(&g, Tensor::<2>::eye(34, &plain()));
        let p = log_softmax(logits, 1);
        let of = |i: usize| {
            let (row, class) = (rows.index[i] as usize, rows.labels[i] as usize);
            p.clone().slice([row..row + 1, class..class + 1]).reshape([1]) * weights[class]
        };
        let loss;
        (model, loss) = step(model, &mut adam, -(of(0) + of(1)) / 2.0);
        assert!((loss - epoch.loss).abs() < 1e-6, "{loss} {}", epoch.loss);
    }
    let text = |w: Vec<f32>| fit(gcn(0.0), &task, rows, &(), &quiet(1).with_class_weights(w));
    assert!(text(vec![1.0, -1.0]).unwrap_err().to_string().contains("`class_weights`"));
}

/// A file of two epochs leads to the bits of four epochs in one run.
#[test]
fn a_resumed_run_is_the_uninterrupted_one() {
    let g = rings();
    let (train, val) = (ring_loader(&g, &[0, 1, 3, 4, 5], 2), ring_loader(&g, &[2, 4], 1));
    let dir = tempfile::tempdir().unwrap();
    let run = |name: &str, epochs: usize, resume: bool| {
        let schedule = CosineAnnealingLrSchedulerConfig::new(0.05, 12).init().unwrap();
        let config = quiet(epochs)
            .with_lr_schedule(schedule)
            .with_checkpoint(dir.path().join(name))
            .with_resume(resume);
        fit(sage(), &SeedTask::classes("_N"), &train, &val, &config).unwrap()
    };
    let bytes = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    let whole = run("whole", 4, true); // there is no file yet
    run("parts", 2, false);
    let again = run("parts", 4, true);
    assert_eq!(again.history, whole.history);
    assert_eq!(again.kept_epoch, whole.kept_epoch);
    assert_eq!(numbers(&again.model), numbers(&whole.model));
    assert!(whole.history[3].lr < whole.history[0].lr);
    // Parameter ids are random, files are not.
    assert!(bytes("parts") == bytes("whole"));
    // A finished run is read, not trained.
    assert_eq!(run("parts", 4, true).history, whole.history);

    let resumed = |file: &Path, metric: Metric| {
        let config = quiet(6).with_checkpoint(file).with_resume(true).with_metric(metric);
        fit(sage(), &SeedTask::classes("_N"), &train, &val, &config)
    };
    let whole = dir.path().join("whole");
    let text = resumed(&whole, Metric::macro_f1()).unwrap_err().to_string();
    assert!(text.contains("metric `accuracy`") && text.contains("whole"), "{text}");
    for damage in 0..50 {
        let mut damaged = bytes("whole");
        let at = damage * damaged.len() / 50;
        damaged[at] ^= 1;
        std::fs::write(dir.path().join("damaged"), &damaged).unwrap();
        let error = resumed(&dir.path().join("damaged"), Metric::accuracy()).unwrap_err();
        assert!(matches!(error, ModelError::Checkpoint { .. }), "{error}");
        std::fs::write(dir.path().join("damaged"), &damaged[..at]).unwrap();
        assert!(resumed(&dir.path().join("damaged"), Metric::accuracy()).is_err());
    }
    let text = fit(sage(), &SeedTask::classes("_N"), &train, &val, &quiet(1).with_resume(true));
    assert!(text.unwrap_err().to_string().contains("`checkpoint`"));
}

/// Half of four epochs: the mean of the third and the fourth.
#[test]
fn averaged_weights_are_the_mean_of_the_last_epochs() {
    let g = rings();
    let (train, val) = (ring_loader(&g, &[0, 1, 3, 4, 5], 2), ring_loader(&g, &[2, 4], 1));
    let task = SeedTask::classes("_N");
    let after =
        |epochs: usize| numbers(&fit(sage(), &task, &train, &(), &quiet(epochs)).unwrap().model);
    let mean = |a: &[f32], b: &[f32]| -> Vec<f32> {
        a.iter().zip(b).map(|(a, b)| a + (b - a) * 0.5).collect()
    };
    let config = |epochs: usize| quiet(epochs).with_weight_averaging(0.5);
    let trained = fit(sage(), &task, &train, &val, &config(4)).unwrap();
    assert_eq!(trained.kept_epoch, 3);
    let (third, fourth) = (after(3), after(4));
    assert_ne!(third, fourth);
    assert_eq!(numbers(&trained.model), mean(&third, &fourth));
    // The mean is what is validated, and it does not need validation.
    let all = evaluate(&trained.model, &task, &val).unwrap();
    assert_eq!(trained.history[3].val_loss, Some(all.mean_loss()));
    let without = fit(sage(), &task, &train, &(), &config(4)).unwrap();
    assert_eq!(numbers(&without.model), numbers(&trained.model));
    // One epoch is its own mean.
    assert_eq!(numbers(&fit(sage(), &task, &train, &(), &config(1)).unwrap().model), after(1));
    // A resumed run has the same bits.
    let dir = tempfile::tempdir().unwrap();
    let saved = |epochs: usize, resume: bool| {
        let config = config(epochs).with_checkpoint(dir.path().join("run")).with_resume(resume);
        fit(sage(), &task, &train, &val, &config).unwrap()
    };
    saved(3, false);
    let resumed = saved(4, true);
    assert_eq!(resumed.history, trained.history);
    assert_eq!(numbers(&resumed.model), numbers(&trained.model));
    // A mean of other epochs is rejected; one that has not begun starts anew.
    let resumed = |share: f64, epochs: usize| {
        let config = quiet(epochs).with_weight_averaging(share);
        let config = config.with_checkpoint(dir.path().join("run")).with_resume(true);
        fit(sage(), &task, &train, &val, &config)
    };
    let text = resumed(0.25, 4).unwrap_err().to_string();
    assert!(text.contains("from epoch 3") && text.contains("from epoch 2"), "{text}");
    assert_eq!(numbers(&resumed(0.2, 5).unwrap().model), after(5));
    for (config, name) in [
        (config(4).with_patience(2), "`patience`"),
        (quiet(4).with_weight_averaging(1.5), "`weight_averaging`"),
    ] {
        let text = fit(sage(), &task, &train, &val, &config).unwrap_err().to_string();
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn early_stopping_keeps_the_best_epoch() {
    // Validation gets worse from the third epoch on.
    let worse = Metric::minimise("distance", |all| Ok((all.scores()[0] - 0.3).abs()));
    let data = vec![regression()];
    let seen = Arc::new(Mutex::new(vec![]));
    let log = seen.clone();
    let config = quiet(100)
        .with_optimizer(SgdConfig::new().init())
        .with_lr(0.01)
        .with_metric(worse)
        .with_patience(3)
        .on_epoch(move |epoch| log.lock().unwrap().push(epoch.epoch));
    let trained = fit(linear(), &sums, &data, &data, &config).unwrap();
    let epochs = trained.history.len();
    assert!(epochs < 100 && trained.kept_epoch + 4 == epochs, "{trained}");
    assert_eq!(*seen.lock().unwrap(), (0..epochs).collect::<Vec<_>>());
    let all = evaluate(&trained.model, &sums, &data).unwrap();
    let kept = trained.history[trained.kept_epoch].val_score.unwrap();
    assert_eq!((all.scores()[0] - 0.3).abs(), kept);
}

#[test]
fn batches_without_rows_train_nothing() {
    let empty = || (Tensor::<2>::zeros([0, 2], &plain()), Tensor::<2>::zeros([0, 1], &plain()));
    let some = vec![regression(), regression()];
    let with_empty = vec![empty(), regression(), empty(), regression()];
    let run = |data: &Vec<_>| fit(linear(), &sums, data, &vec![empty()], &quiet(3));
    let (a, b) = (run(&some).unwrap(), run(&with_empty).unwrap());
    assert_eq!(losses(&a), losses(&b));
    assert_eq!(numbers(&a.model), numbers(&b.model));
    assert_eq!(a.history[0].val_score, None);
    assert!(matches!(run(&vec![empty()]), Err(ModelError::NothingToTrain)));
    assert!(matches!(run(&vec![]), Err(ModelError::NothingToTrain)));
}

#[test]
fn a_loss_that_is_not_finite_names_epoch_and_batch() {
    let (x, y) = regression();
    let huge = (x.clone() * f32::INFINITY, y.clone());
    let batches = move |epoch: u64| {
        let last = if epoch == 2 { huge.clone() } else { (x.clone(), y.clone()) };
        vec![Ok((x.clone(), y.clone())), Ok(last)]
    };
    let error = fit(linear(), &sums, &batches, &(), &quiet(5)).unwrap_err();
    assert!(matches!(error, ModelError::Diverged { epoch: 2, batch: 1, pass: "training", .. }));
    assert!(error.to_string().starts_with("epoch 2, training batch 1: the loss is "), "{error}");
    // An error of a batch is that of the run.
    let failing = |_: u64| vec![Err::<(Tensor<2>, Tensor<2>), _>(ModelError::NothingToTrain)];
    assert!(fit(linear(), &sums, &failing, &(), &quiet(1)).is_err());
}
