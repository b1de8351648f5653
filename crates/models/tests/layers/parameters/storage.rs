//! Saving and loading: records of Burn, safetensors, and the names of DGL and PyTorch Geometric.

use burn::module::{Module, Param};
use burn::store::{ModuleRecord, ModuleSnapshot, SafetensorsStore};
use burn::tensor::{Device, FloatDType, Tensor};
use burn_gnn_graph::Graph;
use burn_gnn_models::*;
use burn_gnn_ops::GraphView;

use crate::fixtures::registry::{each_far_layer, each_layer};
use crate::fixtures::views::graph;
use crate::{devices, matrix, values};

/// Learned rows, whose columns may be two tensors in PyG.
#[derive(Module, Debug)]
struct Rows {
    rows: Param<Tensor<2>>,
    halves: bool,
}

impl Pretrained for Rows {
    fn param_mapping(&self, _from: Framework, _path: &str) -> ParamMapping {
        let first = ParamMapping::same("emb.weight");
        if self.halves { first.second_half("emb_im.weight") } else { first }
    }
}

fn round_trip<M: Module + ModuleSnapshot>(
    name: &str,
    make: impl Fn() -> M,
    run: impl Fn(&M, &dyn GraphView, Tensor<2>, Tensor<2>) -> Tensor<2>,
    device: &Device,
) {
    let g = graph();
    let result =
        |layer: &M| values(&run(layer, &g, matrix(device, "x", 6, 4), matrix(device, "e", 8, 3)));
    let layer = |seed| to_dtype(seeded(seed, &make), FloatDType::F64);
    let (saved, other) = (layer(1), layer(2));
    let want = result(&saved);
    if saved.num_params() > 0 {
        assert_ne!(result(&other), want, "{name}: seeds make no difference");
    }
    let record =
        ModuleRecord::from_bytes(saved.clone().into_record().into_bytes().unwrap()).unwrap();
    assert_eq!(result(&other.clone().load_record(record)), want, "{name}: record");
    let mut store = SafetensorsStore::from_bytes(None);
    saved.save_into(&mut store).unwrap();
    let mut loaded = other;
    loaded.load_from(&mut SafetensorsStore::from_bytes(Some(store.get_bytes().unwrap()))).unwrap();
    assert_eq!(result(&loaded), want, "{name}: safetensors");
}

#[test]
fn saved_layers_come_back() {
    for device in &devices() {
        macro_rules! on_device {
            ($name:expr, $make:expr, $run:expr $(,)?) => {
                round_trip($name, $make, $run, device)
            };
        }
        each_layer!(on_device, device);
        each_far_layer!(on_device, device);
    }
}

/// Names of a state dict, and the same layer again from it.
fn names<M: Pretrained>(saved: M, other: M, from: Framework) -> Vec<String> {
    let state = StateDict::of(&saved, from);
    let bytes = state.to_safetensors().unwrap();
    let loaded = StateDict::from_safetensors(&bytes).unwrap().load(other, from).unwrap();
    let again = StateDict::of(&loaded, from);
    for ((name, a), (_, b)) in state.tensors().zip(again.tensors()) {
        assert_eq!(a, b, "{name}");
    }
    let mut names: Vec<String> = state.tensors().map(|(n, _)| n.to_owned()).collect();
    names.sort();
    names
}

#[test]
fn names_are_those_of_dgl_and_pyg() {
    let d = &Device::flex();
    macro_rules! check {
        ($config:expr, $from:ident, $($name:literal),+ $(,)?) => {
            let make = |seed| seeded(seed, || $config.init(d));
            assert_eq!(names(make(1), make(2), Framework::$from), [$($name),+]);
        };
    }
    check!(GcnConvConfig::new(3, 2), Dgl, "bias", "weight");
    check!(GcnConvConfig::new(3, 2), Pyg, "bias", "lin.weight");
    check!(GcnConvConfig::new(3, 3).with_weight(false), Dgl, "bias");
    check!(SageConvConfig::new(3, 2), Pyg, "lin_l.bias", "lin_l.weight", "lin_r.weight");
    check!(
        SageConvConfig::new(3, 2).with_aggregator(SageAggregator::Lstm),
        Dgl,
        "fc_neigh.weight",
        "fc_self.bias",
        "fc_self.weight",
        "lstm.bias_hh_l0",
        "lstm.bias_ih_l0",
        "lstm.weight_hh_l0",
        "lstm.weight_ih_l0",
    );
    check!(GatConvConfig::new(3, 2, 2), Pyg, "att_dst", "att_src", "bias", "lin.weight");
    check!(
        GatConvConfig::new(3, 2, 2).with_d_dst(Some(4)),
        Dgl,
        "attn_l",
        "attn_r",
        "bias",
        "fc_dst.weight",
        "fc_src.weight"
    );
    let edges = GatConvConfig::new(3, 2, 2).with_d_edge(Some(5));
    check!(edges, Pyg, "att_dst", "att_edge", "att_src", "bias", "lin.weight", "lin_edge.weight");
    let edges = Gatv2ConvConfig::new(3, 2, 2).with_bias(false).with_d_edge(Some(5));
    check!(edges, Pyg, "att", "lin_edge.weight", "lin_l.weight", "lin_r.weight");
    check!(
        Gatv2ConvConfig::new(3, 2, 2),
        Pyg,
        "att",
        "lin_l.bias",
        "lin_l.weight",
        "lin_r.bias",
        "lin_r.weight"
    );
    check!(
        GinConvConfig::new(vec![3, 4, 2]),
        Pyg,
        "eps",
        "nn.0.bias",
        "nn.0.weight",
        "nn.2.bias",
        "nn.2.weight"
    );
    check!(
        RelGraphConvConfig::new(4, 2, 3).with_weights(RelWeights::Basis(2)).with_layer_norm(true),
        Dgl,
        "h_bias",
        "layer_norm_weight.bias",
        "layer_norm_weight.weight",
        "linear_r.W",
        "linear_r.coeff",
        "loop_weight",
    );
    check!(SgConvConfig::new(3, 2), Dgl, "fc.bias", "fc.weight");
    check!(
        GatedGraphConvConfig::new(2, 1).with_num_etypes(1),
        Dgl,
        "gru.bias_hh",
        "gru.bias_ih",
        "gru.weight_hh",
        "gru.weight_ih",
        "linears.0.bias",
        "linears.0.weight",
    );
    check!(
        JumpingKnowledgeConfig::new(Jumping::Lstm).with_d(2),
        Pyg,
        "att.bias",
        "att.weight",
        "lstm.bias_hh_l0",
        "lstm.bias_hh_l0_reverse",
        "lstm.bias_ih_l0",
        "lstm.bias_ih_l0_reverse",
        "lstm.weight_hh_l0",
        "lstm.weight_hh_l0_reverse",
        "lstm.weight_ih_l0",
        "lstm.weight_ih_l0_reverse",
    );
    check!(
        EdgeConvConfig::new(3, vec![4]),
        Dgl,
        "phi.bias",
        "phi.weight",
        "theta.bias",
        "theta.weight"
    );
    check!(EdgeConvConfig::new(3, vec![4]), Pyg, "nn.bias", "nn.weight");
    check!(
        EdgeConvConfig::new(3, vec![4, 2]),
        Pyg,
        "nn.0.bias",
        "nn.0.weight",
        "nn.2.bias",
        "nn.2.weight"
    );
    check!(
        PnaConvConfig::new(4, 2, 0.9)
            .with_towers(2)
            .with_divide_input(true)
            .with_pre_layers(2)
            .with_post_layers(2)
            .with_mixing(true),
        Pyg,
        "aggr_module.avg_deg_lin",
        "aggr_module.avg_deg_log",
        "lin.bias",
        "lin.weight",
        "post_nns.0.0.bias",
        "post_nns.0.0.weight",
        "post_nns.0.2.bias",
        "post_nns.0.2.weight",
        "post_nns.1.0.bias",
        "post_nns.1.0.weight",
        "post_nns.1.2.bias",
        "post_nns.1.2.weight",
        "pre_nns.0.0.bias",
        "pre_nns.0.0.weight",
        "pre_nns.0.2.bias",
        "pre_nns.0.2.weight",
        "pre_nns.1.0.bias",
        "pre_nns.1.0.weight",
        "pre_nns.1.2.bias",
        "pre_nns.1.2.weight",
    );
    check!(TypedLinearConfig::new(3, 2, 2), Dgl, "W");
    check!(AttentionReadoutConfig::new(3), Dgl, "gate_nn.bias", "gate_nn.weight");
}

/// Input sizes of two types, by name.
fn sizes(g: &Graph) -> TypeMap<usize> {
    g.schema().ntypes().iter().cloned().zip([3, 5]).collect()
}

#[test]
fn names_of_types_are_those_of_pyg() {
    let (d, g) = (&Device::flex(), crate::formulas::two_types());
    let make = |seed| seeded(seed, || HanConvConfig::from_graph(&g, sizes(&g), 2, 2).init(d));
    let want = [
        "k_lin.bias",
        "k_lin.weight",
        "lin_dst.a__r__a",
        "lin_dst.a__s__a",
        "lin_dst.b__t__a",
        "lin_src.a__r__a",
        "lin_src.a__s__a",
        "lin_src.b__t__a",
        "proj.a.bias",
        "proj.a.weight",
        "proj.b.bias",
        "proj.b.weight",
        "q",
    ];
    assert_eq!(names(make(1), make(2), Framework::Pyg), want);
    // Axes as PyG has them.
    let state = StateDict::of(&make(1), Framework::Pyg);
    let shapes: Vec<_> =
        state.tensors().map(|(name, data)| (name, data.shape().to_vec())).collect();
    for (name, shape) in
        [("q", vec![1, 4]), ("proj.b.weight", vec![4, 5]), ("lin_src.a__r__a", vec![1, 2, 2])]
    {
        assert!(shapes.contains(&(name, shape.clone())), "{name} is not {shape:?} in {shapes:?}");
    }
}

/// Keys of PyG's dictionaries hold no dots.
#[test]
fn names_of_types_with_dots() {
    let d = &Device::flex();
    let builder = Graph::builder().nodes("a.b", 3).nodes("c", 2).edges(
        ("a.b", "r.s", "c"),
        vec![0, 2],
        vec![1, 0],
    );
    let g = builder.edges(("c", "t", "a.b"), vec![0], vec![1]).build().unwrap();
    let of_pyg =
        |state: StateDict| state.tensors().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
    let names = [
        of_pyg(StateDict::of(
            &HanConvConfig::from_graph(&g, sizes(&g), 2, 2).init(d),
            Framework::Pyg,
        )),
        of_pyg(StateDict::of(&HgtConvConfig::from_graph(&g, 4, 2, 2).init(d), Framework::Pyg)),
        of_pyg(StateDict::of(
            &HeteroGraphConvConfig::new().init(g.schema(), |_| SageConvConfig::new(4, 2).init(d)),
            Framework::Pyg,
        )),
    ];
    let want = [
        ["proj.a#b.weight", "lin_src.a#b__r#s__c"],
        ["kqv_lin.lins.a#b.weight", "p_rel.a#b__r#s__c"],
        ["convs.<a#b___r#s___c>.lin_l.weight", "convs.<c___t___a#b>.lin_r.weight"],
    ];
    for (names, want) in names.iter().zip(want) {
        for name in want {
            assert!(names.iter().any(|n| n == name), "no `{name}` in {names:?}");
        }
        assert!(names.iter().all(|n| !n.contains("a.b") && !n.contains("r.s")), "{names:?}");
    }
    let model = RgcnConfig::new(2)
        .with_hidden(4)
        .try_init(&g, [("a.b", TypeInput::Features(4))], d)
        .unwrap();
    for (from, name) in [
        (Framework::Pyg, "project.lins.a#b.weight"),
        (Framework::Dgl, "project.linears.a.b.weight"),
    ] {
        let state = StateDict::of(&model, from);
        assert!(state.tensors().any(|(n, _)| n == name), "{state:?}");
        state.load(model.clone(), from).unwrap();
    }
}

/// A schema without edge types has no tensors for them; paths and numbers that a layer does not have are no panics.
#[test]
fn types_and_paths_that_a_layer_does_not_have() {
    let d = &Device::flex();
    let g = Graph::builder().nodes("a", 2).build().unwrap();
    let make = |seed| {
        seeded(seed, || {
            HgtConvConfig::from_graph(&g, 4, 2, 2)
                .with_bias(true)
                .with_residual_weight(false)
                .init(d)
        })
    };
    let names = names(make(1), make(2), Framework::Pyg);
    assert!(
        names.contains(&"kqv_lin.lins.a.weight".to_owned())
            && !names.iter().any(|n| n.contains("p_rel")),
        "{names:?}"
    );
    let none = HgtConvConfig::new(4, 2, 2, 0, 0).init(d);
    StateDict::of(&none, Framework::Pyg).load(none, Framework::Pyg).unwrap();

    let (pna, han) = (PnaConvConfig::new(3, 2, 0.9).init(d), crate::formulas::two_types());
    let han = HanConvConfig::from_graph(&han, sizes(&han), 2, 2).init(d);
    for path in ["towers.7.post.weight", "proj.7.weight", "lin_src.7", "lin_dst.7"] {
        assert_eq!(pna.param_mapping(Framework::Pyg, path), ParamMapping::same(path));
        assert_eq!(han.param_mapping(Framework::Pyg, path), ParamMapping::same(path));
    }
}

/// Two of our parameters in one of their tensors, and one of ours in two of theirs, lie where PyG has them.
#[test]
fn parameters_that_share_tensors_or_span_them() {
    for d in &devices() {
        let saved = crate::formulas::drawn(EdgeConvConfig::new(4, vec![3, 2]).init(d));
        let (g, x) = (graph(), matrix(d, "x", 6, 4));
        let state = StateDict::of(&saved, Framework::Pyg);
        let tensor = |name: &str| {
            let (_, data) = state.tensors().find(|(n, _)| *n == name).unwrap();
            (data.shape().to_vec(), data.iter::<f64>().collect::<Vec<_>>())
        };
        // `nn.0` of PyG reads `[x[v], x[u] - x[v]]`, and has the bias that is the sum of ours.
        let (shape, weight) = tensor("nn.0.weight");
        assert_eq!(shape, [3, 8]);
        let (phi, theta) = (values(&saved.phi.weight.val()), values(&saved.theta.weight.val()));
        for (o, i) in (0..3).flat_map(|o| (0..4).map(move |i| (o, i))) {
            assert_eq!(
                (weight[o * 8 + i], weight[o * 8 + 4 + i]),
                (phi[i * 3 + o], theta[i * 3 + o])
            );
        }
        let biases = [&saved.phi, &saved.theta].map(|l| values(&l.bias.as_ref().unwrap().val()));
        assert_eq!(
            tensor("nn.0.bias").1,
            biases[0].iter().zip(&biases[1]).map(|(a, b)| a + b).collect::<Vec<_>>()
        );
        let loaded = state
            .load(
                to_dtype(EdgeConvConfig::new(4, vec![3, 2]).init(d), FloatDType::F64),
                Framework::Pyg,
            )
            .unwrap();
        crate::assert_close(
            "edge_conv",
            &values(&loaded.forward(&g, x.clone())),
            &values(&saved.forward(&g, x)),
            1e-12,
        );

        let halves = Rows { rows: Param::from_tensor(matrix(d, "rows", 2, 4)), halves: true };
        let state = StateDict::of(&halves, Framework::Pyg);
        let rows = values(&halves.rows.val());
        for ((name, data), at) in state.tensors().zip([0, 2]) {
            assert_eq!(data.shape().to_vec(), [2, 2], "{name}");
            assert_eq!(
                data.iter::<f64>().collect::<Vec<_>>(),
                [rows[at], rows[at + 1], rows[at + 4], rows[at + 5]],
                "{name}"
            );
        }
        // The second half alone is refused by name.
        let half = state.without("emb.").load(halves, Framework::Pyg);
        let refused = half.unwrap_err().to_string();
        assert!(refused.contains("expected parameter `rows` under `emb.weight`"), "{refused}");
    }
}

#[test]
fn a_part_of_a_state_dict_is_loaded_without_the_rest() {
    let d = &Device::flex();
    let rows = |name, n| Rows { rows: Param::from_tensor(matrix(d, name, n, 2)), halves: false };
    let layer = rows("rows", 3);
    let both = [(&rows("nodes", 5), "node_emb"), (&layer, "emb")].map(|(m, name)| {
        let weight = StateDict::of(m, Framework::Pyg).at("emb.");
        (name, weight.tensors().next().unwrap().1.clone())
    });
    let file: Vec<_> = both.iter().map(|(name, data)| (format!("{name}.weight"), data)).collect();
    let views = file.iter().map(|(name, data)| {
        let view = safetensors::tensor::TensorView::new(
            safetensors::Dtype::F64,
            data.shape().to_vec(),
            data.as_bytes(),
        );
        (name.as_str(), view.unwrap())
    });
    let state = StateDict::from_safetensors(&safetensors::serialize(views, None).unwrap()).unwrap();
    let refused = state.load(layer.clone(), Framework::Pyg).unwrap_err().to_string();
    assert!(refused.contains("no parameter of the layer reads [\"node_emb.weight\"]"), "{refused}");
    let loaded = state.without("node_emb").load(layer, Framework::Pyg).unwrap();
    assert_eq!(loaded.rows.val().into_data(), both[1].1.clone());
    assert_eq!(state.at("node_emb.").tensors().map(|(n, _)| n).collect::<Vec<_>>(), ["weight"]);
}

#[test]
fn state_dicts_that_do_not_fit_are_refused() {
    let d = &Device::flex();
    let state = StateDict::of(&GcnConvConfig::new(3, 2).init(d), Framework::Dgl);
    let refuse =
        |config: GcnConvConfig, from| state.load(config.init(d), from).unwrap_err().to_string();
    let shape = "state dict: parameter `weight`: expected tensor `weight` of shape [3, 4], found [3, 2]; initialize the layer with the sizes";
    assert!(refuse(GcnConvConfig::new(3, 4), Framework::Dgl).starts_with(shape));
    assert!(
        refuse(GcnConvConfig::new(3, 2), Framework::Pyg)
            .contains("expected parameter `weight` under `lin.weight`")
    );
    assert!(
        refuse(GcnConvConfig::new(3, 2).with_bias(false), Framework::Dgl)
            .contains("no parameter of the layer reads [\"bias\"]")
    );
    assert!(
        StateDict::from_safetensors(b"no such file")
            .unwrap_err()
            .to_string()
            .contains("expected a safetensors file")
    );
}
