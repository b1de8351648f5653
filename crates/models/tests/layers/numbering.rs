//! Numbers of nodes and edges do not matter, a block computes what the graph computes, and gradients are differences.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, Device, FloatDType, Gradients, Tensor, TensorData};
use burn_gnn_models::{Mode, to_dtype};
use burn_gnn_ops::GraphView;

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
    view: &View,
    device: &Device,
) {
    let (g, layer) = (graph(), to_dtype(layer, FloatDType::F64));
    let (x, e) = (matrix(device, "x", 6, 4), matrix(device, "e", 8, 3) + 1.5);
    for mode in MODES {
        let want = run(&layer, &g, x.clone(), e.clone(), mode);
        let got = run(&layer, view, pick(&x, &view.nodes), pick(&e, &view.edges), mode);
        let rows = got.dims()[0];
        close(&format!("{name}, {mode:?}"), &values(&got), &values(&pick(&want, &view.nodes[..rows])), 1e-12);
    }
}

#[test]
fn numbers_do_not_matter() {
    let (nodes, edges) = ([3, 0, 5, 1, 4, 2], [6, 0, 5, 3, 1, 7, 4, 2]);
    let turned = View::renumbered(&graph(), &nodes, &edges);
    // An LSTM reads edges in the order of their ids, which they keep here.
    let kept = View::renumbered(&graph(), &nodes, &[0, 1, 2, 3, 4, 5, 6, 7]);
    for device in &devices() {
        macro_rules! renumbered {
            ($name:expr, $make:expr, $run:expr $(,)?) => {
                same_on($name, ($make)(1), $run, if $name.ends_with("Lstm") { &kept } else { &turned }, device)
            };
        }
        each_layer!(renumbered, device);
        each_far_layer!(renumbered, device);
    }
}

#[test]
fn a_block_gives_what_the_graph_gives() {
    for device in &devices() {
        for seeds in [&[4, 5, 1][..], &[0], &[5]] {
            let block = View::block(&graph(), seeds);
            macro_rules! on_block {
                ($name:expr, $make:expr, $run:expr $(,)?) => {
                    same_on($name, ($make)(1), $run, &block, device)
                };
            }
            each_layer!(on_block, device);
        }
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
