//! Code shared by the models for graphs of one node type and one edge type.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{Activation, DropoutKey, Edges, GraphView};

use crate::error::ModelError;
use crate::layers::conv::Conv;
use crate::layers::layer_views::LayerViews;

/// Checks the sizes of a model, and returns input and output feature size of every layer.
pub(crate) fn layer_sizes(
    [d_input, hidden, num_classes]: [usize; 3],
    num_layers: usize,
    dropout: f64,
) -> Result<Vec<[usize; 2]>, ModelError> {
    let sizes = [
        ("d_input", d_input),
        ("num_layers", num_layers),
        ("hidden", hidden),
        ("num_classes", num_classes),
    ];
    ModelError::check_sizes(&sizes, dropout)?;
    let mut sizes = vec![d_input];
    sizes.resize(num_layers, hidden);
    sizes.push(num_classes);
    Ok(sizes.windows(2).map(|layer| [layer[0], layer[1]]).collect())
}

/// Activation and dropout between layers.
#[derive(Module, Debug)]
pub(crate) struct LayerEpilogue {
    #[module(skip)]
    activation: Activation,
    #[module(skip)]
    dropout: f64,
    key: DropoutKey,
}

impl LayerEpilogue {
    pub(crate) fn new(activation: Activation, dropout: f64, device: &Device) -> Self {
        Self { activation, dropout, key: DropoutKey::new(device) }
    }

    /// Applies dropout to the input.
    #[track_caller]
    pub(crate) fn input<G: GraphView + ?Sized>(&self, g: &G, x: Tensor<2>) -> Tensor<2> {
        self.key.at(0).dropout(&g, g.schema().endpoints(0).0, self.dropout, x)
    }

    /// Runs all layers, layer `i` on view `i`.
    #[track_caller]
    pub(crate) fn layers<V, C>(&self, layers: &[C], views: &V, mut x: Tensor<2>) -> Tensor<2>
    where
        V: LayerViews + ?Sized,
        C: Conv,
    {
        // `#[track_caller]` does not reach into closures.
        for i in 0..layers.len() {
            x = self.layer(layers, i, views.view(i), x);
        }
        x
    }

    /// Runs layer `i`, with activation and dropout unless it is the last layer.
    #[track_caller]
    pub(crate) fn layer<G, C>(&self, layers: &[C], i: usize, g: &G, x: Tensor<2>) -> Tensor<2>
    where
        G: GraphView + ?Sized,
        C: Conv,
    {
        let edges = Edges::from(&g);
        if i + 1 == layers.len() {
            return layers[i].forward(edges, x);
        }
        let key = self.key.at(i + 1);
        layers[i].forward(edges.then(self.activation).then_dropout(&key, self.dropout), x)
    }
}

/// Implements the public methods, `Layerwise` and `NodeClassifier` of a model for homogeneous graphs.
///
/// The model has the field `layers` and the methods `d_input`, `over`, which runs all layers, and `layer`, which runs one
/// of them.
macro_rules! homogeneous_model {
    ($model:ident, $name:literal $(, $on_blocks:literal)?) => {
        impl $model {
            /// Computes logits of nodes, `[num_dst, num_classes]`, from features `x: [num_input, d_input]`.
            #[track_caller]
            pub fn forward<G: burn_gnn_ops::GraphView + ?Sized>(
                &self,
                g: &G,
                x: Tensor<2>,
            ) -> Tensor<2> {
                self.over(&crate::layers::layer_views::Whole(g), x)
            }

            /// Computes logits of the seeds of a [`MiniBatch`](burn_gnn_sampling::MiniBatch), `[num_seeds,
            /// num_classes]`: layer `i` runs on block `i`, and `x` are the features of the input nodes.
            $(#[doc = $on_blocks])?
            ///
            /// # Panics
            /// There is not one block per layer.
            #[track_caller]
            pub fn forward_blocks(
                &self,
                blocks: &[burn_gnn_sampling::Block],
                x: Tensor<2>,
            ) -> Tensor<2> {
                self.over(blocks, x)
            }
        }

        impl crate::inference::Layerwise for $model {
            fn num_layers(&self) -> usize {
                self.layers.len()
            }
            fn inputs(
                &self,
                g: &burn_gnn_graph::Graph,
                features: &crate::layers::type_map::NodeTensors,
            ) -> Result<crate::layers::type_map::NodeTensors, ModelError> {
                crate::inference::features::one_input(g, features, self.d_input())
            }
            fn layer<G: burn_gnn_ops::GraphView + ?Sized>(
                &self,
                layer: usize,
                g: &G,
                x: crate::layers::type_map::NodeTensors,
            ) -> crate::layers::type_map::NodeTensors {
                crate::inference::features::only_type(g, self.layer(layer, g, crate::inference::features::only(x)))
            }
        }

        impl crate::training::tasks::node_classifier::NodeClassifier for $model {
            #[track_caller]
            fn logits_over<V: crate::layers::layer_views::LayerViews>(
                &self,
                views: &V,
                x: &crate::layers::type_map::NodeTensors,
                target: &str,
            ) -> Tensor<2> {
                let schema = burn_gnn_ops::GraphView::schema(views.view(0));
                self.over(views, crate::layers::type_map::features_of($name, schema, x, target))
            }
            fn feature_sizes(&self, target: &str) -> Vec<(String, usize)> {
                vec![(target.to_owned(), self.d_input())]
            }
        }
    };
}

pub(crate) use homogeneous_model;
