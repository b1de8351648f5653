//! Numbers of nodes and edges do not matter, a block computes what the graph computes, and gradients are differences.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, Device, FloatDType, Gradients, Tensor, TensorData};
use burn_gnn_graph::Graph;
use burn_gnn_models::{Mode, to_dtype};
use burn_gnn_ops::GraphView;
use proptest::prelude::*;

use crate::random::homogeneous;
use crate::registry::{each_far_layer, each_layer};
use crate::views::{View, graph};
use crate::{close, devices, matrix, values};

const MODES: [Mode; 2] = [Mode::Eval, Mode::Train { seed: 5, step: 3 }];

fn pick(x: &Tensor<2>, ids: &[u64]) -> Tensor<2> {
    if ids.is_empty() {
        return x.clone().slice_dim(0, 0..0);
    }
    Tensor::cat(ids.iter().map(|&i| x.clone().slice_dim(0, i as usize..i as usize + 1)).collect(), 0)
}

/// The result on `view` is that on the whole graph, by original ids, with dropout and without.
fn same_on<M: Module>(
    name: &str,
    layer: M,
    run: impl Fn(&M, &dyn GraphView, Tensor<2>, Tensor<2>, Mode) -> Tensor<2>,
    (g, view): (&Graph, &View),
    device: &Device,
) {
    let layer = to_dtype(layer, FloatDType::F64);
    let (x, e) = (matrix(device, "x", g.total_nodes(), 4), matrix(device, "e", g.total_edges(), 3) + 1.5);
    for mode in MODES {
        let want = run(&layer, g, x.clone(), e.clone(), mode);
        let got = run(&layer, view, pick(&x, &view.nodes), pick(&e, &view.edges), mode);
        let rows = got.dims()[0];
        close(&format!("{name}, {mode:?}"), &values(&got), &values(&pick(&want, &view.nodes[..rows])), 1e-12);
    }
}

#[test]
fn numbers_do_not_matter() {
    renumber(&graph(), &[3, 0, 5, 1, 4, 2], &[6, 0, 5, 3, 1, 7, 4, 2]);
}

fn renumber(g: &Graph, nodes: &[u64], edges: &[u64]) {
    let turned = View::renumbered(g, nodes, edges);
    // An LSTM reads edges in the order of their ids, which they keep here.
    let kept = View::renumbered(g, nodes, &(0..edges.len() as u64).collect::<Vec<_>>());
    for device in &devices() {
        macro_rules! renumbered {
            ($name:expr, $make:expr, $run:expr $(,)?) => {
                same_on($name, ($make)(1), $run, (g, if $name.ends_with("Lstm") { &kept } else { &turned }), device)
            };
        }
        each_layer!(renumbered, device);
        each_far_layer!(renumbered, device);
    }
}

#[test]
fn a_block_gives_what_the_graph_gives() {
    for seeds in [&[4, 5, 1][..], &[0], &[5]] {
        compare_block(&graph(), seeds);
    }
}

fn compare_block(g: &Graph, seeds: &[u64]) {
    let block = View::block(g, seeds);
    for device in &devices() {
        macro_rules! on_block {
            ($name:expr, $make:expr, $run:expr $(,)?) => {
                same_on($name, ($make)(1), $run, (g, &block), device)
            };
        }
        each_layer!(on_block, device);
    }
}

/// A random graph, its nodes and edges in another order, and some of its nodes.
fn numbered() -> impl Strategy<Value = (Graph, Vec<u64>, Vec<u64>, Vec<u64>)> {
    homogeneous().prop_flat_map(|g| {
        let ids = |n: usize| (0..n as u64).collect::<Vec<_>>();
        let (nodes, edges) = (ids(g.total_nodes()), ids(g.total_edges()));
        let seeds = proptest::sample::subsequence(nodes.clone(), 1..=nodes.len()).prop_shuffle();
        (Just(g), Just(nodes).prop_shuffle(), Just(edges).prop_shuffle(), seeds)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers_do_not_matter_on_any_graph((g, nodes, edges, _) in numbered()) {
        renumber(&g, &nodes, &edges);
    }

    #[test]
    fn a_block_of_any_graph_gives_what_the_graph_gives((g, _, _, seeds) in numbered()) {
        compare_block(&g, &seeds);
    }
}

/// Adds to one entry of one parameter, in the order of a walk through the module.
struct Nudge {
    at: usize,
    by: f64,
}

impl ModuleMapper for Nudge {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let shape = param.val().dims();
        let n: usize = shape.iter().product();
        if self.at >= n {
            self.at -= n;
            return param;
        }
        let mut delta = vec![0.0; n];
        delta[self.at] = self.by;
        self.at = usize::MAX;
        param.map(|t| {
            let device = t.device();
            t + Tensor::from_data(TensorData::new(delta, shape), (&device, DType::F64))
        })
    }
}

struct Collect<'a>(&'a Gradients, Vec<f64>);

impl ModuleVisitor for Collect<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        match value.grad(self.0) {
            Some(grad) => self.1.extend(values(&grad)),
            None => self.1.extend(vec![0.0; value.shape().num_elements()]),
        }
    }
}

fn gradients<M: Module>(name: &str, layer: M, run: impl Fn(&M, &dyn GraphView, Tensor<2>, Tensor<2>, Mode) -> Tensor<2>, device: &Device) {
    let (g, mode) = (graph(), MODES[1]);
    let layer = to_dtype(layer, FloatDType::F64);
    let (x, e) = (matrix(device, "x", 6, 4), matrix(device, "e", 8, 3) + 1.5);
    let score = |layer: &M, x: Tensor<2>, e: Tensor<2>| {
        let y = run(layer, &g, x, e, mode);
        let [n, d] = y.dims();
        (y * matrix(device, "c", n, d)).sum()
    };
    let at = |layer: &M, x: Tensor<2>, e: Tensor<2>| values(&score(layer, x, e))[0];
    let (tx, te) = (x.clone().require_grad(), e.clone().require_grad());
    let grads = score(&layer, tx.clone(), te.clone()).backward();
    let mut params = Collect(&grads, vec![]);
    layer.visit(&mut params);
    let h = 1e-6;
    let near = |what: String, got: f64, up: f64, down: f64| close(&format!("{name}, {what}"), &[got], &[(up - down) / (2.0 * h)], 1e-6);
    for k in (0..params.1.len()).step_by(3) {
        let nudged = |by| layer.clone().map(&mut Nudge { at: k, by });
        near(format!("parameter entry {k}"), params.1[k], at(&nudged(h), x.clone(), e.clone()), at(&nudged(-h), x.clone(), e.clone()));
    }
    let nudged = |x: &Tensor<2>, k: usize, by: f64| {
        let (mut v, shape) = (values(x), x.dims());
        v[k] += by;
        Tensor::<2>::from_data(TensorData::new(v, shape), (device, DType::F64))
    };
    let of = |t: &Tensor<2>| t.grad(&grads).map_or_else(|| vec![0.0; t.shape().num_elements()], |g| values(&g));
    for (k, got) in of(&tx).into_iter().enumerate() {
        near(format!("x entry {k}"), got, at(&layer, nudged(&x, k, h), e.clone()), at(&layer, nudged(&x, k, -h), e.clone()));
    }
    for (k, got) in of(&te).into_iter().enumerate() {
        near(format!("edge entry {k}"), got, at(&layer, x.clone(), nudged(&e, k, h)), at(&layer, x.clone(), nudged(&e, k, -h)));
    }
}

#[test]
fn gradients_are_differences() {
    for device in devices() {
        let device = &device.autodiff();
        macro_rules! differences {
            ($name:expr, $make:expr, $run:expr $(,)?) => {
                gradients($name, ($make)(1), $run, device)
            };
        }
        each_layer!(differences, device);
        each_far_layer!(differences, device);
    }
}
