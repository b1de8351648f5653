//! Defines models that compute a row for each node of one type.

use burn::module::Module;
use burn::tensor::Tensor;
use burn_gnn_ops::GraphView;
use burn_gnn_sampling::Block;

use crate::encoders::node_embedding::NodeEmbedding;
use crate::layers::layer_views::{LayerViews, Whole};
use crate::layers::type_map::NodeTensors;

/// A model that computes logits, or embeddings, of the nodes of one type: what [`NodeTask`](crate::NodeTask),
/// [`SeedTask`](crate::SeedTask) and [`LinkTask`](crate::LinkTask) train.
pub trait NodeClassifier: Module {
    /// Logits `[num_dst, num_classes]` of node type `target`, layer `i` on view `i`; `x` holds the features of the
    /// input nodes by type.
    ///
    /// A model implements this method; [`logits`](Self::logits) and [`logits_blocks`](Self::logits_blocks) call it on a
    /// graph and on the blocks of a batch.
    ///
    /// # Panics
    /// Not one view for each layer, features that are missing or disagree with the first view.
    #[track_caller]
    fn logits_over<V: LayerViews>(&self, views: &V, x: &NodeTensors, target: &str) -> Tensor<2>;

    /// Logits `[num_dst, num_classes]` of node type `target`; `x` holds the features of the input nodes by type.
    ///
    /// # Panics
    /// As [`logits_over`](Self::logits_over).
    #[track_caller]
    fn logits<G: GraphView + ?Sized>(&self, g: &G, x: &NodeTensors, target: &str) -> Tensor<2> {
        self.logits_over(&Whole(g), x, target)
    }

    /// Logits `[output nodes, num_classes]` of the nodes of type `target` that the last block of a
    /// [`MiniBatch`](burn_gnn_sampling::MiniBatch) computes; `x` holds the features of the input nodes by type. Rows of
    /// seeds are named by `MiniBatch::seeds`. With all neighbours they are those of the graph ([`LayerViews`]).
    ///
    /// # Panics
    /// As [`logits_over`](Self::logits_over).
    #[track_caller]
    fn logits_blocks(&self, blocks: &[Block], x: &NodeTensors, target: &str) -> Tensor<2> {
        self.logits_over(&blocks, x, target)
    }

    /// Whether only this rank has the parameter at `path` (field names joined by dots), as embeddings of the nodes that
    /// it owns. All ranks have the others, and their gradients are summed. By default a model has no parameters of its
    /// rank.
    fn is_rank_owned(&self, _path: &str) -> bool {
        false
    }

    /// Node types whose features the model reads, and the feature size that it was made for:
    /// [`NodeTask`](crate::NodeTask) checks them before the first step. Empty by default; then layers panic where they
    /// meet another size.
    fn feature_sizes(&self, _target: &str) -> Vec<(String, usize)> {
        vec![]
    }

    /// The embeddings that only this rank has, where the model has some.
    fn embedding_mut(&mut self) -> Option<&mut NodeEmbedding> {
        None
    }
}
