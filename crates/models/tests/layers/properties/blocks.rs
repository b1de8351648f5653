//! On blocks with all neighbours a model computes the same as on the graph: every model and node type, with and without
//! dropout, and gradients. The same holds for a layer of several hops with a block per hop.

use burn::module::Module;
use burn::tensor::{Device, FloatDType, Tensor};
use burn_gnn_graph::Graph;
use burn_gnn_models::*;
use burn_gnn_ops::GraphView;
use burn_gnn_sampling::{Fanouts, MiniBatch, NeighborSampler, SampleKey};
use burn_gnn_testutil::panic_text;
use proptest::prelude::*;

use crate::fixtures::random::{hetero, homogeneous};
use crate::fixtures::registry::{each_model, each_typed_model};
use crate::properties::inference::typed_features;
use crate::properties::numbering::Collect;
use crate::{STEP, assert_close, devices, matrix, values};

fn f64s<M: Module>(model: M) -> M {
    to_dtype(model, FloatDType::F64)
}

fn pick(x: &Tensor<2>, ids: &[u32]) -> Tensor<2> {
    if ids.is_empty() {
        return x.clone().slice_dim(0, 0..0);
    }
    Tensor::cat(
        ids.iter().map(|&i| x.clone().slice_dim(0, i as usize..i as usize + 1)).collect(),
        0,
    )
}

/// Blocks with all neighbours around two of three nodes of every type, or of one type alone.
fn batch(g: &Graph, hops: usize, alone: Option<usize>) -> MiniBatch {
    let of = |(t, &n): (usize, &usize)| match alone {
        Some(only) if only != t => vec![],
        _ => (0..n as u32).rev().filter(|v| v % 3 != 1).collect::<Vec<_>>(),
    };
    let seeds: Vec<_> = g.node_counts().iter().enumerate().map(of).collect();
    let sampler = NeighborSampler::new(g, Fanouts::all(hops)).unwrap();
    // Blocks have the seed and step of their sample, which all neighbours do not depend on.
    sampler
        .sample(g.schema().ntypes().iter().zip(&seeds), SampleKey::new(STEP.0).at(0, STEP.1))
        .unwrap()
}

fn inputs(batch: &MiniBatch, x: &NodeTensors) -> NodeTensors {
    let schema = batch.blocks[0].schema();
    x.clone().map(|ntype, x| pick(&x, batch.input_nodes(schema.ntype(ntype).unwrap())))
}

fn same<M: NodeClassifier>(
    name: &str,
    layers: usize,
    model: &M,
    (g, x): (&Graph, &NodeTensors),
    passes: &[bool],
) {
    let types = g.node_counts().len();
    for (target, alone) in (0..types).flat_map(|t| [(t, Some(t)), (t, None)]) {
        let (batch, ntype) = (batch(g, layers, alone), &g.schema().ntypes()[target]);
        for &trains in passes {
            let model = if trains { model.clone() } else { model.valid() };
            let got = model.logits_blocks(&batch.blocks, &inputs(&batch, x), ntype);
            let want = pick(
                &model.logits(&g.at_step(STEP.0, STEP.1), x, ntype),
                batch.output_nodes(target),
            );
            assert_close(
                &format!("{name}, type {target} of {alone:?}, trains: {trains}"),
                &values(&got),
                &values(&want),
                1e-10,
            );
        }
    }
}

fn models_of_one_type(g: &Graph, device: &Device) {
    let x = NodeTensors::from([("_N", matrix(device, "x", g.node_counts()[0], 4))]);
    macro_rules! check {
        ($name:expr, $layers:expr, $model:expr) => {
            same($name, $layers, &f64s($model), (g, &x), &[false, true])
        };
    }
    let tracked = &device.clone().autodiff();
    each_model!(check, tracked);
    // Its means in training are those of the rows that are computed.
    let gin =
        GinConfig::new(4, 2).with_hidden(5).with_num_layers(2).with_batch_norm(true).init(tracked);
    same("gin with batch normalisation", 2, &f64s(gin), (g, &x), &[false]);
}

fn models_of_several_types(g: &Graph, device: &Device) {
    let x = typed_features(g, device);
    macro_rules! check {
        ($name:expr, $layers:expr, $model:expr) => {
            same($name, $layers, &f64s($model), (g, &x), &[false, true])
        };
    }
    let tracked = &device.clone().autodiff();
    each_typed_model!(check, g, tracked);
    let one_hot = RgcnConfig::new(2)
        .with_hidden(3)
        .with_num_layers(3)
        .with_weights(RelWeights::Basis(2))
        .with_one_hot(true);
    let one_hot = one_hot.try_init(g, TypeMap::default(), tracked).unwrap();
    same("rgcn of one-hot inputs", 3, &f64s(one_hot), (g, &NodeTensors::default()), &[false, true]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn models_on_blocks_give_what_the_graph_gives(g in homogeneous(), h in hetero()) {
        for device in &devices() {
            seeded(0, || models_of_one_type(&g, device));
            seeded(0, || models_of_several_types(&h, device));
        }
    }
}

/// Every type is reached by two relations or more, and every node by an edge.
fn three_types() -> Graph {
    let builder = Graph::builder().nodes("a", 4).nodes("b", 3).nodes("c", 3);
    let builder = builder.edges(("a", "r", "b"), vec![0, 1, 2, 3, 3], vec![0, 1, 2, 2, 2]);
    let builder = builder.edges(("b", "s", "a"), vec![0, 1, 2, 0], vec![0, 1, 2, 3]);
    let builder = builder.edges(("c", "t", "a"), vec![0, 1, 2, 2], vec![0, 0, 1, 3]);
    builder
        .edges(("a", "u", "c"), vec![0, 1, 3], vec![0, 1, 2])
        .edges(("c", "v", "c"), vec![1, 2], vec![0, 0])
        .build()
        .unwrap()
}

fn gradients<M: NodeClassifier>(
    name: &str,
    layers: usize,
    model: &M,
    (g, x): (&Graph, &NodeTensors),
) {
    let batch = batch(g, layers, None);
    for (target, ntype) in g.schema().ntypes().iter().enumerate() {
        let of = |logits: Tensor<2>| {
            let [rows, columns] = logits.dims();
            let weights = matrix(&logits.device().without_autodiff(), "loss", rows, columns);
            let grads = (logits * Tensor::from_inner(weights)).sum().backward();
            let mut all = Collect(&grads, vec![]);
            model.visit(&mut all);
            all.1
        };
        let got = of(model.logits_blocks(&batch.blocks, &inputs(&batch, x), ntype));
        let want = of(pick(
            &model.logits(&g.at_step(STEP.0, STEP.1), x, ntype),
            batch.output_nodes(target),
        ));
        assert!(want.iter().any(|d| *d != 0.0), "{name}: no gradient at all");
        assert_close(&format!("{name}, gradients for type {target}"), &got, &want, 1e-9);
    }
}

#[test]
fn gradients_on_blocks_are_those_of_the_graph() {
    for device in devices().into_iter().map(Device::autodiff) {
        let plain = device.clone().without_autodiff();
        let g = crate::fixtures::views::graph();
        let x = NodeTensors::from([("_N", Tensor::from_inner(matrix(&plain, "x", 6, 4)))]);
        macro_rules! check {
            ($name:expr, $layers:expr, $model:expr) => {
                gradients($name, $layers, &f64s($model), (&g, &x))
            };
        }
        seeded(0, || each_model!(check, &device));
        let g = three_types();
        let x = typed_features(&g, &plain).map(|_, x| Tensor::from_inner(x));
        macro_rules! check {
            ($name:expr, $layers:expr, $model:expr) => {
                gradients($name, $layers, &f64s($model), (&g, &x))
            };
        }
        seeded(0, || each_typed_model!(check, &g, &device));
    }
}

/// Edges by turns of two types between nodes of one type.
fn two_relations() -> Graph {
    let builder =
        Graph::builder().nodes("n", 6).edges(("n", "r", "n"), vec![0, 1, 3, 4], vec![1, 2, 4, 0]);
    builder.edges(("n", "s", "n"), vec![1, 2, 3, 2], vec![1, 4, 4, 0]).build().unwrap()
}

#[test]
fn layers_of_several_hops_take_a_block_for_each() {
    const HOPS: usize = 3;
    for device in &devices() {
        let g = crate::fixtures::views::graph();
        let (x, w) = (matrix(device, "x", 6, 4), matrix(device, "w", 8, 1) + 1.5);
        let batch_of = |g: &Graph| batch(g, HOPS, None);
        let all = batch_of(&g);
        let rows = |y: &Tensor<2>| values(&pick(y, all.output_nodes(0)));
        let input = pick(&x, all.input_nodes(0));
        let column = |w: Tensor<2>| w.squeeze_dim::<1>(1);
        let of_blocks: Vec<_> =
            all.blocks.iter().map(|b| column(pick(&w, b.edge_ids(0)))).collect();
        for weighted in [false, true] {
            let whole =
                || g.edge_type("_E").unwrap().with_weight(weighted.then(|| column(w.clone())));
            let hops = || all.blocks.iter().zip(&of_blocks);
            let parts: Vec<_> = hops()
                .map(|(b, w)| b.edge_type("_E").unwrap().with_weight(weighted.then(|| w.clone())))
                .collect();
            for width in [3, 6] {
                let sg =
                    f64s(seeded(1, || SgConvConfig::new(4, width).with_hops(HOPS).init(device)));
                let want = rows(&sg.forward(whole(), x.clone()));
                assert_close(
                    "sg_conv",
                    &values(&sg.forward_hops(&parts, input.clone())),
                    &want,
                    1e-12,
                );
            }
            let appnp = seeded(1, || {
                AppnpConvConfig::new()
                    .with_hops(HOPS)
                    .with_alpha(0.3)
                    .with_dropout(0.4)
                    .init(device)
            });
            let want = rows(&appnp.forward(whole(), x.clone()));
            assert_close(
                "appnp_conv",
                &values(&appnp.forward_hops(&parts, input.clone())),
                &want,
                1e-12,
            );
            // With dropout, on an autodiff device.
            let keyed = g.at_step(STEP.0, STEP.1);
            let tracked = |w: &Tensor<1>| weighted.then(|| Tensor::from_inner(w.clone()));
            let edges = keyed.edge_type("_E").unwrap().with_weight(tracked(&column(w.clone())));
            let want = rows(&appnp.forward(edges, Tensor::from_inner(x.clone())));
            let parts: Vec<_> =
                hops().map(|(b, w)| b.edge_type("_E").unwrap().with_weight(tracked(w))).collect();
            assert_close(
                "appnp_conv",
                &values(&appnp.forward_hops(&parts, Tensor::from_inner(input.clone()))),
                &want,
                1e-12,
            );
        }
        for (g, per_step) in [(g, false), (two_relations(), false), (two_relations(), true)] {
            let all = batch_of(&g);
            let gated =
                GatedGraphConvConfig::from_graph(&g, 5, HOPS).with_weight_per_step(per_step);
            let gated = crate::formulas::drawn(gated.init(device));
            let want = pick(&gated.forward(&g, x.clone()).into_values()[0], all.output_nodes(0));
            let got = gated.forward_blocks(&all.blocks, pick(&x, all.input_nodes(0)));
            assert_close("gated_graph_conv", &values(&got), &values(&want), 1e-12);
        }
    }
}

#[test]
fn a_block_for_every_hop_is_asked_for() {
    let (d, g) = (&Device::flex(), crate::fixtures::views::graph());
    let batch = batch(&g, 2, None);
    let x = || pick(&matrix(d, "x", 6, 4), batch.input_nodes(0));
    let appnp = |hops| AppnpConvConfig::new().with_hops(hops).init(d);
    let hops: Vec<_> = batch.blocks.iter().map(|b| b.edge_type("_E").unwrap()).collect();
    let short = panic_text(|| appnp(3).forward_hops(&hops, x()));
    assert_eq!(short, "appnp_conv: expected one block per layer or hop, 3, got 2; sample 3 hops");
    // One block under all hops.
    let last = &batch.blocks[1];
    let one = panic_text(|| appnp(2).forward(last, pick(&matrix(d, "x", 6, 4), last.src_nodes(0))));
    assert!(one.contains("a block for each hop (`forward_hops`)"), "{one}");
}
