//! Graph neural network layers, models and training on Burn.
//!
//! The chapter on layers of the book: <https://github.com/burn-gnn/burn-gnn/blob/main/docs/layers.md>.
//!
//! Layers on one edge type implement [`Conv`]: `conv.forward(&edges, x)`, with the edges of one type of any
//! [`GraphView`](burn_gnn_ops::GraphView), so that one layer runs on a graph, a block and a partition. Layers on several
//! edge types implement [`HeteroLayer`]. A custom layer is a module with an `impl`
//! [`MessagePassing`](burn_gnn_ops::MessagePassing).
//!
//! As in Burn, every layer has a `Config` and is a `Module`, and dropout is active on autodiff devices in modules that
//! train. The parameters of a model initialized in a [`seeded`] scope are a function of the seed, on every rank and thread.
//!
//! [`StateDict`] loads weights of DGL and PyTorch Geometric.
//!
//! The documentation of `burn_gnn::models`, which exports this crate, has tables of all layers, models and functions.

#![forbid(unsafe_code)]

mod encoders;
mod error;
mod inference;
mod layers;
mod memory_plan;
mod metrics;
mod networks;
mod params;
pub mod plot;
mod pretrained;
mod relational;
mod training;

pub use burn_gnn_ops::{ConvInput, DropoutKey, Endpoints, Reduce, next_stream, seeded};
pub use encoders::encoder_input::EncoderInput;
pub use encoders::feature_encoder::{FeatureEncoder, FeatureEncoderConfig};
pub use encoders::node_embedding::NodeEmbedding;
pub use encoders::type_input::TypeInput;
pub use error::ModelError;
pub use inference::{InferenceConfig, Layerwise, infer};
pub use layers::attention::gat_conv::{GatConv, GatConvConfig};
pub use layers::attention::gatv2_conv::{Gatv2Conv, Gatv2ConvConfig};
pub use layers::attention::res_gated_graph_conv::{ResGatedGraphConv, ResGatedGraphConvConfig};
pub use layers::attention::transformer_conv::{TransformerConv, TransformerConvConfig};
pub use layers::conv::Conv;
pub use layers::convolution::edge_conv::{EdgeConv, EdgeConvConfig};
pub use layers::convolution::gcn_conv::{DegreeNorm, GcnConv, GcnConvConfig};
pub use layers::convolution::gin_conv::{GinConv, GinConvConfig};
pub use layers::convolution::gine_conv::{GineConv, GineConvConfig};
pub use layers::convolution::pna_conv::{
    PnaAggregator, PnaConv, PnaConvConfig, PnaScaler, PnaTower,
};
pub use layers::convolution::sage_conv::{SageAggregator, SageConv, SageConvConfig};
pub use layers::dense::lstm::LstmCell;
pub use layers::dense::mlp::{Mlp, MlpConfig};
pub use layers::heterogeneous::gated_graph_conv::{GatedGraphConv, GatedGraphConvConfig};
pub use layers::heterogeneous::han_conv::{HanConv, HanConvConfig};
pub use layers::heterogeneous::hetero_graph_conv::{HeteroGraphConv, HeteroGraphConvConfig};
pub use layers::heterogeneous::hetero_layer::HeteroLayer;
pub use layers::heterogeneous::hgt_conv::{HgtConv, HgtConvConfig};
pub use layers::heterogeneous::one_hot_conv::OneHotConv;
pub use layers::heterogeneous::rel_graph_conv::{RelGraphConv, RelGraphConvConfig, RelNorm};
pub use layers::heterogeneous::rel_weights::RelWeights;
pub use layers::heterogeneous::typed_linear::{TypedLinear, TypedLinearConfig};
pub use layers::layer_views::{EdgeBlocks, LayerViews, Whole};
pub use layers::pooling::jumping_knowledge::{Jumping, JumpingKnowledge, JumpingKnowledgeConfig};
pub use layers::pooling::readout::{AttentionReadout, AttentionReadoutConfig};
pub use layers::propagation::appnp_conv::{AppnpConv, AppnpConvConfig};
pub use layers::propagation::edge_weight_norm::EdgeWeightNorm;
pub use layers::propagation::sg_conv::{SgConv, SgConvConfig};
pub use layers::type_map::{NodeTensors, TypeMap};
pub use memory_plan::homogeneous::{plan_full_batch, plan_mini_batch};
pub use memory_plan::model_sizes::{LayerRows, ModelSizes};
pub use memory_plan::plan::{BatchSizes, MemoryPlan};
pub use memory_plan::rgcn::{plan_rgcn, plan_rgcn_mini_batch};
pub use metrics::classification::{
    Counts, SeedRows, accuracy, cross_entropy, majority_class, predictions,
};
pub use metrics::evaluation::Evaluation;
pub use metrics::metric::Metric;
pub use metrics::outcome::Outcome;
pub use metrics::rows::Rows;
pub use metrics::scores::{average_precision, roc_auc, top_k_accuracy};
pub use networks::gat::{Gat, GatConfig};
pub use networks::gcn::{Gcn, GcnConfig};
pub use networks::gin::{Gin, GinConfig};
pub use networks::hgt::{Hgt, HgtConfig, HgtLayers};
pub use networks::rgcn::{Rgcn, RgcnConfig, RgcnLayers};
pub use networks::sage::{Sage, SageConfig};
pub use params::init::to_dtype;
pub use params::param_ids::check_param_ids;
pub use pretrained::buffers::Buffer;
pub use pretrained::param_mapping::ParamMapping;
pub use pretrained::state_dict::StateDict;
pub use pretrained::weight_files::{load_weights, resume_weights, save_weights};
pub use pretrained::weight_names::{Framework, Pretrained};
pub use relational::columns::column_encoding::{
    Categories, ColumnEncoding, EncoderOptions, TextEncoding,
};
pub use relational::columns::encoder_config::{EncodedColumn, TableEncoderConfig};
pub use relational::columns::table_encoder::TableEncoder;
pub use relational::columns::table_rows::{TableInput, TableRows};
pub use relational::database_sampler::{DatabaseBatch, DatabaseLoader, DatabaseSampler};
pub use relational::database_seeds::DatabaseSeeds;
pub use relational::features::featurize::{FeaturizeOptions, featurize, featurize_task};
pub use relational::joint_loader::{JointBatch, JointLoader};
pub use relational::relational_data::RelationalData;
pub use relational::relational_model::{
    RelationalConfig, RelationalKind, RelationalModel, RelationalNet,
};
pub use relational::relational_spec::RelationalSpec;
pub use relational::relational_task::{RelationalTask, TargetEncoding};
pub use relational::row_sets::row_paths::{RowPath, RowStep};
pub use relational::row_sets::row_set_input::{RowSet, RowSets};
pub use relational::row_sets::row_set_net::{RowSetNet, RowSetPool};
pub use relational::row_sets::window_means::WindowMeans;
pub use relational::task_score::TaskScore;
pub use relational::train_database::{
    search_options, train_best, train_database, train_database_on_ranks,
};
pub use relational::train_options::{EpochHook, MeasuredOptions, RelationalOptions};
pub use relational::trained_database::{Predictor, TrainedDatabase};
pub use relational::typed_sage::{TypedSage, TypedSageLayer};
pub use relational::verify::leaks::LeakingColumn;
pub use relational::verify::no_future::{
    FutureRead, NoFutureReport, VerifyOptions, verify_no_future,
};

pub use training::batches::Batches;
pub use training::fit::{evaluate, evaluate_on_ranks, fit, fit_on_ranks};
pub use training::fit_config::FitConfig;
pub use training::fused_adam::{FusedAdam, FusedAdamConfig};
pub use training::gradient_sync::{GradientSync, NoSync};
pub use training::history::{Epoch, Trained};
pub use training::select_rows::{RowId, id_tensor, select_rows};
pub use training::sparse_rows::{EncoderRows, SparseAdam, SparseAdamConfig};
pub use training::task::Task;
pub use training::tasks::graph_task::{GraphClassifier, GraphTask, LabelledGraphs};
pub use training::tasks::link_task::LinkTask;
pub use training::tasks::node_classifier::NodeClassifier;
pub use training::tasks::node_task::NodeTask;
pub use training::tasks::seed_task::SeedTask;

/// What sibling crates use: it may change without notice.
#[doc(hidden)]
pub mod internal {
    pub use crate::layers::dense::mlp::{root, sigmoid};
    pub use crate::params::init::Init;
    pub use crate::relational::relational_data::{statistics_end, test_time};
}
