//! Every layer on one relation, once.

/// Calls `$check!(name, || layer, |layer, graph, x, edge rows, mode| result)` for every layer: 4 columns of nodes, 3 of
/// edges, which layers with edge rows or weights read. Weights are made f64.
macro_rules! each_layer {
    ($check:ident, $device:expr) => {{
        use burn_gnn_models::*;
        let d = $device;
        let w = |e: &burn::tensor::Tensor<2>| e.clone().slice_dim(1, 0..1).squeeze_dim::<1>(1);
        $check!("graph_conv", || GraphConvConfig::new(4, 5).init(d), |l, g, x, e, _| l.forward_on(g, 0, x, Some(w(&e))));
        for width in [5, 2] {
            let name = format!("graph_conv both in {width}");
            $check!(&name, || GraphConvConfig::new(4, width).with_norm(DegreeNorm::BothIn).init(d), |l, g, x, e, _| l.forward_on(
                g,
                0,
                x,
                Some(w(&e))
            ),);
        }
        $check!("graph_conv without weight", || GraphConvConfig::new(4, 4).with_weight(false).with_bias(false).init(d), |l, g, x, _, _| l
            .forward(g, x));
        $check!("graph_conv narrow", || GraphConvConfig::new(4, 2).init(d), |l, g, x, _, _| l.forward(g, x));
        for a in [
            SageAggregator::Mean,
            SageAggregator::Sum,
            SageAggregator::Max,
            SageAggregator::Gcn,
            SageAggregator::Pool,
            SageAggregator::Lstm,
        ] {
            let name = format!("sage_conv {a:?}");
            $check!(&name, || SageConvConfig::new(4, 3).with_aggregator(a).init(d), |l, g, x, _, _| l.forward(g, x));
        }
        $check!("sage_conv normalized", || SageConvConfig::new(4, 3).with_normalize(true).init(d), |l, g, x, _, _| l.forward(g, x));
        $check!("sage_conv weighted", || SageConvConfig::new(4, 6).init(d), |l, g, x, e, _| l.forward_on(g, 0, x, Some(w(&e))),);
        $check!("gat_conv", || GatConvConfig::new(4, 3, 2).with_residual(true).with_attn_dropout(0.3).init(d), |l, g, x, _, mode| l
            .forward(g, x, mode),);
        // A mean over 3 heads, as halves are exact in every precision.
        $check!("gat_conv weighted", || GatConvConfig::new(4, 1, 3).with_concat(false).init(d), |l, g, x, e, mode| l.forward_on(
            g,
            0,
            x,
            Some(w(&e)),
            mode
        ),);
        $check!(
            "gat_conv with edges",
            || GatConvConfig::new(4, 3, 2).with_d_edge(Some(3)).with_attn_dropout(0.3).init(d),
            |l, g, x, e, mode| l.forward_on(g, 0, x, e, mode),
        );
        $check!("gat_conv with edges and weights", || GatConvConfig::new(4, 1, 2).with_d_edge(Some(3)).init(d), |l, g, x, e, mode| l
            .forward_on(g, 0, x, (w(&e), e), mode),);
        $check!("gatv2_conv", || Gatv2ConvConfig::new(4, 3, 2).with_residual(true).with_attn_dropout(0.3).init(d), |l, g, x, _, mode| l
            .forward(g, x, mode),);
        $check!(
            "gatv2_conv shared",
            || Gatv2ConvConfig::new(4, 1, 3).with_share_weights(true).with_concat(false).init(d),
            |l, g, x, _, mode| l.forward(g, x, mode),
        );
        $check!(
            "gatv2_conv with edges",
            || Gatv2ConvConfig::new(4, 3, 2).with_d_edge(Some(3)).with_attn_dropout(0.3).init(d),
            |l, g, x, e, mode| l.forward_on(g, 0, x, Some(e), mode),
        );
        $check!("gin_conv weighted", || GinConvConfig::new(vec![4, 3]).init(d), |l, g, x, e, _| l.forward_on(g, 0, x, Some(w(&e))),);
        $check!("gin_conv", || GinConvConfig::new(vec![4, 6, 3]).with_init_eps(0.3).with_learn_eps(true).init(d), |l, g, x, _, _| l
            .forward(g, x),);
        $check!("gine_conv", || GineConvConfig::new(4, vec![4, 3]).with_d_edge(Some(3)).init(d), |l, g, x, e, _| l.forward_on(g, 0, x, e),);
        $check!("edge_conv", || EdgeConvConfig::new(4, vec![3]).init(d), |l, g, x, _, _| l.forward(g, x));
        $check!("edge_conv deep", || EdgeConvConfig::new(4, vec![5, 3]).with_aggregator(Aggregator::Sum).init(d), |l, g, x, _, _| l
            .forward(g, x),);
        $check!("pna_conv", || PnaConvConfig::new(4, 3, 0.9).init(d), |l, g, x, _, _| l.forward_on(g, 0, x, None),);
        $check!(
            "pna_conv with edges",
            || {
                let all = vec![PnaAggregator::Sum, PnaAggregator::Min, PnaAggregator::Var];
                PnaConvConfig::new(4, 3, 0.9).with_d_edge(Some(3)).with_aggregators(all).init(d)
            },
            |l, g, x, e, _| l.forward_on(g, 0, x, Some(e)),
        );
        $check!(
            "pna_conv towers",
            || {
                let towers = PnaConvConfig::new(4, 8, 0.9).with_towers(2).with_divide_input(true).with_mixing(true);
                towers.with_pre_layers(2).with_post_layers(2).with_d_edge(Some(3)).init(d)
            },
            |l, g, x, e, _| l.forward_on(g, 0, x, Some(e)),
        );
        $check!(
            "transformer_conv",
            || TransformerConvConfig::new(4, 3, 2).with_beta(true).with_attn_dropout(0.3).init(d),
            |l, g, x, _, mode| l.forward(g, x, mode),
        );
        $check!(
            "transformer_conv with edges",
            || TransformerConvConfig::new(4, 3, 3).with_d_edge(Some(3)).with_concat(false).with_attn_dropout(0.3).init(d),
            |l, g, x, e, mode| l.forward_on(g, 0, x, Some(e), mode),
        );
        $check!("sg_conv", || SgConvConfig::new(4, 3).init(d), |l, g, x, e, _| l.forward_on(g, 0, x, Some(w(&e))));
        $check!(
            "rel_graph_conv",
            || RelGraphConvConfig::new(4, 6, 1).with_weights(RelWeights::BlockDiagonal(2)).with_layer_norm(true).init(d),
            |l, g, x, _, _| l.forward(g, vec![x]).swap_remove(0),
        );
        $check!("hgt_conv", || HgtConvConfig::new(4, 3, 2, 1, 1).with_layer_norm(true).with_dropout(0.3).init(d), |l, g, x, _, mode| l
            .forward(g, vec![x], mode)
            .swap_remove(0),);
    }};
}

/// Layers that go several hops, which one block cannot serve; otherwise as [`each_layer`].
macro_rules! each_far_layer {
    ($check:ident, $device:expr) => {{
        use burn_gnn_models::*;
        let d = $device;
        let w = |e: &burn::tensor::Tensor<2>| e.clone().slice_dim(1, 0..1).squeeze_dim::<1>(1);
        $check!("sg_conv far", || SgConvConfig::new(4, 3).with_hops(3).init(d), |l, g, x, _, _| l.forward(g, x));
        // Weights above 0.
        let p = |e: &burn::tensor::Tensor<2>| w(e) * w(e) + 0.5;
        for norm in [DegreeNorm::Both, DegreeNorm::BothIn] {
            let name = format!("sg_conv {norm:?} by weights");
            let sg = SgConvConfig::new(4, 3).with_hops(2).with_norm(norm).with_weighted_norm(true);
            $check!(&name, || sg.init(d), |l, g, x, e, _| l.forward_on(g, 0, x, Some(p(&e))));
            let name = format!("appnp_conv {norm:?} by weights");
            let appnp = AppnpConvConfig::new().with_hops(2).with_norm(norm).with_weighted_norm(true);
            $check!(&name, || appnp.init(d), |l, g, x, e, mode| l.forward_on(g, 0, x, Some(p(&e)), mode));
        }
        $check!("appnp_conv", || AppnpConvConfig::new().with_hops(3).with_edge_dropout(0.3).init(d), |l, g, x, e, mode| l.forward_on(
            g,
            0,
            x,
            Some(w(&e)),
            mode
        ),);
        $check!("gated_graph_conv", || GatedGraphConvConfig::new(5, 3).init(d), |l, g, x, _, _| l.forward(g, x),);
    }};
}

/// Calls `$check!(name, number of layers, model)` for every model of graphs of one type: 4 input features, 2 classes.
macro_rules! each_model {
    ($check:ident, $device:expr) => {{
        use burn_gnn_models::*;
        let d = $device;
        for layers in [1, 3] {
            for norm in [DegreeNorm::Both, DegreeNorm::Left, DegreeNorm::BothIn] {
                let gcn = GcnConfig::new(4, 2).with_hidden(5).with_layers(layers).with_norm(norm);
                $check!(&format!("gcn {layers} {norm:?}"), layers, gcn.init(d));
            }
            for a in [SageAggregator::Mean, SageAggregator::Gcn, SageAggregator::Pool, SageAggregator::Lstm] {
                let sage = SageConfig::new(4, 2).with_hidden(5).with_layers(layers).with_aggregator(a);
                $check!(&format!("sage {layers} {a:?}"), layers, sage.init(d));
            }
            let gat = GatConfig::new(4, 2).with_d_head(3).with_heads(2).with_out_heads(2).with_layers(layers).with_residual(true);
            $check!(&format!("gat {layers}"), layers, gat.init(d));
            for heads in [true, false] {
                let gin = GinConfig::new(4, 2).with_hidden(5).with_layers(layers).with_heads(heads);
                $check!(&format!("gin {layers} {heads}"), layers, gin.init(d));
            }
        }
    }};
}

/// As [`each_model`] for models of a graph of three types, of which the first has 4 features, the second learned rows, the third 3
/// features.
macro_rules! each_typed_model {
    ($check:ident, $g:expr, $device:expr) => {{
        use burn_gnn_models::*;
        let (g, d) = ($g, $device);
        let inputs = [TypeInput::Features(4), TypeInput::Embedding, TypeInput::Features(3)];
        for layers in [1, 2] {
            for weights in [RelWeights::Full, RelWeights::Basis(2), RelWeights::BlockDiagonal(2)] {
                let rgcn = RgcnConfig::new(2).with_hidden(4).with_layers(layers).with_weights(weights).with_dropout(0.2);
                $check!(&format!("rgcn {layers} {weights:?}"), layers, rgcn.init(g, &inputs, d).unwrap());
            }
            let hgt = HgtConfig::new(2).with_hidden(4).with_heads(2).with_layers(layers);
            $check!(&format!("hgt {layers}"), layers, hgt.init(g, &inputs, d).unwrap());
        }
    }};
}

pub(crate) use {each_far_layer, each_layer, each_model, each_typed_model};
