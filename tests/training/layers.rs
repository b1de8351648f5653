//! A layer on a whole graph and on its partitions gives the same results and input gradients, for
//! every norm and with edge weights.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use burn_gnn::dist::{
    DistError, DistGraph, DistSampler, LocalPartition, PartitionConfig, PartitionMethod,
    PartitionedGraph, partition_graph, run_ranks,
};
use burn_gnn::graph::{EdgeType, Graph, Schema};
use burn_gnn::models::*;
use burn_gnn::ops::{Activation, EdgeTensor, Edges, GraphView, MessagePassing, Stream};
use burn_gnn::sampling::{Block, NeighborSampler, SampleKey};

use crate::gpu;

const WIDTHS: (usize, usize) = (3, 2);

/// Two types; relation 0 is `a:r:b`, with parallel edges and nodes without edges.
fn graph() -> Graph {
    let s = Stream::new(4, "edges", 0);
    let end = |n: usize, side| {
        (0..60).map(|e| (s.uniform(e, side) * n as f64) as u32).collect::<Vec<_>>()
    };
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
    let v: Vec<f64> =
        ids.iter().flat_map(|&i| (0..cols).map(move |c| s.uniform(i, c as u64) - 0.5)).collect();
    Tensor::from_data(TensorData::new(v, [ids.len(), cols]), (device, DType::from(real(device))))
}

/// f64 on the CPU; WGSL does not have f64.
fn real(device: &Device) -> FloatDType {
    if burn_gnn_testutil::devices().contains(device) { FloatDType::F64 } else { FloatDType::F32 }
}

/// Tolerance of a GPU; NVIDIA's tensor cores multiply f32 with weights in TF32, of 11 bits.
fn near() -> f64 {
    if crate::common::cuda().is_some() { 2e-2 } else { 2e-5 }
}

/// Available devices with their element type and tolerance, relative to 1 + |expected|.
fn devices() -> Vec<(Device, f64)> {
    let cpu = burn_gnn_testutil::devices().into_iter().map(|device| (device, 1e-12));
    cpu.chain(gpu().map(|device| (device, near()))).collect()
}

fn list(t: Tensor<2>) -> Vec<f64> {
    t.into_data().iter::<f64>().collect()
}

/// Output rows and gradients of input rows, by original id.
fn run<G: GraphView>(
    g: &G,
    norm: DegreeNorm,
    src: &[u64],
    dst: &[u64],
    edges: &[u64],
    device: &Device,
) -> (Vec<f64>, Vec<f64>) {
    let device = device.clone().autodiff();
    let layer = to_dtype(
        seeded(1, || GcnConvConfig::new(WIDTHS.0, WIDTHS.1).with_norm(norm).init(&device)),
        FloatDType::F64,
    );
    let x = rows("x", src, WIDTHS.0, &device).require_grad();
    let w = rows("w", edges, 1, &device).reshape([edges.len()]);
    let y = layer
        .forward(g.edge_type(R).unwrap().with_weight(w), (x.clone(), rows("y", dst, 1, &device)));
    let grads = (y.clone() * rows("c", dst, WIDTHS.1, &device)).sum().backward();
    (list(y.inner()), list(x.grad(&grads).unwrap()))
}

#[test]
fn gcn_conv_on_parts_is_gcn_conv() {
    let g = graph();
    let all = |n: usize| (0..n as u64).collect::<Vec<_>>();
    for device in burn_gnn_testutil::devices() {
        for norm in [DegreeNorm::None, DegreeNorm::Left, DegreeNorm::Right, DegreeNorm::Both] {
            let (y, dx) = run(&g, norm, &all(30), &all(20), &all(60), &device);
            for parts in [1, 2, 3] {
                let cut = partition_graph(
                    &g,
                    &PartitionConfig::new("g", parts).with_method(PartitionMethod::Random),
                )
                .unwrap();
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
                                assert!(
                                    (v - w).abs() <= 1e-13,
                                    "{norm:?}, {parts} parts, id {id}, column {c}: {v} instead of {w}"
                                );
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

/// Computes a layer on the features of both types; returns node types with their results.
type Run = fn(&dyn GraphView, [Tensor<2>; 2], &Device) -> Vec<(usize, Tensor<2>)>;

/// Edge types of [`three`]: from `a` to `b`, and inside `a`.
const R: usize = 0;
const T: usize = 1;

/// The graph of [`graph`] with additional edges inside `a`.
fn three() -> Graph {
    let s = Stream::new(5, "edges", 0);
    let end = |n: usize, side| {
        (0..60).map(|e| (s.uniform(e, side) * n as f64) as u32).collect::<Vec<_>>()
    };
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
    g.original_edge_ids(etype)
        .map_or_else(|| (0..g.total_edges(etype)).collect(), |ids| ids.to_vec())
}

/// Seed and step of dropout.
const STEP: (u64, u64) = (3, 2);

/// The edges of a type.
fn of(g: &dyn GraphView, etype: usize) -> Edges<'_> {
    Edges::new(g, etype).unwrap()
}

fn cast<M: Module>(layer: M, device: &Device) -> M {
    to_dtype(layer, real(device))
}

/// A custom layer: `y[v] = x[v] W₁ + mean of w_e · (x[u] + f[e]) · σ(x[u] · x[v]) W₂`, the sum over `e = (u, v)`.
#[derive(Module, Debug)]
struct Gated {
    own: Linear,
    neighbor: Linear,
}

impl Gated {
    /// Weights are functions of their name: Burn's `LinearConfig` draws from one generator of the device, which ranks
    /// on threads share.
    fn new(device: &Device) -> Self {
        let linear = |name: &str| Linear {
            weight: Param::from_tensor(rows(name, &[0, 1, 2], 2, device)),
            bias: None,
        };
        Self { own: linear("own"), neighbor: linear("neighbor") }
    }
}

impl MessagePassing for Gated {
    fn aggr(&self) -> Reduce {
        Reduce::Mean
    }
    fn message(&self, x_j: EdgeTensor, x_i: EdgeTensor, f: Option<EdgeTensor>) -> EdgeTensor {
        let gate = x_j.clone().dot(x_i).map(|z| (z * 0.5).tanh() * 0.5 + 0.5);
        match f {
            Some(f) => (x_j + f) * gate,
            None => x_j * gate,
        }
    }
    fn update(&self, aggregated: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
        self.own.forward(x) + self.neighbor.forward(aggregated)
    }
}

/// Each runs in a seeded scope, so every rank creates the same layer; dropout masks are functions
/// of original ids.
const LAYERS: [(&str, Run); 18] = [
    ("custom", |g, [a, _], d| {
        let (layer, ids) = (cast(Gated::new(d), d), edges(g, T));
        let key = DropoutKey::new(d);
        let edges = of(g, T)
            .with_weight((rows("w", &ids, 1, d) + 1.0).reshape([ids.len()]))
            .with_features(rows("f", &ids, 3, d))
            .then(Activation::Relu)
            .then_dropout(&key, 0.4);
        vec![(0, layer.forward(edges, a))]
    }),
    ("hetero custom", |g, [a, b], d| {
        let layer =
            cast(HeteroGraphConvConfig::new().init(g.schema(), |_: &EdgeType| Gated::new(d)), d);
        layer.forward(g, [("a", a), ("b", b)]).into_values().into_iter().enumerate().collect()
    }),
    ("sage mean", |g, [a, b], d| {
        vec![(1, cast(SageConvConfig::new(3, 2).init(d), d).forward(of(g, R), (a, b)))]
    }),
    ("sage lstm", |g, [a, _], d| {
        let layer =
            cast(SageConvConfig::new(3, 2).with_aggregator(SageAggregator::Lstm).init(d), d);
        vec![(0, layer.forward(of(g, T), a))]
    }),
    ("sage gcn", |g, [a, _], d| {
        let layer = cast(SageConvConfig::new(3, 2).with_aggregator(SageAggregator::Gcn).init(d), d);
        vec![(0, layer.forward(of(g, T), a))]
    }),
    ("gat", |g, [a, _], d| {
        let layer =
            cast(GatConvConfig::new(3, 2, 2).with_dropout(0.4).with_residual(true).init(d), d);
        vec![(0, layer.forward(of(g, T), a))]
    }),
    ("gat with edges", |g, [a, _], d| {
        let layer =
            cast(GatConvConfig::new(3, 2, 2).with_d_edge(Some(2)).with_dropout(0.4).init(d), d);
        vec![(0, layer.forward(of(g, T).with_features(rows("f", &edges(g, T), 2, d)), a))]
    }),
    ("graph by in-degrees", |g, [a, _], d| {
        let layer = cast(GcnConvConfig::new(3, 2).with_norm(DegreeNorm::BothIn).init(d), d);
        vec![(0, layer.forward(of(g, T), a))]
    }),
    ("appnp by weighted in-degrees", |g, [a, _], d| {
        let ids = edges(g, T);
        let w = (rows("w", &ids, 1, d) + 1.0).reshape([ids.len()]);
        let layer = AppnpConvConfig::new()
            .with_hops(2)
            .with_norm(DegreeNorm::BothIn)
            .with_weighted_norm(true)
            .init(d);
        vec![(0, layer.forward(of(g, T).with_weight(w), a))]
    }),
    ("gatv2", |g, [a, b], d| {
        let layer = cast(Gatv2ConvConfig::new(3, 1, 2).with_dropout(0.4).init(d), d);
        vec![(1, layer.forward(of(g, R), (a, b)))]
    }),
    ("gin", |g, [a, b], d| {
        vec![(1, cast(GinConvConfig::new(vec![3, 4, 2]).init(d), d).forward(of(g, R), (a, b)))]
    }),
    ("edge and pna", |g, [a, b], d| {
        let pna = cast(PnaConvConfig::new(3, 2, 1.1).init(d), d).forward(of(g, T), a.clone());
        vec![
            (0, pna),
            (1, cast(EdgeConvConfig::new(3, vec![2]).init(d), d).forward(of(g, R), (a, b))),
        ]
    }),
    ("transformer", |g, [a, b], d| {
        let layer = cast(TransformerConvConfig::new(3, 2, 2).with_dropout(0.4).init(d), d);
        vec![(1, layer.forward(of(g, R), (a, b)))]
    }),
    ("res_gated", |g, [a, b], d| {
        let layer = cast(ResGatedGraphConvConfig::new(3, 2).init(d), d);
        vec![(1, layer.forward(of(g, R), (a, b)))]
    }),
    ("appnp", |g, [a, _], d| {
        vec![(
            0,
            AppnpConvConfig::new().with_hops(3).with_dropout(0.4).init(d).forward(of(g, T), a),
        )]
    }),
    ("sg", |g, [a, _], d| {
        vec![(0, cast(SgConvConfig::new(3, 2).with_hops(2).init(d), d).forward(of(g, T), a))]
    }),
    ("hgt", |g, [a, b], d| {
        let layer = cast(
            HgtConvConfig::from_graph(g, 3, 2, 2).with_layer_norm(true).with_dropout(0.4).init(d),
            d,
        );
        layer.forward(g, [("a", a), ("b", b)]).into_values().into_iter().enumerate().collect()
    }),
    ("hetero", |g, [a, b], d| {
        let make = |_: &EdgeType| GatConvConfig::new(3, 2, 2).init(d);
        let layer = cast(
            HeteroGraphConvConfig::new().with_aggregate(Reduce::Max).init(g.schema(), make),
            d,
        );
        layer.forward(g, [("a", a), ("b", b)]).into_values().into_iter().enumerate().collect()
    }),
];

/// Weights of relations are means over all nodes of a type. A part returns an error if it would
/// have to compute them alone, and uses the means over all ranks.
#[test]
fn han_conv_on_parts_takes_the_scores_of_all_ranks() {
    let g = three();
    let all: Vec<u64> = (0..30).collect();
    let device = Device::flex();
    let layer = |schema: &Schema| {
        cast(
            seeded(1, || {
                HanConvConfig::new([("a", 3), ("b", 3)].into(), schema.etypes().to_vec(), 2, 2)
                    .init(&device)
            }),
            &device,
        )
    };
    let input = |a: &[u64], b: &[u64]| {
        NodeTensors::from([("a", rows("x0", a, 3, &device)), ("b", rows("x1", b, 3, &device))])
    };
    let want: Vec<Vec<f64>> = layer(g.schema())
        .forward(&g, input(&all, &all[..20]))
        .into_values()
        .into_iter()
        .map(list)
        .collect();
    for parts in [1, 2, 3] {
        let cut = partition_graph(
            &g,
            &PartitionConfig::new("g", parts).with_method(PartitionMethod::Random),
        )
        .unwrap();
        let ranks = run_ranks(parts, |comm| -> Result<_, burn_gnn::dist::DistError> {
            let part = LocalPartition::new(&cut.part(comm.rank())?, comm, &device)?;
            let ids = [part.inner_nodes(0).to_vec(), part.inner_nodes(1).to_vec()];
            let (han, x) = (layer(part.schema()), input(&ids[0], &ids[1]));
            let refused = han.try_forward(&part, x.clone()).err().map(|e| e.to_string());
            let scores = han.relation_scores(&part, x.clone());
            // Two relations into `a`, one into `b`.
            let mut sums: Vec<f64> = scores["a"].clone().into_data().iter::<f64>().collect();
            assert!(scores.get("b").is_none());
            part.comm().all_reduce("scores", &mut sums)?;
            let whole = Tensor::from_data(TensorData::new(sums, [2]), (&device, DType::F64));
            let y: Vec<Vec<f64>> = han
                .forward_with_scores(&part, x, [("a", whole)])
                .into_values()
                .into_iter()
                .map(list)
                .collect();
            Ok((ids, refused, y))
        })
        .unwrap();
        for (ids, refused, got) in ranks {
            let message = (parts > 1).then(|| {
                let n = ids[0].len();
                format!(
                    "han_conv: needs all 30 nodes of type `a`, this view computes {n}; add up `relation_scores` over all parts and call `forward_with_scores`, or set `local_scores`"
                )
            });
            assert_eq!(refused, message);
            for (t, (got, want)) in got.iter().zip(&want).enumerate() {
                for (id, row) in ids[t].iter().zip(got.chunks_exact(4)) {
                    let want = &want[*id as usize * 4..][..4];
                    let near =
                        row.iter().zip(want).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + b.abs()));
                    assert!(
                        near,
                        "{parts} parts, node {id} of type {t}: {row:?} instead of {want:?}"
                    );
                }
            }
        }
    }
}

/// Computes the formula of HAN for `nodes` of one type of [`three`], in this order, with relation
/// weights that are means over `nodes`.
fn han(layer: &HanConv, ntype: usize, nodes: &[u64]) -> Vec<f64> {
    let g = three();
    let cpu = Device::flex();
    let values = |t: Tensor<2>| list(t);
    let z: Vec<Vec<f64>> = (0..2)
        .map(|t| {
            let n = g.node_counts()[t];
            let x = list(rows(&format!("x{t}"), &(0..n as u64).collect::<Vec<_>>(), 3, &cpu));
            let (w, b) = (
                values(layer.proj[t].weight.val()),
                values(layer.proj[t].bias.as_ref().unwrap().val().unsqueeze()),
            );
            (0..4 * n)
                .map(|i| {
                    b[i % 4] + (0..3).map(|k| x[i / 4 * 3 + k] * w[k * 4 + i % 4]).sum::<f64>()
                })
                .collect()
        })
        .collect();
    let (k, k_bias) = (
        values(layer.k_lin.weight.val()),
        values(layer.k_lin.bias.as_ref().unwrap().val().unsqueeze()),
    );
    let q = values(layer.q.weight.val());
    let of_relation = |r: usize| -> (Vec<f64>, f64) {
        let (relation, (s, d)) = (&g.relations()[r], g.schema().endpoints(r));
        let (a, c) = (
            values(layer.lin_src[r].val().reshape([1, 4])),
            values(layer.lin_dst[r].val().reshape([1, 4])),
        );
        let row = |v: u64| -> Vec<f64> {
            let mut h = vec![0.0; 4];
            for head in 0..2 {
                let at = |z: &[f64], v: u32, c: usize| z[v as usize * 4 + 2 * head + c];
                let endpoints =
                    || relation.src().iter().zip(relation.dst()).filter(|e| u64::from(*e.1) == v);
                let weight = |(&u, &v): (&u32, &u32)| {
                    let score: f64 = (0..2)
                        .map(|i| {
                            a[2 * head + i] * at(&z[s], u, i) + c[2 * head + i] * at(&z[d], v, i)
                        })
                        .sum();
                    (if score < 0.0 { 0.2 * score } else { score }).exp()
                };
                let total: f64 = endpoints().map(weight).sum();
                for e in endpoints() {
                    (0..2).for_each(|i| h[2 * head + i] += weight(e) / total * at(&z[s], *e.0, i));
                }
            }
            h.into_iter().map(|h| h.max(0.0)).collect()
        };
        let h: Vec<f64> = nodes.iter().flat_map(|&v| row(v)).collect();
        let hidden = |row: &[f64], j: usize| {
            (k_bias[j] + (0..4).map(|i| row[i] * k[i * 4 + j]).sum::<f64>()).tanh()
        };
        let score: f64 =
            h.chunks_exact(4).map(|row| (0..4).map(|j| q[j] * hidden(row, j)).sum::<f64>()).sum();
        (h, score / nodes.len().max(1) as f64)
    };
    let all: Vec<(Vec<f64>, f64)> = g.schema().etypes_into(ntype).map(of_relation).collect();
    let total: f64 = all.iter().map(|(_, score)| score.exp()).sum();
    (0..4 * nodes.len())
        .map(|i| all.iter().map(|(h, score)| score.exp() / total * h[i]).sum())
        .collect()
}

/// HAN with `local_scores` gives the formula over the nodes that the view computes.
fn by_local_scores<G: GraphView>(
    g: &G,
    inputs: [&[u64]; 2],
    computed: [&[u64]; 2],
    (device, tolerance): (&Device, f64),
) {
    let config = HanConvConfig::from_graph(g, [("a", 3), ("b", 3)], 2, 2).with_local_scores(true);
    let layer = |device: &Device| cast(seeded(1, || config.init(device)), device);
    let x = [("a", rows("x0", inputs[0], 3, device)), ("b", rows("x1", inputs[1], 3, device))];
    for (t, y) in layer(device).forward(g, x).into_values().into_iter().enumerate() {
        let (got, want) = (list(y), han(&layer(&Device::flex()), t, computed[t]));
        let near = got.iter().zip(&want).all(|(a, b)| (a - b).abs() <= tolerance * (1.0 + b.abs()));
        assert!(
            near && got.len() == want.len(),
            "{device:?}, type {t}, nodes {:?}: {got:?} instead of {want:?}",
            computed[t]
        );
    }
}

/// [`three`] in parts; the last part owns no node of `a`.
fn last_without_a(parts: usize) -> PartitionedGraph {
    let owners =
        |n: usize, parts: usize| (0..n).map(|v| (v * 7 % parts) as u32).collect::<Vec<_>>();
    let custom =
        PartitionMethod::custom([("a", owners(30, (parts - 1).max(1))), ("b", owners(20, parts))]);
    partition_graph(&three(), &PartitionConfig::new("g", parts).with_method(custom)).unwrap()
}

/// Burn 0.22.1 panics in ReLU of a tensor without rows on GPU backends: an index underflows.
fn devices_without_rows() -> impl Iterator<Item = (Device, f64)> {
    devices().into_iter().take(2)
}

#[test]
fn han_conv_by_local_scores_is_the_formula_over_the_nodes_of_a_part() {
    let all: Vec<u64> = (0..30).collect();
    devices().iter().for_each(|(device, tolerance)| {
        by_local_scores(&three(), [&all, &all[..20]], [&all, &all[..20]], (device, *tolerance))
    });
    for (device, tolerance) in devices_without_rows() {
        let at = (&device, tolerance);
        for parts in [1, 2, 3] {
            let cut = last_without_a(parts);
            run_ranks(parts, |comm| -> Result<_, DistError> {
                let part = LocalPartition::new(&cut.part(comm.rank())?, comm, &device)?;
                let ids = [part.inner_nodes(0).to_vec(), part.inner_nodes(1).to_vec()];
                assert_eq!(ids[0].is_empty(), parts > 1 && part.comm().rank() + 1 == parts);
                by_local_scores(&part, [&ids[0], &ids[1]], [&ids[0], &ids[1]], at);
                Ok(())
            })
            .unwrap();
        }
    }
}

/// Seeds of both types for each rank: rank 1 has no seeds of one type, rank 2 has no seeds.
fn seeds_of(rank: usize) -> [Vec<u64>; 2] {
    match rank {
        0 => [vec![3, 0, 17, 29], vec![5, 19]],
        1 => [vec![], vec![1, 2, 3]],
        _ => [vec![], vec![]],
    }
}

#[test]
fn han_conv_by_local_scores_is_the_formula_over_the_nodes_of_a_batch() {
    for (device, tolerance) in devices_without_rows() {
        for parts in [1, 2, 3] {
            let cut = last_without_a(parts);
            run_ranks(parts, |comm| -> Result<_, DistError> {
                let d = DistGraph::from_partition(cut.part(comm.rank())?, comm)?;
                let seeds = seeds_of(d.comm().rank());
                let ids = [d.find_nodes("a", &seeds[0])?, d.find_nodes("b", &seeds[1])?];
                let batch = DistSampler::new(&d, [-1])?
                    .sample([("a", &ids[0]), ("b", &ids[1])], SampleKey::new(1))?;
                let block = &batch.mini.blocks[0];
                let (a, b) = (block.original_ids(0), block.original_ids(1));
                by_local_scores(block, [a, b], [&seeds[0], &seeds[1]], (&device, tolerance));
                Ok(())
            })
            .unwrap();
        }
    }
}

/// On blocks that several ranks sample, with degrees from the owner ranks, layers give the results
/// of blocks of a single machine.
#[test]
fn layers_on_blocks_of_ranks_are_those_on_blocks_of_one_machine() {
    let g = three();
    let key = SampleKey::new(4).at(1, 2);
    let names =
        ["custom", "hetero custom", "sage mean", "graph by in-degrees", "gat with edges", "hgt"];
    let layers: Vec<(&str, Run)> =
        LAYERS.into_iter().filter(|(name, _)| names.contains(name)).collect();
    for device in burn_gnn_testutil::devices() {
        for parts in [1, 2, 3] {
            let cut = last_without_a(parts);
            run_ranks(parts, |comm| -> Result<_, DistError> {
                let d = DistGraph::from_partition(cut.part(comm.rank())?, comm)?;
                // Every rank has seeds of each type, because some layers compute only one type.
                let rank = d.comm().rank() as u64;
                let seeds = [vec![rank, 7 + rank, 20], vec![2 * rank, 9]];
                let ids = [d.find_nodes("a", &seeds[0])?, d.find_nodes("b", &seeds[1])?];
                let got =
                    DistSampler::new(&d, [3, 2])?.sample([("a", &ids[0]), ("b", &ids[1])], key)?;
                let narrow = seeds.map(|ids| ids.iter().map(|&v| v as u32).collect::<Vec<_>>());
                let want = NeighborSampler::new(&g, [3, 2])?
                    .sample([("a", &narrow[0]), ("b", &narrow[1])], key)?;
                for (i, (got, want)) in got.mini.blocks.iter().zip(&want.blocks).enumerate() {
                    assert!(got.src_in_degrees(T).is_some() && got.src_in_degrees(R).is_none());
                    assert_eq!(got.src_in_degrees(T), want.src_in_degrees(T), "block {i}");
                    let (a, b) = (want.original_ids(0), want.original_ids(1));
                    for &(name, layer) in &layers {
                        let run = |block| run_on_block(block, layer, [a, b], &device);
                        assert_eq!(
                            run(got),
                            run(want),
                            "{name} on block {i}, rank {rank} of {parts}"
                        );
                    }
                }
                Ok(())
            })
            .unwrap();
        }
    }
}

/// Results by node type.
fn run_on_block(
    block: &Block,
    layer: Run,
    ids: [&[u64]; 2],
    device: &Device,
) -> Vec<(usize, Vec<f64>)> {
    // On an autodiff device, so that dropout by the key of the block is active.
    let device = &device.clone().autodiff();
    let x = [0, 1].map(|t: usize| rows(&format!("x{t}"), ids[t], 3, device));
    seeded(1, || layer(block, x, device)).into_iter().map(|(t, y)| (t, list(y.inner()))).collect()
}

/// Results and gradients of the rows of both types, by node type.
fn run_layer<G: GraphView>(
    g: &G,
    layer: Run,
    ids: [&[u64]; 2],
    device: &Device,
) -> Vec<(usize, usize, Vec<f64>)> {
    let device = device.clone().autodiff();
    let x = [0, 1].map(|t: usize| rows(&format!("x{t}"), ids[t], 3, &device).require_grad());
    let results = seeded(1, || layer(&g.at_step(STEP.0, STEP.1), x.clone(), &device));
    let loss = results
        .iter()
        .map(|(t, y)| (y.clone() * rows("c", ids[*t], y.dims()[1], &device)).sum())
        .reduce(|a, b| a + b);
    let grads = loss.unwrap().backward();
    let mut out: Vec<_> =
        results.into_iter().map(|(t, y)| (t, y.dims()[1], list(y.inner()))).collect();
    out.extend(x.iter().enumerate().filter_map(|(t, x)| Some((t, 3, list(x.grad(&grads)?)))));
    out
}

/// On every device, the whole graph and its parts give the results of Flex in f64.
#[test]
fn layers_on_parts_are_the_layers() {
    let g = three();
    let all: Vec<u64> = (0..30).collect();
    for (device, tolerance) in devices() {
        for (name, layer) in LAYERS {
            let want = run_layer(&g, layer, [&all, &all[..20]], &Device::flex());
            for ((t, _, got), (_, _, want)) in
                run_layer(&g, layer, [&all, &all[..20]], &device).iter().zip(&want)
            {
                let near =
                    got.iter().zip(want).all(|(a, b)| (a - b).abs() <= tolerance * (1.0 + b.abs()));
                assert!(
                    near && got.len() == want.len(),
                    "{name} on {device:?}, type {t}: {got:?} instead of {want:?}"
                );
            }
            for parts in [2, 3] {
                let cut = partition_graph(
                    &g,
                    &PartitionConfig::new("g", parts).with_method(PartitionMethod::Random),
                )
                .unwrap();
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
                            let near = row
                                .iter()
                                .zip(want)
                                .all(|(a, b)| (a - b).abs() <= tolerance * (1.0 + b.abs()));
                            assert!(
                                near,
                                "{name} on {device:?}, {parts} parts, node {id} of type {t}: {row:?} instead of {want:?}"
                            );
                        }
                    }
                }
            }
        }
    }
}
