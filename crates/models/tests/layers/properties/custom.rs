//! A custom layer needs one `impl MessagePassing`: it runs on graphs, blocks and parts and inside `HeteroGraphConv`, with
//! all options of edges, and loads weights.

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, FloatDType, Tensor};
use burn_gnn_models::*;
use burn_gnn_ops::{Activation, EdgeTensor, Edges, GraphView, MessagePassing};
use burn_gnn_testutil::panic_text;

use crate::fixtures::views::{View, graph};
use crate::formulas::two_types;
use crate::{STEP, assert_close, devices, matrix, values};

/// `y[v] = x[v] W₁ + mean of w_e · (x[u] + f[e]) · σ(x[u] · x[v]) W₂`, the sum over `e = (u, v)`.
#[derive(Module, Debug)]
struct Gated {
    own: Linear,
    neighbor: Linear,
}

impl Gated {
    fn new(d_input: usize, d_output: usize, device: &Device) -> Self {
        let linear = || {
            to_dtype(
                LinearConfig::new(d_input, d_output).with_bias(false).init(device),
                FloatDType::F64,
            )
        };
        seeded(7, || Self { own: linear(), neighbor: linear() })
    }
}

impl MessagePassing for Gated {
    const NAME: &'static str = "gated";

    fn input_sizes(&self) -> [Option<usize>; 2] {
        [Some(self.own.weight.dims()[0]); 2]
    }
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

/// The formula of [`Gated`] by loops.
fn by_hand(
    layer: &Gated,
    g: &dyn GraphView,
    [x, y]: [&[f64]; 2],
    w: Option<&[f64]>,
    f: Option<&[f64]>,
    d: usize,
) -> Vec<f64> {
    let [w1, w2] = [&layer.own, &layer.neighbor].map(|l| values(&l.weight.val()));
    let o = layer.own.weight.dims()[1];
    let r = g.relation(0);
    let mut out = vec![];
    for v in 0..r.num_dst() {
        let dst = &y[v * d..(v + 1) * d];
        let into: Vec<usize> = (0..r.num_edges()).filter(|&e| r.dst()[e] as usize == v).collect();
        let mut mean = vec![0.0; d];
        for &e in &into {
            let u = r.src()[e] as usize;
            let src = &x[u * d..(u + 1) * d];
            let dot: f64 = src.iter().zip(dst).map(|(a, b)| a * b).sum();
            let by = w.map_or(1.0, |w| w[e]) / (1.0 + (-dot).exp()) / into.len() as f64;
            (0..d).for_each(|k| mean[k] += by * (src[k] + f.map_or(0.0, |f| f[e * d + k])));
        }
        for c in 0..o {
            out.push((0..d).map(|k| dst[k] * w1[k * o + c] + mean[k] * w2[k * o + c]).sum());
        }
    }
    out
}

#[test]
fn a_custom_layer_reads_weights_and_features_and_applies_the_activation() {
    let g = graph();
    for device in devices() {
        let layer = Gated::new(3, 2, &device);
        let (x, w, f) =
            (matrix(&device, "x", 6, 3), matrix(&device, "w", 8, 1), matrix(&device, "f", 8, 3));
        let w = w.reshape([8]);
        let (of_x, of_w, of_f) = (values(&x), values(&w), values(&f));
        let edges = || g.edge_type("_E").unwrap();
        let check = |what: &str, edges: Edges<'_>, w: Option<&[f64]>, f: Option<&[f64]>| {
            let want = by_hand(&layer, &g, [&of_x, &of_x], w, f, 3);
            let got = values(&layer.forward(edges.clone(), x.clone()));
            assert_close(what, &got, &want, 1e-12);
            let relu: Vec<f64> = want.iter().map(|y| y.max(0.0)).collect();
            let got = values(&layer.forward(edges.clone().then(Activation::Relu), x.clone()));
            assert_close(&format!("{what}, relu"), &got, &relu, 1e-12);
            assert_eq!(
                values(&layer.propagate(edges.clone(), x.clone())),
                values(&layer.forward(edges, x.clone()))
            );
        };
        check("bare", edges(), None, None);
        check("weights", edges().with_weight(w.clone()), Some(&of_w), None);
        check("features", edges().with_features(f.clone()), None, Some(&of_f));
        let both = edges().with_weight(w.clone()).with_features(f.clone());
        check("both", both, Some(&of_w), Some(&of_f));
    }
}

/// Blocks and renumbered graphs compute what the graph computes, with dropout of the result too.
#[test]
fn a_custom_layer_runs_on_blocks_and_parts() {
    let g = graph();
    for device in devices().into_iter().map(|device| device.autodiff()) {
        let (layer, key) = (Gated::new(3, 2, &device), DropoutKey::new(&device));
        let x = matrix(&device.without_autodiff(), "x", 6, 3);
        let run = |view: &dyn GraphView, rows: &[u64]| {
            let rows: Vec<u32> = rows.iter().map(|&v| v as u32).collect();
            let x = Tensor::from_inner(select_rows(x.clone(), rows.as_slice()));
            let view = GraphView::at_step(&view, STEP.0, STEP.1);
            let edges = Edges::new(&view, ..).unwrap().then_dropout(&key, 0.5);
            values(&layer.forward(edges, x).inner())
        };
        let whole = run(&g, &[0, 1, 2, 3, 4, 5]);
        assert!(whole.contains(&0.0), "dropout is active: {whole:?}");
        for seeds in [vec![4], vec![1, 0], vec![5, 2, 4]] {
            let block = View::block(&g, &seeds);
            let want: Vec<f64> =
                seeds.iter().flat_map(|&v| whole[v as usize * 2..][..2].to_vec()).collect();
            assert_close("block", &run(&block, &block.nodes), &want, 1e-12);
        }
        let nodes = [3, 1, 5, 0, 2, 4];
        let renumbered = View::renumbered(&g, &nodes, &[7, 6, 5, 4, 3, 2, 1, 0]);
        let want: Vec<f64> =
            nodes.iter().flat_map(|&v| whole[v as usize * 2..][..2].to_vec()).collect();
        assert_close("renumbered", &run(&renumbered, &nodes), &want, 1e-12);
    }
}

/// `HeteroGraphConv` of custom layers is the sum of the layers, with weights and features of edges.
#[test]
fn a_custom_layer_runs_in_a_heterogeneous_layer() {
    let device = Device::flex();
    let g = two_types();
    let conv = HeteroGraphConvConfig::new().init(g.schema(), |_| Gated::new(3, 2, &device));
    let x = |t: usize| matrix(&device, &format!("x{t}"), g.node_counts()[t], 3);
    let features =
        |r: usize| matrix(&device, &format!("f{r}"), g.relation(r).unwrap().num_edges(), 3);
    let weight = |r: usize| features(r).slice_dim(1, 0..1).squeeze_dim::<1>(1);
    let mut edges = g.edge_types();
    for r in 0..g.schema().etypes().len() {
        edges = edges.with_weight(r, weight(r)).unwrap().with_features(r, features(r)).unwrap();
    }
    let names = g.schema().ntypes();
    let all = (0..names.len()).map(|t| (names[t].clone(), x(t)));
    let y = conv.forward(edges, all.collect::<NodeTensors>());
    for (t, ntype) in names.iter().enumerate() {
        let one = |r: usize| {
            let (s, d) = g.schema().endpoints(r);
            let edges = g.edge_type(r).unwrap().with_weight(weight(r)).with_features(features(r));
            conv.mods[r].forward(edges, (x(s), x(d)))
        };
        let Some(want) = g.schema().etypes_into(t).map(one).reduce(|a, b| a + b) else { continue };
        assert_close(ntype, &values(&y[ntype.as_str()]), &values(&want), 1e-12);
    }
    let wrong = all_of_size(&g, &device, 4);
    let text = panic_text(|| conv.forward(&g, wrong.clone()));
    assert!(text.starts_with("gated: edge type `"), "{text}");
}

fn all_of_size(g: &burn_gnn_graph::Graph, device: &Device, d: usize) -> NodeTensors {
    let rows =
        |(t, name): (usize, &String)| (name.clone(), matrix(device, "x", g.node_counts()[t], d));
    g.schema().ntypes().iter().enumerate().map(rows).collect()
}

/// Files of this library and state dicts, also of several layers in a container.
#[test]
fn a_custom_layer_loads_weights() {
    let device = Device::flex();
    let dir = tempfile::tempdir().unwrap();
    let (saved, other) = (Gated::new(3, 2, &device), || {
        let zeros = |m: Gated| {
            let map = |mut l: Linear| {
                l.weight = l.weight.map(|w| w.zeros_like());
                l
            };
            Gated { own: map(m.own), neighbor: map(m.neighbor) }
        };
        zeros(Gated::new(3, 2, &device))
    });
    let weights = |m: &Gated| [values(&m.own.weight.val()), values(&m.neighbor.weight.val())];
    save_weights(&saved, dir.path().join("gated.bpk")).unwrap();
    let loaded = load_weights(other(), dir.path().join("gated.bpk")).unwrap();
    assert_eq!(weights(&loaded), weights(&saved));
    let state = StateDict::of(&saved, Framework::Pyg);
    let names: Vec<&str> = state.tensors().map(|(name, _)| name).collect();
    assert_eq!(names, ["neighbor.weight", "own.weight"]);
    // A `Linear` of PyTorch is transposed.
    assert_eq!(state.tensors().next().unwrap().1.shape().to_vec(), [2, 3]);
    let file = state.to_safetensors().unwrap();
    let loaded = StateDict::from_safetensors(&file).unwrap().load(other(), Framework::Pyg).unwrap();
    assert_eq!(weights(&loaded), weights(&saved));
    let g = two_types();
    let container = HeteroGraphConvConfig::new();
    let state = StateDict::of(&container.init(g.schema(), |_| saved.clone()), Framework::Pyg);
    let loaded = state.load(container.init(g.schema(), |_| other()), Framework::Pyg).unwrap();
    assert!(loaded.mods.iter().all(|m| weights(m) == weights(&saved)));
}
