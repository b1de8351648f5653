//! Every layer on one relation, once.

use burn::tensor::Tensor;
use burn_gnn_ops::{Edges, GraphView};

/// What edges bring to a layer, made of a matrix with 3 columns.
#[derive(Clone, Copy)]
pub(crate) enum EdgeInput {
    Nothing,
    Weight,
    /// Weights above 0.
    Positive,
    Features,
    Both,
}

impl EdgeInput {
    pub(crate) fn edges<'a>(self, g: &'a dyn GraphView, e: Tensor<2>) -> Edges<'a> {
        let edges = Edges::from(g);
        let w = || e.clone().slice_dim(1, 0..1).squeeze_dim::<1>(1);
        match self {
            Self::Nothing => edges,
            Self::Weight => edges.with_weight(w()),
            Self::Positive => edges.with_weight(w() * w() + 0.5),
            Self::Features => edges.with_features(e),
            Self::Both => edges.with_weight(w()).with_features(e),
        }
    }
}

/// Calls `$check!(name, || layer, |layer, graph, x, edge rows| result)` for every layer: 4 input features of nodes, 3
/// of edges.
macro_rules! each_layer {
    ($check:ident, $device:expr) => {{
        use crate::registry::EdgeInput::{Both, Features, Nothing, Weight};
        use burn_gnn_models::*;
        let d = $device;
        // The list of layers over the trait.
        macro_rules! conv {
            ($name:expr, $make:expr, $brings:expr) => {
                $check!($name, $make, |l, g, x, e| l.forward($brings.edges(g, e), x))
            };
        }
        conv!("gcn_conv", || GcnConvConfig::new(4, 5).init(d), Weight);
        for width in [5, 2] {
            let name = format!("gcn_conv both in {width}");
            conv!(
                &name,
                || GcnConvConfig::new(4, width).with_norm(DegreeNorm::BothIn).init(d),
                Weight
            );
        }
        conv!(
            "gcn_conv without weight",
            || GcnConvConfig::new(4, 4).with_weight(false).with_bias(false).init(d),
            Nothing
        );
        conv!("gcn_conv narrow", || GcnConvConfig::new(4, 2).init(d), Nothing);
        for a in [
            SageAggregator::Mean,
            SageAggregator::Sum,
            SageAggregator::Max,
            SageAggregator::Gcn,
            SageAggregator::Pool,
            SageAggregator::Lstm,
        ] {
            let name = format!("sage_conv {a:?}");
            conv!(&name, || SageConvConfig::new(4, 3).with_aggregator(a).init(d), Nothing);
        }
        conv!(
            "sage_conv normalized",
            || SageConvConfig::new(4, 3).with_normalize(true).init(d),
            Nothing
        );
        conv!("sage_conv weighted", || SageConvConfig::new(4, 6).init(d), Weight);
        conv!(
            "gat_conv",
            || GatConvConfig::new(4, 3, 2).with_residual(true).with_dropout(0.3).init(d),
            Nothing
        );
        // A mean over 3 heads, as halves are exact in every precision.
        conv!(
            "gat_conv weighted",
            || GatConvConfig::new(4, 1, 3).with_concat(false).init(d),
            Weight
        );
        conv!(
            "gat_conv with edges",
            || GatConvConfig::new(4, 3, 2).with_d_edge(Some(3)).with_dropout(0.3).init(d),
            Features
        );
        conv!(
            "gat_conv with edges and weights",
            || GatConvConfig::new(4, 1, 2).with_d_edge(Some(3)).init(d),
            Both
        );
        conv!(
            "gatv2_conv",
            || Gatv2ConvConfig::new(4, 3, 2).with_residual(true).with_dropout(0.3).init(d),
            Nothing
        );
        conv!(
            "gatv2_conv shared",
            || Gatv2ConvConfig::new(4, 1, 3).with_share_weights(true).with_concat(false).init(d),
            Nothing
        );
        conv!(
            "gatv2_conv with edges",
            || Gatv2ConvConfig::new(4, 3, 2).with_d_edge(Some(3)).with_dropout(0.3).init(d),
            Features
        );
        conv!("gin_conv weighted", || GinConvConfig::new(vec![4, 3]).init(d), Weight);
        conv!(
            "gin_conv",
            || GinConvConfig::new(vec![4, 6, 3]).with_init_eps(0.3).with_learn_eps(true).init(d),
            Nothing
        );
        conv!(
            "gine_conv",
            || GineConvConfig::new(4, vec![4, 3]).with_d_edge(Some(3)).init(d),
            Features
        );
        conv!("edge_conv", || EdgeConvConfig::new(4, vec![3]).init(d), Nothing);
        conv!(
            "edge_conv deep",
            || EdgeConvConfig::new(4, vec![5, 3]).with_aggregator(Reduce::Sum).init(d),
            Nothing
        );
        conv!("pna_conv", || PnaConvConfig::new(4, 3, 0.9).init(d), Nothing);
        conv!(
            "pna_conv with edges",
            || {
                let all = vec![PnaAggregator::Sum, PnaAggregator::Min, PnaAggregator::Var];
                PnaConvConfig::new(4, 3, 0.9).with_d_edge(Some(3)).with_aggregators(all).init(d)
            },
            Features
        );
        conv!(
            "pna_conv towers",
            || {
                let towers = PnaConvConfig::new(4, 8, 0.9)
                    .with_towers(2)
                    .with_divide_input(true)
                    .with_mixing(true);
                towers.with_pre_layers(2).with_post_layers(2).with_d_edge(Some(3)).init(d)
            },
            Features
        );
        conv!(
            "transformer_conv",
            || TransformerConvConfig::new(4, 3, 2).with_beta(true).with_dropout(0.3).init(d),
            Nothing
        );
        conv!(
            "transformer_conv with edges",
            || TransformerConvConfig::new(4, 3, 3)
                .with_d_edge(Some(3))
                .with_concat(false)
                .with_dropout(0.3)
                .init(d),
            Features
        );
        conv!("res_gated_graph_conv", || ResGatedGraphConvConfig::new(4, 3).init(d), Nothing);
        conv!(
            "res_gated_graph_conv with edges",
            || ResGatedGraphConvConfig::new(4, 3).with_d_edge(Some(3)).init(d),
            Features
        );
        conv!("sg_conv", || SgConvConfig::new(4, 3).init(d), Weight);
        // The list of layers on all edge types, of which there is one here.
        macro_rules! hetero_conv {
            ($name:expr, $make:expr) => {
                $check!($name, $make, |l, g, x, _| l.forward(g, x)["_N"].clone())
            };
        }
        hetero_conv!("rel_graph_conv", || RelGraphConvConfig::new(4, 6, 1)
            .with_weights(RelWeights::BlockDiagonal(2))
            .with_layer_norm(true)
            .init(d));
        hetero_conv!("hgt_conv", || HgtConvConfig::new(4, 3, 2, 1, 1)
            .with_layer_norm(true)
            .with_dropout(0.3)
            .init(d));
    }};
}

/// Layers that go several hops, which one block cannot serve; otherwise as [`each_layer`].
macro_rules! each_far_layer {
    ($check:ident, $device:expr) => {{
        use crate::registry::EdgeInput::{Nothing, Positive, Weight};
        use burn_gnn_models::*;
        let d = $device;
        macro_rules! conv {
            ($name:expr, $make:expr, $brings:expr) => {
                $check!($name, $make, |l, g, x, e| l.forward($brings.edges(g, e), x))
            };
        }
        conv!("sg_conv far", || SgConvConfig::new(4, 3).with_hops(3).init(d), Nothing);
        for norm in [DegreeNorm::Both, DegreeNorm::BothIn] {
            let name = format!("sg_conv {norm:?} by weights");
            let sg = SgConvConfig::new(4, 3).with_hops(2).with_norm(norm).with_weighted_norm(true);
            conv!(&name, || sg.init(d), Positive);
            let name = format!("appnp_conv {norm:?} by weights");
            let appnp =
                AppnpConvConfig::new().with_hops(2).with_norm(norm).with_weighted_norm(true);
            conv!(&name, || appnp.init(d), Positive);
        }
        conv!(
            "appnp_conv",
            || AppnpConvConfig::new().with_hops(3).with_dropout(0.3).init(d),
            Weight
        );
        $check!("gated_graph_conv", || GatedGraphConvConfig::new(5, 3).init(d), |l, g, x, _| l
            .forward(g, x)["_N"]
            .clone());
    }};
}

/// Calls `$check!(name, number of layers, model)` for every model of graphs of one type: 4 input features, 2 classes.
macro_rules! each_model {
    ($check:ident, $device:expr) => {{
        use burn_gnn_models::*;
        let d = $device;
        for layers in [1, 3] {
            for norm in [DegreeNorm::Both, DegreeNorm::Left, DegreeNorm::BothIn] {
                let gcn =
                    GcnConfig::new(4, 2).with_hidden(5).with_num_layers(layers).with_norm(norm);
                $check!(&format!("gcn {layers} {norm:?}"), layers, gcn.init(d));
            }
            for a in [
                SageAggregator::Mean,
                SageAggregator::Gcn,
                SageAggregator::Pool,
                SageAggregator::Lstm,
            ] {
                let sage =
                    SageConfig::new(4, 2).with_hidden(5).with_num_layers(layers).with_aggregator(a);
                $check!(&format!("sage {layers} {a:?}"), layers, sage.init(d));
            }
            let gat = GatConfig::new(4, 2)
                .with_d_head(3)
                .with_num_heads(2)
                .with_out_heads(2)
                .with_num_layers(layers)
                .with_residual(true);
            $check!(&format!("gat {layers}"), layers, gat.init(d));
            for heads in [true, false] {
                let gin =
                    GinConfig::new(4, 2).with_hidden(5).with_num_layers(layers).with_heads(heads);
                $check!(&format!("gin {layers} {heads}"), layers, gin.init(d));
            }
        }
    }};
}

/// As [`each_model`] for models of a graph of three types, of which the first has 4 features, the second learned
/// embeddings, the third 3 features.
macro_rules! each_typed_model {
    ($check:ident, $g:expr, $device:expr) => {{
        use burn_gnn_models::*;
        let (g, d) = ($g, $device);
        let inputs = [("a", TypeInput::Features(4)), ("c", TypeInput::Features(3))];
        for layers in [1, 2] {
            for weights in [RelWeights::Full, RelWeights::Basis(2), RelWeights::BlockDiagonal(2)] {
                let rgcn = RgcnConfig::new(2)
                    .with_hidden(4)
                    .with_num_layers(layers)
                    .with_weights(weights)
                    .with_dropout(0.2);
                $check!(
                    &format!("rgcn {layers} {weights:?}"),
                    layers,
                    rgcn.try_init(g, inputs, d).unwrap()
                );
            }
            let hgt = HgtConfig::new(2).with_hidden(4).with_num_heads(2).with_num_layers(layers);
            $check!(&format!("hgt {layers}"), layers, hgt.try_init(g, inputs, d).unwrap());
        }
    }};
}

pub(crate) use {each_far_layer, each_layer, each_model, each_typed_model};
