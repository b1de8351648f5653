//! Graph neural network layers, models and training on Burn.
//!
//! Layers take a [`GraphView`](burn_gnn_ops::GraphView), so one layer runs on a whole graph, a block and a
//! partition. Each comes as `Config` + `Module`, as in Burn; initial values are functions of
//! (seed, parameter name, original id, column), so they do not depend on threads, ranks or placement.

mod error;
mod init;
mod mode;

mod fused_adam;

mod graph_conv;
mod node_embedding;
mod rel_graph_conv;
mod relations;

mod gcn;
mod rgcn;

mod metrics;
mod task;
mod train;

pub use error::ModelError;
pub use fused_adam::{FusedAdam, FusedAdamConfig};
pub use gcn::{Gcn, GcnConfig};
pub use graph_conv::{DegreeNorm, GraphConv, GraphConvConfig};
pub use init::to_dtype;
pub use metrics::{Counts, cross_entropy, majority_class};
pub use mode::Mode;
pub use node_embedding::NodeEmbedding;
pub use rel_graph_conv::{RelGraphConv, RelGraphConvConfig, RelNorm, RelWeights};
pub use rgcn::{Rgcn, RgcnConfig, RgcnLayers, TypeInput};
pub use task::{NodeTask, Rows};
pub use train::{Alone, Epoch, GradientSync, NodeClassifier, TrainConfig, Trained, evaluate, train};
