//! Makes distributed tensors feature columns of their graph.

use std::sync::{Arc, PoisonError};

use super::dist_tensor::DistTensor;
use crate::element::DistElement;
use crate::error::DistError;
use crate::exchange::{agree, digest, require_equal};
use crate::graph::DataSpace;

impl DataSpace<'_> {
    /// Makes a [`DistTensor`] or [`DistEmbedding`](crate::DistEmbedding) a feature column, which [`data`](Self::data)
    /// and loaders read like any other column. A tensor that was inserted under the same name is replaced. Reads return
    /// the current values of the tensor, and the graph holds a handle of it. Collective.
    ///
    /// A prefetching loader reads rows before earlier steps have updated them. Use
    /// [`with_prefetch(0)`](burn_gnn_sampling::Loader::with_prefetch) if a batch must see the previous step. The rows
    /// are constants of a batch; use [`DistEmbedding::rows`](crate::DistEmbedding::rows) to train them. Feature caches
    /// skip these columns.
    ///
    /// ```
    /// use burn_gnn_dist::{DistError, DistGraph, DistTensor, PartitionConfig, partition_graph, run_ranks};
    /// use burn_gnn_graph::Graph;
    /// let parts = partition_graph(&Graph::homogeneous(4, vec![0], vec![1])?, &PartitionConfig::new("g", 2))?;
    /// run_ranks(2, |comm| {
    ///     let g = DistGraph::from_partition(parts.part(comm.rank())?, comm)?;
    ///     let tensor = DistTensor::<f32>::new(&g, "numbers", &[4, 1], None, |id, _| id as f32)?;
    ///     g.nodes("_N").insert("feat1", &tensor)?;
    ///     let x = g.nodes("_N").data("feat1").gather::<2>(&[0, 1, 2, 3])?;
    ///     assert_eq!(x.sum().into_scalar::<f32>(), 6.0);
    ///     Ok::<_, DistError>(())
    /// })?;
    /// # Ok::<(), DistError>(())
    /// ```
    ///
    /// # Errors
    /// On all ranks: an unknown type; a tensor of another graph or type; the name of a stored column; names or tensors
    /// that differ between ranks.
    pub fn insert<E: DistElement>(
        &self,
        column: &str,
        tensor: impl AsRef<DistTensor<E>>,
    ) -> Result<(), DistError> {
        let (g, tensor) = (self.graph, tensor.as_ref());
        let bad =
            |arg, expected: String, found: String| Err(DistError::Config { arg, expected, found });
        let check = || {
            let of = self.policy()?;
            let here = g.policy_name(of);
            if !Arc::ptr_eq(&g.inner, &tensor.graph().inner) {
                return bad(
                    "tensor",
                    "a tensor of this graph or a clone of it".into(),
                    format!("tensor `{}` of another", tensor.name()),
                );
            }
            let theirs = g.policy_name(tensor.policy());
            if here != theirs {
                return bad(
                    "tensor",
                    format!("a tensor with the policy `{here}`"),
                    format!("tensor `{}` of `{theirs}`", tensor.name()),
                );
            }
            if g.stored_column(of, column).is_some() {
                return bad(
                    "column",
                    format!("a name that no stored column of `{here}` has"),
                    format!("`{column}`"),
                );
            }
            Ok(of)
        };
        let of = agree(&*g.comm, "insert column", check())?;
        let what = format!("{}/{}/{column}/{}", of.is_node, of.ty, tensor.name());
        let tag = digest(what.bytes().map(u64::from));
        require_equal(
            &*g.comm,
            "insert column",
            "type, name and tensor of a column",
            tag.to_le_bytes().to_vec(),
        )?;
        let mut inserted = g.inner.inserted.write().unwrap_or_else(PoisonError::into_inner);
        inserted.insert((of, column.to_owned()), tensor.rows());
        Ok(())
    }
}
