//! Parts of a heterogeneous graph in files give the training and samples of the graph in memory.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use burn::tensor::{Bool, DType, Device, FloatDType, Int, Tensor};
use burn_gnn::dist::{Communicator, DistGraph, DistSampler, LocalPartition, Partition, run_ranks};
use burn_gnn::graph::Graph;
use burn_gnn::models::{
    FitConfig, NodeTask, RelWeights, Rgcn, RgcnConfig, TypeInput, fit, fit_on_ranks, seeded,
    to_dtype,
};
use burn_gnn::ops::{GraphView, Stream};
use burn_gnn::ranks::{RankSync, stored_partition};
use burn_gnn::sampling::{MiniBatch, NeighborSampler, SampleKey};
use burn_gnn::store::{CscBuild, EdgeIter, StoredGraph, StreamCut};

use super::stored::{features, labels, losses, mask};

/// Seeds of two types, and the content of a batch.
type Drawn = ([Vec<u64>; 2], Vec<Vec<u64>>);

/// Node types with their counts and feature sizes; tags, which have no in-edges, have learned
/// embeddings.
const TYPES: [(&str, usize, usize); 3] = [("item", 40, 5), ("tag", 9, 0), ("user", 60, 3)];
/// Relations with their number of edges, and whether files have edge ids.
const RELATIONS: [((&str, &str, &str), u64, bool); 4] = [
    (("item", "bought-by", "user"), 250, false),
    (("tag", "of", "item"), 90, true),
    (("user", "buys", "item"), 220, true),
    (("user", "follows", "user"), 300, false),
];

fn count(ntype: &str) -> usize {
    TYPES.iter().find(|t| t.0 == ntype).map(|t| t.1).unwrap()
}

/// Edges of a relation with skewed degrees, and nodes without edges. Without edge ids they are in
/// the order of the file.
fn edges((s, relation, d): (&str, &str, &str), n: u64, with_ids: bool) -> (Vec<u32>, Vec<u32>) {
    let stream = Stream::new(4, relation, 0);
    let node =
        |e: u64, side: u64, n: usize| (stream.uniform(e, side).powi(2) * n as f64 * 0.95) as u32;
    let mut edges: Vec<(u32, u32)> =
        (0..n).map(|e| (node(e, 0, count(s)), node(e, 1, count(d)))).collect();
    if !with_ids {
        edges.sort_by_key(|e| e.1);
    }
    edges.into_iter().unzip()
}

fn graph() -> Graph {
    let builder = TYPES.iter().fold(Graph::builder(), |b, t| b.nodes(t.0, t.1));
    let add = |b: burn_gnn::graph::GraphBuilder, &(etype, n, with_ids): &(_, u64, bool)| {
        let (src, dst) = edges(etype, n, with_ids);
        b.edges(etype, src, dst)
    };
    RELATIONS.iter().fold(builder, add).build().unwrap()
}

/// Writes the relations to files, partitions them and deletes them, so that only the parts remain.
fn write(dir: &Path, parts: usize) {
    for (etype @ (s, relation, d), n, with_ids) in RELATIONS {
        let build = CscBuild::new(dir.join(relation), count(s), count(d));
        let build = if with_ids { build.with_edge_ids() } else { build };
        let (src, dst) = edges(etype, n, with_ids);
        build.run(EdgeIter::new(src.into_iter().zip(dst))).unwrap();
    }
    let types = TYPES.map(|(name, n, _)| (name, n));
    let stored = StoredGraph::create(dir, types, RELATIONS.map(|r| (r.0, r.0.1))).unwrap();
    let cut = StreamCut::new(parts).with_passes(2).assign(&stored).unwrap();
    cut.write(&stored, dir.join("parts")).unwrap().verify(&stored).unwrap();
    RELATIONS.iter().for_each(|r| std::fs::remove_file(dir.join(r.0.1)).unwrap());
}

fn graph_with_columns(device: &Device) -> Graph {
    let mut g = graph();
    for (name, n, size) in TYPES {
        let ids: Vec<u64> = (0..n as u64).collect();
        let frame = g.nodes_mut(name).unwrap();
        if size > 0 {
            let x = Tensor::<2>::from_data(features(name, size, &ids), (device, DType::F64));
            frame.insert("x", x).unwrap();
        }
        if name == "item" {
            frame.insert("y", Tensor::<1, Int>::from_data(labels(&ids), device)).unwrap();
            frame.insert("train_mask", Tensor::<1, Bool>::from_data(mask(&ids), device)).unwrap();
        }
    }
    g
}

fn part_with_columns(dir: &Path, comm: &dyn Communicator) -> Result<Partition> {
    let mut part = stored_partition(dir.join("parts"), "shop", comm)?;
    for (name, _, size) in TYPES.into_iter().filter(|t| t.2 > 0) {
        let x = features(name, size, part.inner_nids(name));
        part = part.with_node_column(name, "x", x)?;
    }
    let (y, train) = (labels(part.inner_nids("item")), mask(part.inner_nids("item")));
    Ok(part.with_node_column("item", "y", y)?.with_node_column("item", "train_mask", train)?)
}

fn model(g: &dyn GraphView, device: &Device) -> Rgcn {
    let inputs = TYPES.map(|(name, _, size)| {
        (name, if size > 0 { TypeInput::Features(size) } else { TypeInput::Embedding })
    });
    RgcnConfig::new(3)
        .with_hidden(8)
        .with_weights(RelWeights::Basis(2))
        .with_dropout(0.3)
        .init(g, inputs, device)
}

#[test]
fn losses_of_typed_parts_are_those_in_memory() {
    let device = Device::flex();
    let config = FitConfig::new().with_epochs(8).with_progress(false);
    let make = |g: &dyn GraphView| {
        seeded(config.seed, || to_dtype(model(g, &device.clone().autodiff()), FloatDType::F64))
    };
    let g = graph_with_columns(&device);
    let task = NodeTask::from_columns(&g, "item").unwrap();
    let one = losses(&fit(make(&g), &task, &task.train, &task.val, &config).unwrap().history);
    assert!(one[7] < one[0], "{one:?}");
    for parts in 1..=4 {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), parts);
        let rank = |comm: Arc<dyn Communicator>| -> Result<Vec<f64>> {
            let part = part_with_columns(dir.path(), &*comm)?;
            let part = LocalPartition::new(&part, comm.clone(), &device)?;
            let sync = RankSync::new(comm);
            let task = NodeTask::on_ranks(&part, "item", &sync)?;
            Ok(losses(
                &fit_on_ranks(make(&part), &task, &task.train, &task.val, &config, &sync)?.history,
            ))
        };
        for many in run_ranks(parts, |comm| rank(comm).map_err(|e| format!("{e:#}"))).unwrap() {
            let worst =
                one.iter().zip(&many).map(|(a, b)| (a - b).abs() / a.abs()).fold(0.0, f64::max);
            assert!(worst <= 1e-9, "{parts} parts: {worst:e}: {one:?}, {many:?}");
        }
    }
}

/// Returns nodes and edges of all blocks, in ids of the whole graph, by type.
fn content(batch: &MiniBatch) -> Vec<Vec<u64>> {
    let wide = |ids: &[u32]| ids.iter().map(|&v| u64::from(v)).collect::<Vec<_>>();
    let mut out = vec![];
    for b in &batch.blocks {
        for t in 0..TYPES.len() {
            out.push(b.original_ids(t).to_vec());
            out.push(vec![b.dst_nodes(t).len() as u64]);
        }
        for (e, relation) in b.relations().iter().enumerate() {
            out.extend([
                b.original_edge_ids(e).to_vec(),
                wide(relation.src()),
                wide(relation.dst()),
            ]);
        }
    }
    out
}

#[test]
fn batches_of_typed_parts_are_those_in_memory() {
    let g = graph();
    let sampler = NeighborSampler::new(&g, [4, 3, 2]).unwrap();
    let key = SampleKey::new(5).at(0, 0);
    for parts in 1..=3 {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), parts);
        let rank = |comm: Arc<dyn Communicator>| -> Result<Drawn> {
            let part = part_with_columns(dir.path(), &*comm)?;
            let seeds = ["item", "user"].map(|name| {
                let own = (0..).zip(part.inner_nids(name).iter().copied());
                own.filter(|(_, v)| v % 3 != 1).collect::<Vec<(u64, u64)>>()
            });
            let g = DistGraph::from_partition(part, comm.clone())?;
            let mut ids = vec![];
            for (name, of) in ["item", "user"].into_iter().zip(&seeds) {
                let first = g.book().partid2nids(comm.rank(), name)?.start;
                ids.push((name, of.iter().map(|(at, _)| first + at).collect::<Vec<u64>>()));
            }
            let batch = DistSampler::new(&g, [4, 3, 2])?.sample(ids, key)?;
            Ok((seeds.map(|of| of.into_iter().map(|(_, v)| v).collect()), content(&batch.mini)))
        };
        for (seeds, found) in
            run_ranks(parts, |comm| rank(comm).map_err(|e| format!("{e:#}"))).unwrap()
        {
            let [items, users] =
                seeds.map(|of| of.into_iter().map(|v| v as u32).collect::<Vec<u32>>());
            let batch = sampler.sample([("item", items), ("user", users)], key).unwrap();
            assert_eq!(found, content(&batch), "{parts} parts");
        }
    }
}
