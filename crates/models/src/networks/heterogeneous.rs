//! States what models of several node types have in common.

/// A model of several node types, with `embedding`, `net.projections` and `projected`: its `try_init` takes a view and
/// inputs by type, its `over` runs all layers, and its `classes` makes logits of their result.
macro_rules! several_types_model {
    ($config:ident => $model:ident, $layers:ident) => {
        impl $config {
            /// [`try_init`](Self::try_init), panicking with its message.
            ///
            /// # Panics
            /// As [`try_init`](Self::try_init) errs.
            #[track_caller]
            pub fn init<G: burn_gnn_ops::GraphView + ?Sized>(
                &self,
                g: &G,
                inputs: impl Into<
                    crate::layers::type_map::TypeMap<crate::encoders::type_input::TypeInput>,
                >,
                device: &burn::tensor::Device,
            ) -> $model {
                burn_gnn_graph::internal::OrPanic::or_panic(self.try_init(g, inputs, device))
            }
        }

        impl $model {
            /// Output of the last layer per node type; `x` holds the features of the types that have some.
            ///
            /// # Panics
            /// A type with features has none in `x`, or shapes disagree with the graph.
            #[track_caller]
            pub fn forward<G: burn_gnn_ops::GraphView + ?Sized>(
                &self,
                g: &G,
                x: impl Into<NodeTensors>,
            ) -> NodeTensors {
                self.over(&crate::layers::layer_views::Whole(g), &x.into())
            }

            /// Output for the seeds of a [`MiniBatch`](burn_gnn_sampling::MiniBatch), per node type: layer `i` on
            /// block `i`. `x` holds the features of the input nodes of the types that have some; embeddings are those
            /// of the graph that was sampled.
            ///
            /// # Panics
            /// Not one block per layer; as [`forward`](Self::forward).
            #[track_caller]
            pub fn forward_blocks(
                &self,
                blocks: &[burn_gnn_sampling::Block],
                x: impl Into<NodeTensors>,
            ) -> NodeTensors {
                self.over(blocks, &x.into())
            }

            fn input(&self) -> crate::encoders::type_input::InputLayer<'_> {
                crate::encoders::type_input::InputLayer {
                    projected: &self.projected,
                    projections: &self.net.projections,
                    embedding: &self.embedding,
                }
            }
        }

        impl crate::training::train::NodeClassifier for $model {
            type Dense = $layers;
            #[track_caller]
            fn logits_over<V: crate::layers::layer_views::LayerViews + ?Sized>(
                &self,
                views: &V,
                x: &NodeTensors,
                target: &str,
            ) -> Tensor<2> {
                self.classes(self.over(views, x)[target].clone())
            }
            fn dense(&self) -> &$layers {
                &self.net
            }
            fn feature_sizes(&self, _target: &str) -> Vec<(String, usize)> {
                self.input().sizes()
            }
            fn embedding_mut(
                &mut self,
            ) -> Option<&mut crate::encoders::node_embedding::NodeEmbedding> {
                Some(&mut self.embedding)
            }
        }
    };
}

pub(crate) use several_types_model;
