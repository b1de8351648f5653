//! Every layer on relations without edges, without sources, without destinations: forward and backward.

use burn::module::Module;
use burn::tensor::{DType, Device, FloatDType, Tensor};
use burn_gnn_graph::{EdgeType, Graph};
use burn_gnn_models::*;
use burn_gnn_ops::{GraphView, Reduce};

use crate::fixtures::registry::{each_far_layer, each_layer, each_model};
use crate::fixtures::views::{View, graph};
use crate::properties::numbering::Collect;
use crate::{STEP, devices, matrix, typed, values};

/// Backends have loops of their own for f32.
const DTYPES: [DType; 2] = [DType::F64, DType::F32];

/// Results have a row per destination, and they, the gradients of inputs and those of parameters are numbers.
fn learns<M: Module>(what: &str, layer: &M, inputs: &[Tensor<2>], results: &[(Tensor<2>, usize)]) {
    let mut loss = inputs.iter().fold(None, |loss: Option<Tensor<1>>, x| {
        let nothing = (x.clone() * 0.0).sum();
        Some(loss.map_or(nothing.clone(), |loss| loss + nothing))
    });
    for (y, rows) in results {
        assert_eq!(y.dims()[0], *rows, "{what}: rows");
        assert!(values(y).iter().all(|y| y.is_finite()), "{what}: {y}");
        let term = (y.clone() * y.clone() + y.clone()).sum();
        loss = Some(loss.map_or(term.clone(), |loss| loss + term));
    }
    let grads = loss.expect("an input or a result").backward();
    for (i, x) in inputs.iter().enumerate() {
        let d = x.grad(&grads).unwrap_or_else(|| panic!("{what}: no gradient of input {i}"));
        assert_eq!(d.dims(), x.dims(), "{what}: gradient of input {i}");
        assert!(values(&d).iter().all(|d| d.is_finite()), "{what}: gradient of input {i}: {d}");
    }
    let mut params = Collect(&grads, vec![]);
    layer.visit(&mut params);
    assert!(params.1.iter().all(|d| d.is_finite()), "{what}: {:?}", params.1);
}

#[test]
fn one_relation() {
    let bare = |n: usize| Graph::homogeneous(n, vec![], vec![]).unwrap();
    let (three, one, none) = (bare(3), bare(1), bare(0));
    // A node that no edge reaches, and a batch without seeds, of a graph with edges.
    let (lonely, no_seeds) = (View::block(&graph(), &[5]), View::block(&graph(), &[]));
    let views: [(&str, &dyn GraphView); 5] = [
        ("three nodes", &three),
        ("one node", &one),
        ("no node", &none),
        ("a block of one node", &lonely),
        ("a block of none", &no_seeds),
    ];
    for device in devices() {
        let device = &device.autodiff();
        macro_rules! on_nothing {
            ($name:expr, $make:expr, $run:expr $(,)?) => {{
                let layer = seeded(1, $make);
                for (dtype, (view, g)) in DTYPES.into_iter().flat_map(|t| views.map(|v| (t, v))) {
                    let layer = to_dtype(layer.clone(), FloatDType::from(dtype));
                    let what = format!("{}, {view}, {dtype:?}", $name);
                    alone(&what, &layer, $run, g, (device, dtype));
                }
            }};
        }
        each_layer!(on_nothing, device);
        each_far_layer!(on_nothing, device);
    }
}

fn alone<M: Module>(
    what: &str,
    layer: &M,
    run: impl Fn(&M, &dyn GraphView, Tensor<2>, Tensor<2>) -> Tensor<2>,
    g: &dyn GraphView,
    (device, dtype): (&Device, DType),
) {
    assert_eq!(g.relation(0).num_edges(), 0, "{what}");
    let rows = [(g.num_src(0), 4), (0, 3)];
    let inputs =
        rows.map(|(n, d)| matrix(device, &format!("x{d}"), n, d).cast(dtype).require_grad());
    let g = &GraphView::at_step(&g, STEP.0, STEP.1);
    let y = run(layer, g, inputs[0].clone(), inputs[1].clone());
    learns(what, layer, &inputs, &[(y, g.num_dst(0))]);
}

/// Models on graphs without edges and without nodes, as a rank without training rows has them.
#[test]
fn models_of_one_relation() {
    for (nodes, device) in
        [3, 1, 0].into_iter().flat_map(|n| devices().into_iter().map(move |d| (n, d)))
    {
        let g = Graph::homogeneous(nodes, vec![], vec![]).unwrap();
        let device = &device.autodiff();
        macro_rules! on_nothing {
            ($name:expr, $layers:expr, $model:expr) => {{
                let (model, _): (_, usize) = ($model, $layers);
                for dtype in DTYPES {
                    let model = to_dtype(model.clone(), FloatDType::from(dtype));
                    let x = matrix(device, "x", nodes, 4).cast(dtype).require_grad();
                    let y = model.logits(&g, &NodeTensors::from([("_N", x.clone())]), "_N");
                    let what = format!("{}, {nodes} nodes, {dtype:?}", $name);
                    learns(&what, &model, &[x], &[(y, nodes)]);
                }
            }};
        }
        seeded(2, || each_model!(on_nothing, device));
    }
}

#[test]
fn one_relation_of_several() {
    // One relation has edges. The others have none: between nodes, from a type without nodes, into one. Then no relation has edges.
    let of = |r: Vec<u32>| {
        Graph::builder()
            .nodes("a", 3)
            .nodes("b", 2)
            .nodes("c", 0)
            .edges(("a", "r", "b"), r.iter().map(|v| v + 1).collect(), r)
            .edges(("b", "t", "a"), vec![], vec![])
            .edges(("c", "u", "b"), vec![], vec![])
            .edges(("a", "v", "c"), vec![], vec![])
            .build()
            .unwrap()
    };
    for (name, g) in [("some edges", of(vec![0, 1])), ("no edge", of(vec![]))] {
        for (device, dtype) in devices().into_iter().flat_map(|d| DTYPES.map(|t| (d.clone(), t))) {
            let d = &device.autodiff();
            macro_rules! check {
                ($layer:expr, $layer_name:expr) => {{
                    let layer = to_dtype(seeded(0, || $layer), FloatDType::from(dtype));
                    let inputs: Vec<Tensor<2>> = g
                        .node_counts()
                        .iter()
                        .enumerate()
                        .map(|(t, &n)| matrix(d, &format!("x{t}"), n, 4).cast(dtype).require_grad())
                        .collect();
                    let y = layer.forward(&g, typed(&g, inputs.clone()));
                    let y: Vec<_> = y
                        .into_list(g.schema())
                        .unwrap()
                        .into_iter()
                        .zip(g.node_counts())
                        .filter_map(|(y, &n)| Some((y?, n)))
                        .collect();
                    learns(&format!("{}, {name}, {dtype:?}", $layer_name), &layer, &inputs, &y);
                }};
            }
            for weights in [RelWeights::Full, RelWeights::Basis(2), RelWeights::BlockDiagonal(2)] {
                check!(
                    RelGraphConvConfig::from_graph(&g, 4, 2).with_weights(weights).init(d),
                    format!("rel_graph_conv {weights:?}")
                );
            }
            check!(
                HgtConvConfig::from_graph(&g, 4, 2, 2).with_layer_norm(true).init(d),
                "hgt_conv"
            );
            check!(
                HanConvConfig::from_graph(&g, ["a", "b", "c"].map(|t| (t, 4)), 2, 2).init(d),
                "han_conv"
            );
            for reduce in Reduce::ALL {
                let make = |_: &EdgeType| GatConvConfig::new(4, 2, 2).init(d);
                let config = HeteroGraphConvConfig::new().with_aggregate(reduce);
                check!(config.init(g.schema(), make), format!("gat_conv {reduce:?}"));
                let make = |_: &EdgeType| SageConvConfig::new(4, 3).init(d);
                let config = HeteroGraphConvConfig::new().with_aggregate(reduce);
                check!(config.init(g.schema(), make), format!("sage_conv {reduce:?}"));
                let make = |_: &EdgeType| Gatv2ConvConfig::new(4, 2, 2).init(d);
                let config = HeteroGraphConvConfig::new().with_aggregate(reduce);
                check!(config.init(g.schema(), make), format!("gatv2_conv {reduce:?}"));
                let make = |_: &EdgeType| TransformerConvConfig::new(4, 3, 1).init(d);
                let config = HeteroGraphConvConfig::new().with_aggregate(reduce);
                check!(config.init(g.schema(), make), format!("transformer_conv {reduce:?}"));
            }
        }
    }
}
