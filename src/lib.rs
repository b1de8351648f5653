//! Graph neural networks for the [Burn](https://burn.dev) framework.
//!
//! This package re-exports the crates of the project and holds no logic:
//!
//! | module | what |
//! | --- | --- |
//! | [`graph`] | structure, typed ids, features of nodes and edges, graph transforms |
//! | [`sampling`] | samplers, sources of feature rows, loaders |
//! | [`data`] | readers of files, well-known data sets |
//! | [`ops`] | message passing as Burn backend extensions, with hand-written gradients |
//! | `dist` | partitioning, communicators, halo exchange (feature `dist`) |
//! | [`models`] | layers, models, training |
//!
//! One aggregation with its gradient:
//!
//! ```
//! use burn::tensor::{Device, Tensor};
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
pub use burn_gnn_data as data;
#[cfg(feature = "dist")]
pub use burn_gnn_dist as dist;
/// Structure, typed ids, features of nodes and edges, graph transforms.
pub mod graph {
    #[doc(hidden)]
    pub use burn_gnn_graph::internal;
    pub use burn_gnn_graph::*;
    // Where they were before `sampling` was a module of its own.
    #[doc(hidden)]
    pub use burn_gnn_sampling::*;
}
pub use burn_gnn_models as models;
pub use burn_gnn_ops as ops;
pub use burn_gnn_sampling as sampling;
#[cfg(feature = "store")]
pub use burn_gnn_store as store;

/// What most programs need.
pub mod prelude {
    pub use burn_gnn_data::datasets::Known;
    pub use burn_gnn_data::{Builder, Dataset, Topology, load_dataset, load_graph, save_graph};
    pub use burn_gnn_graph::RelationStack;
    pub use burn_gnn_graph::{Batch, Combine, EdgeKey, EdgeType, Frame, Graph, IdMap, NodeKey, Relabel, Relation, Schema, Subgraph, batch};
    pub use burn_gnn_graph::{EdgeOrder, NodeOrder};
    pub use burn_gnn_models::{
        Aggregator, AppnpConvConfig, AttentionReadoutConfig, Conv, ConvInput, DegreeNorm, EdgeConvConfig, EdgeWeightNorm, Endpoints,
        Framework, Gat, GatConfig, GatConv, GatConvConfig, GatedGraphConvConfig, Gatv2Conv, Gatv2ConvConfig, Gcn, GcnConfig, GcnConv,
        GcnConvConfig, Gin, GinConfig, GinConv, GinConvConfig, GineConvConfig, HanConvConfig, HeteroGraphConv, HeteroGraphConvConfig, Hgt,
        HgtConfig, HgtConv, HgtConvConfig, Jumping, JumpingKnowledgeConfig, LinkScore, LinkScorerConfig, MlpConfig, NodeClassifier,
        NodeEmbedding, PnaConvConfig, RelGraphConv, RelGraphConvConfig, RelNorm, RelWeights, Rgcn, RgcnConfig, Sage, SageAggregator,
        SageConfig, SageConv, SageConvConfig, SgConvConfig, StateDict, TransformerConvConfig, TypeInput, TypedLinearConfig,
    };
    pub use burn_gnn_models::{Combiner, EncoderInput, FeatureEncoder, FeatureEncoderConfig};
    pub use burn_gnn_models::{DropoutKey, next_stream, seeded};
    pub use burn_gnn_models::{FusedAdam, FusedAdamConfig};
    pub use burn_gnn_models::{InferenceConfig, Layerwise, infer};
    pub use burn_gnn_models::{load_weights, save_weights};
    pub use burn_gnn_ops::{
        Activation, AggregateOptions, BinaryOp, DegreeScale, EdgeDropout, EdgeTypes, Edges, GatOptions, GraphView, NormBy, Precision,
        Reduce, RelationalIndex, RelationalWeight, Segments, Stream, TypeIndex, bias_activation, copy_e_max, copy_e_mean, copy_e_min,
        copy_e_sum, copy_u_max, copy_u_mean, copy_u_min, copy_u_sum, dropout, edge_softmax, gat_attention, gather_mm, gsddmm, gspmm,
        multi_gspmm, relational_aggregate, segment_mm, segment_reduce, segment_softmax, u_add_e_sum, u_add_v, u_dot_v, u_mul_e_mean,
        u_mul_e_sum, weighted_aggregate, with_precision,
    };
    pub use burn_gnn_ops::{
        BlockData, Cross, CrossReduce, EdgeBatch, EdgeTensor, Fields, GraphMessageOps, MessageOps, MessagePassing, NodeBatch, OpsError,
        ReduceFunction, RelationData, function, on,
    };
    #[cfg(feature = "cube")]
    pub use burn_gnn_ops::{DeviceLinkSampler, DeviceNegativeSampler, DeviceSampler};
    pub use burn_gnn_sampling::{
        Block, DeviceRows, Fanouts, FeatureSource, GraphFeatures, HeteroLinkSampler, LinkExclusion, LinkSampler, Loader, MappedRows,
        MemoryRows, MiniBatch, NegativePairs, NegativeSampler, NeighborSampler, RowType, SampleKey, SampleNeighbors, Sampler, Seeds,
        ShadowSampler, Strategy, TieredRows, ToBlock, Traversal,
    };
}
