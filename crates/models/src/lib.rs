//! Graph neural network layers, models and training on Burn.
//!
//! The chapter on layers of the book: <https://github.com/burn-gnn/burn-gnn/blob/main/docs/layers.md>.
//!
//! Layers on one relation implement [`Conv`]: `conv.forward(&edges, x)`, with the edges of one type of any
//! [`GraphView`](burn_gnn_ops::GraphView), so one layer runs on a whole graph, a block and a partition. Each comes as
//! `Config` + `Module`, as in Burn, and dropout follows device and training flag, as in Burn. A model made in a
//! [`seeded`] scope is a function of the seed, on every rank and thread.
//!
//! Tables of all layers, models and functions by purpose are in the documentation of `burn_gnn::models`, which exports
//! this crate.
//!
//! Weights of DGL and PyTorch Geometric come in through a [`StateDict`].

#![forbid(unsafe_code)]

mod autodiff;
mod error;
mod init;

mod fused_adam;

mod conv;
mod encoder_input;
mod feature_encoder;
mod heads;
mod inference;
mod inputs;
mod layer_views;
mod lstm;
mod mlp;
mod node_embedding;
mod one_type;
mod pretrained;
mod rel_weights;
mod relations;

mod appnp_conv;
mod edge_conv;
mod edge_weight_norm;
mod gat_conv;
mod gated_graph_conv;
mod gatv2_conv;
mod gcn_conv;
mod gin_conv;
mod gine_conv;
mod gradient_sync;
mod han_conv;
mod hetero_conv;
mod hetero_graph_conv;
mod hgt_conv;
mod jumping_knowledge;
mod link_scorer;
mod one_hot_conv;
mod param_ids;
mod pna_conv;
mod readout;
mod rel_graph_conv;
mod res_gated_graph_conv;
mod rows;
mod sage_conv;
mod sg_conv;
mod sparse_rows;
mod transformer_conv;
mod type_map;
mod typed_linear;
mod weights;

mod gat;
mod gcn;
mod gin;
mod hgt;
mod rgcn;
mod sage;
mod several_types;

mod memory_plan;
mod metrics;
pub mod plot;
mod ranking;
mod score_metrics;
mod task;
mod train;

pub use appnp_conv::{AppnpConv, AppnpConvConfig};
pub use burn_gnn_ops::{ConvInput, DropoutKey, Reduce, next_stream, seeded};
pub use conv::{Conv, Endpoints};
pub use edge_conv::{EdgeConv, EdgeConvConfig};
pub use edge_weight_norm::EdgeWeightNorm;
pub use encoder_input::EncoderInput;
pub use error::ModelError;
pub use feature_encoder::{FeatureEncoder, FeatureEncoderConfig};
pub use fused_adam::{FusedAdam, FusedAdamConfig};
pub use gat::{Gat, GatConfig};
pub use gat_conv::{GatConv, GatConvConfig};
pub use gated_graph_conv::{GatedGraphConv, GatedGraphConvConfig};
pub use gatv2_conv::{Gatv2Conv, Gatv2ConvConfig};
pub use gcn::{Gcn, GcnConfig};
pub use gcn_conv::{DegreeNorm, GcnConv, GcnConvConfig};
pub use gin::{Gin, GinConfig};
pub use gin_conv::{GinConv, GinConvConfig};
pub use gine_conv::{GineConv, GineConvConfig};
pub use gradient_sync::{GradientSync, NoSync};
pub use han_conv::{HanConv, HanConvConfig};
pub use hetero_conv::HeteroConv;
pub use hetero_graph_conv::{HeteroGraphConv, HeteroGraphConvConfig};
pub use hgt::{Hgt, HgtConfig, HgtLayers};
pub use hgt_conv::{HgtConv, HgtConvConfig};
pub use inference::{InferenceConfig, Layerwise, infer};
pub use init::to_dtype;
pub use inputs::TypeInput;
pub use jumping_knowledge::{Jumping, JumpingKnowledge, JumpingKnowledgeConfig};
pub use layer_views::{EdgeBlocks, LayerViews, Whole};
pub use link_scorer::{LinkScore, LinkScorer, LinkScorerConfig};
pub use lstm::LstmCell;
pub use memory_plan::{
    BatchSizes, LayerRows, MemoryPlan, ModelSizes, plan_full_batch, plan_mini_batch, plan_rgcn,
    plan_rgcn_mini_batch,
};
pub use metrics::{Counts, SeedRows, accuracy, cross_entropy, majority_class, predictions};
pub use mlp::{Mlp, MlpConfig};
pub use node_embedding::NodeEmbedding;
pub use one_hot_conv::OneHotConv;
pub use param_ids::check_param_ids;
pub use pna_conv::{PnaAggregator, PnaConv, PnaConvConfig, PnaScaler, PnaTower};
pub use pretrained::{Buffer, Framework, ParamMapping, Pretrained, StateDict};
pub use ranking::{LinkMetrics, TrueTails, filtered_ranks, rank_links};
pub use readout::{AttentionReadout, AttentionReadoutConfig};
pub use rel_graph_conv::{RelGraphConv, RelGraphConvConfig, RelNorm};
pub use rel_weights::RelWeights;
pub use res_gated_graph_conv::{ResGatedGraphConv, ResGatedGraphConvConfig};
pub use rgcn::{Rgcn, RgcnConfig, RgcnLayers};
pub use rows::{RowId, select_rows};
pub use sage::{Sage, SageConfig};
pub use sage_conv::{SageAggregator, SageConv, SageConvConfig};
pub use score_metrics::{average_precision, roc_auc, top_k_accuracy};
pub use sg_conv::{SgConv, SgConvConfig};
pub use sparse_rows::{EncoderRows, SparseAdam, SparseAdamConfig};
pub use task::{NodeTask, Rows};
pub use train::{Epoch, NodeClassifier, TrainConfig, Trained, evaluate, train};
pub use transformer_conv::{TransformerConv, TransformerConvConfig};
pub use type_map::{NodeTensors, TypeMap};
pub use typed_linear::{TypedLinear, TypedLinearConfig};
pub use weights::{load_weights, resume_weights, save_weights};
