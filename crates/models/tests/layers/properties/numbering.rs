//! Results do not depend on the numbering of nodes and edges, blocks and graphs give equal results, and gradients equal
//! finite differences.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, Device, FloatDType, Gradients, Tensor, TensorData};
use burn_gnn_graph::Graph;
use burn_gnn_models::to_dtype;
use burn_gnn_ops::{GraphView, Segments};
use proptest::prelude::*;

use crate::fixtures::random::homogeneous;
use crate::fixtures::registry::{each_far_layer, each_layer};
use crate::fixtures::views::{View, graph};
use crate::{STEP, assert_close, devices, matrix, pass, values};

fn pick(x: &Tensor<2>, ids: &[u64]) -> Tensor<2> {
    if ids.is_empty() {
        return x.clone().slice_dim(0, 0..0);
    }
    Tensor::cat(
        ids.iter().map(|&i| x.clone().slice_dim(0, i as usize..i as usize + 1)).collect(),
        0,
    )
}

/// The result on `view` is that on the whole graph, by original ids, with dropout and without.
fn same_on<M: Module>(
    name: &str,
    layer: M,
    run: impl Fn(&M, &dyn GraphView, Tensor<2>, Tensor<2>) -> Tensor<2>,
    (g, view): (&Graph, &View),
    device: &Device,
) {
    let layer = to_dtype(layer, FloatDType::F64);
    let (x, e) =
        (matrix(device, "x", g.total_nodes(), 4), matrix(device, "e", g.total_edges(), 3) + 1.5);
    for trains in [false, true] {
        let want = pass(&layer, trains, &run, g, (x.clone(), e.clone()));
        let got = pass(&layer, trains, &run, view, (pick(&x, &view.nodes), pick(&e, &view.edges)));
        let rows = got.dims()[0];
        assert_close(
            &format!("{name}, trains: {trains}"),
            &values(&got),
            &values(&pick(&want, &view.nodes[..rows])),
            1e-12,
        );
    }
}

#[test]
fn numbers_do_not_matter() {
    renumber(&graph(), &[3, 0, 5, 1, 4, 2], &[6, 0, 5, 3, 1, 7, 4, 2]);
}

fn renumber(g: &Graph, nodes: &[u64], edges: &[u64]) {
    let renumbered_view = View::renumbered(g, nodes, edges);
    // An LSTM reads edges in the order of their ids, which they keep here.
    let kept = View::renumbered(g, nodes, &(0..edges.len() as u64).collect::<Vec<_>>());
    for device in &devices() {
        macro_rules! renumbered {
            ($name:expr, $make:expr, $run:expr $(,)?) => {
                same_on(
                    $name,
                    seeded(1, $make),
                    $run,
                    (g, if $name.ends_with("Lstm") { &kept } else { &renumbered_view }),
                    device,
                )
            };
        }
        let tracked = &device.clone().autodiff();
        each_layer!(renumbered, tracked);
        each_far_layer!(renumbered, tracked);
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
                same_on($name, seeded(1, $make), $run, (g, &block), device)
            };
        }
        each_layer!(on_block, &device.clone().autodiff());
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
struct Perturb {
    at: usize,
    by: f64,
}

impl ModuleMapper for Perturb {
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

/// Gradients of all parameters, in the order of a walk through the module; 0 for those that do not reach the loss.
pub(crate) struct Collect<'a>(pub(crate) &'a Gradients, pub(crate) Vec<f64>);

impl ModuleVisitor for Collect<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        match value.grad(self.0) {
            Some(grad) => self.1.extend(values(&grad)),
            None => self.1.extend(vec![0.0; value.shape().num_elements()]),
        }
    }
}

/// That `got` is the difference over five points, which has errors of `step⁴` and `1e-16 / step`. The second step is
/// for those few entries of which the first one passes a kink of ReLU, max or min.
#[track_caller]
fn is_difference(what: &str, got: f64, at: impl Fn(f64) -> f64) {
    let difference = |step: f64| {
        (8.0 * (at(step) - at(-step)) - (at(2.0 * step) - at(-2.0 * step))) / (12.0 * step)
    };
    let want = difference(1e-4);
    let want =
        if (got - want).abs() <= 1e-9 * (1.0 + want.abs()) { want } else { difference(1e-5) };
    assert_close(what, &[got], &[want], 1e-9);
}

/// Gradients of all inputs and of every third entry of the parameters.
fn gradients<M: Module>(
    name: &str,
    layer: M,
    inputs: &[Tensor<2>],
    run: impl Fn(&M, Vec<Tensor<2>>) -> Vec<Tensor<2>>,
) {
    let layer = to_dtype(layer, FloatDType::F64);
    let score = |layer: &M, x: &[Tensor<2>]| {
        let weighed = |(i, y): (usize, Tensor<2>)| {
            let [n, d] = y.dims();
            (y.clone() * matrix(&y.device(), &format!("c{i}"), n, d)).sum()
        };
        run(layer, x.to_vec()).into_iter().enumerate().map(weighed).reduce(|a, b| a + b).unwrap()
    };
    let at = |layer: &M, x: &[Tensor<2>]| values(&score(layer, x))[0];
    let tracked: Vec<_> = inputs.iter().map(|x| x.clone().require_grad()).collect();
    let grads = score(&layer, &tracked).backward();
    let mut params = Collect(&grads, vec![]);
    layer.visit(&mut params);
    for k in (0..params.1.len()).step_by(3) {
        let nudged = |by: f64| at(&layer.clone().map(&mut Perturb { at: k, by }), inputs);
        is_difference(&format!("{name}, parameter entry {k}"), params.1[k], nudged);
    }
    for (i, x) in tracked.iter().enumerate() {
        let got =
            x.grad(&grads).map_or_else(|| vec![0.0; x.shape().num_elements()], |g| values(&g));
        for (k, got) in got.into_iter().enumerate() {
            let nudged = |by: f64| {
                let (mut v, mut all) = (values(x), inputs.to_vec());
                v[k] += by;
                all[i] = Tensor::from_data(TensorData::new(v, x.dims()), (&x.device(), DType::F64));
                at(&layer, &all)
            };
            is_difference(&format!("{name}, input {i}, entry {k}"), got, nudged);
        }
    }
}

fn gradients_on_a_graph<M: Module>(
    name: &str,
    layer: M,
    run: impl Fn(&M, &dyn GraphView, Tensor<2>, Tensor<2>) -> Tensor<2>,
    device: &Device,
) {
    let (g, inputs) = (graph(), [matrix(device, "x", 6, 4), matrix(device, "e", 8, 3) + 1.5]);
    let g = g.at_step(STEP.0, STEP.1);
    gradients(name, layer, &inputs, |layer, x| vec![run(layer, &g, x[0].clone(), x[1].clone())]);
}

#[test]
fn gradients_are_differences() {
    for device in devices() {
        let device = &device.autodiff();
        macro_rules! differences {
            ($name:expr, $make:expr, $run:expr $(,)?) => {
                gradients_on_a_graph($name, seeded(1, $make), $run, device)
            };
        }
        each_layer!(differences, device);
        each_far_layer!(differences, device);
    }
}

/// Three relations into `a`, two of them from `a`; six nodes of it.
fn typed() -> Graph {
    Graph::builder()
        .nodes("a", 6)
        .nodes("b", 3)
        .edges(("a", "r", "a"), vec![0, 1, 3, 3, 5], vec![1, 1, 0, 1, 4])
        .edges(("a", "s", "a"), vec![2, 0, 4], vec![1, 3, 5])
        .edges(("b", "t", "a"), vec![0, 2, 2, 1], vec![1, 0, 0, 3])
        .build()
        .unwrap()
}

#[test]
fn gradients_over_several_types_are_differences() {
    use burn_gnn_models::*;
    let g = &typed();
    let keyed = &g.at_step(STEP.0, STEP.1);
    for device in devices() {
        let d = &device.autodiff();
        let x = [matrix(d, "a", 6, 4), matrix(d, "b", 3, 4)];
        let made = |y: NodeTensors| y.into_values();
        let named = |x| crate::typed(g, x);
        seeded(1, || {
            // Without in-edges all relations give 0, a tie under max and min; rows of the nodes themselves break it.
            for by in [Reduce::Max, Reduce::Min] {
                let conv = HeteroGraphConvConfig::new()
                    .with_aggregate(by)
                    .init(g.schema(), |_| SageConvConfig::new(4, 3).init(d));
                gradients(&format!("hetero_graph_conv {by:?}"), conv, &x, |l, x| {
                    made(l.forward(keyed, named(x)))
                });
            }
            for by in [Reduce::Sum, Reduce::Mean] {
                let config = HeteroGraphConvConfig::new().with_aggregate(by);
                let conv = config
                    .init(g.schema(), |_| GatConvConfig::new(4, 3, 2).with_dropout(0.3).init(d));
                gradients(&format!("hetero_graph_conv {by:?}"), conv, &x, |l, x| {
                    made(l.forward(keyed, named(x)))
                });
            }
            let han =
                HanConvConfig::from_graph(g, [("a", 4), ("b", 4)], 3, 2).with_dropout(0.3).init(d);
            gradients("han_conv", han, &x, |l, x| made(l.forward(keyed, named(x))));
            let hgt = HgtConvConfig::from_graph(g, 4, 3, 2).with_dropout(0.3).init(d);
            gradients("hgt_conv", hgt, &x, |l, x| made(l.forward(keyed, named(x))));
            for weights in [RelWeights::Full, RelWeights::Basis(2), RelWeights::BlockDiagonal(2)] {
                let conv = RelGraphConvConfig::from_graph(g, 4, 2).with_weights(weights).init(d);
                gradients(&format!("rel_graph_conv {weights:?}"), conv, &x, |l, x| {
                    made(l.forward(g, named(x)))
                });
            }
            let one_hot = RgcnConfig::new(2)
                .with_hidden(3)
                .with_one_hot(true)
                .with_weights(RelWeights::Basis(2))
                .with_dropout(0.3);
            let model = one_hot.try_init(g, TypeMap::default(), d).unwrap();
            gradients("rgcn of one-hot inputs", model, &[], |m, _| {
                made(m.forward(keyed, NodeTensors::default()))
            });
        });
    }
}

/// Biases of 0 are where ReLU of a row of zeros has its kink.
struct AwayFromZero;

impl ModuleMapper for AwayFromZero {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|t| {
            let (tracked, autodiff) = (t.is_require_grad(), t.is_autodiff());
            let moved = t.without_autodiff() + 0.1;
            if autodiff { moved.autodiff().set_require_grad(tracked) } else { moved }
        })
    }
}

/// Means and variances of the batch are functions of all its rows.
#[test]
fn gradients_of_batch_norm_and_dropout_are_differences() {
    use burn_gnn_models::*;
    for device in devices() {
        let d = &device.autodiff();
        macro_rules! check {
            ($name:expr, $layer:expr, $run:expr $(,)?) => {
                gradients_on_a_graph($name, seeded(1, || $layer), $run, d)
            };
        }
        let pna = PnaConvConfig::new(4, 4, 0.9)
            .with_towers(2)
            .with_divide_input(true)
            .with_batch_norm(true);
        check!("pna_conv with batch norm", pna.init(d), |l, g, x, _| l.forward(g, x));
        for heads in [true, false] {
            let gin = GinConfig::new(4, 3)
                .with_hidden(5)
                .with_num_layers(2)
                .with_batch_norm(true)
                .with_heads(heads);
            let name = format!("gin with batch norm, heads: {heads}");
            check!(&name, gin.init(d).map(&mut AwayFromZero), |m, g, x, _| m.forward(g, x));
        }
        let appnp = AppnpConvConfig::new().with_hops(2).with_dropout(0.3);
        check!("appnp_conv without weights", appnp.init(d), |l, g, x, _| l.forward(g, x));
        let key = DropoutKey::new(d);
        let sg = SgConvConfig::new(4, 3).with_hops(2);
        check!("dropout of features", sg.init(d), |l, g, x, _| l
            .forward(g, key.dropout(g, .., 0.4, x)));
    }
}

#[test]
fn gradients_without_a_graph_are_differences() {
    use burn_gnn_models::*;
    for device in devices() {
        let d = &device.autodiff();
        let x = [matrix(d, "a", 5, 4), matrix(d, "b", 5, 4)];
        seeded(1, || {
            let readout = AttentionReadoutConfig::new(4).with_d_output(Some(3)).init(d);
            let graphs = Segments::from_lengths(&[2, 0, 3]);
            gradients("attention_readout", readout, &x[..1], |l, mut x| {
                vec![l.forward(x.remove(0), &graphs)]
            });
            for mode in [Jumping::Cat, Jumping::Max, Jumping::Lstm] {
                let join = JumpingKnowledgeConfig::new(mode).with_d(4).init(d);
                gradients(&format!("jumping_knowledge {mode:?}"), join, &x, |l, x| {
                    vec![l.forward(x)]
                });
            }
            let types = burn_gnn_ops::TypeIndex::new(&[1u8, 0, 2, 1, 2], 3);
            for weights in [RelWeights::Full, RelWeights::Basis(2), RelWeights::BlockDiagonal(2)] {
                let linear = TypedLinearConfig::new(4, 6, 3).with_weights(weights).init(d);
                gradients(&format!("typed_linear {weights:?}"), linear, &x[..1], |l, mut x| {
                    vec![l.forward(x.remove(0), &types)]
                });
            }
        });
    }
}
