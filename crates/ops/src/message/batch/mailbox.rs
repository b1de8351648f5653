//! Holds the messages of a batch of nodes (DGL's mailbox).

use std::rc::Rc;

use burn::tensor::Tensor;
use burn_gnn_graph::{Column, Relation};
use burn_gnn_plan::{NormBy, PlanError, Reduce, Side, Target};

use crate::edge_softmax::try_edge_softmax;
use crate::error::OpsError;
use crate::message::batch::degree_buckets::DegreeBuckets;
use crate::message::columns::{flat, reduce_copy, spread};

const NAME: &str = "mailbox";

/// Messages of nodes, with any number of messages per node. Rows are sorted by node, and by edge id inside a node.
///
/// Reductions and softmax over the messages of each node are one pass over the rows, with the semantics and gradients of
/// [`gspmm`](crate::gspmm) and [`edge_softmax`](crate::edge_softmax). Under [`by_degree`](crate::function::by_degree) a
/// reduction of unmodified messages is computed once for all degrees.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_ops::function::copy_u;
/// use burn_gnn_ops::{Fields, MessageOps, NodeBatch};
/// let mut g = Graph::homogeneous(3, vec![0, 1], vec![2, 2])?;
/// g.nodes_mut("_N")?.insert("h", Tensor::<2>::from_data([[1.0], [3.0], [9.0]], &Device::flex()))?;
/// // Messages weighted by their own softmax.
/// let attend = |nodes: &NodeBatch| {
///     let m = nodes.mailbox::<2>("m")?;
///     let weights = m.softmax()?;
///     Ok(Fields::of("y", m.map(|x| x * weights).sum()?))
/// };
/// let y = g.update_all(copy_u("h", "m"), attend)?.nodes("_N")?.get::<2>("y")?;
/// let y = y.into_data().try_to_vec::<f32>().unwrap();
/// assert!(y[0] == 0.0 && (y[2] - 2.7615942).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Mailbox<const D: usize> {
    relation: Relation,
    messages: Tensor<D>,
    /// Under `by_degree`, for unmodified messages: the buckets, the name of the message, and the number of the bucket.
    bucket: Option<(Rc<DegreeBuckets>, String, usize)>,
}

impl<const D: usize> Mailbox<D> {
    pub(crate) fn new(relation: Relation, messages: Tensor<D>) -> Self {
        Self { relation, messages, bucket: None }
    }
    /// The message `name` of a bucket.
    pub(crate) fn of_bucket(
        sorted: &Rc<DegreeBuckets>,
        messages: Tensor<D>,
        name: &str,
        bucket: usize,
    ) -> Self {
        Self {
            relation: sorted.relation(bucket),
            messages,
            bucket: Some((sorted.clone(), name.to_owned(), bucket)),
        }
    }
    /// All messages, `[messages, ..]`.
    pub fn messages(&self) -> Tensor<D> {
        self.messages.clone()
    }
    /// The edges of the messages: edge `i` belongs to row `i`, destinations are the nodes of the batch.
    pub fn relation(&self) -> &Relation {
        &self.relation
    }
    /// Number of messages of each node.
    pub fn degrees(&self) -> Vec<u32> {
        self.relation.in_degrees().collect()
    }
    /// Applies `f` to the messages. The result has the same nodes and edges.
    ///
    /// # Panics
    /// `f` does not return one row per message.
    #[must_use]
    #[track_caller]
    pub fn map<const O: usize>(&self, f: impl FnOnce(Tensor<D>) -> Tensor<O>) -> Mailbox<O> {
        let messages = f(self.messages());
        let (expected, actual) =
            (self.relation.num_edges(), messages.dims().first().copied().unwrap_or(0));
        assert!(
            expected == actual,
            "{NAME}: `map` must return {expected} rows (one per message), got {actual}"
        );
        Mailbox::new(self.relation.clone(), messages)
    }
    /// Reduction of the messages of each node, `[nodes, ..]`.
    ///
    /// # Errors
    /// An element type without a kernel; rows of more than `u32::MAX` entries.
    pub fn reduce(&self, reduce: Reduce) -> Result<Tensor<D>, OpsError> {
        Ok(back(&match &self.bucket {
            Some((sorted, name, i)) => sorted.reduced(NAME, name, reduce, *i)?,
            None => {
                reduce_copy(NAME, &self.relation, Side::Rhs, reduce, &Column::new(self.messages()))?
            }
        }))
    }
    /// Sum of the messages of each node.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    pub fn sum(&self) -> Result<Tensor<D>, OpsError> {
        self.reduce(Reduce::Sum)
    }
    /// Mean of the messages of each node.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    pub fn mean(&self) -> Result<Tensor<D>, OpsError> {
        self.reduce(Reduce::Mean)
    }
    /// Largest message of each node, per entry. Of equal messages the first is the argmax.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    pub fn max(&self) -> Result<Tensor<D>, OpsError> {
        self.reduce(Reduce::Max)
    }
    /// Smallest message of each node, per entry. Of equal messages the first is the argmin.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    pub fn min(&self) -> Result<Tensor<D>, OpsError> {
        self.reduce(Reduce::Min)
    }
    /// Softmax over the messages of each node, per entry, `[messages, ..]`.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    pub fn softmax(&self) -> Result<Tensor<D>, OpsError> {
        try_edge_softmax(&self.relation, self.messages(), NormBy::Dst)
    }
    /// Repeats the row of each node for each of its messages: `[nodes, ..]` to `[messages, ..]`.
    ///
    /// # Errors
    /// Not one row per node.
    pub fn spread<const N: usize>(&self, x: Tensor<N>) -> Result<Tensor<N>, OpsError> {
        let (expected, actual) = (self.relation.num_dst(), x.dims().first().copied().unwrap_or(0));
        if expected != actual {
            return Err(PlanError::Rows {
                op: NAME,
                arg: "x",
                why: "one per node of the batch",
                expected,
                actual,
            }
            .into());
        }
        Ok(back(&spread(&self.relation, Target::Dst, &Column::new(x))))
    }
    /// The messages as `[nodes, messages of a node, ..]`, with `O = D + 1`.
    ///
    /// # Errors
    /// Nodes with different numbers of messages (see [`by_degree`](crate::function::by_degree)); `O` is not `D + 1`.
    pub fn dense<const O: usize>(&self) -> Result<Tensor<O>, OpsError> {
        if O != D + 1 {
            return Err(OpsError::Rank { op: NAME, expected: D + 1, actual: O });
        }
        let nodes = self.relation.num_dst();
        let degrees = || self.relation.in_degrees();
        let (least, most) = (degrees().min().unwrap_or(1), degrees().max().unwrap_or(1));
        if least != most {
            return Err(OpsError::Degrees { least, most });
        }
        let mut shape = [nodes; O];
        shape[1] = most as usize;
        shape[2..].copy_from_slice(&self.messages.dims()[1..]);
        Ok(flat(&Column::new(self.messages())).reshape(shape))
    }
}

/// A column whose rank is known.
fn back<const D: usize>(x: &Column) -> Tensor<D> {
    match x.tensor() {
        Some(x) => x,
        None => unreachable!("a result of rank {D}, not {x:?}"),
    }
}
