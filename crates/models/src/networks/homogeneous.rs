//! States what models of layers on one relation have in common.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{Activation, DropoutKey, Edges, GraphView};

use crate::error::ModelError;
use crate::layers::conv::Conv;
use crate::layers::layer_views::LayerViews;

/// Feature sizes of the input and output of every layer, checked; between layers it is `hidden`.
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

/// What follows every layer of a model but the last: an activation, and the dropout before the next layer.
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

    /// Dropout of the input.
    #[track_caller]
    pub(crate) fn input<G: GraphView + ?Sized>(&self, g: &G, x: Tensor<2>) -> Tensor<2> {
        self.key.at(0).dropout(&g, g.schema().endpoints(0).0, self.dropout, x)
    }

    /// Layer `i` on view `i`.
    #[track_caller]
    pub(crate) fn layers<V, C>(&self, layers: &[C], views: &V, mut x: Tensor<2>) -> Tensor<2>
    where
        V: LayerViews + ?Sized,
        C: Conv,
    {
        // A closure would hide the caller's line.
        for i in 0..layers.len() {
            x = self.layer(layers, i, views.view(i), x);
        }
        x
    }

    /// Layer `i`; with the activation, and the dropout before the next layer, unless it is the last.
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

/// A model of nodes of one type: its `over` runs all layers and its `layer` one, as inference does; it has `layers` and
/// `d_input()`.
macro_rules! one_type_model {
    ($model:ident, $name:literal $(, $on_blocks:literal)?) => {
        impl $model {
            /// Logits of nodes, `[num_dst, num_classes]`, from `x: [num_input, d_input]`.
            #[track_caller]
            pub fn forward<G: burn_gnn_ops::GraphView + ?Sized>(
                &self,
                g: &G,
                x: Tensor<2>,
            ) -> Tensor<2> {
                self.over(&crate::layers::layer_views::Whole(g), x)
            }

            /// Logits of the seeds of a [`MiniBatch`](burn_gnn_sampling::MiniBatch), `[num_seeds, num_classes]`: layer
            /// `i` on block `i`, `x` the features of its input nodes.
            $(#[doc = $on_blocks])?
            ///
            /// # Panics
            /// Not one block per layer.
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

        impl crate::training::train::NodeClassifier for $model {
            type Dense = Self;
            #[track_caller]
            fn logits_over<V: crate::layers::layer_views::LayerViews + ?Sized>(
                &self,
                views: &V,
                x: &crate::layers::type_map::NodeTensors,
                target: &str,
            ) -> Tensor<2> {
                let schema = burn_gnn_ops::GraphView::schema(views.view(0));
                self.over(views, crate::layers::type_map::features_of($name, schema, x, target))
            }
            fn dense(&self) -> &Self {
                self
            }
            fn feature_sizes(&self, target: &str) -> Vec<(String, usize)> {
                vec![(target.to_owned(), self.d_input())]
            }
        }
    };
}

pub(crate) use one_type_model;
