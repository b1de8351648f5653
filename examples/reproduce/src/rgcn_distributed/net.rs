//! Defines the model: embeddings on their owner ranks, R-GCN layers replicated on every rank.

use anyhow::Result;
use burn::module::{Module, Param};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Gradients, Tensor};
use burn_gnn::dist::{DistBatch, DistEmbedding, DistGraph, EmbeddingRows, Shard, SparseOptimizer};
use burn_gnn::models::{
    HeteroLayer, NodeTensors, RelGraphConv, RelGraphConvConfig, TypeInput, next_stream,
};
use burn_gnn::ops::{Stream, glorot_uniform, matmul_rows};
use burn_gnn::sampling::LoadedBatch;

/// What all ranks hold alike.
#[derive(Module, Debug)]
pub(crate) struct Net {
    /// `[d, hidden]` per node type with features.
    projections: Vec<Param<Tensor<2>>>,
    convs: Vec<RelGraphConv>,
}

impl Net {
    pub(crate) fn new(
        g: &DistGraph,
        inputs: &[TypeInput],
        classes: usize,
        hidden: usize,
        layers: usize,
        device: &Device,
    ) -> Result<Self> {
        let mut projections = vec![];
        for input in inputs {
            if let TypeInput::Features(d) = *input {
                let data = glorot_uniform(next_stream(device), d, hidden, [d, hidden]);
                projections.push(Param::from_tensor(Tensor::from_data(data, device)));
            }
        }
        let conv = |i: usize| {
            let out = if i + 1 == layers { classes } else { hidden };
            RelGraphConvConfig::new(hidden, out, g.etypes().len()).try_init(device)
        };
        Ok(Self { projections, convs: (0..layers).map(conv).collect::<Result<_, _>>()? })
    }

    /// Logits of the nodes of type `target` that the last layer computes.
    pub(crate) fn forward(
        &self,
        b: &LoadedBatch<DistBatch, u64>,
        rows: &[Option<EmbeddingRows>],
        target: usize,
    ) -> Tensor<2> {
        let mut projections = self.projections.iter();
        let mut input =
            |(ntype, rows): (&String, &Option<EmbeddingRows>)| match (b.x(ntype).ok(), rows) {
                (_, Some(rows)) => rows.tensor(),
                (Some(x), None) => {
                    let w = projections
                        .next()
                        .unwrap_or_else(|| unreachable!("one per type with features"))
                        .val();
                    matmul_rows(if w.is_autodiff() { Tensor::from_inner(x) } else { x }, w)
                }
                (None, None) => unreachable!("a type has features or learned rows"),
            };
        let schema = b.batch.mini.blocks[0].schema();
        let mut h: NodeTensors =
            schema.ntypes().iter().zip(rows).map(|of| (of.0.clone(), input(of))).collect();
        for (i, (conv, block)) in self.convs.iter().zip(&b.batch.mini.blocks).enumerate() {
            h = conv.forward(block, if i == 0 { h } else { h.map(|_, h| relu(h)) });
        }
        h[&schema.ntypes()[target]].clone()
    }
}

/// Learned rows of the node types without features.
pub(crate) struct Learned(Vec<Option<DistEmbedding<f32>>>);

impl Learned {
    /// Glorot's rule over each table, keyed by original ids.
    pub(crate) fn new(
        g: &DistGraph,
        inputs: &[TypeInput],
        dim: usize,
        lr: f64,
        seed: u64,
    ) -> Result<Self> {
        let table = |(ntype, input): (&String, &TypeInput)| {
            if *input != TypeInput::Embedding {
                return Ok(None);
            }
            let name = format!("embedding/{ntype}");
            let (stream, bound) = (
                Stream::new(seed, &name, 0),
                (6.0 / (g.num_nodes(ntype)? as f64 + dim as f64)).sqrt(),
            );
            let init = |id: u64, column: usize| {
                (bound * (2.0 * stream.uniform(id, column as u64) - 1.0)) as f32
            };
            let policy = g.policy(&format!("node~{ntype}"))?;
            Ok(Some(DistEmbedding::new(g, &name, dim, policy, SparseOptimizer::adam(lr), init)?))
        };
        Ok(Self(g.ntypes().iter().zip(inputs).map(table).collect::<Result<_>>()?))
    }

    /// Rows of the input nodes of a batch. Collective.
    pub(crate) fn rows(
        &self,
        batch: &DistBatch,
        device: &Device,
    ) -> Result<Vec<Option<EmbeddingRows>>> {
        let of = |(t, table): (usize, &Option<DistEmbedding<f32>>)| {
            Ok(table.as_ref().map(|table| table.rows(batch.input_nodes(t), device)).transpose()?)
        };
        self.0.iter().enumerate().map(of).collect()
    }

    /// Steps them, also on a rank without gradients. Collective.
    pub(crate) fn step(
        &mut self,
        rows: &[Option<EmbeddingRows>],
        grads: Option<&Gradients>,
    ) -> Result<()> {
        for (table, rows) in self.0.iter_mut().zip(rows) {
            match (table, rows, grads) {
                (Some(table), Some(rows), Some(grads)) => {
                    table.step(std::slice::from_ref(rows), grads)?
                }
                (Some(table), ..) => table.step_with(&[], &[])?,
                (None, ..) => {}
            }
        }
        Ok(())
    }

    /// For checkpoints.
    pub(crate) fn shards(&self) -> Vec<&dyn Shard> {
        self.0.iter().flatten().map(|table| table as &dyn Shard).collect()
    }
}
