//! Checkpoints of PyTorch, PyG and DGL (`pytorch/make.py`): one call loads each, the results equal those of the other
//! framework, and saving restores the names. Checkpoints that do not match are errors.

use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use burn_gnn_graph::Graph;
use burn_gnn_models::*;
use burn_gnn_ops::GraphView;

use crate::{assert_close, values};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/layers/pytorch");
const SRC: [u32; 10] = [0, 1, 2, 3, 4, 0, 2, 4, 1, 3];
const DST: [u32; 10] = [1, 2, 0, 1, 3, 3, 1, 0, 4, 4];

fn device() -> Device {
    Device::flex()
}

fn file(name: &str) -> StateDict {
    StateDict::from_file(format!("{FOLDER}/{name}.pt")).unwrap()
}

fn data<'a>(file: &'a StateDict, name: &str) -> &'a TensorData {
    file.tensors().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("no `{name}`")).1
}

fn input(file: &StateDict, name: &str) -> Tensor<2> {
    Tensor::from_data(data(file, name).clone(), &device())
}

fn x(file: &StateDict) -> Tensor<2> {
    input(file, "x")
}

fn e(file: &StateDict) -> Tensor<2> {
    input(file, "e")
}

fn w(file: &StateDict) -> Tensor<1> {
    Tensor::from_data(data(file, "w").clone(), &device())
}

fn graph() -> Graph {
    Graph::homogeneous(5, SRC.to_vec(), DST.to_vec()).unwrap()
}

/// Edges by turns of two types.
fn two_relations() -> Graph {
    let of = |ids: [u32; 10], r: usize| ids.iter().skip(r).step_by(2).copied().collect::<Vec<_>>();
    let builder = Graph::builder().nodes("_N", 5);
    let builder = builder.edges(("_N", "r0", "_N"), of(SRC, 0), of(DST, 0)).edges(
        ("_N", "r1", "_N"),
        of(SRC, 1),
        of(DST, 1),
    );
    builder.build().unwrap()
}

/// Two edge types of one relation name.
fn hetero() -> Graph {
    let builder = Graph::builder().nodes("a", 3).nodes("b", 2);
    let builder = builder.edges(("a", "r", "b"), vec![0, 1, 2, 2], vec![0, 1, 0, 1]).edges(
        ("a", "s", "a"),
        vec![0, 1, 2],
        vec![1, 2, 0],
    );
    builder.edges(("b", "r", "a"), vec![0, 1, 1], vec![0, 1, 2]).build().unwrap()
}

fn of_both_types(file: &StateDict) -> NodeTensors {
    NodeTensors::from([("a", input(file, "x.a")), ("b", input(file, "x.b"))])
}

/// Loads the state dict of a file, compares what the layer computes, and saves it again; `unread` names what nothing
/// reads, which is saved as zeros.
fn check<M: Pretrained>(
    name: &str,
    layer: M,
    unread: &[&str],
    run: impl Fn(&M, &StateDict) -> Vec<(&'static str, Tensor<2>)>,
) -> M {
    let from = if name.starts_with("dgl") { Framework::Dgl } else { Framework::Pyg };
    let file = file(name);
    let state = file.at("state.");
    let loaded = state.load(layer, from).unwrap_or_else(|e| panic!("{name}: {e}"));
    for (role, y) in run(&loaded, &file) {
        let want: Vec<f64> = data(&file, role).iter::<f64>().collect();
        assert_close(&format!("{name}, {role}"), &values(&y), &want, 3e-5);
    }
    let again = StateDict::of(&loaded, from);
    let names = |s: &StateDict| s.tensors().map(|(n, _)| n.to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&again), names(&state), "{name}");
    for (tensor, got) in again.tensors() {
        let want = data(&state, tensor);
        assert_eq!(got.shape().to_vec(), want.shape().to_vec(), "{name}, {tensor}");
        let of = |d: &TensorData| d.iter::<f64>().collect::<Vec<_>>();
        let (got, want) = (
            of(got),
            if unread.contains(&tensor) { vec![0.0; got.shape().num_elements()] } else { of(want) },
        );
        assert_close(&format!("{name}, {tensor}"), &got, &want, 1e-4);
    }
    loaded
}

/// Of a graph of one type and node features.
macro_rules! check {
    ($name:literal, $config:expr, $unread:expr, |$layer:ident, $g:ident, $file:ident| $run:expr $(,)?) => {
        let $g = graph();
        check($name, $config.init(&device()), &$unread, |$layer, $file| vec![("y", $run)])
    };
}

#[test]
fn gin_layers() {
    let two = vec![3, 4, 2];
    check!("pyg/convolution/gin_conv", GinConvConfig::new(two.clone()), [], |l, g, f| l
        .forward(&g, x(f)));
    check!(
        "pyg/convolution/gine_conv",
        GineConvConfig::new(3, two.clone()).with_d_edge(Some(2)),
        [],
        |l, g, f| l.forward(g.edge_type("_E").unwrap().with_features(e(f)), x(f))
    );
    check!("dgl/convolution/gin_conv", GinConvConfig::new(vec![]), [], |l, g, f| l
        .forward(&g, x(f)));
    check!(
        "dgl/convolution/gin_conv_mlp",
        GinConvConfig::new(two.clone()).with_learn_eps(true),
        [],
        |l, g, f| l.forward(&g, x(f))
    );
    check!("dgl/convolution/gine_conv", GineConvConfig::new(3, vec![3, 2]), [], |l, g, f| l
        .forward(g.edge_type("_E").unwrap().with_features(e(f)), x(f)));
    let state = file("pyg/convolution/gin_conv").at("state.");
    assert_eq!(
        state.tensors().map(|(n, _)| n).collect::<Vec<_>>(),
        ["eps", "nn.0.bias", "nn.0.weight", "nn.2.bias", "nn.2.weight"]
    );
    // The list of an `MLP`, and an ε that is not that of the layer.
    let all = file("pyg/convolution/gin_conv_eps");
    let config = GinConvConfig::new(two);
    let refused = all.at("state.").load(config.init(&device()), Framework::Pyg).unwrap_err();
    assert!(
        matches!(
            refused,
            ModelError::WeightOption { option: "init_eps", expected: 0.0, actual: 0.5, .. }
        ),
        "{refused}"
    );
    assert!(refused.to_string().ends_with("set `init_eps` to 0.5"), "{refused}");
    for config in [config.clone().with_init_eps(0.5), config.with_learn_eps(true)] {
        let loaded = all.at("state.").load(config.init(&device()), Framework::Pyg).unwrap();
        let want: Vec<f64> = data(&all, "y").iter::<f64>().collect();
        assert_close(
            "pyg/convolution/gin_conv_eps",
            &values(&loaded.forward(&graph(), x(&all))),
            &want,
            3e-5,
        );
    }
}

#[test]
fn attention_layers() {
    let gat = |d| GatConvConfig::new(d, 2, 2);
    let mean = |d| gat(d).with_residual_weight(true);
    check!("pyg/attention/gat_conv_mean", mean(3).with_concat(false), [], |l, g, f| l
        .forward(&g, x(f)));
    check!("pyg/attention/gat_conv_residual", mean(4), [], |l, g, f| l.forward(&g, x(f)));
    check!("dgl/attention/gat_conv", gat(3).with_residual(true), [], |l, g, f| l.forward(&g, x(f)));
    let v2 = Gatv2ConvConfig::new(3, 2, 2);
    let of_pyg = v2.clone().with_output_bias(true);
    check!("pyg/attention/gatv2_conv", of_pyg.clone(), [], |l, g, f| l.forward(&g, x(f)));
    let shared = of_pyg.with_concat(false).with_share_weights(true).with_residual_weight(true);
    check!("pyg/attention/gatv2_conv_mean", shared.clone(), [], |l, g, f| l.forward(&g, x(f)));
    check!("dgl/attention/gatv2_conv", v2.clone().with_share_weights(true), [], |l, g, f| l
        .forward(&g, x(f)));
    // One weight cannot be two.
    let two = file("pyg/attention/gatv2_conv").at("state.");
    let one = v2.with_output_bias(true).with_share_weights(true).init(&device());
    let refused = two.load(one, Framework::Pyg).unwrap_err();
    assert!(
        matches!(refused, ModelError::WeightShared { .. })
            && refused.to_string().contains("`lin_l.weight` and `lin_r.weight`"),
        "{refused}"
    );

    let gated = ResGatedGraphConvConfig::new(3, 2);
    check!("pyg/attention/res_gated_graph_conv", gated.clone(), [], |l, g, f| l.forward(&g, x(f)));
    let gated = gated.with_root_weight(false).with_bias(false).with_d_edge(Some(2));
    check!("pyg/attention/res_gated_graph_conv_edges", gated, [], |l, g, f| l
        .forward(g.edge_type("_E").unwrap().with_features(e(f)), x(f)));
    let transformer = TransformerConvConfig::new(3, 2, 2);
    let unread = ["lin_skip.weight", "lin_skip.bias"];
    let no_root = transformer.clone().with_root_weight(false);
    check!("pyg/attention/transformer_conv", no_root, unread, |l, g, f| l.forward(&g, x(f)));
    let bare = transformer.with_bias(false).with_beta(true).with_d_edge(Some(2));
    check!("pyg/attention/transformer_conv_bare", bare, [], |l, g, f| l
        .forward(g.edge_type("_E").unwrap().with_features(e(f)), x(f)));
}

#[test]
fn other_layers_of_one_relation() {
    check!("dgl/convolution/edge_conv", EdgeConvConfig::new(3, vec![2]), [], |l, g, f| l
        .forward(&g, x(f)));
    use PnaAggregator::{Max, Mean, Min, Var};
    let pna = PnaConvConfig::from_edges(&graph(), 3, 2).with_d_edge(Some(2)).with_mixing(true);
    let pna = pna.with_aggregators(vec![Mean, Min, Max, Var]);
    let unread = ["aggr_module.avg_deg_lin"];
    check!("pyg/convolution/pna_conv", pna.clone(), unread, |l, g, f| l
        .forward(g.edge_type("_E").unwrap().with_features(e(f)), x(f)));
    let other = PnaConvConfig { delta: pna.delta + 0.1, ..pna };
    let refused = file("pyg/convolution/pna_conv")
        .at("state.")
        .load(other.init(&device()), Framework::Pyg)
        .unwrap_err();
    assert!(matches!(refused, ModelError::WeightOption { option: "delta", .. }), "{refused}");

    let steps = GatedGraphConvConfig::new(4, 2);
    check!(
        "pyg/heterogeneous/gated_graph_conv",
        steps.clone().with_weight_per_step(true).with_bias(false),
        [],
        |l, g, f| l.forward(&g, x(f))[&g.schema().ntypes()[0]].clone()
    );
    check!("dgl/heterogeneous/gated_graph_conv", steps, [], |l, g, f| l.forward(&g, x(f))
        [&g.schema().ntypes()[0]]
        .clone());

    let sage = |a| SageConvConfig::new(3, 2).with_aggregator(a);
    check!(
        "pyg/sage/sage_conv_sum",
        sage(SageAggregator::Sum).with_root_weight(false),
        [],
        |l, g, f| l.forward(&g, x(f))
    );
    check!("pyg/sage/sage_conv_max", sage(SageAggregator::Max), [], |l, g, f| l.forward(&g, x(f)));
    check!("pyg/sage/sage_conv_pool", sage(SageAggregator::Pool), [], |l, g, f| l
        .forward(&g, x(f)));
    let projected = sage(SageAggregator::Mean).with_project(true).with_bias(false);
    check!("pyg/sage/sage_conv_projected", projected, [], |l, g, f| l.forward(&g, x(f)));
    // PyG pads the neighbours of a node with zeros up to the largest degree, and its LSTM reads them; here all degrees are 2.
    let even = Graph::homogeneous(
        5,
        vec![0, 1, 1, 2, 2, 3, 3, 4, 4, 0],
        vec![0, 0, 1, 1, 2, 2, 3, 3, 4, 4],
    )
    .unwrap();
    let lstm = sage(SageAggregator::Lstm).init(&device());
    check("pyg/sage/sage_conv_lstm", lstm, &[], |l, f| vec![("y", l.forward(&even, x(f)))]);
    check!("dgl/sage/sage_conv_mean", sage(SageAggregator::Mean), [], |l, g, f| l
        .forward(&g, x(f)));
    check!("dgl/sage/sage_conv_gcn", sage(SageAggregator::Gcn), [], |l, g, f| l.forward(&g, x(f)));
    check!("dgl/sage/sage_conv_pool", sage(SageAggregator::Pool), [], |l, g, f| l
        .forward(&g, x(f)));
    check!("dgl/sage/sage_conv_lstm", sage(SageAggregator::Lstm), [], |l, g, f| l
        .forward(&g, x(f)));
}

/// Edge features, towers, edge weights and norms of directed graphs.
#[test]
fn options_of_layers() {
    let gat = GatConvConfig::new(3, 2, 2).with_d_edge(Some(2));
    check!("pyg/attention/gat_conv_edges", gat, [], |l, g, f| l
        .forward(g.edge_type("_E").unwrap().with_features(e(f)), x(f)));
    let gatv2 = Gatv2ConvConfig::new(3, 2, 2).with_output_bias(true).with_d_edge(Some(2));
    check!("pyg/attention/gatv2_conv_edges", gatv2, [], |l, g, f| l
        .forward(g.edge_type("_E").unwrap().with_features(e(f)), x(f)));
    check!(
        "pyg/sage/sage_conv_normalized",
        SageConvConfig::new(3, 2).with_normalize(true),
        [],
        |l, g, f| l.forward(&g, x(f))
    );

    use PnaAggregator::{Max, Mean, Min, Var};
    let pna = |d| {
        PnaConvConfig::from_edges(&graph(), d, 4)
            .with_mixing(true)
            .with_aggregators(vec![Mean, Min, Max, Var])
    };
    let towers = |d| pna(d).with_towers(2).with_pre_layers(2).with_post_layers(2);
    let unread = ["aggr_module.avg_deg_lin"];
    check!("pyg/convolution/pna_conv_towers", towers(3), unread, |l, g, f| l.forward(&g, x(f)));
    let divided = towers(4).with_divide_input(true).with_d_edge(Some(2));
    check!("pyg/convolution/pna_conv_divided", divided, unread, |l, g, f| l
        .forward(g.edge_type("_E").unwrap().with_features(e(f)), x(f)));

    let both_in = DegreeNorm::BothIn;
    check!(
        "pyg/convolution/gcn_conv_directed",
        GcnConvConfig::new(3, 2).with_norm(both_in),
        [],
        |l, g, f| l.forward(&g, x(f))
    );
    let normed = |g: &Graph, f: &StateDict| {
        EdgeWeightNorm::new().with_norm(both_in).forward(g, w(f)).unwrap()
    };
    let plain = GcnConvConfig::new(3, 2).with_norm(DegreeNorm::None);
    check!("pyg/convolution/gcn_conv_weighted", plain, [], |l, g, f| l
        .forward(g.edge_type("_E").unwrap().with_weight(normed(&g, f)), x(f)));
    let sg = SgConvConfig::new(3, 2).with_hops(2);
    let of_pyg = sg.clone().with_norm(both_in).with_weighted_norm(true);
    check!("pyg/convolution/sg_conv_weighted", of_pyg, [], |l, g, f| l
        .forward(g.edge_type("_E").unwrap().with_weight(w(f)), x(f)));
    check!("dgl/convolution/sg_conv", sg.clone().with_norm(both_in), [], |l, g, f| l
        .forward(&g, x(f)));
    let of_dgl = sg.with_weighted_norm(true);
    check!("dgl/convolution/sg_conv_weighted", of_dgl, [], |l, g, f| l
        .forward(g.edge_type("_E").unwrap().with_weight(w(f)), x(f)));

    let gin = GinConvConfig::new(vec![3, 2]).with_aggregator(Reduce::Max);
    check!("dgl/convolution/gin_conv_weighted", gin, [], |l, g, f| l
        .forward(g.edge_type("_E").unwrap().with_weight(w(f)), x(f)));
    let outer = GcnConvConfig::new(3, 2).with_weight(false);
    check!("dgl/convolution/graph_conv_outer", outer, [], |l, g, f| l
        .with_weight(input(f, "weight"))
        .forward(&g, x(f)));
}

/// Layers without options, PyG's standard deviation, and a name with a dot.
#[test]
fn defaults_of_layers() {
    check!("pyg/sage/sage_conv_mean", SageConvConfig::new(3, 2), [], |l, g, f| l.forward(&g, x(f)));
    check!(
        "pyg/attention/transformer_conv_root",
        TransformerConvConfig::new(3, 2, 2),
        [],
        |l, g, f| l.forward(&g, x(f))
    );
    check!("dgl/attention/gatv2_conv_two_weights", Gatv2ConvConfig::new(3, 2, 2), [], |l, g, f| l
        .forward(&g, x(f)));

    let std = PnaConvConfig::from_edges(&graph(), 3, 2).with_mixing(true);
    check!("pyg/convolution/pna_conv_std", std, ["aggr_module.avg_deg_lin"], |l, g, f| l
        .forward(&g, x(f)));
    let of_dgl = |d, out| PnaConvConfig::new(d, out, 0.9).with_batch_norm(true).with_std_eps(1e-30);
    check!("dgl/convolution/pna_conv", of_dgl(3, 3), [], |l, g, f| l.forward(&g, x(f)));
    let towers = of_dgl(4, 2).with_towers(2).with_divide_input(true).with_d_edge(Some(2));
    check!("dgl/convolution/pna_conv_towers", towers, [], |l, g, f| l
        .forward(g.edge_type("_E").unwrap().with_features(e(f)), x(f)));

    let builder = Graph::builder().nodes("a", 3).nodes("b", 2);
    let builder = builder.edges(("a", "r", "b"), vec![0, 1, 2, 2], vec![0, 1, 0, 1]).edges(
        ("a", "s.1", "a"),
        vec![0, 1, 2],
        vec![1, 2, 0],
    );
    let g = builder.edges(("b", "r", "a"), vec![0, 1, 1], vec![0, 1, 2]).build().unwrap();
    let hgt = HgtConvConfig::from_graph(&g, 4, 2, 2)
        .with_bias(true)
        .with_gelu(true)
        .with_residual_weight(false);
    let loaded = check("pyg/heterogeneous/hgt_conv_dot", hgt.init(&device()), &[], |l, f| {
        let y = l.forward(&g, of_both_types(f));
        vec![("y.b", y["b"].clone()), ("y.a", y["a"].clone())]
    });
    assert!(
        StateDict::of(&loaded, Framework::Pyg).tensors().any(|(name, _)| name == "p_rel.a__s#1__a")
    );
}

/// The tensors of a safetensors file with these numbers.
fn written(tensors: &[(&str, Vec<usize>, Vec<f32>)]) -> StateDict {
    use safetensors::{Dtype, tensor::TensorView};
    let bytes: Vec<Vec<u8>> =
        tensors.iter().map(|(_, _, v)| v.iter().flat_map(|x| x.to_le_bytes()).collect()).collect();
    let mut views = vec![(
        "towers.0.batchnorm.num_batches_tracked",
        TensorView::new(Dtype::I64, vec![], &[0; 8]).unwrap(),
    )];
    for ((name, shape, _), bytes) in tensors.iter().zip(&bytes) {
        views.push((name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap()));
    }
    StateDict::from_safetensors(&safetensors::serialize(views, None).unwrap()).unwrap()
}

/// DGL's layer from its formula: messages of a source, a destination and an edge, sums and scales, `1 / sqrt(nodes)`,
/// batch normalisation by running means, the mixing layer with LeakyReLU, the row itself.
#[test]
fn pna_conv_of_dgl() {
    const D: usize = 3;
    let (g, delta, d_edge) = (graph(), 0.9, 2);
    let numbers = |name: &str, n: usize| {
        values(&crate::matrix(&device(), name, n, 1)).iter().map(|&x| x as f32).collect::<Vec<_>>()
    };
    let wide = |v: &[f32]| v.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
    let columns = 2 * D + d_edge;
    let sums = (1 + 5 * 3) * D;
    let (m, m_bias) = (numbers("M", D * columns), numbers("m", D));
    let (u, u_bias) = (numbers("U", D * sums), numbers("u", D));
    let (gamma, beta, mean) = (numbers("gamma", D), numbers("beta", D), numbers("mean", D));
    let var: Vec<f32> = numbers("var", D).iter().map(|x| x.abs() + 0.5).collect();
    let (mix, mix_bias) = (numbers("mix", D * D), numbers("b", D));
    let state = written(&[
        ("towers.0.M.weight", vec![D, columns], m.clone()),
        ("towers.0.M.bias", vec![D], m_bias.clone()),
        ("towers.0.U.weight", vec![D, sums], u.clone()),
        ("towers.0.U.bias", vec![D], u_bias.clone()),
        ("towers.0.batchnorm.weight", vec![D], gamma.clone()),
        ("towers.0.batchnorm.bias", vec![D], beta.clone()),
        ("towers.0.batchnorm.running_mean", vec![D], mean.clone()),
        ("towers.0.batchnorm.running_var", vec![D], var.clone()),
        ("mixing_layer.0.weight", vec![D, D], mix.clone()),
        ("mixing_layer.0.bias", vec![D], mix_bias.clone()),
    ]);
    use PnaAggregator::{Max, Mean, Min, Std, Sum};
    let config = PnaConvConfig::new(D, D, delta)
        .with_d_edge(Some(d_edge))
        .with_aggregators(vec![Mean, Max, Min, Std, Sum]);
    let config = config.with_batch_norm(true).with_std_eps(1e-30);
    let layer =
        state.load(to_dtype(config.init(&device()), FloatDType::F64), Framework::Dgl).unwrap();
    let names = |s: &StateDict| s.tensors().map(|(n, _)| n.to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&StateDict::of(&layer, Framework::Dgl)), names(&state));

    let (x, e) = (crate::matrix(&device(), "x", 5, D), crate::matrix(&device(), "e", 10, d_edge));
    let got =
        values(&layer.forward(g.edge_type("_E").unwrap().with_features(e.clone()), x.clone()));
    let [m, m_bias, u, u_bias, gamma, beta, mean, var, mix, mix_bias] =
        [m, m_bias, u, u_bias, gamma, beta, mean, var, mix, mix_bias].map(|v| wide(&v));
    let (x, e) = (values(&x), values(&e));
    // `weight` is `[outputs, inputs]`.
    let linear = |weight: &[f64], bias: &[f64], row: &[f64]| {
        (0..bias.len())
            .map(|o| {
                bias[o] + row.iter().zip(&weight[o * row.len()..]).map(|(a, b)| a * b).sum::<f64>()
            })
            .collect::<Vec<f64>>()
    };
    let row = |v: u32| &x[v as usize * D..(v as usize + 1) * D];
    let mut want = vec![];
    for v in 0..5u32 {
        let into = (0..10).filter(|&i| DST[i] == v);
        let message = |i: usize| {
            linear(&m, &m_bias, &[row(SRC[i]), row(v), &e[i * d_edge..(i + 1) * d_edge]].concat())
        };
        let messages: Vec<Vec<f64>> = into.map(message).collect();
        let n = messages.len() as f64;
        let over = |f: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
            (0..D).map(|k| f(&messages.iter().map(|m| m[k]).collect::<Vec<_>>())).collect()
        };
        let average = |m: &[f64]| m.iter().sum::<f64>() / n;
        let deviation = |m: &[f64]| {
            (average(&m.iter().map(|a| a * a).collect::<Vec<_>>()) - average(m).powi(2)).max(0.0)
                + 1e-30
        };
        let sums = [
            over(&average),
            over(&|m| m.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            over(&|m| m.iter().copied().fold(f64::INFINITY, f64::min)),
            over(&|m| deviation(m).sqrt()),
            over(&|m| m.iter().sum()),
        ]
        .concat();
        let mut all = row(v).to_vec();
        for scale in [1.0, (n + 1.0).ln() / delta, delta / (n + 1.0).ln()] {
            all.extend(sums.iter().map(|s| s * scale));
        }
        let h = linear(&u, &u_bias, &all);
        let h: Vec<f64> = (0..D)
            .map(|k| (h[k] / 5f64.sqrt() - mean[k]) / (var[k] + 1e-5).sqrt() * gamma[k] + beta[k])
            .collect();
        let h = linear(&mix, &mix_bias, &h);
        want.extend((0..D).map(|k| h[k].max(0.0) + 0.01 * h[k].min(0.0) + row(v)[k]));
    }
    // The variance of one message is 0 up to rounding, which a root makes larger.
    assert_close("dgl/convolution/pna_conv", &got, &want, 1e-6);
}

#[test]
fn layers_of_several_types() {
    let (d, two, g) = (device(), two_relations(), hetero());
    let blocks = RelGraphConvConfig::new(4, 4, 2).with_weights(RelWeights::BlockDiagonal(2));
    let run = |l: &RelGraphConv, f: &StateDict| {
        vec![("y", l.forward(&two, x(f)).into_values().swap_remove(0))]
    };
    check(
        "pyg/heterogeneous/rgcn_conv",
        blocks.clone().with_norm(RelNorm::Right).init(&d),
        &[],
        run,
    );
    check("dgl/heterogeneous/rel_graph_conv", blocks.with_norm(RelNorm::None).init(&d), &[], run);

    let hgt = HgtConvConfig::from_graph(&g, 4, 2, 2);
    let joined = |l: &HgtConv, f: &StateDict| {
        let rows = x(f);
        vec![(
            "y",
            Tensor::cat(
                l.forward(
                    &g,
                    [("a", rows.clone().slice_dim(0, 0..3)), ("b", rows.slice_dim(0, 3..5))],
                )
                .into_values(),
                0,
            ),
        )]
    };
    check("dgl/heterogeneous/hgt_conv", hgt.clone().with_layer_norm(true).init(&d), &[], joined);
    let by_type = |l: &HgtConv, f: &StateDict| {
        let y = l.forward(&g, of_both_types(f));
        vec![("y.b", y["b"].clone()), ("y.a", y["a"].clone())]
    };
    let of_pyg = hgt.with_bias(true).with_gelu(true).with_residual_weight(false);
    check("pyg/heterogeneous/hgt_conv", of_pyg.init(&d), &[], by_type);

    let make = |width: usize| {
        HeteroGraphConvConfig::new().init(g.schema(), |_| SageConvConfig::new(width, 2).init(&d))
    };
    let run = |l: &HeteroGraphConv<SageConv>, f: &StateDict| {
        let y = l.forward(&g, of_both_types(f));
        vec![("y.b", y["b"].clone()), ("y.a", y["a"].clone())]
    };
    check("pyg/heterogeneous/hetero_conv", make(4), &[], run);
    let state = file("dgl/heterogeneous/hetero_graph_conv").at("state.");
    // `s` belongs to one edge type, so that either name stands for it: the short one is written.
    let short = state.renamed(|name| Some(name.replace("('a', 's', 'a')", "s"))).unwrap();
    let loaded = state.load(make(3), Framework::Dgl).unwrap();
    for (role, y) in run(&loaded, &file("dgl/heterogeneous/hetero_graph_conv")) {
        assert_close(
            role,
            &values(&y),
            &data(&file("dgl/heterogeneous/hetero_graph_conv"), role)
                .iter::<f64>()
                .collect::<Vec<_>>(),
            3e-5,
        );
    }
    let names = |s: &StateDict| s.tensors().map(|(n, _)| n.to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&StateDict::of(&loaded, Framework::Dgl)), names(&short));
    short.load(make(3), Framework::Dgl).unwrap();
}

/// Projections, learned embeddings and layers of a whole model, under the names that its documentation states.
#[test]
fn models_of_several_types() {
    fn check<M: Pretrained + NodeClassifier>(g: &Graph, new: impl Fn() -> M, of_layers: [&str; 2]) {
        let (saved, other) = (seeded(1, &new), seeded(2, &new));
        let x =
            NodeTensors::from([("a", crate::matrix(&device(), "x", 3, 4).cast(FloatDType::F32))]);
        let run =
            |m: &M| ["a", "b"].map(|t| values(&m.logits(g, &x, t))).into_iter().collect::<Vec<_>>();
        assert_ne!(run(&saved), run(&other));
        let names = [
            (Framework::Dgl, ["project.linears.a.weight", "embed.embeds.b.weight", of_layers[0]]),
            (Framework::Pyg, ["project.lins.a.weight", "embed.b.weight", of_layers[1]]),
        ];
        for (from, names) in names {
            let state = StateDict::of(&saved, from);
            for name in names {
                assert!(state.tensors().any(|(n, _)| n == name), "{name}");
            }
            assert_eq!(data(&state, names[0]).shape().to_vec(), [6, 4]);
            // Matrices that were transposed twice may be multiplied in another order.
            for (got, want) in
                run(&state.load(other.clone(), from).unwrap()).iter().zip(&run(&saved))
            {
                assert_close(names[0], got, want, 1e-5);
            }
        }
    }
    let (g, inputs) = (hetero(), [("a", TypeInput::Features(4))]);
    let rgcn = || {
        RgcnConfig::new(2)
            .with_hidden(6)
            .with_weights(RelWeights::Basis(2))
            .try_init(&g, inputs, &device())
            .unwrap()
    };
    check(&g, rgcn, ["layers.1.linear_r.coeff", "convs.1.comp"]);
    let hgt = || {
        HgtConfig::new(2).with_hidden(6).with_num_heads(2).try_init(&g, inputs, &device()).unwrap()
    };
    check(&g, hgt, ["layers.1.linear_k.W", "convs.1.kqv_lin.lins.a.weight"]);
}

/// Two edge types of one relation name share a layer in DGL; each has its own here, with the same weights.
#[test]
fn shared_layers_are_saved_once_for_each_edge_type() {
    let (g, all) = (hetero(), file("dgl/heterogeneous/hetero_graph_conv_shared"));
    let conv = HeteroGraphConvConfig::new()
        .init(g.schema(), |_| SageConvConfig::new(3, 2).init(&device()));
    let loaded = all.at("state.").load(conv, Framework::Dgl).unwrap();
    let y = loaded.forward(&g, of_both_types(&all));
    for (role, y) in ["y.a", "y.b"].iter().zip(y.into_values()) {
        assert_close(role, &values(&y), &data(&all, role).iter::<f64>().collect::<Vec<_>>(), 3e-5);
    }
    let saved = StateDict::of(&loaded, Framework::Dgl);
    let of = |name: &str| data(&saved, name).clone();
    for field in ["fc_neigh.weight", "fc_self.weight", "fc_self.bias"] {
        let want = data(&all, &format!("state.mods.r.{field}")).clone();
        assert_eq!(of(&format!("mods.('a', 'r', 'b').{field}")), want, "{field}");
        assert_eq!(of(&format!("mods.('b', 'r', 'a').{field}")), want, "{field}");
        assert_eq!(
            of(&format!("mods.s.{field}")),
            *data(&all, &format!("state.mods.s.{field}")),
            "{field}"
        );
    }
    assert_eq!(saved.tensors().count(), 9);
}

#[test]
fn models_of_pyg() {
    let d = device();
    let g = graph();
    let both = Graph::homogeneous(5, [SRC, DST].concat(), [DST, SRC].concat()).unwrap();
    let gcn = GcnConfig::new(3, 2).with_hidden(4).init(&d);
    check("pyg/networks/gcn", gcn, &[], |m, f| vec![("y", m.forward(&both, x(f)))]);
    let sage = SageConfig::new(3, 2).with_hidden(4).init(&d);
    check("pyg/networks/graph_sage", sage, &[], |m, f| vec![("y", m.forward(&g, x(f)))]);
    let gat =
        GatConfig::new(3, 2).with_hidden(4).with_num_heads(2).with_out_heads(2).with_relu(true);
    check("pyg/networks/gat", gat.init(&d), &[], |m, f| vec![("y", m.forward(&g, x(f)))]);
    let residual = gat.with_num_layers(3).with_residual_weight(true).init(&d);
    check("pyg/networks/gat_residual", residual, &[], |m, f| vec![("y", m.forward(&g, x(f)))]);
    let gin = GinConfig::new(3, 2)
        .with_hidden(4)
        .with_num_layers(2)
        .with_learn_eps(false)
        .with_heads(false)
        .init(&d);
    let gin = check("pyg/networks/gin", gin, &[], |m, f| vec![("y", m.forward(&g, x(f)))]);
    // Layer by layer, and summed over a graph.
    let f = file("pyg/networks/gin");
    let layers = (0..2).fold(NodeTensors::from([("_N", x(&f))]), |h, i| gin.layer(i, &g, h));
    assert_close(
        "layers",
        &values(&layers["_N"]),
        &data(&f, "y").iter::<f64>().collect::<Vec<_>>(),
        3e-5,
    );
    let whole = burn_gnn_ops::Segments::from_offsets(&[0, 5]);
    let sum = gin.forward_graphs(&g, x(&f), &whole);
    assert_close("graphs", &values(&sum), &values(&layers["_N"].clone().sum_dim(0)), 1e-4);
}

#[test]
fn shapes_are_compared_axis_by_axis() {
    let d = &device();
    let conv = |i, o| GcnConvConfig::new(i, o).with_bias(false).init(d);
    for (from, expected, actual) in
        [(Framework::Dgl, [4, 3], [3, 4]), (Framework::Pyg, [3, 4], [4, 3])]
    {
        let refused = StateDict::of(&conv(3, 4), from).load(conv(4, 3), from).unwrap_err();
        let ModelError::WeightShape { parameter, expected: e, actual: a, .. } = refused else {
            panic!("{refused}")
        };
        assert_eq!((parameter.as_str(), e, a), ("weight", expected.to_vec(), actual.to_vec()));
    }
    // As many numbers, two heads of three or three of two.
    let heads = |d_head, heads| GatConvConfig::new(3, d_head, heads).init(d);
    for from in [Framework::Dgl, Framework::Pyg] {
        let refused = StateDict::of(&heads(3, 2), from).load(heads(2, 3), from).unwrap_err();
        let ModelError::WeightShape { parameter, expected, actual, .. } = refused else {
            panic!("{refused}")
        };
        assert_eq!(
            (parameter.as_str(), expected, actual),
            ("attn_l", vec![1, 3, 2], vec![1, 2, 3])
        );
    }
    // Blocks of other sizes.
    let blocks = |r, b| {
        RelGraphConvConfig::new(4, 4, r)
            .with_weights(RelWeights::BlockDiagonal(b))
            .with_self_loop(false)
            .init(d)
    };
    for from in [Framework::Dgl, Framework::Pyg] {
        let refused = StateDict::of(&blocks(2, 4), from).load(blocks(1, 2), from).unwrap_err();
        assert!(matches!(refused, ModelError::WeightShape { .. }), "{refused}");
    }
}

#[test]
fn errors_name_what_is_wrong_and_what_to_do() {
    let d = &device();
    let state = StateDict::of(&GcnConvConfig::new(3, 2).init(d), Framework::Dgl);
    let missing = state.load(GcnConvConfig::new(3, 2).init(d), Framework::Pyg).unwrap_err();
    assert!(matches!(missing, ModelError::WeightMissing { .. }), "{missing}");
    assert!(
        missing
            .to_string()
            .contains(r#"under `lin.weight`, found only ["bias", "weight"]; rename"#),
        "{missing}"
    );
    let left =
        state.load(GcnConvConfig::new(3, 2).with_bias(false).init(d), Framework::Dgl).unwrap_err();
    assert!(matches!(left, ModelError::WeightsLeft { .. }), "{left}");
    // Names of a file are cut.
    let many = state.renamed(|name| Some(format!("{name}{}", "x".repeat(1 << 20)))).unwrap();
    let missing =
        many.load(GcnConvConfig::new(3, 2).init(d), Framework::Dgl).unwrap_err().to_string();
    assert!(missing.len() < 2_000, "an error of {} bytes", missing.len());
}

#[test]
fn tensors_are_renamed_or_left_out() {
    let d = &device();
    let conv = GcnConvConfig::new(3, 2).init(d);
    let state = StateDict::of(&conv, Framework::Dgl);
    let other = state.renamed(|name| Some(format!("encoder.{name}"))).unwrap();
    assert!(other.load(conv.clone(), Framework::Dgl).is_err());
    let back = other.renamed(|name| name.strip_prefix("encoder.").map(str::to_owned)).unwrap();
    let weight = |conv: &GcnConv| conv.weight.as_ref().unwrap().val().into_data();
    assert_eq!(weight(&back.load(conv.clone(), Framework::Dgl).unwrap()), weight(&conv));
    let one = state.renamed(|name| (name != "bias").then(|| name.to_owned())).unwrap();
    one.load(GcnConvConfig::new(3, 2).with_bias(false).init(d), Framework::Dgl).unwrap();
    let twice = state.renamed(|_| Some("weight".to_owned())).unwrap_err().to_string();
    assert!(twice.contains("and for another tensor; return different names"), "{twice}");
}

#[test]
fn masks_and_counters_do_not_stop_a_file() {
    use safetensors::{Dtype, tensor::TensorView};
    let weight = [1f32, 2.0].map(f32::to_le_bytes).concat();
    let views = [
        ("weight", TensorView::new(Dtype::F32, vec![2, 1], &weight).unwrap()),
        ("mask", TensorView::new(Dtype::BOOL, vec![2], &[1, 0]).unwrap()),
        ("bytes", TensorView::new(Dtype::U8, vec![2], &[1, 0]).unwrap()),
        ("num_batches_tracked", TensorView::new(Dtype::I64, vec![], &[0; 8]).unwrap()),
    ];
    let state = StateDict::from_safetensors(&safetensors::serialize(views, None).unwrap()).unwrap();
    let conv = state
        .load(GcnConvConfig::new(2, 1).with_bias(false).init(&device()), Framework::Dgl)
        .unwrap();
    assert_eq!(values(&conv.weight.unwrap().val()), [1.0, 2.0]);
    // The same in a `.pt` file.
    let names: Vec<String> =
        file("files/checkpoint").at("kinds.").tensors().map(|(n, _)| n.to_owned()).collect();
    assert_eq!(names, ["bf16", "f16", "f64"]);
}

/// PyTorch wrote it in the format that it had before version 1.6.
#[test]
fn files_of_older_versions_are_read() {
    let state = StateDict::from_file(format!("{FOLDER}/files/legacy.pt")).unwrap();
    let conv = state
        .load(GcnConvConfig::new(2, 3).with_bias(false).init(&device()), Framework::Dgl)
        .unwrap();
    assert_eq!(values(&conv.weight.unwrap().val()), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
}

#[test]
fn files_that_are_no_state_dicts_are_refused() {
    for (name, part) in [
        ("command", "system`, which is not run"),
        (
            "module",
            "`torch.nn.modules.linear.Linear`, which is not run; save `model.state_dict()` alone",
        ),
        ("expanded", "save `tensor.contiguous()`"),
    ] {
        let refused =
            StateDict::from_file(format!("{FOLDER}/files/{name}.pt")).unwrap_err().to_string();
        assert!(refused.contains(part) && refused.contains(&format!("{name}.pt")), "{refused}");
    }
    let missing = StateDict::from_file(format!("{FOLDER}/nowhere.pt")).unwrap_err().to_string();
    assert!(missing.contains("nowhere.pt"), "{missing}");
}

/// A model of layers asks them, as its documentation shows.
#[test]
fn a_model_of_several_layers() {
    #[derive(burn::module::Module, Debug)]
    struct Net {
        conv1: GinConv,
        conv2: EdgeConv,
    }
    impl Pretrained for Net {
        fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
            match path.split_once('.') {
                Some(("conv1", rest)) => self.conv1.param_mapping(from, rest).under("conv1."),
                Some(("conv2", rest)) => self.conv2.param_mapping(from, rest).under("conv2."),
                _ => ParamMapping::same(path),
            }
        }
        fn buffers(&self, from: Framework) -> Vec<Buffer> {
            self.conv1.buffers(from).into_iter().map(|b| b.under("conv1.")).collect()
        }
    }
    let d = &device();
    let net = || Net {
        conv1: GinConvConfig::new(vec![3, 4, 2]).init(d),
        conv2: EdgeConvConfig::new(2, vec![2]).init(d),
    };
    for from in [Framework::Dgl, Framework::Pyg] {
        let saved = crate::formulas::drawn(net());
        let state = StateDict::of(&saved, from);
        assert!(state.tensors().any(|(name, _)| name == "conv1.eps"));
        let loaded = state.load(to_dtype(net(), FloatDType::F64), from).unwrap();
        let run = |n: &Net| {
            let rows = crate::matrix(d, "x", 5, 3);
            values(&n.conv2.forward(&graph(), n.conv1.forward(&graph(), rows)))
        };
        assert_close("net", &run(&loaded), &run(&saved), 1e-12);
    }
}

/// Reading is part of the graph crate; names and element types arrive as they were.
#[test]
fn every_tensor_of_a_checkpoint() -> Result<(), burn_gnn_data::DataError> {
    let all = burn_gnn_data::read_torch(format!("{FOLDER}/files/checkpoint.pt"))?;
    let of = |name: &str| {
        all.iter()
            .find(|(n, _)| n == name)
            .map(|(_, data)| (data.shape().to_vec(), data.iter::<f64>().collect::<Vec<_>>()))
    };
    let rows = (vec![2, 3], vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    for name in [
        "kinds.f16",
        "kinds.bf16",
        "kinds.f64",
        "kinds.i64",
        "views.all",
        "views.again",
        "views.parameter",
        "optimizer.state.0.exp_avg",
    ] {
        assert_eq!(of(name), Some(rows.clone()), "{name}");
    }
    assert_eq!(of("views.turned"), Some((vec![3, 2], vec![0.0, 3.0, 1.0, 4.0, 2.0, 5.0])));
    assert_eq!(of("views.row"), Some((vec![3], vec![3.0, 4.0, 5.0])));
    let mask = all.iter().find(|(n, _)| n == "kinds.mask").unwrap();
    assert_eq!(mask.1.iter::<bool>().collect::<Vec<_>>(), [true, false]);
    assert_eq!(all.len(), 11);
    Ok(())
}
