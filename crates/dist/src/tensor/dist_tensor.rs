//! Tensors that are distributed over ranks by node or edge.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use burn::tensor::{DType, Tensor, TensorData};

use crate::element::DistElement;
use crate::error::DistError;
use crate::exchange::{agree, digest, require_equal};
use crate::graph::{
    ChangingRows, Counters, DistGraph, OwnRows, Owners, PartitionPolicy, Wanted, fetch_one,
};
use crate::shard::{Shard, ShardReader, ShardWriter};

/// A tensor with one row per node or edge of a type. Every rank holds the rows of the nodes or edges that it owns
/// (DGL's `DistTensor`).
///
/// Any rank can read all rows by [`get`](Self::get), and write them by [`set`](Self::set) and [`add`](Self::add). These
/// methods are collective, and a call sees the writes of all previous calls of all ranks. Clones are handles of the
/// same tensor.
///
/// ```
/// use burn_gnn_dist::{DistError, DistGraph, DistTensor, PartitionConfig, partition_graph, run_ranks};
/// use burn_gnn_graph::Graph;
/// let parts = partition_graph(&Graph::homogeneous(4, vec![0], vec![1])?, &PartitionConfig::new("g", 2))?;
/// run_ranks(2, |comm| {
///     let g = DistGraph::from_partition(parts.part(comm.rank())?, comm)?;
///     let visits = DistTensor::<i64>::zeros(&g, "visits", &[4], None)?; // four nodes, one edge: a node tensor
///     visits.add(&[3, 3], &[1, 1])?; // by each of two ranks
///     assert_eq!(visits.get(&[0, 3])?, [0, 4]);
///     Ok::<_, DistError>(())
/// })?;
/// # Ok::<(), DistError>(())
/// ```
#[derive(Clone)]
pub struct DistTensor<E: DistElement> {
    pub(super) graph: DistGraph,
    pub(super) store: Arc<Store<E>>,
}

#[derive(Debug)]
pub(super) struct Store<E> {
    pub(super) name: String,
    pub(super) policy: PartitionPolicy,
    /// Shape of a row.
    pub(super) shape: Vec<usize>,
    pub(super) width: usize,
    pub(super) rows: RwLock<Vec<E>>,
}

impl<E: DistElement> fmt::Debug for DistTensor<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (s, policy) = (&self.store, self.graph.policy_name(self.store.policy));
        write!(
            f,
            "DistTensor `{}` of {:?} ({policy}), rows of shape {:?}",
            s.name,
            E::DTYPE,
            s.shape
        )
    }
}

impl<E: DistElement> DistTensor<E> {
    /// Creates a tensor named `name`. The first dimension of `shape` is the number of nodes or edges of the policy.
    /// Without a policy, the type with this number of nodes or edges is used. `init` returns the initial value of (id
    /// in the input graph, column of the flattened row), so values do not depend on the partitioning. Collective.
    ///
    /// If a tensor of this name exists, returns another handle of it without calling `init`.
    ///
    /// # Errors
    /// No type, or several, have this number of rows; the policy has another number of rows; a tensor of this name has
    /// another element type, shape or policy; arguments differ between ranks.
    pub fn new(
        graph: &DistGraph,
        name: &str,
        shape: &[usize],
        policy: Option<PartitionPolicy>,
        init: impl Fn(u64, usize) -> E,
    ) -> Result<Self, DistError> {
        let made = graph.choose_policy(name, shape, policy);
        let (policy, row_shape) = agree(&*graph.comm, "tensor: policy", made)?;
        let what = format!("{name}/{}/{:?}/{shape:?}", graph.policy_name(policy), E::DTYPE);
        let found = graph.inner.registry.find(name);
        let tag = digest(what.bytes().map(u64::from).chain([u64::from(found.is_some())]));
        require_equal(
            &*graph.comm,
            "tensor",
            "name, element type, shape, policy and existence of a tensor",
            tag.to_le_bytes().to_vec(),
        )?;
        if let Some(found) = found {
            let same = found
                .downcast::<Store<E>>()
                .ok()
                .filter(|s| s.policy == policy && s.shape == row_shape);
            let same = same.ok_or_else(|| DistError::Config {
                arg: "name",
                expected: format!(
                    "a name that no tensor of another type, shape or policy has (requested: {what})"
                ),
                found: format!("`{name}`"),
            });
            return Ok(Self {
                graph: graph.clone(),
                store: agree(&*graph.comm, "tensor: name", same)?,
            });
        }
        let width = row_shape.iter().product();
        let originals = graph.originals_of(policy);
        let rows = originals
            .iter()
            .flat_map(|&id| (0..width).map(move |c| (id, c)))
            .map(|(id, c)| init(id, c))
            .collect();
        let store = Arc::new(Store {
            name: name.to_owned(),
            policy,
            shape: row_shape,
            width,
            rows: RwLock::new(rows),
        });
        let kept: Arc<dyn Any + Send + Sync> = store.clone();
        graph.inner.registry.insert(name, &kept, false);
        Ok(Self { graph: graph.clone(), store })
    }
    /// [`new`](Self::new) with zeros as initial values. Collective.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn zeros(
        graph: &DistGraph,
        name: &str,
        shape: &[usize],
        policy: Option<PartitionPolicy>,
    ) -> Result<Self, DistError> {
        Self::new(graph, name, shape, policy, |_, _| E::zeroed())
    }
    /// Lets the graph hold the tensor, so that it outlives its handles and [`new`](Self::new) of the same name returns
    /// it.
    #[must_use]
    pub fn persistent(self) -> Self {
        let kept: Arc<dyn Any + Send + Sync> = self.store.clone();
        self.graph.inner.registry.insert(&self.store.name, &kept, true);
        self
    }
    /// Releases a persistent tensor from the graph, so that it is freed with its last handle.
    #[must_use]
    pub fn transient(self) -> Self {
        self.graph.inner.registry.release(&self.store.name);
        self
    }

    /// Name of the tensor.
    pub fn name(&self) -> &str {
        &self.store.name
    }
    /// The node or edge type of the rows.
    pub fn policy(&self) -> PartitionPolicy {
        self.store.policy
    }
    /// Shape of a row.
    pub fn row_shape(&self) -> &[usize] {
        &self.store.shape
    }
    /// Number of rows of all ranks.
    pub fn len(&self) -> u64 {
        self.graph.rows_of(self.store.policy)
    }
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Number of elements per row.
    pub(crate) fn width(&self) -> usize {
        self.store.width
    }
    pub(crate) fn graph(&self) -> &DistGraph {
        &self.graph
    }
    /// Holders of the rows, and the number of the type.
    pub(crate) fn owners(&self) -> (&Owners, usize) {
        (self.graph.row_owners(self.store.policy), self.store.policy.ty)
    }
    /// The rows of this rank, concatenated in ascending id.
    pub fn own_rows(&self) -> Vec<E> {
        self.store.rows.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
    /// The rows as the source of a feature column.
    pub(crate) fn rows(&self) -> Arc<dyn ChangingRows> {
        self.store.clone()
    }
    /// Runs `f` on the rows of this rank.
    pub(crate) fn with_own<R>(&self, f: impl FnOnce(&mut [E]) -> R) -> R {
        f(&mut self.store.rows.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads rows by type-wise id, in the order of `ids`, which may repeat. Collective.
    ///
    /// # Errors
    /// On all ranks: an id out of range.
    pub fn get(&self, ids: &[u64]) -> Result<Vec<E>, DistError> {
        let (owners, ty) = self.owners();
        let (own, row_bytes) = (OwnRows::Lent(self.rows()), self.store.width * size_of::<E>());
        let table = Wanted::new(owners, ty, ids, row_bytes, own);
        let (comm, name) = (&*self.graph.comm, &self.store.name);
        let found = fetch_one(comm, "tensor: get", name, table, &Counters::default())?;
        Ok(bytemuck::pod_collect_to_vec(&found))
    }
    /// [`get`](Self::get) as a float tensor of rank `D`, which is one more than the rank of a row. Collective.
    ///
    /// # Errors
    /// As [`get`](Self::get); `D` does not match.
    pub fn get_tensor<const D: usize>(&self, ids: &[u64]) -> Result<Tensor<D>, DistError> {
        let rows = self.get(ids)?;
        let shape: Vec<usize> =
            std::iter::once(ids.len()).chain(self.store.shape.iter().copied()).collect();
        if shape.len() != D {
            let expected = format!("rank {} of tensor `{}`", shape.len(), self.store.name);
            return Err(DistError::Config { arg: "D", expected, found: D.to_string() });
        }
        let data = TensorData::new(rows, shape);
        let dtype = data.dtype();
        Ok(Tensor::from_data(data, (self.graph.device(), dtype)))
    }

    /// Writes rows by type-wise id. If an id occurs several times, the last write wins, in the order of ranks and,
    /// inside a rank, of the list. Collective.
    ///
    /// # Errors
    /// On all ranks: an id out of range; `values` does not have one row per id.
    pub fn set(&self, ids: &[u64], values: &[E]) -> Result<(), DistError> {
        self.update("tensor: set", ids, values, |row, values| row.copy_from_slice(values))
    }
    /// Adds to rows by type-wise id. Several values for one row are added in the order of ranks and, inside a rank, of
    /// the list. Collective.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn add(&self, ids: &[u64], values: &[E]) -> Result<(), DistError> {
        self.update("tensor: add", ids, values, |row, values| {
            row.iter_mut().zip(values).for_each(|(r, v)| *r = E::sum(*r, *v))
        })
    }
}

impl<E: DistElement> AsRef<Self> for DistTensor<E> {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl<E: DistElement> ChangingRows for Store<E> {
    fn dtype(&self) -> DType {
        E::dtype()
    }
    fn row_shape(&self) -> &[usize] {
        &self.shape
    }
    fn lend(&self, to: &mut dyn FnMut(&[u8])) {
        to(bytemuck::cast_slice(&self.rows.read().unwrap_or_else(PoisonError::into_inner)));
    }
}

impl<E: DistElement> Shard for DistTensor<E> {
    fn name(&self) -> &str {
        &self.store.name
    }
    fn save(&self, out: &mut ShardWriter) {
        out.put("rows", &self.own_rows());
    }
    fn load(&self, from: &ShardReader<'_>) -> Result<(), DistError> {
        let expected = self.graph.originals_of(self.store.policy).len() * self.store.width;
        let rows = from.take("rows", expected)?;
        self.with_own(|own| own.copy_from_slice(&rows));
        Ok(())
    }
}
