//! Graphs that tests share.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use burn_gnn_dist::{PartitionConfig, PartitionMethod, PartitionedGraph, partition_graph};
use burn_gnn_graph::Graph;
use burn_gnn_ops::Stream;

/// A typed graph with self loops, parallel edges, nodes without edges and relations of all sizes:
/// types `a`, `b`, `c` (and `empty`, without nodes), relation `none` without edges, relation `rare` with
/// a single edge, so that most parts have none of it.
pub(crate) fn typed(seed: u64, with_empty_type: bool) -> Graph {
    let s = Stream::new(seed, "test graph", 0);
    let counts = [60usize, 40, 24];
    // The last tenth of the nodes of each type has no edges.
    let pick = |row: u64, column: u64, n: usize| (s.uniform(row, column) * (n as f64 * 0.9)) as u32;
    let edges = |relation: u64, from: usize, to: usize, m: u64| -> (Vec<u32>, Vec<u32>) {
        (0..m)
            .map(|e| {
                (
                    pick(1000 * relation + e, 0, counts[from]),
                    pick(1000 * relation + e, 1, counts[to]),
                )
            })
            .unzip()
    };
    let (mut src, mut dst) = edges(1, 0, 0, 150);
    // Self loops and parallel edges.
    for i in 0..6 {
        src.extend([i, i, 2 * i]);
        dst.extend([i, i + 1, 3]);
        src.push(i);
        dst.push(i + 1);
    }
    let mut b = Graph::builder().nodes("a", 60).nodes("b", 40).nodes("c", 24);
    if with_empty_type {
        b = b.nodes("empty", 0).edges(("empty", "to", "a"), vec![], vec![]);
    }
    let ((s2, d2), (s3, d3), (s4, d4)) =
        (edges(2, 0, 1, 120), edges(3, 1, 0, 90), edges(4, 2, 1, 70));
    b.edges(("a", "self", "a"), src, dst)
        .edges(("a", "to", "b"), s2, d2)
        .edges(("b", "to", "a"), s3, d3)
        .edges(("c", "to", "b"), s4, d4)
        .edges(("b", "none", "c"), vec![], vec![])
        .edges(("a", "rare", "c"), vec![7], vec![3])
        .build()
        .unwrap()
}

/// Rows keyed by original id: `[ids.len(), width]` of standard normals.
pub(crate) fn rows(
    name: &str,
    ids: &[u64],
    width: usize,
    dtype: DType,
    device: &Device,
) -> Tensor<2> {
    let s = Stream::new(5, name, 0);
    let values: Vec<f64> =
        ids.iter().flat_map(|&i| (0..width as u64).map(move |c| s.normal(i, c))).collect();
    Tensor::from_data(TensorData::new(values, [ids.len(), width]), (device, dtype))
}

/// Sizes of the types and relations of [`random`]; any of them may be 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) nodes: [usize; 3],
    /// `a:to:b`, `b:to:a`, `a:self:a`, `c:to:a`, `b:none:c`.
    pub(crate) edges: [usize; 5],
}

/// Sizes for property tests: empty types and relations, single nodes, relations with many edges per node.
pub(crate) fn sizes() -> impl proptest::strategy::Strategy<Value = Sizes> {
    use proptest::prelude::*;
    let node = || prop_oneof![Just(0usize), Just(1), 2usize..40];
    let edge = || prop_oneof![Just(0usize), 1usize..20, 20usize..150];
    (1usize..40, node(), node(), [edge(), edge(), edge(), edge(), edge()])
        .prop_map(|(a, b, c, edges)| Sizes { nodes: [a, b, c], edges })
}

const RELATIONS: [(&str, &str, &str, usize, usize); 5] = [
    ("a", "to", "b", 0, 1),
    ("b", "to", "a", 1, 0),
    ("a", "self", "a", 0, 0),
    ("c", "to", "a", 2, 0),
    ("b", "none", "c", 1, 2),
];

/// A typed graph of skewed degrees, with self loops and parallel edges, and features that are functions of original
/// ids: `feat` (float rows), `label` and `trainer` of nodes, `w`, `t` and `m` (weight, time, mask) of edges.
pub(crate) fn random(seed: u64, sizes: Sizes) -> Graph {
    let device = Device::flex();
    let s = Stream::new(seed, "random graph", 0);
    let mut b = Graph::builder();
    for (name, &n) in ["a", "b", "c"].iter().zip(&sizes.nodes) {
        b = b.nodes(*name, n);
    }
    for (e, &(src, name, dst, from, to)) in RELATIONS.iter().enumerate() {
        let (n, m) = (sizes.nodes[from], sizes.nodes[to]);
        let count = if n * m == 0 { 0 } else { sizes.edges[e] as u64 };
        let end = |i: u64, side: u64, n: usize| {
            (s.uniform(1000 * e as u64 + i, side).powi(2) * n as f64) as u32
        };
        b = b.edges(
            (src, name, dst),
            (0..count).map(|i| end(i, 0, n)).collect(),
            (0..count).map(|i| end(i, 1, m)).collect(),
        );
    }
    let mut g = b.build().unwrap();
    for (name, &n) in ["a", "b", "c"].iter().zip(&sizes.nodes) {
        let ids: Vec<u64> = (0..n as u64).collect();
        let ints = |f: &dyn Fn(u64) -> i64| {
            Tensor::<1, Int>::from_data(
                TensorData::new(ids.iter().map(|&i| f(i)).collect::<Vec<_>>(), [n]),
                (&device, DType::I64),
            )
        };
        let label = ints(&|i| (i * 7 % 5) as i64);
        let trainer = ints(&|i| (i % 2) as i64);
        let frame = g.nodes_mut(name).unwrap();
        frame.insert("feat", rows(name, &ids, 3, DType::F32, &device)).unwrap();
        frame.insert("label", label).unwrap();
        frame.insert("trainer", trainer).unwrap();
    }
    for e in 0..g.relations().len() {
        let n = g.relations()[e].num_edges();
        let s = Stream::new(seed, "edge values", e as u64);
        let w: Vec<f32> =
            (0..n as u64).map(|i| ((s.uniform(i, 0) * 6.0) as u32 % 5) as f32).collect();
        let t: Vec<i64> = (0..n as u64).map(|i| (s.uniform(i, 1) * 50.0) as i64).collect();
        let m: Vec<i64> = (0..n as u64).map(|i| i64::from(s.uniform(i, 2) < 0.7)).collect();
        let frame = g.edges_mut(e).unwrap();
        frame
            .insert("w", Tensor::<1>::from_data(TensorData::new(w, [n]), (&device, DType::F32)))
            .unwrap();
        frame
            .insert(
                "t",
                Tensor::<1, Int>::from_data(TensorData::new(t, [n]), (&device, DType::I64)),
            )
            .unwrap();
        frame
            .insert(
                "m",
                Tensor::<1, Int>::from_data(TensorData::new(m, [n]), (&device, DType::I64)),
            )
            .unwrap();
    }
    g
}

/// Random assignment of each node, also with more parts than nodes.
pub(crate) fn scattered(g: &Graph, parts: usize, seed: u64) -> PartitionedGraph {
    partition_graph(g, &anywhere(g, parts, 1, seed)).unwrap()
}

/// [`scattered`] without reshuffling.
pub(crate) fn kept(g: &Graph, parts: usize, seed: u64) -> PartitionedGraph {
    partition_graph(g, &anywhere(g, parts, 1, seed).with_reshuffle(false)).unwrap()
}

/// The part of each node, by the number of its type and its id.
pub(crate) fn owners(g: &Graph, parts: impl IntoIterator<Item = Vec<u32>>) -> PartitionMethod {
    PartitionMethod::custom(g.schema().ntypes().iter().cloned().zip(parts))
}

/// [`scattered`] with several trainers per part.
pub(crate) fn anywhere(g: &Graph, parts: usize, trainers: usize, seed: u64) -> PartitionConfig {
    let s = Stream::new(seed, "owners", 0);
    let piece = |(t, &n): (usize, &usize)| {
        (0..n as u64).map(|i| (s.uniform(i, t as u64) * (parts * trainers) as f64) as u32).collect()
    };
    let pieces = g.node_counts().iter().enumerate().map(piece);
    PartitionConfig::new("g", parts)
        .with_method(owners(g, pieces))
        .with_num_trainers_per_machine(trainers)
}

/// CPU devices in this build, with autodiff.
pub(crate) fn devices() -> Vec<(&'static str, Device)> {
    let all = burn_gnn_testutil::named_devices();
    all.into_iter().map(|(name, device)| (name, device.autodiff())).collect()
}
