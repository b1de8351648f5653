//! Results of layers on several types do not depend on the numbering of nodes and edges.

use burn::module::Module;
use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use burn_gnn_graph::{EdgeType, Graph};
use burn_gnn_models::*;
use proptest::prelude::*;

use crate::fixtures::random::hetero;
use crate::{assert_close, devices, matrix, typed, values};

/// `g` with node `i` of type `t` named `names[t][i]`, and edges in the order of their new sources.
fn renamed(g: &Graph, names: &[Vec<u32>]) -> Graph {
    let mut b = Graph::builder();
    for (t, &n) in g.schema().ntypes().iter().zip(g.node_counts()) {
        b = b.nodes(t, n);
    }
    for (r, etype) in g.relations().iter().zip(g.schema().etypes()) {
        let (s, d) = (g.schema().ntype(&etype.src).unwrap(), g.schema().ntype(&etype.dst).unwrap());
        let mut endpoints: Vec<(u32, u32)> = r
            .src()
            .iter()
            .zip(r.dst())
            .map(|(&u, &v)| (names[s][u as usize], names[d][v as usize]))
            .collect();
        endpoints.sort_unstable();
        let (src, dst) = endpoints.into_iter().unzip();
        b = b.edges(etype.clone(), src, dst);
    }
    b.build().unwrap()
}

fn numbered() -> impl Strategy<Value = (Graph, Vec<Vec<u32>>)> {
    hetero().prop_flat_map(|g| {
        let names: Vec<_> = g
            .node_counts()
            .iter()
            .map(|&n| Just((0..n as u32).collect::<Vec<_>>()).prop_shuffle())
            .collect();
        (Just(g), names)
    })
}

/// Row `names[i]` of the result is row `i` of `x`.
fn moved(x: &Tensor<2>, names: &[u32]) -> Tensor<2> {
    let ([rows, columns], values_of) = (x.dims(), values(x));
    let mut out = vec![0.0; rows * columns];
    for (i, &name) in names.iter().enumerate() {
        out[name as usize * columns..][..columns]
            .copy_from_slice(&values_of[i * columns..][..columns]);
    }
    Tensor::from_data(TensorData::new(out, [rows, columns]), (&x.device(), x.dtype()))
}

fn same<M: Module>(
    name: &str,
    layer: M,
    run: impl Fn(&M, &Graph, NodeTensors) -> NodeTensors,
    (g, names): (&Graph, &[Vec<u32>]),
    device: &Device,
) {
    let layer = to_dtype(layer, FloatDType::F64);
    let x: Vec<Tensor<2>> = g
        .node_counts()
        .iter()
        .enumerate()
        .map(|(t, &n)| matrix(device, &format!("x{t}"), n, 4))
        .collect();
    let list = |y: NodeTensors| y.into_list(g.schema()).unwrap();
    let want = list(run(&layer, g, typed(g, x.clone())));
    let moved_x = x.iter().zip(names).map(|(x, names)| moved(x, names)).collect();
    let got = list(run(&layer, &renamed(g, names), typed(g, moved_x)));
    for (t, (got, want)) in got.iter().zip(&want).enumerate() {
        assert_eq!(got.is_some(), want.is_some(), "{name}, type {t}");
        if let (Some(got), Some(want)) = (got, want) {
            assert_close(
                &format!("{name}, type {t}"),
                &values(got),
                &values(&moved(want, &names[t])),
                1e-11,
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers_do_not_matter((g, names) in numbered()) {
        for d in &devices() {
            seeded(0, || {
                let on = (&g, &names[..]);
                for weights in [RelWeights::Full, RelWeights::Basis(2), RelWeights::BlockDiagonal(2)] {
                    let layer = RelGraphConvConfig::from_graph(&g, 4, 2).with_weights(weights).init(d);
                    same(&format!("rel_graph_conv {weights:?}"), layer, |l, g, x| l.forward(g, x), on, d);
                }
                let layer = HgtConvConfig::from_graph(&g, 4, 2, 2).with_layer_norm(true).init(d);
                same("hgt_conv", layer, |l, g, x| l.forward(g, x), on, d);
                let layer = HanConvConfig::from_graph(&g, ["a", "b", "c"].map(|t| (t, 4)), 2, 2).init(d);
                same("han_conv", layer, |l, g, x| l.forward(g, x), on, d);
                let make = |_: &EdgeType| GatConvConfig::new(4, 2, 2).init(d);
                let layer = HeteroGraphConvConfig::new().with_aggregate(Reduce::Max).init(g.schema(), make);
                same("hetero_graph_conv of gat_conv", layer, |l, g, x| l.forward(g, x), on, d);
                let make = |_: &EdgeType| SageConvConfig::new(4, 3).with_aggregator(SageAggregator::Pool).init(d);
                let layer = HeteroGraphConvConfig::new().init(g.schema(), make);
                same("hetero_graph_conv of sage_conv", layer, |l, g, x| l.forward(g, x), on, d);
            });
        }
    }
}
