//! Every layer on one relation, once.

/// Calls `$check!(name, |seed| layer, |layer, graph, x, edge rows, mode| result)` for every layer: 4 columns of nodes, 3 of
/// edges, which layers with edge rows or weights read. Weights are made f64.
macro_rules! each_layer {
    ($check:ident, $device:expr) => {{
        use burn_gnn_models::*;
        let d = $device;
        let w = |e: &burn::tensor::Tensor<2>| e.clone().slice_dim(1, 0..1).squeeze_dim::<1>(1);
        $check!("graph_conv", |s| GraphConvConfig::new(4, 5).with_seed(s).init(d), |l, g, x, e, _| l.forward_on(g, 0, x, Some(w(&e))));
        $check!("graph_conv narrow", |s| GraphConvConfig::new(4, 2).with_seed(s).init(d), |l, g, x, _, _| l.forward(g, x));
        for a in [SageAggregator::Mean, SageAggregator::Gcn, SageAggregator::Pool, SageAggregator::Lstm] {
            let name = format!("sage_conv {a:?}");
            $check!(&name, |s| SageConvConfig::new(4, 3).with_aggregator(a).with_seed(s).init(d), |l, g, x, _, _| l.forward(g, x));
        }
        $check!("sage_conv weighted", |s| SageConvConfig::new(4, 6).with_seed(s).init(d), |l, g, x, e, _| l.forward_on(
            g,
            0,
            x,
            Some(w(&e))
        ),);
        $check!(
            "gat_conv",
            |s| GatConvConfig::new(4, 3, 2).with_residual(true).with_attn_dropout(0.3).with_seed(s).init(d),
            |l, g, x, _, mode| l.forward(g, x, mode),
        );
        $check!("gat_conv weighted", |s| GatConvConfig::new(4, 1, 2).with_concat(false).with_seed(s).init(d), |l, g, x, e, mode| l
            .forward_on(g, 0, x, Some(w(&e)), mode),);
        $check!(
            "gatv2_conv",
            |s| Gatv2ConvConfig::new(4, 3, 2).with_residual(true).with_attn_dropout(0.3).with_seed(s).init(d),
            |l, g, x, _, mode| l.forward(g, x, mode),
        );
        $check!(
            "gatv2_conv shared",
            |s| Gatv2ConvConfig::new(4, 1, 2).with_share_weights(true).with_concat(false).with_seed(s).init(d),
            |l, g, x, _, mode| l.forward(g, x, mode),
        );
        $check!(
            "gin_conv",
            |s| GinConvConfig::new(vec![4, 6, 3]).with_init_eps(0.3).with_learn_eps(true).with_seed(s).init(d),
            |l, g, x, _, _| l.forward(g, x),
        );
        $check!("gine_conv", |s| GineConvConfig::new(4, vec![4, 3]).with_d_edge(Some(3)).with_seed(s).init(d), |l, g, x, e, _| l
            .forward_on(g, 0, x, e),);
        $check!("edge_conv", |s| EdgeConvConfig::new(4, vec![3]).with_seed(s).init(d), |l, g, x, _, _| l.forward(g, x));
        $check!(
            "edge_conv deep",
            |s| EdgeConvConfig::new(4, vec![5, 3]).with_aggregator(Aggregator::Sum).with_seed(s).init(d),
            |l, g, x, _, _| l.forward(g, x),
        );
        $check!("pna_conv", |s| PnaConvConfig::new(4, 3, 0.9).with_seed(s).init(d), |l, g, x, _, _| l.forward_on(g, 0, x, None),);
        $check!(
            "pna_conv with edges",
            |s| {
                let all = vec![PnaAggregator::Sum, PnaAggregator::Min, PnaAggregator::Var];
                PnaConvConfig::new(4, 3, 0.9).with_d_edge(Some(3)).with_aggregators(all).with_seed(s).init(d)
            },
            |l, g, x, e, _| l.forward_on(g, 0, x, Some(e)),
        );
        $check!(
            "transformer_conv",
            |s| TransformerConvConfig::new(4, 3, 2).with_beta(true).with_attn_dropout(0.3).with_seed(s).init(d),
            |l, g, x, _, mode| l.forward(g, x, mode),
        );
        $check!(
            "transformer_conv with edges",
            |s| TransformerConvConfig::new(4, 3, 2).with_d_edge(Some(3)).with_concat(false).with_attn_dropout(0.3).with_seed(s).init(d),
            |l, g, x, e, mode| l.forward_on(g, 0, x, Some(e), mode),
        );
        $check!("sg_conv", |s| SgConvConfig::new(4, 3).with_seed(s).init(d), |l, g, x, e, _| l.forward_on(g, 0, x, Some(w(&e))));
        $check!(
            "rel_graph_conv",
            |s| RelGraphConvConfig::new(4, 6, 1).with_weights(RelWeights::BlockDiagonal(2)).with_layer_norm(true).with_seed(s).init(d),
            |l, g, x, _, _| l.forward(g, vec![x]).swap_remove(0),
        );
        $check!(
            "hgt_conv",
            |s| HgtConvConfig::new(4, 3, 2, 1, 1).with_layer_norm(true).with_dropout(0.3).with_seed(s).init(d),
            |l, g, x, _, mode| l.forward(g, vec![x], mode).swap_remove(0),
        );
    }};
}

/// Layers that go several hops, which a block cannot serve; otherwise as [`each_layer`].
macro_rules! each_far_layer {
    ($check:ident, $device:expr) => {{
        use burn_gnn_models::*;
        let d = $device;
        let w = |e: &burn::tensor::Tensor<2>| e.clone().slice_dim(1, 0..1).squeeze_dim::<1>(1);
        $check!("sg_conv far", |s| SgConvConfig::new(4, 3).with_hops(3).with_seed(s).init(d), |l, g, x, _, _| l.forward(g, x));
        $check!("appnp_conv", |_| AppnpConvConfig::new().with_hops(3).with_edge_dropout(0.3).init(), |l, g, x, e, mode| l.forward_on(
            g,
            0,
            x,
            Some(w(&e)),
            mode
        ),);
        $check!("gated_graph_conv", |s| GatedGraphConvConfig::new(5, 3).with_seed(s).init(d), |l, g, x, _, _| l.forward(g, x),);
    }};
}

pub(crate) use {each_far_layer, each_layer};
