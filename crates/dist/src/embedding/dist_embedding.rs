//! Embeddings that their owner ranks keep and update.

use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::{Device, Gradients, Tensor, TensorData};

use super::element::EmbeddingElement;
use super::optimizer::{SparseOptimizer, State};
use crate::error::DistError;
use crate::exchange::agree;
use crate::graph::{DistGraph, PartitionPolicy};
use crate::shard::{Shard, ShardReader, ShardWriter};
use crate::tensor::DistTensor;

/// A learned embedding for each node or edge of a type, distributed over the owner ranks (DGL's `DistEmbedding`).
///
/// [`rows`](Self::rows) gathers the rows of a batch as a leaf of autodiff. After `backward`, [`step`](Self::step) sends
/// their gradients to the owners, which apply the optimizer to the rows that have one. Rows that occur in no batch do
/// not change and have no moments.
///
/// Gradients of the same row, from several ranks or repeated in a list, are summed (DGL averages them). Sums are
/// computed in f64, in the order of ranks and, inside a rank, of the list, and rounded once.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_dist::{DistEmbedding, DistError, DistGraph, PartitionConfig, SparseOptimizer, partition_graph, run_ranks};
/// use burn_gnn_graph::Graph;
/// let parts = partition_graph(&Graph::homogeneous(4, vec![0], vec![1])?, &PartitionConfig::new("g", 2))?;
/// run_ranks(2, |comm| {
///     let g = DistGraph::from_partition(parts.part(comm.rank())?, comm)?;
///     let policy = g.policy("node~_N")?;
///     let mut emb = DistEmbedding::<f32>::new(&g, "emb", 2, policy, SparseOptimizer::sgd(0.5), |_, _| 1.0)?;
///     let rows = emb.rows(&[2], &Device::flex().autodiff())?; // the same node on both ranks
///     let grads = rows.tensor().sum().backward();
///     emb.step(&[rows], &grads)?;
///     assert_eq!(emb.tensor().get(&[2])?, [0.0, 0.0]); // 1 - 0.5 · (1 + 1)
///     Ok::<_, DistError>(())
/// })?;
/// # Ok::<(), DistError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DistEmbedding<E: EmbeddingElement> {
    rows: DistTensor<E>,
    optimizer: SparseOptimizer,
    state: Arc<Mutex<State<E>>>,
}

/// Rows of a batch; see [`DistEmbedding::rows`].
#[derive(Clone, Debug)]
pub struct EmbeddingRows {
    ids: Vec<u64>,
    tensor: Tensor<2>,
}

impl EmbeddingRows {
    /// The rows, `[ids, dim]`, tracked if the device has autodiff.
    pub fn tensor(&self) -> Tensor<2> {
        self.tensor.clone()
    }
    /// Type-wise id of each row.
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }
}

impl<E: EmbeddingElement> DistEmbedding<E> {
    /// Creates rows of `dim` numbers for the nodes or edges of `policy`. `init` returns the initial value of (id in the
    /// input graph, column). Collective.
    ///
    /// # Errors
    /// As [`DistTensor::new`]; settings of the optimizer out of range.
    pub fn new(
        graph: &DistGraph,
        name: &str,
        dim: usize,
        policy: PartitionPolicy,
        optimizer: SparseOptimizer,
        init: impl Fn(u64, usize) -> E,
    ) -> Result<Self, DistError> {
        agree(&*graph.comm, "embedding: optimizer", optimizer.check())?;
        let count = usize::try_from(graph.rows_of(policy)).unwrap_or(usize::MAX);
        let rows = DistTensor::new(graph, name, &[count, dim], Some(policy), init)?;
        let state = State::new(optimizer, graph.originals_of(policy).len(), dim);
        Ok(Self { rows, optimizer, state: Arc::new(Mutex::new(state)) })
    }

    /// The rows as a distributed tensor, which can be read and overwritten.
    pub fn tensor(&self) -> &DistTensor<E> {
        &self.rows
    }
    /// Embedding size.
    pub fn dim(&self) -> usize {
        self.rows.width()
    }
    /// The optimizer and its settings.
    pub fn optimizer(&self) -> SparseOptimizer {
        self.optimizer
    }
    /// Sets the learning rate, which must be the same on all ranks.
    ///
    /// # Errors
    /// `lr` is negative or not finite.
    pub fn set_lr(&mut self, lr: f64) -> Result<(), DistError> {
        let new = self.optimizer.with_lr(lr);
        new.check()?;
        self.optimizer = new;
        Ok(())
    }

    /// Gathers rows by type-wise id as a leaf on `device`, which is tracked if the device has autodiff. Collective.
    ///
    /// # Errors
    /// On all ranks: an id out of range.
    pub fn rows(&self, ids: &[u64], device: &Device) -> Result<EmbeddingRows, DistError> {
        let data = TensorData::new(self.rows.get(ids)?, [ids.len(), self.dim()]);
        let dtype = data.dtype();
        let tensor = Tensor::<2>::from_data(data, (device, dtype));
        let tensor = if tensor.is_autodiff() { tensor.require_grad() } else { tensor };
        Ok(EmbeddingRows { ids: ids.to_vec(), tensor })
    }

    /// Updates the rows that have a gradient. All sets of rows of a step must be passed together. Collective: a rank
    /// without rows passes an empty list.
    ///
    /// # Errors
    /// As [`step_with`](Self::step_with).
    pub fn step(&mut self, rows: &[EmbeddingRows], grads: &Gradients) -> Result<(), DistError> {
        let (mut ids, mut values) = (vec![], vec![]);
        for r in rows {
            if let Some(g) = r.tensor.grad(grads) {
                ids.extend_from_slice(&r.ids);
                values.extend(g.into_data().iter::<E>());
            }
        }
        self.step_with(&ids, &values)
    }
    /// [`step`](Self::step) with gradients as a list of numbers, row by row. Collective.
    ///
    /// # Errors
    /// On all ranks: an id out of range; `values` does not have one row per id.
    ///
    /// # Cost
    /// One exchange of gradients; time proportional to the rows with a gradient.
    pub fn step_with(&mut self, ids: &[u64], values: &[E]) -> Result<(), DistError> {
        let pushed = self.rows.push("embedding: step", ids, values)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let dim = self.dim();
        self.rows.with_own(|own| state.step(self.optimizer, own, &pushed, dim));
        Ok(())
    }
}

impl<E: EmbeddingElement> AsRef<DistTensor<E>> for DistEmbedding<E> {
    fn as_ref(&self) -> &DistTensor<E> {
        &self.rows
    }
}

impl<E: EmbeddingElement> Shard for DistEmbedding<E> {
    fn name(&self) -> &str {
        self.rows.name()
    }
    fn save(&self, out: &mut ShardWriter) {
        self.rows.save(out);
        self.state.lock().unwrap_or_else(PoisonError::into_inner).save(out);
    }
    fn load(&self, from: &ShardReader<'_>) -> Result<(), DistError> {
        self.rows.load(from)?;
        self.state.lock().unwrap_or_else(PoisonError::into_inner).load(from)
    }
}
