//! Partitions the data set on the first rank, and shares the task with all ranks.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_gnn::dist::{Communicator, DistBatch, DistGraph, PartitionConfig, partition_graph};
use burn_gnn::models::{Rows, TypeInput};
use burn_gnn::sampling::LoadedBatch;

use crate::common::data::{FEATURE, Loaded};

/// Column with the class of each labelled node, -1 for others.
const LABEL: &str = "label";

/// What the parts do not contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// The node type that is classified.
    pub(crate) target: usize,
    pub(crate) num_classes: usize,
    /// Training and test nodes, by id in the data set.
    pub(crate) train: Vec<u64>,
    pub(crate) test: Vec<u64>,
}

impl Task {
    /// Cuts a data set into parts; the path of their metadata, and the task.
    pub(crate) fn write(
        mut data: Loaded,
        parts: usize,
        seed: u64,
        out: &Path,
    ) -> Result<(PathBuf, Self)> {
        let ntype = data.graph.schema().ntypes()[data.target].clone();
        let mut labels = vec![-1i64; data.graph.num_nodes(&ntype)?];
        for rows in [&data.train, &data.test] {
            rows.index
                .iter()
                .zip(&*rows.labels)
                .for_each(|(&v, &label)| labels[v as usize] = i64::from(label));
        }
        // On the device of the other columns, if there are any.
        let device = data
            .graph
            .nodes(&ntype)?
            .columns()
            .next()
            .map_or_else(Device::flex, |c| c.1.device().clone());
        let n = labels.len();
        let labels = Tensor::<1, Int>::from_data(TensorData::new(labels, [n]), &device);
        data.graph.nodes_mut(&ntype)?.insert(LABEL, labels)?;
        let cut =
            partition_graph(&data.graph, &PartitionConfig::new("graph", parts).with_seed(seed))?;
        println!("{data}\n{}", cut.table()?);
        let ids = |rows: &Rows| rows.index.iter().map(|&v| u64::from(v)).collect();
        let task = Self {
            target: data.target,
            num_classes: data.num_classes,
            train: ids(&data.train),
            test: ids(&data.test),
        };
        Ok((cut.write(out)?, task))
    }

    /// The task of the first rank, on all ranks.
    pub(crate) fn share(comm: &dyn Communicator, first: Option<Self>) -> Result<Self> {
        let bytes = first.map_or_else(
            || Ok(vec![]),
            |t| serde_json::to_vec(&(t.target, t.num_classes, t.train, t.test)),
        )?;
        let bytes = comm.broadcast("task", 0, bytes)?;
        let (target, num_classes, train, test) =
            serde_json::from_slice(&bytes).context("the task of the first rank")?;
        Ok(Self { target, num_classes, train, test })
    }

    /// Own seeds of a batch with their labels; the loss is over the seeds of all ranks. Collective.
    pub(crate) fn labels(&self, g: &DistGraph, b: &LoadedBatch<DistBatch, u64>) -> Result<Rows> {
        let labels =
            g.nodes(&g.ntypes()[self.target]).data(LABEL).gather_int::<1>(b.seeds(self.target)?)?;
        Ok(Rows::of_batch(b.batch.seed_rows(self.target), labels, b.global_seeds)?)
    }
}

/// Features where a type has them, a learned embedding otherwise, as described by the part of this rank.
pub(crate) fn inputs(g: &DistGraph) -> Vec<TypeInput> {
    let part = g.local_partition();
    let input = |t: usize| {
        part.node_feature(t, FEATURE)
            .map_or(TypeInput::Embedding, |x| TypeInput::Features(x.shape()[1]))
    };
    (0..g.ntypes().len()).map(input).collect()
}
