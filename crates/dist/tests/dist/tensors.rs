//! Distributed tensors, policies, embeddings and their optimizers.

use std::time::Duration;

use burn::tensor::Tensor;
use burn_gnn_dist::{
    DistEmbedding, DistError, DistFeatures, DistGraph, DistSampler, DistTensor, Failure,
    PartitionedGraph, Ranks, SparseOptimizer,
};
use burn_gnn_ops::Stream;
use burn_gnn_sampling::Loader;
use proptest::prelude::*;

use crate::dist_graph::on_ranks;
use crate::graphs::{Sizes, devices, kept, random, scattered};

const SOME: Sizes = Sizes { nodes: [21, 12, 5], edges: [60, 40, 90, 12, 8] };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_tensor_is_one_list(parts in 1usize..5, seed in 0u64..1000, width in 0usize..4, reshuffle: bool) {
        let g = random(1, SOME);
        same_lists(&if reshuffle { scattered(&g, parts, seed) } else { kept(&g, parts, seed) }, width, seed);
    }
}

/// The property above for some tensors.
pub(crate) fn one_list(n: usize) {
    let g = random(1, SOME);
    for (width, seed) in [(0, 3), (1, 4), (3, 5)] {
        same_lists(&scattered(&g, n, seed), width, seed);
        same_lists(&kept(&g, n, seed), width, seed);
    }
}

/// Compares the calls of all ranks, in rank order, with operations on one list.
fn same_lists(parts: &PartitionedGraph, width: usize, seed: u64) {
    let calls = |rank: usize, round: u64| -> (Vec<u64>, Vec<f32>) {
        let s = Stream::new(seed, "calls", 100 * rank as u64 + round);
        let n = (s.uniform(0, 0) * 9.0) as u64;
        let ids = (0..n).map(|i| (s.uniform(i, 1) * 21.0) as u64).collect();
        (ids, (0..n * width as u64).map(|i| s.normal(i, 2) as f32).collect())
    };
    let init = |id: u64, c: usize| (id * 10 + c as u64) as f32;
    // In ids of the partitioning.
    let entries = (0..21).flat_map(|i| (0..width).map(move |c| (i, c)));
    let mut list: Vec<f32> =
        entries.map(|(i, c)| init(u64::from(parts.original_nids(0)[i]), c)).collect();
    let mut after = vec![];
    for round in 0..4 {
        for rank in 0..parts.book().num_parts() {
            let (ids, values) = calls(rank, round);
            for (i, &id) in ids.iter().enumerate() {
                for c in 0..width {
                    let (at, v) = (id as usize * width + c, values[i * width + c]);
                    list[at] = if round % 2 == 0 { list[at] + v } else { v };
                }
            }
        }
        after.push(list.clone());
    }
    on_ranks(parts, |d| {
        let t = DistTensor::<f32>::new(d, "t", &[21, width], None, init)?;
        for (round, list) in (0..).zip(&after) {
            let (ids, values) = calls(d.comm().rank(), round);
            if round % 2 == 0 {
                t.add(&ids, &values)?
            } else {
                t.set(&ids, &values)?
            }
            let all: Vec<u64> = (0..21).chain([3, 3]).collect();
            let row = &list[3 * width..4 * width];
            let expected = [&list[..], row, row].concat();
            let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&t.get(&all)?), bits(&expected));
        }
        Ok(())
    });
}

pub(crate) fn policies_are_those_of_the_open_graph(n: usize) {
    let g = random(1, SOME);
    let parts = scattered(&g, n, 3);
    on_ranks(&parts, |d| {
        let zeros = |name: &str, rows: usize, policy: Option<&str>| {
            DistTensor::<i64>::zeros(d, name, &[rows, 2], policy.map(|p| d.policy(p)).transpose()?)
        };
        assert_eq!(d.policy_name(zeros("nodes", 21, None)?.policy()), "node~a");
        assert_eq!(d.policy_name(zeros("edges", 90, None)?.policy()), "edge~a:self:a");
        // Type `b` has as many nodes as one relation has edges.
        let e = zeros("two", 12, None).unwrap_err();
        assert!(
            matches!(&e, DistError::Policy { rows: 12, candidates, .. } if *candidates == ["node~b", "edge~c:to:a"]),
            "{e}"
        );
        assert_eq!(
            e.to_string(),
            "tensor `two`: several types of the graph have 12 rows: [\"node~b\", \"edge~c:to:a\"]; name the policy"
        );
        assert_eq!(d.policy_name(zeros("two", 12, Some("edge~c:to:a"))?.policy()), "edge~c:to:a");
        let e = zeros("none", 1000, None).unwrap_err();
        assert_eq!(
            e.to_string(),
            "tensor `none`: no type of the graph has 1000 rows; name the policy"
        );
        let e = zeros("new", 3, Some("node~new")).unwrap_err();
        assert!(matches!(&e, DistError::UnknownPolicy { known, .. } if known.len() == 8), "{e}");
        assert!(e.to_string().contains("one policy per type of the graph"), "{e}");
        assert!(matches!(
            zeros("rows", 20, Some("node~a")),
            Err(DistError::Config { arg: "shape", .. })
        ));
        assert!(matches!(
            DistTensor::<f32>::zeros(d, "flat", &[], None),
            Err(DistError::Config { arg: "shape", .. })
        ));
        // An error of one rank is an error on all ranks.
        let bad = d.comm().rank() == 1;
        let e = zeros("odd", if bad { 12 } else { 21 }, None).unwrap_err();
        assert!(if bad {
            matches!(e, DistError::Policy { .. })
        } else {
            matches!(e, DistError::Rank(Failure { rank: 1, .. }))
        });
        let e = zeros(if bad { "x" } else { "y" }, 21, None).unwrap_err().to_string();
        assert!(e.contains("must be the same on all ranks"), "{e}");
        let t = zeros("t", 21, None)?;
        assert!(t.get(&[if bad { 21 } else { 0 }]).is_err());
        assert!(t.set(&[0], if bad { &[1] } else { &[1, 2] }).is_err());
        assert!(t.get_tensor::<3>(&[0]).is_err());
        assert_eq!(t.get(&[0])?, [0, 0], "a failed call writes nothing");
        Ok(())
    });
}

pub(crate) fn names_are_handles_and_persistent_tensors_stay(n: usize) {
    let g = random(1, SOME);
    let parts = scattered(&g, n, 3);
    on_ranks(&parts, |d| {
        let make = |start: f64| DistTensor::<f64>::new(d, "t", &[21], None, |_, _| start);
        let one = make(1.0)?;
        let again = make(2.0)?; // alive: another handle
        again.add(&[5], &[1.0])?;
        assert_eq!(one.get(&[5])?, [1.0 + d.comm().size() as f64]);
        assert!(matches!(
            DistTensor::<f32>::zeros(d, "t", &[21], None),
            Err(DistError::Config { arg: "name", .. })
        ));
        drop((one, again));
        assert_eq!(make(3.0)?.get(&[5])?, [3.0], "gone with its last handle");
        drop(make(4.0)?.persistent());
        let kept = make(5.0)?;
        assert_eq!(kept.get(&[5])?, [4.0]);
        drop(kept.transient());
        assert_eq!(make(6.0)?.get(&[5])?, [6.0]);
        Ok(())
    });
}

/// The formulas on one list of rows, with summed gradients.
struct Reference {
    rows: Vec<f64>,
    m: Vec<f64>,
    v: Vec<f64>,
    /// Number of steps so far.
    t: i32,
}

impl Reference {
    fn step(&mut self, optimizer: SparseOptimizer, grads: &[(u64, [f64; 2])]) {
        self.t += 1;
        for row in 0..21u64 {
            let of: Vec<_> = grads.iter().filter(|g| g.0 == row).collect();
            if of.is_empty() {
                continue;
            }
            for c in 0..2 {
                let g: f64 = of.iter().map(|g| g.1[c]).sum();
                let i = row as usize * 2 + c;
                self.rows[i] -= match optimizer {
                    SparseOptimizer::Sgd { lr } => lr * g,
                    SparseOptimizer::Adagrad { lr, epsilon } => {
                        self.v[i] += g * g;
                        lr * g / (self.v[i].sqrt() + epsilon)
                    }
                    SparseOptimizer::Adam { lr, beta_1, beta_2, epsilon } => {
                        self.m[i] = beta_1 * self.m[i] + (1.0 - beta_1) * g;
                        self.v[i] = beta_2 * self.v[i] + (1.0 - beta_2) * g * g;
                        let t = self.t;
                        lr * (self.m[i] / (1.0 - beta_1.powi(t)))
                            / ((self.v[i] / (1.0 - beta_2.powi(t))).sqrt() + epsilon)
                    }
                };
            }
        }
    }
}

/// Gradients of the same row, repeated or from several ranks, are summed; rows without a gradient do not change.
pub(crate) fn sparse_steps_are_the_formulas(n: usize) {
    let g = random(1, SOME);
    for optimizer in
        [SparseOptimizer::sgd(0.3), SparseOptimizer::adagrad(0.3), SparseOptimizer::adam(0.3)]
    {
        let parts = scattered(&g, n, 3);
        // Few ids, so that ranks share some; none on the last of several ranks.
        let grads = |rank: usize, round: u64| -> Vec<(u64, [f64; 2])> {
            let s = Stream::new(7, "grads", 10 * rank as u64 + round);
            let count = if rank == 3 { 0 } else { 8 };
            (0..count)
                .map(|i| ((s.uniform(i, 0) * 15.0) as u64, [s.normal(i, 1), s.normal(i, 2)]))
                .collect()
        };
        let start = |id: u64, c: usize| id as f64 - c as f64;
        let rows = (0..21)
            .flat_map(|i| [0, 1].map(|c| start(u64::from(parts.original_nids(0)[i]), c)))
            .collect();
        let mut reference = Reference { rows, m: vec![0.0; 42], v: vec![0.0; 42], t: 0 };
        let before = reference.rows.clone();
        for round in 0..5 {
            let all: Vec<_> = (0..n).flat_map(|rank| grads(rank, round)).collect();
            reference.step(optimizer, &all);
        }
        let tables = on_ranks(&parts, |d| {
            let mut emb =
                DistEmbedding::<f64>::new(d, "emb", 2, d.policy("node~a")?, optimizer, start)?;
            for round in 0..5 {
                let (ids, values): (Vec<u64>, Vec<[f64; 2]>) =
                    grads(d.comm().rank(), round).into_iter().unzip();
                emb.step_with(&ids, values.as_flattened())?;
            }
            emb.tensor().get(&(0..21).collect::<Vec<_>>())
        });
        for table in &tables {
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * (1.0 + b.abs());
            assert!(table.iter().zip(&reference.rows).all(near), "{optimizer:?} on {n} ranks");
            assert_eq!(table[30..], before[30..], "rows 15 and on got no gradient");
            assert_ne!(table[..30], before[..30]);
        }
    }
}

pub(crate) fn gradients_of_rows_are_sent_back_to_the_owner(n: usize) {
    let g = random(1, SOME);
    let parts = scattered(&g, n, 3);
    for (name, device) in devices() {
        on_ranks(&parts, |d| {
            let mut emb = DistEmbedding::<f32>::new(
                d,
                "emb",
                2,
                d.policy("node~b")?,
                SparseOptimizer::sgd(1.0),
                |id, c| (id * 2 + c as u64) as f32,
            )?;
            let original = |id: u64| f64::from(parts.original_nids(1)[id as usize]);
            let rows = emb.rows(&[0, 11, 0], &device)?;
            assert_eq!((rows.ids(), rows.tensor().dims()), (&[0, 11, 0][..], [3, 2]));
            let weight = Tensor::<2>::from_data([[1.0], [10.0], [100.0]], &device.clone().inner());
            let grads = (rows.tensor() * Tensor::from_inner(weight)).sum().backward();
            emb.step(&[rows], &grads)?;
            let got = emb.tensor().get_tensor::<2>(&[0, 11, 5])?.into_data();
            let expected = [(0, 303.0), (11, 30.0), (5, 0.0)]
                .iter()
                .flat_map(|&(id, g)| [0.0, 1.0].map(|c| (original(id) * 2.0 + c - g) as f32));
            assert_eq!(
                got.iter::<f32>().collect::<Vec<_>>(),
                expected.collect::<Vec<_>>(),
                "{name}"
            );
            assert!(
                !emb.rows(&[0], &device.clone().inner())?.tensor().is_autodiff(),
                "to look at, not to learn"
            );
            // A rank without rows takes part.
            let some = if d.comm().rank() == 0 {
                vec![emb.rows(&[1], &device)?]
            } else {
                emb.rows(&[], &device).map(|_| vec![])?
            };
            let grads = Tensor::<1>::from_data([0.0], &device).require_grad().sum().backward();
            emb.step(&some, &grads)?;
            emb.set_lr(0.1)?;
            assert!(emb.set_lr(-1.0).is_err());
            let bad = SparseOptimizer::Adam { lr: 0.1, beta_1: 1.0, beta_2: 0.9, epsilon: 1e-8 };
            let e = DistEmbedding::<f32>::new(d, "bad", 2, d.policy("node~b")?, bad, |_, _| 0.0)
                .unwrap_err()
                .to_string();
            assert!(e.contains("`beta_1`: expected a number in 0.0..1.0, got 1"), "{e}");
            Ok(())
        });
    }
}

/// A thread reads a tensor over a separate communicator while the main thread writes to it. On rank 1 the reader
/// starts after a later collective call of the main threads, which rank 0 must not block.
#[test]
fn a_waiting_read_does_not_block_writes() {
    let parts = scattered(&random(1, SOME), 2, 3);
    let run = Ranks::new(2).timeout(Duration::from_secs(60)).run(|comm| {
        let rank = comm.rank();
        let other = comm.duplicate("reader")?;
        let d = DistGraph::from_partition(parts.part(rank)?, comm)?;
        let t = DistTensor::<i64>::zeros(&d, "t", &[21], None)?.persistent();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let d_reader = d.clone().with_communicator(other);
        std::thread::scope(|s| {
            let reader = s.spawn(move || {
                let t = DistTensor::<i64>::zeros(&d_reader, "t", &[21], None)?;
                if rank == 1 {
                    _ = wait.recv();
                }
                t.get(&(0..21).collect::<Vec<_>>())
            });
            // Gives the reader of rank 0 time to enter its call; otherwise the test shows nothing.
            std::thread::sleep(Duration::from_millis(200));
            t.add(&[3, 20], &[1, 1])?;
            d.comm().barrier("after the write")?;
            _ = go.send(());
            let read = reader.join().expect("the reader does not panic")?;
            assert!(read.iter().all(|x| (0..=2).contains(x)));
            Ok::<_, DistError>(())
        })
    });
    run.unwrap();
}

/// A tensor and an embedding as columns of nodes and edges: reads by id and by loaders return the current values,
/// and the graph holds them.
pub(crate) fn tensors_are_feature_columns(n: usize) {
    let g = random(1, SOME);
    for parts in [scattered(&g, n, 3), kept(&g, n, 3)] {
        on_ranks(&parts, |d| {
            let original = |id: u64| u64::from(parts.original_nids(0)[id as usize]);
            let all: Vec<u64> = (0..21).rev().collect();
            let t = DistTensor::<f32>::new(d, "t", &[21, 2], None, |id, c| {
                (10 * id + c as u64) as f32
            })?;
            d.nodes("a").insert("feat1", &t)?;
            assert!(d.nodes("a").columns()?.contains(&"feat1".to_owned()));
            let read = || {
                Ok::<_, DistError>(
                    d.nodes("a")
                        .data("feat1")
                        .gather::<2>(&all)?
                        .into_data()
                        .iter::<f32>()
                        .collect::<Vec<_>>(),
                )
            };
            let expected = |plus: f32| {
                all.iter()
                    .flat_map(|&id| [0, 1].map(|c| (10 * original(id) + c) as f32 + plus))
                    .collect::<Vec<_>>()
            };
            assert_eq!(read()?, expected(0.0));
            // The column shows the written values, also after all handles are dropped.
            let ones = if d.comm().rank() == 0 { vec![1.0; 42] } else { vec![] };
            t.add(if d.comm().rank() == 0 { &all } else { &[] }, &ones)?;
            drop(t);
            assert_eq!(read()?, expected(1.0));

            // A loader reads learned rows again for each batch; caches skip them.
            let mut emb = DistEmbedding::<f32>::new(
                d,
                "emb",
                3,
                d.policy("node~c")?,
                SparseOptimizer::sgd(1.0),
                |id, _| id as f32,
            )?;
            d.nodes("c").insert("learned", &emb)?;
            let seeds: Vec<u64> = (0..21).collect();
            let features =
                DistFeatures::new(d).with_nodes("a", "feat1")?.with_nodes("c", "learned")?;
            let features = features.with_nodes("b", "feat")?.with_cache(5)?;
            assert_eq!(features.caches().len(), 1, "one for the stored column");
            let loader =
                Loader::new(DistSampler::new(d, [-1])?, d.node_seeds([("a", &seeds)])?, 21)?;
            let loader = loader.with_features(features).with_prefetch(0);
            for step in 0..2u64 {
                for b in loader.epoch(step) {
                    let b = b?;
                    let of =
                        |t: usize| b.x(t).unwrap().into_data().iter::<f32>().collect::<Vec<_>>();
                    let a: Vec<f32> = b
                        .batch
                        .input_nodes(0)
                        .iter()
                        .flat_map(|&id| [1, 2].map(|c| (10 * original(id) + c) as f32))
                        .collect();
                    let c = |id: u64| {
                        f32::from(parts.original_nids(2)[id as usize] as u16) - step as f32
                    };
                    assert_eq!(of(0), a);
                    assert_eq!(
                        of(2),
                        b.batch
                            .input_nodes(2)
                            .iter()
                            .flat_map(|&id| [c(id); 3])
                            .collect::<Vec<_>>()
                    );
                }
                // One less everywhere.
                let ids: Vec<u64> = if d.comm().rank() == 0 { (0..5).collect() } else { vec![] };
                emb.step_with(&ids, &vec![1.0; 3 * ids.len()])?;
            }

            let w = DistTensor::<i64>::new(d, "w", &[90], None, |id, _| id as i64)?;
            d.edges("self").insert("number", &w)?;
            let ids = d
                .edges("self")
                .data("number")
                .gather_int::<1>(&[89, 0])?
                .into_data()
                .iter::<i64>()
                .collect::<Vec<_>>();
            assert_eq!(
                ids,
                [89, 0].map(|id| i64::from(
                    parts.original_eids(d.schema().etype("self").unwrap())[id]
                ))
            );

            // Loaders read it on each batch, samplers copy its current values.
            assert!(DistFeatures::new(d).with_edges("self", "number").is_ok());
            assert!(DistSampler::new(d, [1])?.with_times("self", "number").is_ok());

            // An error on all ranks; the next call works.
            let text = |r: Result<(), DistError>| r.unwrap_err().to_string();
            assert!(
                text(d.nodes("b").insert("w", &w))
                    .contains("`tensor`: expected a tensor with the policy `node~b`, got tensor `w` of `edge~a:self:a`")
            );
            let nodes = DistTensor::<f32>::zeros(d, "t", &[21, 2], None)?;
            assert!(text(d.nodes("a").insert("feat", &nodes)).contains(
                "`column`: expected a name that no stored column of `node~a` has, got `feat`"
            ));
            assert!(
                text(d.feature_cache("a", "feat1", 3).map(drop))
                    .contains("leave it out of the cache")
            );
            let other = if d.comm().rank() == 0 { "x" } else { "y" };
            assert_eq!(d.nodes("a").insert(other, &nodes).is_err(), n > 1);
            assert!(d.nodes("a").remove("feat1")? && !d.nodes("a").remove("feat1")?);
            assert!(read().is_err());
            Ok(())
        });
    }
}
