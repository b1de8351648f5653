//! One layer on a whole graph and on its partitions: rows and input gradients agree, every norm, edge weights.

use burn::module::Module;
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use burn_gnn::dist::{LocalPartition, PartitionConfig, PartitionMethod, partition_graph, run_ranks};
use burn_gnn::graph::{EdgeType, Graph, Schema};
use burn_gnn::models::*;
use burn_gnn::ops::{GraphView, Stream};

use crate::wgpu;

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
    Tensor::from_data(TensorData::new(v, [ids.len(), cols]), (device, DType::from(real(device))))
}

/// f64 on the CPU; WGSL has none.
fn real(device: &Device) -> FloatDType {
    if [Device::flex(), Device::ndarray()].contains(device) { FloatDType::F64 } else { FloatDType::F32 }
}

/// Every device there is and how near, relative to 1 + |expected|, results of its type come.
fn devices() -> Vec<(Device, f64)> {
    let cpu = [Device::flex(), Device::ndarray()].map(|device| (device, 1e-12));
    cpu.into_iter().chain(wgpu().map(|device| (device, 2e-5))).collect()
}

fn list(t: Tensor<2>) -> Vec<f64> {
    t.into_data().iter::<f64>().collect()
}

/// Output rows and gradients of input rows, by original id.
fn run<G: GraphView>(g: &G, norm: DegreeNorm, src: &[u64], dst: &[u64], edges: &[u64], device: &Device) -> (Vec<f64>, Vec<f64>) {
    let device = device.clone().autodiff();
    let layer = to_dtype(seeded(1, || GraphConvConfig::new(WIDTHS.0, WIDTHS.1).with_norm(norm).init(&device)), FloatDType::F64);
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

/// What a layer makes of the rows of both types: node types and their results.
type Run = fn(&dyn GraphView, [Tensor<2>; 2], &Device) -> Vec<(usize, Tensor<2>)>;

/// Edge types of [`three`]: from `a` to `b`, and inside `a`.
const R: usize = 0;
const T: usize = 1;

/// As [`graph`], and edges inside `a`.
fn three() -> Graph {
    let s = Stream::new(5, "edges", 0);
    let end = |n: usize, side| (0..60).map(|e| (s.uniform(e, side) * n as f64) as u32).collect::<Vec<_>>();
    Graph::builder()
        .nodes("a", 30)
        .nodes("b", 20)
        .edges(("a", "r", "b"), end(30, 0), end(20, 1))
        .edges(("b", "s", "a"), end(20, 2), end(30, 3))
        .edges(("a", "t", "a"), end(30, 4), end(30, 5))
        .build()
        .unwrap()
}

/// Original ids of the edges of a type.
fn edges(g: &dyn GraphView, etype: usize) -> Vec<u64> {
    g.original_edge_ids(etype).map_or_else(|| (0..g.total_edges(etype)).collect(), |ids| ids.to_vec())
}

const TRAIN: Mode = Mode::Train { seed: 3, step: 2 };

fn cast<M: Module>(layer: M, device: &Device) -> M {
    to_dtype(layer, real(device))
}

/// Each runs in a seeded scope, so every rank makes the same layer; masks follow original ids.
const LAYERS: [(&str, Run); 15] = [
    ("sage mean", |g, [a, b], d| vec![(1, cast(SageConvConfig::new(3, 2).init(d), d).forward_on(g, R, (a, b), None))]),
    ("sage lstm", |g, [a, _], d| {
        let layer = cast(SageConvConfig::new(3, 2).with_aggregator(SageAggregator::Lstm).init(d), d);
        vec![(0, layer.forward_on(g, T, a, None))]
    }),
    ("sage gcn", |g, [a, _], d| {
        let layer = cast(SageConvConfig::new(3, 2).with_aggregator(SageAggregator::Gcn).init(d), d);
        vec![(0, layer.forward_on(g, T, a, None))]
    }),
    ("gat", |g, [a, _], d| {
        let layer = cast(GatConvConfig::new(3, 2, 2).with_attn_dropout(0.4).with_residual(true).init(d), d);
        vec![(0, layer.forward_on(g, T, a, None, TRAIN))]
    }),
    ("gat with edges", |g, [a, _], d| {
        let layer = cast(GatConvConfig::new(3, 2, 2).with_d_edge(Some(2)).with_attn_dropout(0.4).init(d), d);
        vec![(0, layer.forward_on(g, T, a, rows("f", &edges(g, T), 2, d), TRAIN))]
    }),
    ("graph by in-degrees", |g, [a, _], d| {
        let layer = cast(GraphConvConfig::new(3, 2).with_norm(DegreeNorm::BothIn).init(d), d);
        vec![(0, layer.forward_on(g, T, a, None))]
    }),
    ("appnp by weighted in-degrees", |g, [a, _], d| {
        let ids = edges(g, T);
        let w = (rows("w", &ids, 1, d) + 1.0).reshape([ids.len()]);
        let layer = AppnpConvConfig::new().with_hops(2).with_norm(DegreeNorm::BothIn).with_weighted_norm(true).init(d);
        vec![(0, layer.forward_on(g, T, a, Some(w), TRAIN))]
    }),
    ("gatv2", |g, [a, b], d| {
        let layer = cast(Gatv2ConvConfig::new(3, 1, 2).with_attn_dropout(0.4).init(d), d);
        vec![(1, layer.forward_on(g, R, (a, b), None, TRAIN))]
    }),
    ("gin", |g, [a, b], d| vec![(1, cast(GinConvConfig::new(vec![3, 4, 2]).init(d), d).forward_on(g, R, (a, b), None))]),
    ("edge and pna", |g, [a, b], d| {
        let pna = cast(PnaConvConfig::new(3, 2, 1.1).init(d), d).forward_on(g, T, a.clone(), None);
        vec![(0, pna), (1, cast(EdgeConvConfig::new(3, vec![2]).init(d), d).forward_on(g, R, (a, b)))]
    }),
    ("transformer", |g, [a, b], d| {
        let layer = cast(TransformerConvConfig::new(3, 2, 2).with_attn_dropout(0.4).init(d), d);
        vec![(1, layer.forward_on(g, R, (a, b), None, TRAIN))]
    }),
    ("appnp", |g, [a, _], d| {
        vec![(0, AppnpConvConfig::new().with_hops(3).with_edge_dropout(0.4).init(d).forward_on(g, T, a, None, TRAIN))]
    }),
    ("sg", |g, [a, _], d| vec![(0, cast(SgConvConfig::new(3, 2).with_hops(2).init(d), d).forward_on(g, T, a, None))]),
    ("hgt", |g, [a, b], d| {
        let layer = cast(HgtConvConfig::from_graph(g, 3, 2, 2).with_layer_norm(true).with_dropout(0.4).init(d), d);
        layer.forward(g, vec![a, b], TRAIN).into_iter().enumerate().collect()
    }),
    ("hetero", |g, [a, b], d| {
        let make = |_: &EdgeType| GatConvConfig::new(3, 2, 2).init(d);
        let layer = cast(HeteroGraphConvConfig::new().with_aggregate(Aggregator::Max).init(g.schema(), make), d);
        layer.forward(g, vec![a, b], TRAIN).into_iter().enumerate().map(|(t, y)| (t, y.unwrap())).collect()
    }),
];

/// Weights of relations are means over all nodes of a type: a part refuses to make them up, and takes them from all ranks.
#[test]
fn han_conv_on_parts_takes_the_scores_of_all_ranks() {
    let g = three();
    let all: Vec<u64> = (0..30).collect();
    let device = Device::flex();
    let layer = |schema: &Schema| cast(seeded(1, || HanConvConfig::new(vec![3, 3], 2, 2).init(schema, &device)), &device);
    let input = |a: &[u64], b: &[u64]| vec![rows("x0", a, 3, &device), rows("x1", b, 3, &device)];
    let want: Vec<Vec<f64>> =
        layer(g.schema()).forward(&g, input(&all, &all[..20]), Mode::Eval).into_iter().map(|y| list(y.unwrap())).collect();
    for parts in [1, 2, 3] {
        let cut = partition_graph(&g, &PartitionConfig::new("g", parts).with_method(PartitionMethod::Random)).unwrap();
        let ranks = run_ranks(parts, |comm| -> Result<_, burn_gnn::dist::DistError> {
            let part = LocalPartition::new(&cut.part(comm.rank())?, comm, &device)?;
            let ids = [part.inner_nodes(0).to_vec(), part.inner_nodes(1).to_vec()];
            let (han, x) = (layer(part.schema()), input(&ids[0], &ids[1]));
            let refused = han.try_forward(&part, x.clone(), Mode::Eval).err().map(|e| e.to_string());
            let scores = han.relation_scores(&part, x.clone(), Mode::Eval);
            // Two relations end in `a`, one in `b`.
            let mut sums: Vec<f64> = scores[0].clone().unwrap().into_data().iter::<f64>().collect();
            assert!(scores[1].is_none());
            part.comm().all_reduce("scores", &mut sums)?;
            let whole = Tensor::from_data(TensorData::new(sums, [2]), (&device, DType::F64));
            let y: Vec<Vec<f64>> =
                han.forward_with(&part, x, &[Some(whole), None], Mode::Eval).into_iter().map(|y| list(y.unwrap())).collect();
            Ok((ids, refused, y))
        })
        .unwrap();
        for (ids, refused, got) in ranks {
            let message = (parts > 1).then(|| {
                let n = ids[0].len();
                format!(
                    "han_conv: needs all 30 nodes of type `a`, this view computes {n}; add up `relation_scores` over all parts and call `forward_with`, or set `local_scores`"
                )
            });
            assert_eq!(refused, message);
            for (t, (got, want)) in got.iter().zip(&want).enumerate() {
                for (id, row) in ids[t].iter().zip(got.chunks_exact(4)) {
                    let want = &want[*id as usize * 4..][..4];
                    let near = row.iter().zip(want).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + b.abs()));
                    assert!(near, "{parts} parts, node {id} of type {t}: {row:?} instead of {want:?}");
                }
            }
        }
    }
}

/// Results and gradients of the rows of both types, by node type.
fn run_layer<G: GraphView>(g: &G, layer: Run, ids: [&[u64]; 2], device: &Device) -> Vec<(usize, usize, Vec<f64>)> {
    let device = device.clone().autodiff();
    let x = [0, 1].map(|t: usize| rows(&format!("x{t}"), ids[t], 3, &device).require_grad());
    let results = seeded(1, || layer(g, x.clone(), &device));
    let loss = results.iter().map(|(t, y)| (y.clone() * rows("c", ids[*t], y.dims()[1], &device)).sum()).reduce(|a, b| a + b);
    let grads = loss.unwrap().backward();
    let mut out: Vec<_> = results.into_iter().map(|(t, y)| (t, y.dims()[1], list(y.inner()))).collect();
    out.extend(x.iter().enumerate().filter_map(|(t, x)| Some((t, 3, list(x.grad(&grads)?)))));
    out
}

/// In one piece and in parts, on every device: what Flex computes in f64.
#[test]
fn layers_on_parts_are_the_layers() {
    let g = three();
    let all: Vec<u64> = (0..30).collect();
    for (device, tolerance) in devices() {
        for (name, layer) in LAYERS {
            let want = run_layer(&g, layer, [&all, &all[..20]], &Device::flex());
            for ((t, _, got), (_, _, want)) in run_layer(&g, layer, [&all, &all[..20]], &device).iter().zip(&want) {
                let near = got.iter().zip(want).all(|(a, b)| (a - b).abs() <= tolerance * (1.0 + b.abs()));
                assert!(near && got.len() == want.len(), "{name} on {device:?}, type {t}: {got:?} instead of {want:?}");
            }
            for parts in [2, 3] {
                let cut = partition_graph(&g, &PartitionConfig::new("g", parts).with_method(PartitionMethod::Random)).unwrap();
                let ranks = run_ranks(parts, |comm| -> Result<_, burn_gnn::dist::DistError> {
                    let part = LocalPartition::new(&cut.part(comm.rank())?, comm, &device)?;
                    let ids = [part.inner_nodes(0).to_vec(), part.inner_nodes(1).to_vec()];
                    let got = run_layer(&part, layer, [&ids[0], &ids[1]], &device);
                    Ok((ids, got))
                })
                .unwrap();
                for (ids, got) in ranks {
                    assert_eq!(got.len(), want.len(), "{name}");
                    for ((t, cols, got), (_, _, want)) in got.iter().zip(&want) {
                        for (id, row) in ids[*t].iter().zip(got.chunks_exact(*cols)) {
                            let want = &want[*id as usize * cols..][..*cols];
                            let near = row.iter().zip(want).all(|(a, b)| (a - b).abs() <= tolerance * (1.0 + b.abs()));
                            assert!(near, "{name} on {device:?}, {parts} parts, node {id} of type {t}: {row:?} instead of {want:?}");
                        }
                    }
                }
            }
        }
    }
}
