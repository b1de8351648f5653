//! Defines the models of databases: column encoders, message passing over foreign keys, heads.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use burn_gnn_data::DatabaseGraph;
use burn_gnn_graph::Graph;
use burn_gnn_ops::DropoutKey;

use crate::encoders::type_input::TypeInput;
use crate::error::ModelError;
use crate::layers::convolution::sage_conv::SageAggregator;
use crate::layers::dense::mlp::{Mlp, MlpConfig};
use crate::layers::type_map::{NodeTensors, TypeMap};
use crate::networks::hgt::{Hgt, HgtConfig};
use crate::networks::rgcn::{Rgcn, RgcnConfig};
use crate::relational::columns::encoder_config::TableEncoderConfig;
use crate::relational::columns::table_encoder::TableEncoder;
use crate::relational::database_sampler::DatabaseBatch;
use crate::relational::row_sets::row_paths::{PathLimits, RowPath, row_paths};
use crate::relational::row_sets::row_set_net::RowSetNet;
use crate::relational::row_sets::window_means::WindowMeans;
use crate::relational::typed_sage::TypedSage;
use crate::training::select_rows::select_rows;
use crate::training::tasks::node_classifier::NodeClassifier;

/// How a [`RelationalModel`] combines the rows around a seed.
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum RelationalKind {
    /// GraphSAGE per foreign key and direction, the baseline of RelBench ([`TypedSage`]).
    Sage,
    /// Relational graph convolution ([`Rgcn`]).
    Rgcn,
    /// Heterogeneous graph transformer ([`Hgt`]).
    Hgt,
    /// The latest rows along paths of foreign keys, pooled by age and attention ([`RowSetNet`]).
    RowSets,
    /// A linear model of means over the latest rows along these paths ([`WindowMeans`]).
    WindowMeans,
}

impl RelationalKind {
    /// Whether the model reads rows along paths, instead of sampled trees.
    pub(crate) fn reads_paths(self) -> bool {
        matches!(self, Self::RowSets | Self::WindowMeans)
    }
}

/// Describes a [`RelationalModel`].
#[derive(Config, Debug)]
pub struct RelationalConfig {
    /// How rows are combined.
    #[config(default = "RelationalKind::Sage")]
    pub kind: RelationalKind,
    /// Hidden size. [`RelationalKind::WindowMeans`] has none.
    #[config(default = 128)]
    pub hidden: usize,
    /// Number of layers, and of hops of a batch. [`RelationalKind::RowSets`] has none.
    #[config(default = 2)]
    pub num_layers: usize,
    /// How [`RelationalKind::Sage`] aggregates rows.
    #[config(default = "SageAggregator::Mean")]
    pub aggregator: SageAggregator,
    /// Heads of [`RelationalKind::Hgt`] and [`RelationalKind::RowSets`].
    #[config(default = 4)]
    pub num_heads: usize,
    /// Latest rows that refer to an entity, of kinds that read paths.
    #[config(default = 32)]
    pub rows: usize,
    /// Latest rows of longer paths, of kinds that read paths.
    #[config(default = 16)]
    pub far_rows: usize,
    /// Dropout probability of encoded rows and before the head.
    #[config(default = 0.0)]
    pub dropout: f64,
}

/// The part of a [`RelationalModel`] between encoders and heads.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // one per model
pub enum RelationalNet {
    /// [`RelationalKind::Sage`].
    Sage(TypedSage),
    /// [`RelationalKind::Rgcn`].
    Rgcn(Rgcn),
    /// [`RelationalKind::Hgt`].
    Hgt(Hgt),
    /// [`RelationalKind::RowSets`].
    RowSets(RowSetNet),
    /// [`RelationalKind::WindowMeans`].
    WindowMeans(WindowMeans),
}

/// Predicts targets of rows of a database at a time.
///
/// ```text
/// x[row]  = encoder of its table (values of the row, age at the time of the seed)
/// h[seed] = message passing over the sampled rows
/// y[seed] = W_2 relu(h[seed] W_1 + b_1) + b_2                 one head per task
/// ```
///
/// # Source
/// Robinson et al., "RelBench: a benchmark for deep learning on relational databases", NeurIPS 2024; Fey et al.,
/// "Position: relational deep learning", ICML 2024.
#[derive(Module, Debug)]
pub struct RelationalModel {
    /// An encoder per table, in the order of names.
    pub encoders: Vec<TableEncoder>,
    /// Message passing.
    pub net: RelationalNet,
    /// A head per task.
    pub heads: Vec<Mlp>,
    #[module(skip)]
    dropout: f64,
    key: DropoutKey,
}

impl RelationalConfig {
    /// The paths from the rows of a table that [`RelationalKind::RowSets`] and [`RelationalKind::WindowMeans`] read; none of
    /// other kinds. Where several tables lead to the same rows, the one with the most rows before `before` (microseconds
    /// since 1970) is chosen.
    ///
    /// # Errors
    /// An unknown table.
    pub fn paths(
        &self,
        graph: &DatabaseGraph,
        entity: &str,
        before: i64,
    ) -> Result<Vec<RowPath>, ModelError> {
        let limits = PathLimits { rows: self.rows, far_rows: self.far_rows };
        if self.kind.reads_paths() { row_paths(graph, entity, limits, before) } else { Ok(vec![]) }
    }

    /// Initializes a model for the graph of a database, with an encoder per table and a head of each size of `outputs`.
    /// The hidden size of the encoders must be that of the model; `paths` are those of [`paths`](Self::paths).
    ///
    /// # Errors
    /// A size of 0, a dropout outside of `0.0..1.0`, not one encoder per node type, an encoder of another hidden size,
    /// heads that do not divide the hidden size.
    pub fn try_init(
        &self,
        graph: &Graph,
        paths: &[RowPath],
        encoders: &[TableEncoderConfig],
        outputs: &[usize],
        device: &Device,
    ) -> Result<RelationalModel, ModelError> {
        let (hidden, layers) = (self.hidden, self.num_layers);
        let sizes = [
            ("hidden", hidden),
            ("num_layers", layers),
            ("rows", self.rows),
            ("far_rows", self.far_rows),
            ("outputs", outputs.len()),
        ];
        ModelError::check_sizes(&sizes, self.dropout)?;
        outputs.iter().try_for_each(|&n| ModelError::check_sizes(&[("outputs", n)], 0.0))?;
        let ntypes = graph.schema().ntypes();
        let tables: Vec<&String> = encoders.iter().map(|encoder| &encoder.table).collect();
        let range = format!("one per node type, {ntypes:?}");
        let is_complete = tables.iter().copied().eq(ntypes);
        ModelError::check_range("encoders", &range, format!("{tables:?}"), is_complete)?;
        for encoder in encoders {
            let range = format!("{hidden}, the hidden size of the model");
            let found = encoder.hidden;
            ModelError::check_range("hidden of an encoder", &range, found, found == hidden)?;
        }
        let inputs = || {
            let all = ntypes.iter().map(|ntype| (ntype.as_str(), TypeInput::Features(hidden)));
            all.collect::<TypeMap<_>>()
        };
        let configs = encoders;
        let encoders = encoders.iter().map(|encoder| encoder.try_init(device));
        let encoders = encoders.collect::<Result<_, _>>()?;
        let net = match self.kind {
            RelationalKind::Sage => RelationalNet::Sage(TypedSage::new(
                graph.schema(),
                hidden,
                layers,
                self.aggregator,
                device,
            )),
            RelationalKind::Rgcn => RelationalNet::Rgcn(
                RgcnConfig::new(hidden)
                    .with_hidden(hidden)
                    .with_num_layers(layers)
                    .with_dropout(self.dropout)
                    .try_init(graph, inputs(), device)?,
            ),
            RelationalKind::Hgt => RelationalNet::Hgt(
                HgtConfig::new(hidden)
                    .with_hidden(hidden)
                    .with_num_layers(layers)
                    .with_num_heads(self.num_heads)
                    .with_dropout(self.dropout)
                    .try_init(graph, inputs(), device)?,
            ),
            RelationalKind::RowSets => {
                ModelError::check_divides(("num_heads", self.num_heads), ("hidden", hidden))?;
                ModelError::check_sizes(&[("paths", paths.len())], 0.0)?;
                let (heads, prob) = (self.num_heads, self.dropout);
                RelationalNet::RowSets(RowSetNet::new(paths, ntypes, hidden, heads, prob, device))
            }
            RelationalKind::WindowMeans => {
                ModelError::check_sizes(&[("paths", paths.len())], 0.0)?;
                RelationalNet::WindowMeans(WindowMeans::new(paths, configs, device))
            }
        };
        let sizes = |n| match &net {
            RelationalNet::WindowMeans(net) => vec![net.width(), n],
            _ => vec![hidden, hidden, n],
        };
        let head = |&n: &usize| MlpConfig::new(sizes(n)).try_init(device);
        let heads = outputs.iter().map(head).collect::<Result<_, _>>()?;
        Ok(RelationalModel {
            encoders,
            net,
            heads,
            dropout: self.dropout,
            key: DropoutKey::new(device),
        })
    }
}

impl RelationalModel {
    /// Encoded rows of the input nodes of a batch, by table.
    ///
    /// # Panics
    /// The batch is of a database with other tables.
    #[track_caller]
    pub fn encode(&self, batch: &DatabaseBatch) -> NodeTensors {
        let Some(block) = batch.sample.blocks.first() else {
            panic!(
                "relational model: expected a batch of sampled trees (`DatabaseSampler::new`), got paths"
            );
        };
        let ntypes = block.schema().ntypes();
        assert!(
            self.encoders.len() == ntypes.len(),
            "relational model: expected a batch of {} tables, got {}",
            self.encoders.len(),
            ntypes.len()
        );
        let encoded = self.encoders.iter().zip(&batch.inputs).zip(ntypes);
        let encoded = encoded.map(|((encoder, input), ntype)| {
            let x = encoder.forward(input);
            (ntype.as_str(), self.key.at(0).dropout(block, ntype, self.dropout, x))
        });
        encoded.collect()
    }

    /// Embeddings `[seeds, hidden]` of the seeds of a batch.
    ///
    /// # Panics
    /// The batch has not one block per layer, or is of another database.
    #[track_caller]
    pub fn embed(&self, batch: &DatabaseBatch) -> Tensor<2> {
        if let RelationalNet::RowSets(_) | RelationalNet::WindowMeans(_) = &self.net {
            let Some(sets) = &batch.sets else {
                panic!(
                    "relational model: expected a batch of paths (`DatabaseSampler::of_paths`), got sampled trees"
                );
            };
            return match &self.net {
                RelationalNet::RowSets(net) => net.forward(&self.encoders, sets, batch.key),
                RelationalNet::WindowMeans(net) => net.forward(sets),
                _ => unreachable!("matched above"),
            };
        }
        let (blocks, x) = (&batch.sample.blocks, self.encode(batch));
        let schema = blocks[0].schema();
        let target = schema.ntypes()[batch.entity].as_str();
        let h = match &self.net {
            RelationalNet::Sage(net) => net.forward(blocks, x, target),
            RelationalNet::Rgcn(net) => net.logits_blocks(blocks, &x, target),
            RelationalNet::Hgt(net) => net.logits_blocks(blocks, &x, target),
            RelationalNet::RowSets(_) | RelationalNet::WindowMeans(_) => {
                unreachable!("handled above")
            }
        };
        select_rows(h, &batch.sample.seeds[batch.entity])
    }

    /// Outputs `[seeds, outputs]` of a head for the seeds of a batch.
    ///
    /// # Panics
    /// As [`embed`](Self::embed); a head that the model does not have.
    #[track_caller]
    pub fn forward(&self, batch: &DatabaseBatch, head: usize) -> Tensor<2> {
        self.heads[head].forward(self.embed(batch))
    }
}
