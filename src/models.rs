//! Layers, models, training, losses and metrics, weights.
//!
//! Every layer and model is a Burn module with a `…Config`: `GcnConvConfig::new(16, 8).init(&device)` initializes a
//! [`GcnConv`]. The parameters of a model initialized in a [`seeded`] scope are a function of the seed. Dropout is active on
//! autodiff devices only, in modules that are not frozen; whole models have it by default (0.5, [`Gat`] 0.6, [`Hgt`] 0.2,
//! [`Rgcn`] none). The [chapter on layers](https://github.com/burn-gnn/burn-gnn/blob/main/docs/layers.md) has the formula of
//! each layer and its name in PyG and DGL.
//!
//! | whole models | config | input |
//! | --- | --- | --- |
//! | [`Gcn`], [`Sage`], [`Gat`], [`Gin`] | [`GcnConfig`], [`SageConfig`], [`GatConfig`], [`GinConfig`] | one node type, one edge type; [`Gin`] classifies graphs too |
//! | [`Rgcn`], [`Hgt`] | [`RgcnConfig`], [`HgtConfig`], an input per node type by [`TypeInput`] | several types |
//!
//! | layers on one edge type | reads |
//! | --- | --- |
//! | [`GcnConv`] ([`DegreeNorm`]), [`SageConv`] ([`SageAggregator`]), [`GinConv`], [`SgConv`], [`AppnpConv`] | edge weights |
//! | [`GatConv`] | edge weights and edge features |
//! | [`Gatv2Conv`], [`TransformerConv`], [`GineConv`], [`PnaConv`] ([`PnaAggregator`], [`PnaScaler`]), [`ResGatedGraphConv`] | edge features |
//! | [`EdgeConv`] | neither |
//!
//! They implement the trait [`Conv`], as does every module with an `impl`
//! [`MessagePassing`](crate::ops::MessagePassing).
//!
//! | layers on several types | description |
//! | --- | --- |
//! | [`RelGraphConv`] ([`RelWeights`], [`RelNorm`]) | a weight matrix per relation |
//! | [`HeteroGraphConv`] | any [`Conv`] per edge type, custom layers too |
//! | [`HgtConv`], [`HanConv`] | attention over relations |
//! | [`GatedGraphConv`] | GRU updates, a matrix per relation |
//! | [`TypedLinear`], [`OneHotConv`] | a matrix per type; an R-GCN on nodes without features |
//!
//! Their input and output are [`NodeTensors`] (a [`TypeMap`]). All but [`TypedLinear`] implement the trait
//! [`HeteroLayer`].
//!
//! | around layers | description |
//! | --- | --- |
//! | [`NodeEmbedding`], [`FeatureEncoder`] ([`EncoderInput`]) | inputs: learned embeddings of nodes; attributes of tables |
//! | [`EdgeWeightNorm`], [`DropoutKey`] | normalised edge weights; dropout in custom layers |
//! | [`JumpingKnowledge`] ([`Jumping`]), [`AttentionReadout`], [`Mlp`], [`LstmCell`] | outputs of all layers; one row per graph; perceptrons |
//!
//! | training | description |
//! | --- | --- |
//! | [`fit`], [`FitConfig`] ([`Trained`], [`Epoch`]) | one training loop for all tasks: validation, early stopping, schedules, checkpoints |
//! | [`Task`], [`Batches`], [`Outcome`] | definition of a batch, its scores, labels and loss |
//! | [`NodeTask`], [`Rows`] | nodes of a full graph |
//! | [`SeedTask`], [`LinkTask`], [`GraphTask`] ([`GraphClassifier`], [`LabelledGraphs`]) | nodes by mini-batches, links, graphs |
//! | [`fit_on_ranks`], [`evaluate_on_ranks`], [`GradientSync`], [`NoSync`] | the same on several ranks; sums over ranks; one machine |
//! | [`FusedAdam`], [`SparseAdam`] ([`EncoderRows`]) | optimizers: Adam in one pass; Adam of embedding rows |
//! | [`infer`], [`InferenceConfig`] | all nodes, layer by layer in bounded memory |
//! | [`plot`] | learning curves as SVG |
//! | [`plan_full_batch`], [`plan_mini_batch`], [`plan_rgcn`], [`plan_rgcn_mini_batch`] ([`ModelSizes`], [`LayerRows`], [`BatchSizes`], [`MemoryPlan`]) | memory, predicted |
//! | [`check_param_ids`] | an error if parameters share an id |
//! | [`EdgeBlocks`] | edge weights and features of the blocks of a batch |
//!
//! ![Loss and accuracy over epochs](https://raw.githubusercontent.com/burn-gnn/burn-gnn/main/docs/img/learning-curve.svg)
//!
//! | databases | description |
//! | --- | --- |
//! | [`train_database`], [`train_database_on_ranks`], [`search_options`], [`train_best`], [`RelationalOptions`] ([`MeasuredOptions`], [`EpochHook`], [`TrainedDatabase`], [`TaskScore`], [`RelationalSpec`], [`Predictor`]) | a model of a task in one call; predictions at a time |
//! | [`RelationalConfig`], [`RelationalModel`] ([`RelationalKind`], [`RelationalNet`]) | encoders, message passing, heads |
//! | [`TypedSage`] ([`TypedSageLayer`]), [`RowSetNet`] ([`RowSetPool`], [`WindowMeans`], [`RowPath`], [`RowStep`], [`RowSet`], [`RowSets`]) | the baseline; the latest rows along paths of keys |
//! | [`TableEncoderConfig`], [`TableEncoder`] ([`EncoderOptions`], [`TextEncoding`], [`EncodedColumn`], [`ColumnEncoding`], [`Categories`]) | columns of a table as features |
//! | [`RelationalData`], [`TableRows`] ([`TableInput`]) | a database prepared for models |
//! | [`DatabaseSampler`], [`DatabaseLoader`] ([`DatabaseSeeds`], [`DatabaseBatch`]) | batches without a future row |
//! | [`RelationalTask`] ([`TargetEncoding`]), [`JointLoader`] ([`JointBatch`]) | losses and scores; several tasks at once |
//! | [`featurize`], [`featurize_task`] ([`FeaturizeOptions`]) | aggregates for tabular models |
//! | [`verify_no_future`] ([`VerifyOptions`], [`NoFutureReport`], [`FutureRead`], [`LeakingColumn`]) | the check on a user's data |
//!
//! | losses and metrics | of |
//! | --- | --- |
//! | [`cross_entropy`], [`accuracy`] ([`Counts`]), [`majority_class`], [`top_k_accuracy`] | classes ([`SeedRows`] selects rows) |
//! | [`evaluate`] ([`Evaluation`]), [`Metric`] | evaluation of a task on a data set; the metric of validation |
//! | [`predictions`], [`select_rows`], [`id_tensor`] ([`RowId`]) | classes of logits; rows by ids; ids as a tensor |
//! | [`roc_auc`], [`average_precision`] | scores of two classes, links |
//!
//! | for custom models | description |
//! | --- | --- |
//! | [`NodeClassifier`], [`Layerwise`] ([`LayerViews`], [`Whole`]) | traits that tasks and [`infer`] need |
//! | [`seeded`], [`next_stream`], [`to_dtype`] | initial weights: seeds, streams, element type |
//! | [`ConvInput`], [`Endpoints`], [`Reduce`] | arguments of layers |
//!
//! | weights | description |
//! | --- | --- |
//! | [`save_weights`], [`load_weights`], [`resume_weights`] | files of this library; the last one restores the parameter ids that records of optimizers refer to |
//! | [`StateDict`], [`Framework`], [`Pretrained`] ([`ParamMapping`], [`Buffer`]) | weights of PyG and DGL, by name |
//!
//! [`ModelError`] is the error of all of them. The layers of whole models are [`RgcnLayers`], [`HgtLayers`],
//! [`PnaTower`].

pub use burn_gnn_models::*;
