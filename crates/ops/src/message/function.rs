//! Defines builtin message and reduce functions by field names, as in `dgl.function`.
//!
//! `u` is the source of an edge, `v` its destination, `e` the edge itself. A message function reads fields of them and
//! names the message; a reduce function reads the message and names the field that it writes.
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use burn_gnn_graph::Graph;
//! use burn_gnn_ops::MessageOps;
//! use burn_gnn_ops::function::{mean, u_mul_e};
//! let device = Device::flex();
//! let mut g = Graph::homogeneous(3, vec![0, 2], vec![1, 1])?;
//! g.nodes_mut("_N")?.insert("h", Tensor::<1>::from_data([1.0, 2.0, 3.0], &device))?;
//! g.edges_mut("_E")?.insert("w", Tensor::<1>::from_data([2.0, 4.0], &device))?;
//! let g = g.update_all(u_mul_e("h", "w", "m"), mean("m", "y"))?;
//! assert_eq!(g.nodes("_N")?.get::<1>("y")?.into_data().try_to_vec::<f32>().unwrap(), [0.0, 7.0, 0.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use burn_gnn_plan::{Reduce, SddmmOp, Target};

use crate::error::OpsError;
use crate::gsddmm::named::with_binaries;
use crate::message::batch::edge_batch::EdgeBatch;
use crate::message::batch::node_batch::{NodeBatch, NodeFn};

pub use crate::message::builtin::{Message, Reduction};
use crate::message::fields::Fields;

macro_rules! copies {
    ($($name:ident, $target:ident, $what:literal;)*) => {$(
        #[doc = concat!("The message `out` of an edge is field `field` of ", $what, ".")]
        pub fn $name(field: impl Into<String>, out: impl Into<String>) -> Message {
            Message { name: stringify!($name), op: SddmmOp::CopyLhs, lhs: (Target::$target, field.into()), rhs: None, out: out.into() }
        }
    )*};
}

copies! {
    copy_u, Src, "its source";
    copy_v, Dst, "its destination";
    copy_e, Edge, "the edge itself";
}

macro_rules! binaries {
    ($($name:ident, $op:ident, $lhs:ident, $rhs:ident, $formula:literal;)*) => {$(
        #[doc = concat!("The message `out` of an edge `e = (u, v)` is `", $formula, "`.")]
        ///
        /// Feature shapes broadcast as in [`gsddmm`](crate::gsddmm).
        pub fn $name(lhs: impl Into<String>, rhs: impl Into<String>, out: impl Into<String>) -> Message {
            let (lhs, rhs) = ((Target::$lhs, lhs.into()), Some((Target::$rhs, rhs.into())));
            Message { name: stringify!($name), op: SddmmOp::$op, lhs, rhs, out: out.into() }
        }
    )*};
}

with_binaries!(binaries);

macro_rules! reducers {
    ($($name:ident, $reduce:ident, $formula:literal;)*) => {$(
        #[doc = concat!("Field `out` of a destination is the ", $formula, " of its messages `message`; 0 without messages.")]
        pub fn $name(message: impl Into<String>, out: impl Into<String>) -> Reduction {
            Reduction { reduce: Reduce::$reduce, message: message.into(), out: out.into() }
        }
    )*};
}

reducers! {
    sum, Sum, "sum";
    mean, Mean, "mean";
    max, Max, "maximum (of equal messages the one with the smallest edge id is the argmax)";
    min, Min, "minimum (of equal messages the one with the smallest edge id is the argmin)";
}

/// Calls a reduce function once per distinct in-degree. All nodes of a call have the same number of messages, so that
/// [`Mailbox::dense`](crate::Mailbox::dense) returns `[nodes, messages, ..]`, for example for an LSTM over the messages
/// in the order of edge ids.
///
/// # Cost
/// One call of `f` per distinct in-degree, over messages that are computed in this order. The order is computed on first
/// use and cached with the relation. [`Mailbox::reduce`](crate::Mailbox::reduce) of unmodified messages runs once for
/// all degrees, at the same cost as without `by_degree`. Dense messages cost one additional pass in backward, for any
/// number of degrees.
pub fn by_degree<F: Fn(&NodeBatch) -> Result<Fields, OpsError>>(f: F) -> ByDegree<F> {
    ByDegree(f)
}

/// Reduce function that [`by_degree`] returns.
#[derive(Clone, Debug)]
pub struct ByDegree<F>(F);

/// Reduce function that [`ReduceFunction::then`] returns.
#[derive(Clone, Debug)]
pub struct Then<R, A> {
    reduce: R,
    apply: A,
}

/// A message function by reference.
#[doc(hidden)]
pub enum Messages<'a> {
    Builtin(&'a Message),
    User(&'a dyn Fn(&EdgeBatch) -> Result<Fields, OpsError>),
}

/// A function that computes messages or fields of edges: a [`Message`], or a closure
/// `|edges: &EdgeBatch| Ok(Fields::of(..))`.
///
/// A closure is called once for all edges of a call, also without edges.
pub trait MessageFunction {
    #[doc(hidden)]
    fn messages(&self) -> Messages<'_>;
}

impl MessageFunction for Message {
    fn messages(&self) -> Messages<'_> {
        Messages::Builtin(self)
    }
}

impl<F: Fn(&EdgeBatch) -> Result<Fields, OpsError>> MessageFunction for F {
    fn messages(&self) -> Messages<'_> {
        Messages::User(self)
    }
}

/// A reduce function by reference, and the apply functions that follow.
#[doc(hidden)]
pub struct Reducing<'a> {
    pub(crate) how: Reducer<'a>,
    pub(crate) apply: Vec<NodeFn<'a>>,
}

pub(crate) enum Reducer<'a> {
    Builtin(&'a Reduction),
    Ragged(NodeFn<'a>),
    ByDegree(NodeFn<'a>),
}

impl Reducing<'_> {
    /// The builtin, if the reduce function is one.
    pub(crate) fn builtin(&self) -> Option<&Reduction> {
        match self.how {
            Reducer::Builtin(reduction) => Some(reduction),
            Reducer::Ragged(_) | Reducer::ByDegree(_) => None,
        }
    }
}

/// A function that computes fields of a destination from its messages: a [`Reduction`], a closure
/// `|nodes: &NodeBatch| Ok(Fields::of(..))` over a ragged [`Mailbox`](crate::Mailbox), or [`by_degree`] of a closure.
///
/// A closure gets only nodes with messages; nodes without messages get 0. It is called also without any such node.
pub trait ReduceFunction {
    #[doc(hidden)]
    fn reducing(&self) -> Reducing<'_>;

    /// Runs `apply` on the destinations afterwards and writes its fields too. `apply` gets all destinations, including
    /// nodes without messages, and can read the fields that were written.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_ops::function::{copy_u, sum};
    /// use burn_gnn_ops::{Fields, MessageOps, NodeBatch, ReduceFunction};
    /// let mut g = Graph::homogeneous(2, vec![0], vec![1])?;
    /// g.nodes_mut("_N")?.insert("h", Tensor::<1>::from_data([1.0, 2.0], &Device::flex()))?;
    /// let plus = |nodes: &NodeBatch| Ok(Fields::of("y", nodes.data::<1>("y")? + nodes.data::<1>("h")?));
    /// let g = g.update_all(copy_u("h", "m"), sum("m", "y").then(plus))?;
    /// assert_eq!(g.nodes("_N")?.get::<1>("y")?.into_data().try_to_vec::<f32>().unwrap(), [1.0, 3.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn then<A: Fn(&NodeBatch) -> Result<Fields, OpsError>>(self, apply: A) -> Then<Self, A>
    where
        Self: Sized,
    {
        Then { reduce: self, apply }
    }
}

impl ReduceFunction for Reduction {
    fn reducing(&self) -> Reducing<'_> {
        Reducing { how: Reducer::Builtin(self), apply: Vec::new() }
    }
}

impl<F: Fn(&NodeBatch) -> Result<Fields, OpsError>> ReduceFunction for F {
    fn reducing(&self) -> Reducing<'_> {
        Reducing { how: Reducer::Ragged(self), apply: Vec::new() }
    }
}

impl<F: Fn(&NodeBatch) -> Result<Fields, OpsError>> ReduceFunction for ByDegree<F> {
    fn reducing(&self) -> Reducing<'_> {
        Reducing { how: Reducer::ByDegree(&self.0), apply: Vec::new() }
    }
}

impl<R: ReduceFunction, A: Fn(&NodeBatch) -> Result<Fields, OpsError>> ReduceFunction
    for Then<R, A>
{
    fn reducing(&self) -> Reducing<'_> {
        let mut reducing = self.reduce.reducing();
        reducing.apply.push(&self.apply);
        reducing
    }
}
