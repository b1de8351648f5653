//! Graph neural networks for the [Burn](https://burn.dev) framework.
//!
//! A GCN learns from two labelled members of Zachary's karate club which side the other 32 took:
//!
//! ```
//! use burn::tensor::Device;
//! use burn_gnn::prelude::*;
//!
//! let g = burn_gnn::data::karate_club().to_graph(&Device::flex())?;
//! let task = NodeTask::from_columns(&g, "_N")?;
//! let model = seeded(0, || GcnConfig::new(34, 2).init(&Device::flex().autodiff()));
//! let trained = fit(model, &task, &task.train, &task.val, &FitConfig::new())?;
//! println!("{trained}");
//! assert!(evaluate(&trained.model, &task, &task.test)?.accuracy() > 0.9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The [book](https://github.com/burn-gnn/burn-gnn/blob/main/docs/SUMMARY.md) begins with installation and a first
//! model; users of [Burn](https://github.com/burn-gnn/burn-gnn/blob/main/docs/coming-from-burn.md),
//! [PyG](https://github.com/burn-gnn/burn-gnn/blob/main/docs/coming-from-pyg.md) and
//! [DGL](https://github.com/burn-gnn/burn-gnn/blob/main/docs/coming-from-dgl.md) have a chapter each. Each module below
//! begins with tables of its items by purpose; [`prelude`] has the most common ones.
//!
//! | you want to | module |
//! | --- | --- |
//! | build a graph, transform it, draw it | [`graph`] |
//! | read files and data sets, split nodes and edges | [`data`] |
//! | use a layer or a model, train it, measure it | [`models`] |
//! | train on sampled mini-batches | [`sampling`] |
//! | write a layer or an operator | [`ops`] |
//! | partition a graph, train on several ranks | `dist`, `ranks` (feature `dist`) |
//! | predict links, complete knowledge graphs, recommend, learn from events | `links` (feature `links`) |
//! | train on a graph larger than memory | `store` (feature `store`) |
//!
//! A build has the CPU backend `flex` by default; the
//! [cargo features](https://github.com/burn-gnn/burn-gnn/blob/main/docs/getting-started.md#features) add GPUs and file
//! formats. Where the compiler reports ``no function or associated item named `flex` found``, the
//! feature of a backend is missing.

#![forbid(unsafe_code)]

/// Version of Burn that the operators extend.
pub use burn;
// Modules use globs, because re-exported crates would appear in errors as
// `burn_gnn::burn_gnn_data::Builder`.
pub mod data;
#[cfg(feature = "dist")]
pub mod dist;
pub mod graph;
#[cfg(feature = "links")]
pub mod links;
pub mod models;
pub mod ops;
#[cfg(feature = "dist")]
pub mod ranks;
pub mod sampling;
mod span_times;
#[cfg(feature = "store")]
pub mod store;
#[cfg(feature = "store")]
mod stored_database;
#[cfg(feature = "store")]
mod stored_events;
mod version_info;

pub use span_times::{SpanTime, SpanTimes};
pub use version_info::{VersionInfo, version_info};

/// The names that most programs use: those of the first examples, and the most common layers and
/// models. None of them is in `burn::prelude`. Everything else is in its module.
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
    pub use burn_gnn_data::load_dataset;
    pub use burn_gnn_graph::Graph;
    pub use burn_gnn_models::{
        Conv, FitConfig, Gat, GatConfig, GatConv, GatConvConfig, Gcn, GcnConfig, GcnConv,
        GcnConvConfig, GinConfig, HeteroGraphConv, HeteroGraphConvConfig, HeteroLayer,
        InferenceConfig, NodeTask, NodeTensors, Rgcn, RgcnConfig, Sage, SageConfig, SageConv,
        SageConvConfig, SeedTask, TypeInput, accuracy, cross_entropy, evaluate, fit, infer,
        load_weights, save_weights, seeded,
    };
    pub use burn_gnn_ops::{EdgeTensor, Edges, GraphView, MessagePassing, Reduce};
    pub use burn_gnn_sampling::{GraphFeatures, Loader, MemoryRows, NeighborSampler, Seeds};
}
