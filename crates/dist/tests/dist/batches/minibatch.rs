//! Mini-batch training over parts: losses equal those of one machine, also for a run that was stopped and resumed.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use burn::module::{Module, Param};
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer};
use burn::store::ModuleRecord;
use burn::tensor::{Bytes, DType, Device, Tensor, TensorData};
use burn_gnn_dist::{
    Checkpoint, DistEmbedding, DistError, DistFeatures, DistGraph, DistSampler, EmbeddingElement,
    PartitionedGraph, ReduceOptions, RunState, SparseOptimizer, all_reduce_gradients_with,
    all_reduce_scalar, partition_graph,
};
use burn_gnn_graph::{Graph, Schema};
use burn_gnn_ops::{LossReduction, Stream, copy_u_mean, cross_entropy_rows, matmul_rows};
use burn_gnn_sampling::{Block, Loader, LoaderState, NeighborSampler, Seeds};

use crate::dist_graph::on_ranks;
use crate::graphs::{Sizes, anywhere, devices, kept, random, scattered};
use crate::ranks;
use burn_gnn_testutil::faults::{draw, kills, process};

const SOME: Sizes = Sizes { nodes: [40, 15, 6], edges: [60, 80, 120, 30, 8] };
const HIDDEN: usize = 4;
const CLASSES: usize = 5;
const EPOCHS: u64 = 4;

/// Two layers of means over relations; type `b` has learned embeddings, which are not part of the network.
#[derive(Module, Debug)]
struct Net {
    input: Vec<Param<Tensor<2>>>,
    layers: Vec<Vec<Param<Tensor<2>>>>,
    own: Vec<Param<Tensor<2>>>,
}

impl Net {
    fn new(schema: &Schema, dtype: DType, device: &Device) -> Self {
        let weight = |name: String, from: usize, to: usize| {
            let s = Stream::new(3, &name, 0);
            let v: Vec<f64> =
                (0..from * to).map(|i| 0.5 * s.normal((i / to) as u64, (i % to) as u64)).collect();
            Param::from_tensor(
                Tensor::<2>::from_data(TensorData::new(v, [from, to]), (device, dtype))
                    .require_grad(),
            )
        };
        let out = [HIDDEN, CLASSES];
        Self {
            input: (0..3)
                .map(|t| weight(format!("input{t}"), if t == 1 { HIDDEN } else { 3 }, HIDDEN))
                .collect(),
            layers: (0..2)
                .map(|l| {
                    (0..schema.etypes().len())
                        .map(|e| weight(format!("{l}/{e}"), HIDDEN, out[l]))
                        .collect()
                })
                .collect(),
            own: (0..2).map(|l| weight(format!("own{l}"), HIDDEN, out[l])).collect(),
        }
    }

    /// Sum of cross entropies of the rows of type `a`, over `total`.
    fn loss(
        &self,
        blocks: &[Block],
        x: Vec<Tensor<2>>,
        rows: &[u32],
        labels: &[u32],
        total: usize,
    ) -> Tensor<1> {
        let mut h: Vec<_> =
            x.into_iter().zip(&self.input).map(|(x, w)| matmul_rows(x, w.val()).tanh()).collect();
        for (l, b) in blocks.iter().enumerate() {
            let mut out: Vec<_> = (0..3)
                .map(|t| {
                    matmul_rows(
                        h[t].clone().slice_dim(0, 0..b.dst_nodes(t).len()),
                        self.own[l].val(),
                    )
                })
                .collect();
            for (e, r) in b.relations().iter().enumerate().filter(|(_, r)| r.num_edges() > 0) {
                let (s, d) = b.schema().endpoints(e);
                out[d] = out[d].clone()
                    + copy_u_mean(r, matmul_rows(h[s].clone(), self.layers[l][e].val()));
            }
            h = out.into_iter().map(|h| if l == 0 { h.tanh() } else { h }).collect();
        }
        cross_entropy_rows(
            h.swap_remove(0),
            &rows.into(),
            &labels.into(),
            LossReduction::Over(total),
        )
    }
}

fn start(id: u64, column: usize) -> f64 {
    Stream::new(5, "embedding", 0).normal(id, column as u64)
}

fn train_ids() -> Vec<u32> {
    (0..40).filter(|i| i % 3 != 1).collect()
}

fn label(id: u64) -> u32 {
    (id * 7 % 5) as u32
}

fn value(loss: &Tensor<1>) -> f64 {
    loss.clone().into_data().iter::<f64>().next().unwrap()
}

/// Training on one machine without this crate: embeddings in one table, updated by plain gradients.
fn alone(g: &Graph, dtype: DType, device: &Device, lr: f64) -> Vec<f64> {
    let mut net = Net::new(g.schema(), dtype, device);
    let mut adam = AdamConfig::new().init();
    let mut table: Vec<f64> =
        (0..15).flat_map(|id| (0..HIDDEN).map(move |c| start(id, c))).collect();
    let seeds = Seeds::nodes(g, [("a", train_ids())]).unwrap();
    let loader =
        Loader::new(NeighborSampler::new(g, [3, 2]).unwrap(), seeds, 8).unwrap().with_seed(2);
    let mut losses = vec![];
    for epoch in 0..EPOCHS {
        for b in loader.epoch(epoch) {
            let b = b.unwrap();
            let feat = |t: usize| {
                let x = g.node_frames()[t]
                    .column("feat")
                    .unwrap()
                    .select(b.batch.input_nodes(t))
                    .to_data();
                let x = x.iter::<f64>().collect::<Vec<_>>();
                Tensor::<2>::from_data(
                    TensorData::new(x, [b.batch.input_nodes(t).len(), 3]),
                    (device, dtype),
                )
            };
            let ids = b.batch.input_nodes(1);
            let rows: Vec<f64> =
                ids.iter().flat_map(|&v| table[v as usize * HIDDEN..][..HIDDEN].to_vec()).collect();
            let rows =
                Tensor::<2>::from_data(TensorData::new(rows, [ids.len(), HIDDEN]), (device, dtype))
                    .require_grad();
            let labels: Vec<u32> =
                b.seeds(0).unwrap().iter().map(|&v| label(u64::from(v))).collect();
            let loss = net.loss(
                &b.batch.blocks,
                vec![feat(0), rows.clone(), feat(2)],
                &b.batch.seeds[0],
                &labels,
                labels.len(),
            );
            losses.push(value(&loss));
            let mut grads = loss.backward();
            if let Some(g) = rows.grad(&grads) {
                let g: Vec<f64> = g.into_data().iter::<f64>().collect();
                for (i, &v) in ids.iter().enumerate() {
                    (0..HIDDEN)
                        .for_each(|c| table[v as usize * HIDDEN + c] -= lr * g[i * HIDDEN + c]);
                }
            }
            net = adam.step(0.02, net.clone(), GradientsParams::from_module(&mut grads, &net));
        }
    }
    losses
}

struct Run<'a> {
    dtype: DType,
    optimizer: SparseOptimizer,
    device: &'a Device,
    checkpoint: Option<&'a Path>,
    /// Number of batches after which the run stops.
    stop: usize,
}

fn restored<M: Module>(net: M, adam: ModuleOptimizer, state: &RunState) -> (M, ModuleOptimizer) {
    let bytes = |name: &str| Bytes::from_bytes_vec(state.replicated[name].clone());
    (
        net.load_record(ModuleRecord::from_bytes(bytes("net")).unwrap()),
        adam.from_bytes(bytes("adam")).unwrap(),
    )
}

/// Losses by step, and a value that shows whether all ranks have equal parameters at the end.
type Outcome = (Vec<(u64, f64)>, Vec<u64>);

fn on_rank<E: EmbeddingElement>(
    d: &DistGraph,
    run: &Run<'_>,
    narrow: impl Fn(f64) -> E,
) -> Result<Outcome, DistError> {
    let (device, comm) = (run.device, d.comm().clone());
    let d = d.clone().with_device(device);
    let mut net = Net::new(d.schema(), run.dtype, device);
    let mut adam = AdamConfig::new().init();
    let mut emb = DistEmbedding::<E>::new(
        &d,
        "rows of b",
        HIDDEN,
        d.policy("node~b")?,
        run.optimizer,
        |id, c| narrow(start(id, c)),
    )?;
    let seeds: Vec<u64> = train_ids().iter().map(|&v| u64::from(v)).collect();
    let features = DistFeatures::new(&d).with_nodes("a", "feat")?.with_nodes("c", "feat")?;
    let loader = Loader::new(DistSampler::new(&d, [3, 2])?, d.node_seeds([("a", &seeds)])?, 8)?
        .with_features(features)
        .with_seed(2);
    let checkpoint = run.checkpoint.map(Checkpoint::new);
    let (mut step, mut at) = (0, LoaderState::default());
    if let Some(state) = checkpoint.as_ref().map(|c| c.load(&d, &[&emb])).transpose()?.flatten() {
        (net, adam) = restored(net, adam, &state);
        (step, at) = (state.step, state.loader);
    }
    let (mut losses, mut left) = (vec![], run.stop);
    while at.epoch < EPOCHS {
        let mut epoch = loader.resume(at);
        while let Some(b) = epoch.next() {
            let b = b?;
            if left == 0 {
                return Ok((losses, vec![]));
            }
            left -= 1;
            let rows = emb.rows(b.batch.input_nodes(1), device)?;
            let mut own = 0.0;
            let mut grads = GradientsParams::new();
            let mut learned = (vec![], vec![]);
            if b.num_seeds() > 0 {
                let labels: Vec<u32> = b.batch.mini.blocks[1].original_ids(0)
                    [..b.seeds(0).unwrap().len()]
                    .iter()
                    .map(|&id| label(id))
                    .collect();
                let feat = |t: usize| Tensor::from_inner(b.x(t).unwrap()).cast(run.dtype);
                let x = vec![feat(0), rows.tensor(), feat(2)];
                let loss = net.loss(
                    &b.batch.mini.blocks,
                    x,
                    &b.batch.mini.seeds[0],
                    &labels,
                    b.global_seeds,
                );
                own = value(&loss);
                let mut all = loss.backward();
                if let Some(g) = rows.tensor().grad(&all) {
                    learned = (rows.ids().to_vec(), g.into_data().iter::<E>().collect());
                }
                grads = GradientsParams::from_module(&mut all, &net);
            }
            emb.step_with(&learned.0, &learned.1)?;
            // Tiny buckets, so that there are several.
            let options = ReduceOptions { weight: 1.0, bucket_bytes: 100 };
            let grads = all_reduce_gradients_with(&*comm, &net, grads, options, |_| false)?;
            net = adam.step(0.02, net, grads);
            losses.push((step, all_reduce_scalar(&*comm, "loss", own)?));
            step += 1;
            if let Some(c) = checkpoint.as_ref().filter(|_| step % 3 == 0) {
                let net = net.clone().into_record().into_bytes().unwrap().to_vec();
                let replicated = BTreeMap::from([
                    ("net".to_owned(), net),
                    ("adam".to_owned(), adam.into_bytes().unwrap().to_vec()),
                ]);
                c.save(&d, &RunState { step, loader: epoch.state(), replicated }, &[&emb])?;
            }
        }
        at = LoaderState { epoch: at.epoch + 1, batch: 0 };
    }
    let mut bits = vec![];
    for p in net.input.iter().chain(net.layers.iter().flatten()).chain(&net.own) {
        bits.extend(p.val().into_data().iter::<f64>().map(f64::to_bits));
    }
    Ok((losses, bits))
}

fn train(parts: &PartitionedGraph, run: &Run<'_>) -> Vec<(u64, f64)> {
    train_on(parts, parts.book().num_parts(), run)
}

/// On as many ranks as parts, or as trainers of all parts.
fn train_on(parts: &PartitionedGraph, ranks: usize, run: &Run<'_>) -> Vec<(u64, f64)> {
    let ranks = ranks::run(ranks, |comm| {
        let d = DistGraph::from_partition(
            parts.part(comm.rank() * parts.book().num_parts() / ranks)?,
            comm,
        )?;
        match run.dtype {
            DType::F64 => on_rank::<f64>(&d, run, |x| x),
            _ => on_rank::<f32>(&d, run, |x| x as f32),
        }
    });
    assert!(ranks.iter().all(|r| *r == ranks[0]), "ranks drifted apart");
    ranks.into_iter().next().unwrap().0
}

fn worst(a: &[f64], b: &[(u64, f64)]) -> f64 {
    assert_eq!(a.len(), b.len());
    assert!(b.iter().map(|b| b.0).eq(0..a.len() as u64));
    a.iter().zip(b).map(|(a, b)| ((a - b.1) / a).abs()).fold(0.0, f64::max)
}

/// Sums over parts have another order, so losses differ by at most 1e-9 in f64 and 1e-4 in f32, relative, over all
/// steps.
pub(crate) fn losses_are_those_of_one_machine(n: usize) {
    let g = random(11, SOME);
    for (name, device) in devices() {
        for (dtype, tolerance) in [(DType::F64, 1e-9), (DType::F32, 1e-4)] {
            let expected = alone(&g, dtype, &device, 0.5);
            assert_eq!(expected.len(), 4 * EPOCHS as usize);
            assert!(
                expected[12..].iter().sum::<f64>() < 0.9 * expected[..4].iter().sum::<f64>(),
                "nothing was learned: {expected:?}"
            );
            for parts in [scattered(&g, n, 3), kept(&g, n, 3)] {
                let run = Run {
                    dtype,
                    optimizer: SparseOptimizer::sgd(0.5),
                    device: &device,
                    checkpoint: None,
                    stop: usize::MAX,
                };
                let off = worst(&expected, &train(&parts, &run));
                println!("{name} {dtype:?} {n} ranks: {off:.1e}");
                assert!(off <= tolerance, "{name} {dtype:?} {n} ranks: {off:e}");
            }
        }
    }
}

/// Moments of embeddings do not depend on the owners of the rows.
pub(crate) fn sparse_adam_and_adagrad_do_not_depend_on_the_number_of_ranks(n: usize) {
    let g = random(11, SOME);
    let device = Device::flex().autodiff();
    for optimizer in [SparseOptimizer::adam(0.05), SparseOptimizer::adagrad(0.05)] {
        let run = Run {
            dtype: DType::F64,
            optimizer,
            device: &device,
            checkpoint: None,
            stop: usize::MAX,
        };
        let one: Vec<f64> = train(&scattered(&g, 1, 3), &run).into_iter().map(|l| l.1).collect();
        let off = worst(&one, &train(&scattered(&g, n, 3), &run));
        assert!(off <= 1e-9, "{optimizer:?}, {n} ranks: {off:e}");
    }
}

/// Trainers that share parts have the losses of one trainer per part, which are those of one machine, also after
/// resuming from a checkpoint.
pub(crate) fn trainers_of_a_part_have_the_losses_of_one(n: usize) {
    let (g, device) = (random(11, SOME), Device::flex().autodiff());
    let expected = alone(&g, DType::F64, &device, 0.5);
    fn run<'a>(
        dtype: DType,
        device: &'a Device,
        checkpoint: Option<&'a Path>,
        stop: usize,
    ) -> Run<'a> {
        Run { dtype, optimizer: SparseOptimizer::sgd(0.5), device, checkpoint, stop }
    }
    let whole = run(DType::F64, &device, None, usize::MAX);
    for num_parts in (1..n).filter(|parts| n.is_multiple_of(*parts)) {
        for reshuffle in [true, false] {
            let config = anywhere(&g, num_parts, n / num_parts, 3).with_reshuffle(reshuffle);
            let parts = partition_graph(&g, &config).unwrap();
            let (one, several) = (train(&parts, &whole), train_on(&parts, n, &whole));
            let (alone, of_one) = (
                worst(&expected, &several),
                worst(&one.iter().map(|l| l.1).collect::<Vec<_>>(), &several),
            );
            println!(
                "{num_parts} parts, {n} trainers: {of_one:.1e} off one trainer per part, {alone:.1e} off one machine"
            );
            assert!(
                alone <= 1e-9 && of_one <= 1e-9,
                "{num_parts} parts, {n} trainers: {alone:e}, {of_one:e}"
            );
            // In f32, the dtype of optimizer state in records.
            let dir = ranks::shared_dir();
            let several = train_on(&parts, n, &run(DType::F32, &device, None, usize::MAX));
            let begin = train_on(&parts, n, &run(DType::F32, &device, Some(dir.path()), 7));
            let rest = train_on(&parts, n, &run(DType::F32, &device, Some(dir.path()), usize::MAX));
            assert_eq!((&begin[..], &rest[..]), (&several[..7], &several[6..]));
        }
    }
}

/// A run that stops at any step and is resumed has the losses of an uninterrupted one, bit for bit.
pub(crate) fn a_stopped_run_resumes(n: usize) {
    let g = random(11, SOME);
    let device = Device::flex().autodiff();
    let parts = scattered(&g, n, 3);
    let optimizer = SparseOptimizer::adam(0.05);
    let run = |dir: Option<&Path>, stop| {
        train(&parts, &Run { dtype: DType::F32, optimizer, device: &device, checkpoint: dir, stop })
    };
    let whole = run(None, usize::MAX);
    for stop in [0, 1, 4, 9, 15] {
        let dir = ranks::shared_dir();
        let begin = run(Some(dir.path()), stop);
        assert_eq!(begin, whole[..stop]);
        let rest = run(Some(dir.path()), usize::MAX);
        assert_eq!(rest, whole[stop / 3 * 3..], "stopped after {stop} steps");
        // A second save of the same step, next to the current folder.
        if stop == 15 {
            on_ranks(&parts, |d| {
                let c = Checkpoint::new(dir.path());
                let before = c.load(d, &[])?.unwrap();
                for _ in 0..3 {
                    c.save(d, &before, &[])?;
                    assert_eq!(c.load(d, &[])?, Some(before.clone()));
                }
                Ok(())
            });
        }
        // Only the folder of the manifest remains.
        let folders = std::fs::read_dir(dir.path())
            .unwrap()
            .filter(|e| e.as_ref().unwrap().path().is_dir())
            .count();
        assert_eq!(folders, 1);
    }
}

/// Names the folder of the run that [`a_run_killed_at_any_moment_goes_on`] kills.
const KILLED: &str = "BURN_GNN_KILLED_RUN";

/// Runs in the process to be killed; otherwise does nothing.
#[test]
fn a_run_to_be_killed() {
    if let Some(dir) = std::env::var_os(KILLED) {
        let device = Device::flex().autodiff();
        let optimizer = SparseOptimizer::adam(0.05);
        let run = Run {
            dtype: DType::F32,
            optimizer,
            device: &device,
            checkpoint: Some(Path::new(&dir)),
            stop: usize::MAX,
        };
        train(&scattered(&random(11, SOME), 3, 3), &run);
    }
}

/// After a SIGKILL at any time, the last complete checkpoint is loaded.
#[test]
fn a_run_killed_at_any_moment_goes_on() {
    let (g, device, optimizer) =
        (random(11, SOME), Device::flex().autodiff(), SparseOptimizer::adam(0.05));
    let parts = scattered(&g, 3, 3);
    let run = |dir: Option<&Path>| {
        train(
            &parts,
            &Run {
                dtype: DType::F32,
                optimizer,
                device: &device,
                checkpoint: dir,
                stop: usize::MAX,
            },
        )
    };
    let start = Instant::now();
    let whole = run(None);
    let (took, rounds) = (start.elapsed(), kills().div_ceil(2));
    let (mut went_on, mut steps) = (0, 0);
    for round in 0..rounds {
        let dir = tempfile::tempdir().unwrap();
        for second in 0..2 {
            let mut child = process("batches::minibatch::a_run_to_be_killed")
                .env(KILLED, dir.path())
                .spawn()
                .unwrap();
            // From before the first step to after the last one, which takes longer with checkpoints.
            std::thread::sleep(took.mul_f64(3.0 * draw("training", 2 * round + second)));
            // The run may already have finished.
            let _ = child.kill();
            child.wait().unwrap();
        }
        // A finished run has no steps left.
        let rest = run(Some(dir.path()));
        let first = rest.first().map_or(whole.len(), |r| r.0 as usize);
        went_on += u64::from(first > 0);
        steps += first;
        assert_eq!(rest, whole[first..]);
    }
    println!(
        "training: {} kills, {went_on} of {rounds} runs went on from a checkpoint, {steps} steps in all; losses were those of one run",
        2 * rounds
    );
}

#[test]
fn damaged_checkpoints_and_those_of_another_run_are_errors() {
    let g = random(11, SOME);
    let device = Device::flex().autodiff();
    let dir = tempfile::tempdir().unwrap();
    let run = |stop| Run {
        dtype: DType::F32,
        optimizer: SparseOptimizer::adam(0.05),
        device: &device,
        checkpoint: Some(dir.path()),
        stop,
    };
    train(&scattered(&g, 3, 3), &run(4));
    let load = |parts: &PartitionedGraph, name: &str, adam: bool| {
        let errors = on_ranks(parts, |d| {
            let optimizer =
                if adam { SparseOptimizer::adam(0.05) } else { SparseOptimizer::sgd(1.0) };
            let emb = DistEmbedding::<f32>::new(
                d,
                name,
                HIDDEN,
                d.policy("node~b")?,
                optimizer,
                |_, _| 0.0,
            )?;
            Ok(Checkpoint::new(dir.path())
                .load(d, &[&emb])
                .map(|s| s.map(|s| s.step))
                .map_err(|e| e.to_string()))
        });
        assert!(errors.iter().all(|e| e.is_ok() == errors[0].is_ok()), "{errors:?}");
        errors.into_iter().next().unwrap()
    };
    let here = || scattered(&g, 3, 3);
    assert_eq!(load(&here(), "rows of b", true), Ok(Some(3)));
    let e = load(&scattered(&g, 2, 3), "rows of b", true).unwrap_err();
    assert!(
        e.contains(
            "made with parts 3, this run has 2; rows are stored by part: start as many ranks"
        ),
        "{e}"
    );
    let e = load(&scattered(&g, 3, 4), "rows of b", true).unwrap_err();
    assert!(e.contains("made with partitioning "), "{e}");
    let e = load(&here(), "other", true).unwrap_err();
    assert!(e.contains("no tensor `other/rows`; there are "), "{e}");
    let e = load(&here(), "rows of b", false).unwrap_err();
    assert!(e.contains("`rows of b/steps`: expected 0 numbers of U32"), "{e}");

    let folder = dir.path().join("step-3");
    for (file, who) in [("rank1.safetensors", "rank1"), ("shared.safetensors", "shared")] {
        let path = folder.join(file);
        let good = std::fs::read(&path).unwrap();
        let mut bad = good.clone();
        *bad.last_mut().unwrap() ^= 1;
        for damage in [bad, good[..good.len() - 1].to_vec(), vec![]] {
            std::fs::write(&path, damage).unwrap();
            let e = load(&here(), "rows of b", true).unwrap_err();
            assert!(e.contains(who) && e.contains("damaged: "), "{e}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(load(&here(), "rows of b", true).is_err());
        std::fs::write(&path, good).unwrap();
    }
    let manifest = dir.path().join("checkpoint.json");
    let good = std::fs::read_to_string(&manifest).unwrap();
    for bad in [
        "",
        "{",
        "{}",
        &good.replace("\"format_version\": 2", "\"format_version\": 7"),
        &good.replace("step-3", "../x"),
    ] {
        std::fs::write(&manifest, bad).unwrap();
        assert!(load(&here(), "rows of b", true).is_err(), "{bad}");
    }
    std::fs::remove_file(&manifest).unwrap();
    assert_eq!(
        load(&here(), "rows of b", true),
        Ok(None),
        "a folder without manifest holds no checkpoint"
    );
}
