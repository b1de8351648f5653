//! Parts in files, each opened only by its rank, give the training and samples of the graph in
//! memory.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use burn::tensor::{Bool, DType, Device, FloatDType, Int, Tensor, TensorData};
use burn_gnn::dist::{Communicator, DistGraph, DistSampler, LocalPartition, Partition, run_ranks};
use burn_gnn::graph::Graph;
use burn_gnn::models::{
    Epoch, FitConfig, GcnConfig, NodeClassifier, NodeTask, SageConfig, fit, fit_on_ranks, seeded,
    to_dtype,
};
use burn_gnn::ops::Stream;
use burn_gnn::ranks::{RankSync, stored_partition};
use burn_gnn::sampling::{MiniBatch, NeighborSampler, SampleKey, Strategy};
use burn_gnn::store::{Assignment, CscBuild, EdgeResults, SelfLoops, StoredCsc};

const NODES: usize = 60;
const WIDTH: usize = 5;

/// Unsorted edges with self loops, parallel edges and weights.
struct Edges {
    src: Vec<u32>,
    dst: Vec<u32>,
    weights: Vec<f32>,
}

fn edges(seed: u64) -> Edges {
    let s = Stream::new(seed, "edges", 0);
    // Skewed, so that some nodes have no in-edges.
    let node = |e: u64, side: u64| (s.uniform(e, side).powi(2) * NODES as f64) as u32;
    let (mut src, mut dst): (Vec<u32>, Vec<u32>) =
        (0..400).map(|e| (node(e, 0), node(e, 1))).unzip();
    src.extend([3, 3, 7]);
    dst.extend([3, 4, 7]);
    let weights = (0..src.len() as u64).map(|e| 0.5 + s.uniform(e, 2) as f32).collect();
    Edges { src, dst, weights }
}

impl Edges {
    /// Sorts stably by destination: the order of a file without edge ids.
    fn sorted(&self) -> Self {
        let mut order: Vec<usize> = (0..self.src.len()).collect();
        order.sort_by_key(|&e| self.dst[e]);
        let by = |of: &[u32]| order.iter().map(|&e| of[e]).collect();
        Self {
            src: by(&self.src),
            dst: by(&self.dst),
            weights: order.iter().map(|&e| self.weights[e]).collect(),
        }
    }
    fn write(&self, dir: &Path, part_of: &[u32], parts: usize, with_ids: bool) {
        let file = dir.join("graph.csc");
        let build = CscBuild::new(&file, NODES, NODES).with_weights();
        let build = if with_ids { build.with_edge_ids() } else { build };
        let edges =
            (0..self.src.len()).map(|e| Ok((self.src[e], self.dst[e], Some(self.weights[e]))));
        build.run(EdgeResults::new(edges)).unwrap();
        let csc = StoredCsc::open(&file).unwrap();
        Assignment::new(part_of.to_vec(), parts).unwrap().write(&csc, dir.join("parts")).unwrap();
        std::fs::remove_file(file).unwrap();
    }
}

pub(super) fn features(name: &str, size: usize, ids: &[u64]) -> TensorData {
    let s = Stream::new(9, name, 0);
    let x = ids.iter().flat_map(|&v| (0..size as u64).map(move |i| s.uniform(v, i) - 0.5));
    TensorData::new(x.collect::<Vec<f64>>(), [ids.len(), size])
}

pub(super) fn labels(ids: &[u64]) -> TensorData {
    TensorData::new(ids.iter().map(|&v| (v * 7 % 3) as i64).collect(), [ids.len()])
}

pub(super) fn mask(ids: &[u64]) -> TensorData {
    TensorData::new(ids.iter().map(|&v| v % 2 == 0).collect(), [ids.len()])
}

fn part_with_columns(dir: &Path, comm: &dyn Communicator) -> Result<Partition> {
    let part = stored_partition(dir.join("parts"), "random", comm)?;
    let ids = part.inner_nids("_N").to_vec();
    let part = part
        .with_node_column("_N", "x", features("features", WIDTH, &ids))?
        .with_node_column("_N", "y", labels(&ids))?;
    Ok(part.with_node_column("_N", "train_mask", mask(&ids))?)
}

pub(super) fn losses(history: &[Epoch]) -> Vec<f64> {
    history.iter().map(|e| e.loss).collect()
}

/// Number of the case, number of parts, and whether files have edge ids.
const CASES: [(u64, usize, bool); 4] = [(0, 1, false), (1, 2, true), (2, 3, false), (3, 3, true)];

/// The files of a case, and its graph in memory.
fn case((seed, parts, with_ids): (u64, usize, bool)) -> (tempfile::TempDir, Edges) {
    let all = edges(seed);
    let s = Stream::new(seed, "parts", 0);
    let part_of: Vec<u32> =
        (0..NODES as u64).map(|v| (s.uniform(v, 0) * parts as f64) as u32).collect();
    let dir = tempfile::tempdir().unwrap();
    all.write(dir.path(), &part_of, parts, with_ids);
    (dir, if with_ids { all } else { all.sorted() })
}

/// Losses of `parts` ranks that open files equal those of the graph in memory, up to 1e-9 in f64.
fn losses_are_equal<M: NodeClassifier + Send>(what: &str, build: impl Fn(&Device) -> M + Sync) {
    let device = Device::flex();
    let config = FitConfig::new().with_epochs(8).with_progress(false);
    let model =
        || to_dtype(seeded(config.seed, || build(&device.clone().autodiff())), FloatDType::F64);
    for of in CASES {
        let (dir, Edges { src, dst, .. }) = case(of);
        let parts = of.1;
        let mut g = Graph::homogeneous(NODES, src, dst).unwrap();
        let ids: Vec<u64> = (0..NODES as u64).collect();
        let frame = g.nodes_mut("_N").unwrap();
        frame
            .insert(
                "x",
                Tensor::<2>::from_data(features("features", WIDTH, &ids), (&device, DType::F64)),
            )
            .unwrap();
        frame.insert("y", Tensor::<1, Int>::from_data(labels(&ids), &device)).unwrap();
        frame.insert("train_mask", Tensor::<1, Bool>::from_data(mask(&ids), &device)).unwrap();
        let task = NodeTask::from_columns(&g, "_N").unwrap();
        let one = losses(&fit(model(), &task, &task.train, &task.val, &config).unwrap().history);
        assert!(one[7] < one[0], "{what}: {one:?}");

        let rank = |comm: Arc<dyn Communicator>| -> Result<Vec<f64>> {
            let part = LocalPartition::new(
                &part_with_columns(dir.path(), &*comm)?,
                comm.clone(),
                &device,
            )?;
            let sync = RankSync::new(comm);
            let task = NodeTask::on_ranks(&part, "_N", &sync)?;
            Ok(losses(
                &fit_on_ranks(model(), &task, &task.train, &task.val, &config, &sync)?.history,
            ))
        };
        for many in run_ranks(parts, |comm| rank(comm).map_err(|e| format!("{e:#}"))).unwrap() {
            let worst =
                one.iter().zip(&many).map(|(a, b)| (a - b).abs() / a.abs()).fold(0.0, f64::max);
            assert!(worst <= 1e-9, "{what} on {parts} parts: {worst:e}: {one:?}, {many:?}");
        }
    }
}

#[test]
fn losses_of_stored_parts_are_those_in_memory() {
    losses_are_equal("gcn", |device| {
        GcnConfig::new(WIDTH, 3).with_hidden(8).with_dropout(0.3).init(device)
    });
    losses_are_equal("sage", |device| {
        SageConfig::new(WIDTH, 3).with_hidden(8).with_dropout(0.3).init(device)
    });
}

/// Returns nodes and edges of all blocks, in ids of the whole graph.
fn content(batch: &MiniBatch) -> Vec<Vec<u64>> {
    let wide = |ids: &[u32]| ids.iter().map(|&v| u64::from(v)).collect::<Vec<_>>();
    let of_block = |b: &burn_gnn::sampling::Block| {
        let [src, dst] = [wide(b.relations()[0].src()), wide(b.relations()[0].dst())];
        [
            b.original_ids(0).to_vec(),
            vec![b.dst_nodes(0).len() as u64],
            b.original_edge_ids(0).to_vec(),
            src,
            dst,
        ]
    };
    batch.blocks.iter().flat_map(of_block).collect()
}

#[test]
fn batches_of_stored_parts_are_those_in_memory() {
    for of in CASES {
        let (dir, Edges { src, dst, weights }) = case(of);
        let mut g = Graph::homogeneous(NODES, src, dst).unwrap();
        let n = weights.len();
        let device = Device::flex();
        let column = Tensor::<1>::from_data(TensorData::new(weights, [n]), &device);
        g.edges_mut("_E").unwrap().insert("weight", column).unwrap();
        for strategy in [Strategy::Uniform, Strategy::Weighted] {
            let key = SampleKey::new(5).at(0, 0);
            let sampler = NeighborSampler::new(&g, [4, 3]).unwrap();
            let sampler = if strategy == Strategy::Weighted {
                sampler.with_weight_column("weight").unwrap().with_strategy(strategy).unwrap()
            } else {
                sampler
            };
            let rank = |comm: Arc<dyn Communicator>| -> Result<(Vec<u64>, Vec<Vec<u64>>)> {
                let part = part_with_columns(dir.path(), &*comm)?;
                let own: Vec<(u64, u64)> = (0..)
                    .zip(part.inner_nids("_N").iter().copied())
                    .filter(|(_, v)| v % 3 != 1)
                    .collect();
                let g = DistGraph::from_partition(part, comm.clone())?;
                let first = g.book().partid2nids(comm.rank(), "_N")?.start;
                let sampler = DistSampler::new(&g, [4, 3])?;
                let sampler = if strategy == Strategy::Weighted {
                    sampler.with_weights("_E", "weight")?.with_strategy(strategy)?
                } else {
                    sampler
                };
                let ids: Vec<u64> = own.iter().map(|(at, _)| first + at).collect();
                let batch = sampler.sample([("_N", &ids[..])], key)?;
                Ok((own.into_iter().map(|(_, v)| v).collect(), content(&batch.mini)))
            };
            for (seeds, found) in
                run_ranks(of.1, |comm| rank(comm).map_err(|e| format!("{e:#}"))).unwrap()
            {
                let seeds: Vec<u32> = seeds.iter().map(|&v| v as u32).collect();
                let batch = sampler.sample([("_N", &seeds[..])], key).unwrap();
                assert_eq!(found, content(&batch), "{of:?} {strategy:?}");
            }
        }
    }
}

/// A file that one rank cannot read is an error on all ranks; so are parts of different
/// partitionings and a wrong number of ranks.
#[test]
fn parts_that_do_not_fit_are_refused_everywhere() {
    let (dir, _) = case(CASES[2]);
    let refused = |ranks: usize, dirs: &[&Path]| -> Vec<String> {
        let told = run_ranks(ranks, |comm| {
            let dir = dirs[comm.rank() % dirs.len()].join("parts");
            Ok::<_, String>(stored_partition(dir, "random", &*comm).err().map(|e| e.to_string()))
        });
        told.unwrap().into_iter().map(|e| e.expect("an error")).collect()
    };
    for text in refused(2, &[dir.path()]) {
        assert!(text.contains("3"), "{text}");
    }
    // A partitioning of a different graph: owner ranks lack the halo nodes.
    let other = case((8, 3, false)).0;
    for text in refused(3, &[dir.path(), other.path()]) {
        assert!(text.contains("fingerprint"), "{text}");
    }
    std::fs::remove_file(dir.path().join("parts/part-00001.0.csc")).unwrap();
    for text in refused(3, &[dir.path()]) {
        assert!(text.contains("part-00001.0.csc"), "{text}");
    }
}

/// A build that removes edges leaves gaps in the edge ids. The parts of all ranks together have
/// exactly the remaining edges, with their ids.
#[test]
fn parts_of_a_graph_with_removed_edges() {
    let (Edges { src, dst, .. }, dir) = (edges(5), tempfile::tempdir().unwrap());
    let (file, parts) = (dir.path().join("graph.csc"), dir.path().join("parts"));
    let build = CscBuild::new(&file, NODES, NODES).with_edge_ids().with_simple();
    let stream = src.iter().zip(&dst).map(|(&u, &v)| Ok((u, v, None)));
    build.with_self_loops(SelfLoops::Replace).run(EdgeResults::new(stream)).unwrap();
    let part_of = (0..NODES as u32).map(|v| v * 7 % 3).collect();
    Assignment::new(part_of, 3).unwrap().write(&StoredCsc::open(&file).unwrap(), &parts).unwrap();

    let mut pairs = std::collections::BTreeSet::new();
    let mut expected: Vec<(u64, u64, u64)> = (0..)
        .zip(src.iter().zip(&dst))
        .filter(|&(_, (u, v))| u != v && pairs.insert((u, v)))
        .map(|(id, (&u, &v))| (id, u64::from(u), u64::from(v)))
        .collect();
    assert!(expected.len() < src.len());
    expected.extend((0..NODES as u64).map(|v| (src.len() as u64 + v, v, v)));
    let rank = |comm: Arc<dyn Communicator>| -> Result<Vec<(u64, u64, u64)>> {
        let part = stored_partition(&parts, "random", &*comm)?;
        let local = LocalPartition::new(&part, comm, &Device::flex())?;
        assert_eq!(local.edge_original_ids("_E"), &part.original_eids()[..part.num_inner_edges()]);
        let node = |v: u32| part.original_nids()[v as usize];
        let edge = |e: usize| (part.original_eids()[e], node(part.src()[e]), node(part.dst()[e]));
        Ok((0..part.num_inner_edges()).map(edge).collect())
    };
    let mut found = run_ranks(3, |comm| rank(comm).map_err(|e| format!("{e:#}"))).unwrap().concat();
    found.sort_unstable();
    assert_eq!(found, expected);
}
