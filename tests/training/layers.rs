//! One layer on a whole graph and on its partitions: rows and input gradients agree, every norm, edge weights.

use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use burn_gnn::dist::{LocalPartition, PartitionConfig, PartitionMethod, partition_graph, run_ranks};
use burn_gnn::graph::Graph;
use burn_gnn::models::{DegreeNorm, GraphConvConfig, to_dtype};
use burn_gnn::ops::{GraphView, Stream};

const WIDTHS: (usize, usize) = (3, 2);

/// Two types; relation 0 is `a:r:b`, with parallel edges and nodes without edges.
fn graph() -> Graph {
    let s = Stream::new(4, "edges", 0);
    let end = |n: usize, side| (0..60).map(|e| (s.uniform(e, side) * n as f64) as u32).collect::<Vec<_>>();
    Graph::builder()
        .nodes("a", 30)
        .nodes("b", 20)
        .edges(("a", "r", "b"), end(30, 0), end(20, 1))
        .edges(("b", "s", "a"), end(20, 2), end(30, 3))
        .build()
        .unwrap()
}

/// Entry `(id, column)` of every matrix here is a function of the original id.
fn rows(purpose: &str, ids: &[u64], cols: usize, device: &Device) -> Tensor<2> {
    let s = Stream::new(8, purpose, 0);
    let v: Vec<f64> = ids.iter().flat_map(|&i| (0..cols).map(move |c| s.uniform(i, c as u64) - 0.5)).collect();
    Tensor::from_data(TensorData::new(v, [ids.len(), cols]), (device, DType::F64))
}

fn list(t: Tensor<2>) -> Vec<f64> {
    t.into_data().iter::<f64>().collect()
}

/// Output rows and gradients of input rows, by original id.
fn run<G: GraphView>(g: &G, norm: DegreeNorm, src: &[u64], dst: &[u64], edges: &[u64], device: &Device) -> (Vec<f64>, Vec<f64>) {
    let device = device.clone().autodiff();
    let layer = to_dtype(GraphConvConfig::new(WIDTHS.0, WIDTHS.1).with_norm(norm).init(&device), FloatDType::F64);
    let x = rows("x", src, WIDTHS.0, &device).require_grad();
    let w = rows("w", edges, 1, &device).reshape([edges.len()]);
    let y = layer.forward_on(g, 0, x.clone(), Some(w));
    let grads = (y.clone() * rows("c", dst, WIDTHS.1, &device)).sum().backward();
    (list(y.inner()), list(x.grad(&grads).unwrap()))
}

#[test]
fn graph_conv_on_parts_is_graph_conv() {
    let g = graph();
    let all = |n: usize| (0..n as u64).collect::<Vec<_>>();
    for device in [Device::flex(), Device::ndarray()] {
        for norm in [DegreeNorm::None, DegreeNorm::Left, DegreeNorm::Right, DegreeNorm::Both] {
            let (y, dx) = run(&g, norm, &all(30), &all(20), &all(60), &device);
            for parts in [1, 2, 3] {
                let cut = partition_graph(&g, &PartitionConfig::new("g", parts).with_method(PartitionMethod::Random)).unwrap();
                let ranks = run_ranks(parts, |comm| -> Result<_, burn_gnn::dist::DistError> {
                    let part = LocalPartition::new(&cut.part(comm.rank())?, comm, &device)?;
                    let (a, b) = (part.inner_nodes(0).to_vec(), part.inner_nodes(1).to_vec());
                    let (y, dx) = run(&part, norm, &a, &b, part.edge_original_ids(0), &device);
                    Ok((a, b, y, dx))
                })
                .unwrap();
                let mut seen = 0;
                for (a, b, yp, dxp) in ranks {
                    seen += a.len() + b.len();
                    let check = |ids: &[u64], cols: usize, got: &[f64], want: &[f64]| {
                        for (id, row) in ids.iter().zip(got.chunks_exact(cols)) {
                            for (c, v) in row.iter().enumerate() {
                                let w = want[*id as usize * cols + c];
                                assert!((v - w).abs() <= 1e-13, "{norm:?}, {parts} parts, id {id}, column {c}: {v} instead of {w}");
                            }
                        }
                    };
                    check(&b, WIDTHS.1, &yp, &y);
                    check(&a, WIDTHS.0, &dxp, &dx);
                }
                assert_eq!(seen, 50);
            }
        }
    }
}
