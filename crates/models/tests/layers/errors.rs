//! Error messages of layers for invalid settings and shapes.

use burn::tensor::{Device, FloatDType, Tensor};
use burn_gnn_graph::Graph;
use burn_gnn_models::*;
use burn_gnn_ops::{Edges, GraphView};
use burn_gnn_sampling::ToBlock;
use burn_gnn_testutil::panic_text;

use crate::fixtures::registry::each_layer;
use crate::fixtures::views::{View, graph};
use crate::formulas::two_types;
use crate::matrix;

#[test]
fn refusals_of_layers() {
    let d = &Device::flex();
    let text = |e: ModelError| e.to_string();
    assert_eq!(
        text(GatConvConfig::new(3, 2, 0).try_init(d).unwrap_err()),
        "`num_heads` must lie in 1.., got 0"
    );
    assert!(
        text(GatConvConfig::new(3, 2, 1).with_dropout(1.0).try_init(d).unwrap_err())
            .contains("0.0..1.0, got 1")
    );
    assert!(
        text(GatConvConfig::new(3, 2, 1).with_negative_slope(f64::NAN).try_init(d).unwrap_err())
            .contains("`negative_slope`")
    );
    let shared =
        Gatv2ConvConfig::new(3, 2, 1).with_share_weights(true).with_d_dst(Some(4)).try_init(d);
    assert_eq!(
        text(shared.unwrap_err()),
        "`d_dst`: expected 3 (sources and destinations share a weight), got 4; give 3"
    );
    assert!(
        text(GinConvConfig::new(vec![3]).try_init(d).unwrap_err()).contains("`number of widths`")
    );
    assert!(
        text(GineConvConfig::new(3, vec![4, 2]).try_init(d).unwrap_err())
            .starts_with("`widths[0]`: expected 3")
    );
    assert!(text(EdgeConvConfig::new(3, vec![]).try_init(d).unwrap_err()).contains("got 0"));
    assert!(text(PnaConvConfig::new(3, 2, 0.0).try_init(d).unwrap_err()).contains("`delta`"));
    let towers = PnaConvConfig::new(3, 4, 0.9).with_towers(2);
    assert_eq!(
        text(towers.clone().with_divide_input(true).try_init(d).unwrap_err()),
        "`towers` = 2 must divide d_input = 3; choose d_input as a multiple of 2"
    );
    assert_eq!(
        text(towers.clone().with_towers(3).try_init(d).unwrap_err()),
        "`towers` = 3 must divide d_output = 4; choose d_output as a multiple of 3"
    );
    assert_eq!(
        text(towers.clone().with_towers(0).try_init(d).unwrap_err()),
        "`towers` must lie in 1.., got 0"
    );
    assert_eq!(
        text(towers.with_pre_layers(0).try_init(d).unwrap_err()),
        "`pre_layers` must lie in 1.., got 0"
    );
    assert!(
        text(PnaConvConfig::new(3, 2, 1.0).with_std_eps(0.0).try_init(d).unwrap_err())
            .contains("`std_eps`")
    );
    assert!(
        text(
            PnaConvConfig::new(3, 2, 1.0)
                .with_mixing(true)
                .with_batch_norm(true)
                .try_init(d)
                .unwrap_err()
        )
        .contains("`mixing`")
    );
    assert!(
        text(AppnpConvConfig::new().with_alpha(1.5).try_init(d).unwrap_err())
            .contains("0.0..=1.0, got 1.5")
    );
    assert!(
        text(
            TransformerConvConfig::new(3, 2, 1)
                .with_root_weight(false)
                .with_beta(true)
                .try_init(d)
                .unwrap_err()
        )
        .contains("`beta`")
    );
    assert!(
        text(
            HgtConvConfig::new(3, 2, 1, 1, 2)
                .with_relations(Some(vec![0]))
                .try_init(d)
                .unwrap_err()
        )
        .contains("one per edge type")
    );
    assert!(
        text(HanConvConfig::from_graph(&two_types(), [("a", 3)], 2, 1).try_init(d).unwrap_err())
            .contains("`b`")
    );
    assert!(
        text(
            JumpingKnowledgeConfig::new(Jumping::Lstm).with_num_layers(1).try_init(d).unwrap_err()
        )
        .contains("num_layers · d / 2")
    );
    assert!(
        text(ResGatedGraphConvConfig::new(3, 0).try_init(d).unwrap_err()).contains("`d_output`")
    );
    let (gated, x) = (ResGatedGraphConvConfig::new(3, 2).with_d_edge(Some(2)).init(d), || {
        Tensor::<2>::ones([6, 3], d)
    });
    let g = graph();
    let edges = || g.edge_type("_E").unwrap();
    assert_eq!(
        panic_text(|| gated.forward(edges(), x())),
        "res_gated_graph_conv: edge features of size 2 (`d_edge`) are required; set them with `Edges::with_features`, `[num_edges, 2]`"
    );
    let wide = || Tensor::<2>::ones([8, 5], d);
    assert_eq!(
        panic_text(|| gated.forward(edges().with_features(wide()), x())),
        "res_gated_graph_conv: edge features: expected [8, 2] (`d_edge`), got [8, 5]"
    );
    let bare = ResGatedGraphConvConfig::new(3, 2).init(d);
    assert!(
        panic_text(|| bare.forward(edges().with_features(wide()), x()))
            .contains("set `d_edge` of the layer to 5")
    );
    assert!(text(GatedGraphConvConfig::new(0, 1).try_init(d).unwrap_err()).contains("`hidden`"));
    assert!(
        text(
            HgtConfig::new(2)
                .with_hidden(6)
                .try_init(&two_types(), TypeMap::default(), d)
                .unwrap_err()
        )
        .contains("must divide hidden")
    );
}

#[test]
fn edge_features_that_are_missing_or_not_expected() {
    let (d, g) = (&Device::flex(), crate::fixtures::views::graph());
    let x = || matrix(d, "x", 6, 4).cast(FloatDType::F32);
    let edges = |rows| {
        g.edge_type("_E").unwrap().with_features(matrix(d, "e", rows, 3).cast(FloatDType::F32))
    };
    let gat = |d_edge| GatConvConfig::new(4, 2, 1).with_d_edge(d_edge).init(d);
    let gatv2 = |d_edge| Gatv2ConvConfig::new(4, 2, 1).with_d_edge(d_edge).init(d);
    let none = panic_text(|| gat(Some(3)).forward(&g, x()));
    assert_eq!(
        none,
        "gat_conv: edge features of size 3 (`d_edge`) are required; set them with `Edges::with_features`, `[num_edges, 3]`"
    );
    let some = panic_text(|| gat(None).forward(edges(8), x()));
    assert_eq!(
        some,
        "gat_conv: expected no edge features, got some of size 3; set `d_edge` of the layer to 3"
    );
    let one = panic_text(|| gat(Some(3)).forward(edges(1), x()));
    assert_eq!(
        one,
        "gat_conv: edge features: expected 8 rows (one per edge of the relation), got 1"
    );
    let one = panic_text(|| gatv2(Some(3)).forward(edges(1), x()));
    assert_eq!(
        one,
        "gatv2_conv: edge features: expected 8 rows (one per edge of the relation), got 1"
    );
    let none = panic_text(|| gatv2(Some(3)).forward(&g, x()));
    assert_eq!(
        none,
        "gatv2_conv: edge features of size 3 (`d_edge`) are required; set them with `Edges::with_features`, `[num_edges, 3]`"
    );
    // What a layer does not read is refused, not ignored.
    let weighted = || g.edge_type("_E").unwrap().with_weight(Tensor::<1>::ones([8], d));
    let text = |what: &str, layer: &str| {
        format!(
            "{layer}: expected no edge {what}, got some; remove them, this layer does not use them"
        )
    };
    assert_eq!(panic_text(|| gatv2(None).forward(weighted(), x())), text("weights", "gatv2_conv"));
    assert_eq!(
        panic_text(|| GcnConvConfig::new(4, 2).init(d).forward(edges(8), x())),
        text("features", "gcn_conv")
    );
    assert_eq!(
        panic_text(|| AppnpConvConfig::new().init(d).forward(edges(8), x())),
        text("features", "appnp_conv")
    );
    let hetero = HeteroGraphConvConfig::new().init(g.schema(), |_| gatv2(None));
    let typed = g.edge_types().with_weight("_E", Tensor::<1>::ones([8], d)).unwrap();
    assert_eq!(panic_text(|| hetero.forward(&typed, x())), text("weights", "gatv2_conv"));
    let hgt = HgtConvConfig::from_graph(&g, 4, 2, 1).init(d);
    let bare = panic_text(|| hgt.forward(&typed, x()));
    assert_eq!(
        bare,
        "hgt_conv: expected no edge weights, got some of `_N:_E:_N`; remove them, this layer does not use them"
    );
}

/// The layer is named and the type, not the operator inside that would not fit.
#[test]
fn features_of_another_size() {
    let (device, g) = (Device::flex(), graph());
    let (x, e) = (matrix(&device, "x", 6, 5), matrix(&device, "e", 8, 3));
    macro_rules! refuses {
        ($name:expr, $make:expr, $run:expr $(,)?) => {{
            let name: &str = $name;
            // It takes features of any size.
            if name != "gcn_conv without weight" {
                let found = panic_text(|| refused($make(), $run, &g, (x.clone(), e.clone())));
                let layer = name.split(' ').next().unwrap();
                let expected =
                    [&format!("{layer}: ")[..], "type `_N", "features of size 4, got [6, 5]"];
                assert!(
                    found.starts_with(expected[0])
                        && expected.iter().all(|part| found.contains(part)),
                    "{name}: {found}"
                );
            }
        }};
    }
    each_layer!(refuses, &device);
    let pair = |of_dst: usize, layer: SageConv| {
        let of_dst = matrix(&device, "x", g.num_dst(0), of_dst).cast(FloatDType::F32);
        panic_text(|| layer.forward(&g, (matrix(&device, "x", 6, 4).cast(FloatDType::F32), of_dst)))
    };
    for aggregator in [SageAggregator::Mean, SageAggregator::Gcn] {
        let found = pair(1, SageConvConfig::new(4, 8).with_aggregator(aggregator).init(&device));
        assert_eq!(
            found,
            "sage_conv: edge type `_N:_E:_N`: expected destination features of size 4, got [6, 1]"
        );
    }
}

#[test]
fn rows_and_types_that_are_missing() {
    let d = &Device::flex();
    let ones = |rows: usize| Tensor::<2>::ones([rows, 2], d);
    let conv = || SageConvConfig::new(2, 3).init(d);
    let found = panic_text(|| conv().forward(&graph(), ones(7)));
    let expected =
        "sage_conv: edge type `_N:_E:_N`: expected 6 rows of source features (one per node), got 7";
    assert!(found.starts_with(expected), "{found}");
    let edges = (vec![0], vec![1]);
    let typed =
        Graph::builder().nodes("a", 2).nodes("b", 3).edges(("a", "r", "b"), edges.0, edges.1);
    let typed = typed.build().unwrap();
    let hetero = HeteroGraphConvConfig::new().init(typed.schema(), |_| conv());
    let found = panic_text(|| hetero.forward(&typed, [("b", ones(3))]));
    let expected = "hetero_graph_conv: edge type `a:r:b`: expected features of its source type `a`, got those of [\"b\"]";
    assert!(found.starts_with(expected), "{found}");
}

fn refused<M>(
    layer: M,
    run: impl Fn(&M, &dyn GraphView, Tensor<2>, Tensor<2>) -> Tensor<2>,
    g: &dyn GraphView,
    (x, e): (Tensor<2>, Tensor<2>),
) -> Tensor<2> {
    run(&layer, g, x, e)
}

#[test]
fn norms_and_weights_that_a_graph_or_layer_does_not_have() {
    let (d, g) = (&Device::flex(), two_types());
    let b = matrix(d, "x", 3, 4).cast(FloatDType::F32);
    let conv = GcnConvConfig::new(4, 2).with_norm(DegreeNorm::BothIn).init(d);
    let two = panic_text(|| conv.forward(g.edge_type("t").unwrap(), (b.clone(), b.clone())));
    assert!(two.starts_with("gcn_conv: `DegreeNorm::BothIn` needs the in-degrees of all input rows over edge type `b:t:a`"), "{two}");
    let few = panic_text(|| conv.forward(g.edge_type("r").unwrap(), b.clone()));
    assert!(few.starts_with("gcn_conv: `DegreeNorm::BothIn`: expected 4 rows (input rows of edge type `a:r:a`), got 3"), "{few}");
    let own = panic_text(|| conv.with_weight(Tensor::ones([4, 2], d)));
    assert_eq!(
        own,
        "gcn_conv: this layer already has a weight; set `weight` to false in its config to pass one"
    );
}

#[test]
fn weights_that_one_rank_refuses() {
    let d = &Device::flex();
    let (nodes, edges) = ((0..6).collect::<Vec<u64>>(), (0..8).collect::<Vec<u64>>());
    let refused = |norm, weight: &[f32]| {
        let view = View::renumbered(&graph(), &nodes, &edges);
        let e = EdgeWeightNorm::new()
            .with_norm(norm)
            .forward(&view, Tensor::from_data(weight, d))
            .unwrap_err();
        (e.to_string(), view.exchanges.into_inner())
    };
    let negative = [1.0, 1.0, -1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    let want = "`weight of edge 2` must lie in numbers not below 0, got -1".to_owned();
    assert_eq!(refused(DegreeNorm::BothIn, &negative), (want.clone(), 1));
    assert_eq!(
        refused(DegreeNorm::BothIn, &negative[3..]),
        ("`weight`: expected 8 (one per edge of the relation), got 5; give 8".into(), 1)
    );
    assert_eq!(refused(DegreeNorm::Both, &negative), (want, 0));
}

#[test]
fn rows_queries_and_layers_out_of_range() {
    let (d, g) = (&Device::flex(), two_types());
    let rows = NodeEmbedding::new(&g, ["b"], 2, d).unwrap();
    assert_eq!(rows.rows_of("b", &[2, 0, 2]).unwrap().dims(), [3, 2]);
    let far = panic_text(|| rows.rows_of("b", &[2, 0, 3]));
    assert_eq!(far, "node_embedding: `ids[2]` must lie in 0..3 (rows of node type `b`), got 3");
    let blocks = g
        .in_subgraph([("a", vec![1u32])], burn_gnn_graph::Relabel::No)
        .unwrap()
        .to_block(&g, [("a", vec![1u32])])
        .unwrap();
    let blocks = [blocks];
    let far = panic_text(|| blocks[..].view(1).num_dst(0));
    assert_eq!(far, "`layer` must lie in 0..1 (one block per layer), got 1; sample more hops");
    let none: &[burn_gnn_sampling::Block] = &[];
    let empty = panic_text(|| none.input_nodes(0).map(<[u32]>::len));
    assert_eq!(empty, "`layer` must lie in 0..0 (one block per layer), got 0; sample more hops");
}

/// Edge types are taken by name, or by a number that is checked; every layer takes what comes out.
#[test]
fn edge_types_that_are_not_there() {
    let (d, g) = (&Device::flex(), two_types());
    let x = || matrix(d, "x", 4, 4).cast(FloatDType::F32);
    let unknown = |key: Result<_, burn_gnn_graph::GraphError>| {
        key.map(|_: Edges<'_>| ()).unwrap_err().to_string()
    };
    for text in [
        unknown(g.edge_type("nope")),
        unknown(g.edge_type(3)),
        unknown(g.edge_type(("a", "t", "b"))),
    ] {
        assert!(text.contains("unknown edge type") && text.contains("b:t:a"), "{text}");
    }
    // Of several edge types one must be named.
    let conv = GcnConvConfig::new(4, 2).init(d);
    let several = panic_text(|| conv.forward(&g, x()));
    assert!(several.contains("a:r:a") && several.contains("take one by name"), "{several}");
    assert!(panic_text(|| PnaConvConfig::from_edges(&g, 4, 2)).contains("take one by name"));
    let pair = panic_text(|| conv.forward(g.edge_type("t").unwrap(), x()));
    assert_eq!(
        pair,
        "gcn_conv: edge type `b:t:a` joins two node types; pass the features of both, `(src, dst)`"
    );
    // Node types are names too.
    let conv = RelGraphConvConfig::from_graph(&g, 4, 2).init(d);
    let missing = panic_text(|| conv.forward(&g, [("a", x())]));
    assert_eq!(
        missing,
        "rel_graph_conv: no features of node type `b`; pass those of every node type"
    );
    assert!(panic_text(|| conv.forward(&g, [("c", x())])).contains("unknown node type"));
    let rows = panic_text(|| DropoutKey::new(d).dropout(&g.at_step(0, 0), 2, 0.5, x()));
    assert!(rows.starts_with("dropout: ") && rows.contains("unknown node type"), "{rows}");
}
