//! Graphs that tests share.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_graph::Graph;
use burn_gnn_ops::Stream;

/// A typed graph with self loops, parallel edges, nodes without edges and relations of all sizes:
/// types `a`, `b`, `c` (and `empty`, without nodes), relation `none` without edges, relation `rare` with
/// a single edge, so that most parts hold none of it.
pub(crate) fn typed(seed: u64, with_empty_type: bool) -> Graph {
    let s = Stream::new(seed, "test graph", 0);
    let counts = [60usize, 40, 24];
    // The last tenth of each type stays without edges.
    let pick = |row: u64, column: u64, n: usize| (s.uniform(row, column) * (n as f64 * 0.9)) as u32;
    let edges = |relation: u64, from: usize, to: usize, m: u64| -> (Vec<u32>, Vec<u32>) {
        (0..m).map(|e| (pick(1000 * relation + e, 0, counts[from]), pick(1000 * relation + e, 1, counts[to]))).unzip()
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
    let ((s2, d2), (s3, d3), (s4, d4)) = (edges(2, 0, 1, 120), edges(3, 1, 0, 90), edges(4, 2, 1, 70));
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
pub(crate) fn rows(name: &str, ids: &[u64], width: usize, dtype: DType, device: &Device) -> Tensor<2> {
    let s = Stream::new(5, name, 0);
    let values: Vec<f64> = ids.iter().flat_map(|&i| (0..width as u64).map(move |c| s.normal(i, c))).collect();
    Tensor::from_data(TensorData::new(values, [ids.len(), width]), (device, dtype))
}

/// CPU devices in this build, with autodiff.
pub(crate) fn devices() -> Vec<(&'static str, Device)> {
    vec![("flex", Device::flex().autodiff()), ("ndarray", Device::ndarray().autodiff())]
}
