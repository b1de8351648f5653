//! Code shared by the models for heterogeneous graphs.

/// Implements the public methods and `NodeClassifier` of a model for heterogeneous graphs.
///
/// The model has the fields `embedding`, `net.projections` and `projected`, and the methods `over`, which runs all layers,
/// and `classes`, which computes logits from the output of the last layer. `try_init` of its config takes a view and an
/// input per node type.
macro_rules! heterogeneous_model {
    ($config:ident => $model:ident) => {
        impl $config {
            /// As [`try_init`](Self::try_init), but panics.
            ///
            /// # Panics
            /// [`try_init`](Self::try_init) returns an error.
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
            /// Computes the output of the last layer, by node type. `x` contains the features of the node types that
            /// have [`TypeInput::Features`](crate::TypeInput::Features).
            ///
            /// # Panics
            /// Features of a node type are missing, or shapes differ from those of the graph.
            #[track_caller]
            pub fn forward<G: burn_gnn_ops::GraphView + ?Sized>(
                &self,
                g: &G,
                x: impl Into<NodeTensors>,
            ) -> NodeTensors {
                self.over(&crate::layers::layer_views::Whole(g), &x.into())
            }

            /// Computes the output for the seeds of a [`MiniBatch`](burn_gnn_sampling::MiniBatch), by node type: layer
            /// `i` runs on block `i`, and `x` contains the features of the input nodes. The model must have been
            /// initialized with the sampled graph, whose nodes the embeddings belong to.
            ///
            /// # Panics
            /// There is not one block per layer; as [`forward`](Self::forward).
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

        impl crate::training::tasks::node_classifier::NodeClassifier for $model {
            #[track_caller]
            fn logits_over<V: crate::layers::layer_views::LayerViews>(
                &self,
                views: &V,
                x: &NodeTensors,
                target: &str,
            ) -> Tensor<2> {
                self.classes(self.over(views, x)[target].clone())
            }
            fn is_rank_owned(&self, path: &str) -> bool {
                path == "embedding" || path.starts_with("embedding.")
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

pub(crate) use heterogeneous_model;
