//! Layer-wise inference over chunks equals a forward pass on the whole graph, for every model and chunk size.

use burn::module::Module;
use burn::tensor::{Device, FloatDType, Tensor};
use burn_gnn_graph::Graph;
use burn_gnn_models::*;
use burn_gnn_ops::GraphView;
use proptest::prelude::*;

use crate::fixtures::random::{hetero, homogeneous};
use crate::fixtures::registry::{each_model, each_typed_model};
use crate::{assert_close, devices, matrix, values};

/// Chunks of one node, of two, of few edges, and the whole type.
const BUDGETS: [(usize, usize); 4] = [(1, 1), (2, 1000), (1000, 3), (1000, 1000)];

fn same<M: Layerwise + NodeClassifier>(name: &str, model: &M, g: &Graph, x: &NodeTensors) {
    for target in g.schema().ntypes() {
        let want = model.logits(g, x, target);
        for (nodes, edges) in BUDGETS {
            let config = InferenceConfig::new().with_max_nodes(nodes).with_max_edges(edges);
            let got = infer(model, g, x, target, &config).unwrap();
            assert_eq!(got.dims(), want.dims(), "{name}");
            assert_close(
                &format!("{name}, type {target}, {nodes} nodes, {edges} edges"),
                &values(&got),
                &values(&want),
                1e-11,
            );
        }
    }
}

fn f64s<M: burn::module::Module>(model: M) -> M {
    to_dtype(model, FloatDType::F64)
}

fn models_of_one_type(g: &Graph, device: &Device) {
    let x = NodeTensors::from(matrix(device, "x", g.node_counts()[0], 4));
    macro_rules! check {
        ($name:expr, $layers:expr, $model:expr) => {
            same($name, &f64s($model), g, &x)
        };
    }
    each_model!(check, device);
}

/// Features of the models of [`each_typed_model`].
pub(crate) fn typed_features(g: &Graph, device: &Device) -> NodeTensors {
    let of = |((d, ntype), &n): ((usize, &String), &usize)| {
        (d > 0).then(|| (ntype.clone(), matrix(device, "x", n, d)))
    };
    [4, 0, 3].into_iter().zip(g.schema().ntypes()).zip(g.node_counts()).filter_map(of).collect()
}

fn models_of_several_types(g: &Graph, device: &Device) {
    let x = typed_features(g, device);
    macro_rules! check {
        ($name:expr, $layers:expr, $model:expr) => {
            same($name, &f64s($model), g, &x)
        };
    }
    each_typed_model!(check, g, device);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chunks_give_what_the_graph_gives(g in homogeneous(), h in hetero()) {
        for device in &devices() {
            seeded(0, || models_of_one_type(&g, device));
            seeded(0, || models_of_several_types(&h, device));
        }
    }
}

#[test]
fn types_without_nodes_and_graphs_without_edges() {
    for device in &devices() {
        let empty = Graph::builder()
            .nodes("a", 2)
            .nodes("b", 0)
            .nodes("c", 3)
            .edges(("a", "r", "c"), vec![1, 1], vec![0, 2])
            .edges(("b", "s", "a"), vec![], vec![])
            .build()
            .unwrap();
        models_of_several_types(&empty, device);
        models_of_one_type(&Graph::homogeneous(3, vec![], vec![]).unwrap(), device);
    }
}

/// Gradients and dropout play no part: a model that is still tracked gives plain rows.
#[test]
fn a_tracked_model_leaves_no_graph_behind() {
    let g = crate::fixtures::views::graph();
    let model = SageConfig::new(4, 2).init(&Device::flex().autodiff());
    let x = NodeTensors::from(matrix(&Device::flex(), "x", 6, 4).cast(FloatDType::F32));
    let y = infer(&model, &g, &x, "_N", &InferenceConfig::new().with_max_nodes(2)).unwrap();
    assert!(!y.is_autodiff());
    let want = values(&model.valid().logits(&g, &x, "_N"));
    assert_close("tracked", &values(&y), &want, 1e-6);
}

/// A model of one layer, a function of the number of destinations.
#[derive(Module, Debug)]
struct Odd {
    #[module(skip)]
    layer: fn(usize, Tensor<2>) -> NodeTensors,
}

impl Layerwise for Odd {
    fn num_layers(&self) -> usize {
        1
    }
    fn inputs(&self, _: &Graph, features: &NodeTensors) -> Result<NodeTensors, ModelError> {
        Ok(features.clone())
    }
    fn layer<G: GraphView + ?Sized>(&self, _: usize, g: &G, x: NodeTensors) -> NodeTensors {
        (self.layer)(g.num_dst(0), x["_N"].clone())
    }
}

#[test]
fn refusals_name_what_does_not_fit() {
    let (g, device) = (crate::fixtures::views::graph(), Device::flex());
    let (gcn, config) =
        (GcnConfig::new(4, 2).init(&device), InferenceConfig::new().with_max_nodes(2));
    let x = |rows, columns| Tensor::<2>::ones([rows, columns], &device);
    let text = |r: Result<Tensor<2>, ModelError>| r.unwrap_err().to_string();
    assert_eq!(
        text(infer(&gcn, &g, x(6, 4), "_N", &config.clone().with_max_nodes(0))),
        "`max_nodes` must lie in 1.., got 0"
    );
    assert_eq!(
        text(infer(&gcn, &g, x(6, 4), "_N", &config.clone().with_max_edges(0))),
        "`max_edges` must lie in 1.., got 0"
    );
    assert!(text(infer(&gcn, &g, x(6, 4), "paper", &config)).contains("unknown node type"));
    assert_eq!(
        text(infer(&gcn, &g, x(5, 4), "_N", &config)),
        "`rows of the features of _N`: expected 6 (one per node), got 5; give 6"
    );
    assert_eq!(
        text(infer(&gcn, &g, x(6, 3), "_N", &config)),
        "`feature size of _N`: expected 4 (as the model was made for), got 3; give 4"
    );
    assert_eq!(
        text(infer(&gcn, &g, NodeTensors::default(), "_N", &config)),
        "node type `_N`: expected features of size 4, got none; add them to the features"
    );
    let two = Graph::builder().edges(("a", "r", "b"), vec![0], vec![0]).build().unwrap();
    assert_eq!(
        text(infer(&gcn, &two, NodeTensors::default(), "a", &config)),
        "`node types of the graph`: expected 1 (the model reads one), got 2; give 1"
    );
    let rgcn = RgcnConfig::new(2).try_init(&two, TypeMap::default(), &device).unwrap();
    assert!(
        text(infer(&rgcn, &g, x(6, 4), "_N", &config))
            .starts_with("`node types of the graph`: expected 2 (as the model was made for)")
    );
    let more =
        Graph::builder().nodes("a", 2).edges(("a", "r", "b"), vec![1], vec![0]).build().unwrap();
    assert_eq!(
        text(infer(&rgcn, &more, NodeTensors::default(), "a", &config)),
        "`rows of the input features of a`: expected 2 (one per node), got 1; give 2"
    );

    let odd = |layer| text(infer(&Odd { layer }, &g, x(6, 4), "_N", &config));
    assert_eq!(
        odd(|_, _| NodeTensors::default()),
        "node type `_N`: layer 0 gives no result for it; let the layer compute this node type"
    );
    assert_eq!(
        odd(|_, x| x.into()),
        "`rows of layer 0 for node type _N`: expected 2 (one per destination of the block), got 4; give 2"
    );
    let columns = |n: usize, x: Tensor<2>| {
        let rows = x.dims()[0];
        x.slice_dim(0, 0..n).slice_dim(1, 0..rows.min(4) - 1).into()
    };
    assert!(odd(columns).starts_with(
        "`feature size of layer 0 for node type _N`: expected 3 (as for the nodes before), got"
    ));
}
