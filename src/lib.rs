//! Graph neural networks for the [Burn](https://burn.dev) framework.
//!
//! This package re-exports the crates of the project, and connects `models` and `dist` in `ranks`:
//!
//! | module | what |
//! | --- | --- |
//! | [`graph`] | structure, typed ids, features of nodes and edges, graph transforms |
//! | [`sampling`] | samplers, sources of feature rows, loaders |
//! | [`data`] | readers of files, well-known data sets |
//! | [`ops`] | message passing as Burn backend extensions, with hand-written gradients |
//! | `dist` | partitioning, communicators, halo exchange (feature `dist`) |
//! | [`models`] | layers, models, training |
//! | `ranks` | models trained on ranks (feature `dist`) |
//! | `store` | graphs and features larger than memory (feature `store`) |
//!
//! The [book](https://github.com/burn-gnn/burn-gnn/blob/main/docs/SUMMARY.md) begins with installation and a first
//! model; users of [Burn](https://github.com/burn-gnn/burn-gnn/blob/main/docs/coming-from-burn.md),
//! [PyG](https://github.com/burn-gnn/burn-gnn/blob/main/docs/coming-from-pyg.md) and
//! [DGL](https://github.com/burn-gnn/burn-gnn/blob/main/docs/coming-from-dgl.md) have a chapter each.
//!
//! One aggregation with its gradient:
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use burn_gnn::ops::copy_u_sum;
//! use burn_gnn::prelude::*;
//!
//! let device = Device::flex().autodiff();
//! // 0 -> 1, 2 -> 1
//! let g = Graph::homogeneous(3, vec![0, 2], vec![1, 1])?;
//! let x = Tensor::<2>::from_data([[1.0, 2.0], [0.0, 0.0], [3.0, 4.0]], &device).require_grad();
//! let y = copy_u_sum(g.relation("_E")?, x.clone());
//! assert_eq!(y.clone().into_data_as::<f32>().as_slice::<f32>().unwrap(), [0.0, 0.0, 4.0, 6.0, 0.0, 0.0]);
//! let grads = y.sum().backward();
//! let dx = x.grad(&grads).unwrap();
//! assert_eq!(dx.into_data_as::<f32>().as_slice::<f32>().unwrap(), [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
//! # Ok::<(), burn_gnn::graph::GraphError>(())
//! ```

#![forbid(unsafe_code)]

/// The version of Burn that these operators extend.
pub use burn;
// Modules, as the compiler calls a type of a crate that is exported as a whole `burn_gnn::burn_gnn_data::Builder`.
/// Readers and writers of graphs and tables, known data sets, splits.
pub mod data {
    pub use burn_gnn_data::*;
}
/// Partitions, their files, and training and sampling on ranks.
#[cfg(feature = "dist")]
pub mod dist {
    pub use burn_gnn_dist::*;
}
/// Structure, typed ids, features of nodes and edges, graph transforms.
pub mod graph {
    #[doc(hidden)]
    pub use burn_gnn_graph::internal;
    pub use burn_gnn_graph::*;
}
/// Layers, models, training loops, losses and metrics, weights.
pub mod models {
    pub use burn_gnn_models::*;
}
/// Message-passing operators, and the view of a graph that layers take.
pub mod ops {
    pub use burn_gnn_ops::*;
}
#[cfg(feature = "dist")]
pub mod ranks;
/// Samplers, loaders and sources of features.
pub mod sampling {
    pub use burn_gnn_sampling::*;
}
/// Graphs and features far larger than memory, in files.
#[cfg(feature = "store")]
pub mod store {
    pub use burn_gnn_store::*;
}
mod version_info;

pub use version_info::{VersionInfo, version_info};

/// What most programs need: the names of the first examples and of the layers and models that programs begin with,
/// none of which is one of `burn::prelude`. Everything else is under the path of its module.
///
/// ```
/// use burn::prelude::*;
/// use burn_gnn::prelude::*;
///
/// let device = Device::flex();
/// let g = Graph::homogeneous(3, vec![0, 1], vec![1, 2])?;
/// let y = GcnConvConfig::new(4, 2).init(&device).forward(&g, Tensor::ones([3, 4], &device));
/// assert_eq!(y.dims(), [3, 2]);
/// # Ok::<(), burn_gnn::graph::GraphError>(())
/// ```
pub mod prelude {
    pub use burn_gnn_data::{Dataset, load_dataset};
    pub use burn_gnn_graph::Graph;
    pub use burn_gnn_models::{
        Conv, Gat, GatConfig, GatConv, GatConvConfig, Gcn, GcnConfig, GcnConv, GcnConvConfig, Gin,
        GinConfig, HeteroConv, HeteroGraphConv, HeteroGraphConvConfig, InferenceConfig,
        NodeEmbedding, NodeTensors, RelGraphConv, RelGraphConvConfig, Rgcn, RgcnConfig, Sage,
        SageConfig, SageConv, SageConvConfig, TypeInput, accuracy, cross_entropy, infer,
        load_weights, save_weights, seeded,
    };
    pub use burn_gnn_ops::{EdgeTensor, Edges, GraphView, MessagePassing, Reduce};
    pub use burn_gnn_sampling::{GraphFeatures, Loader, MemoryRows, NeighborSampler, Seeds};
}
