//! Defines the errors of this crate.

use std::fmt;
use std::sync::Arc;

use burn::tensor::{DType, Device};
use burn_gnn_graph::GraphError;
use burn_gnn_plan::PlanError;

/// Invalid arguments of an operator.
///
/// All checks run before any kernel. Functions without `try_` panic with the same text.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OpsError {
    /// An invalid size, number or id.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An output type whose rank is not the rank of the result.
    #[error(
        "{op}: the result has rank {expected}, the output type has rank {actual}; change the rank parameter of the output"
    )]
    Rank {
        /// Operator.
        op: &'static str,
        /// Rank of the result.
        expected: usize,
        /// Rank of the output type.
        actual: usize,
    },
    /// Two operands with different element types.
    #[error("{op}: `{arg}` is {actual:?} and `{like}` is {expected:?}; cast one of them")]
    Dtype {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// Element type of `arg`.
        actual: DType,
        /// Argument with the expected element type.
        like: &'static str,
        /// Element type of `like`.
        expected: DType,
    },
    /// Two operands on different devices.
    #[error("{op}: `{arg}` is on {actual:?} and `{like}` is on {expected:?}; move one of them")]
    Device {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// Device of `arg`.
        actual: Box<Device>,
        /// Argument on the expected device.
        like: &'static str,
        /// Device of `like`.
        expected: Box<Device>,
    },
    /// An element type without a kernel.
    #[error("{op}: `{arg}` has element type {dtype:?}, expected F32, F64, F16 or BF16; cast it")]
    UnsupportedDtype {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// The element type found.
        dtype: DType,
    },
    /// A 16-bit element type in a build whose backends have no kernels for it.
    #[error(
        "{op}: `{arg}` has element type {dtype:?}, which needs the cargo feature `f16` on the CPU; add it or cast to F32"
    )]
    HalfPrecision {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// The element type found.
        dtype: DType,
    },
    /// A device that does not support the element type of the mixed precision in effect.
    #[error(
        "{op}: `with_precision` casts `{arg}` to {dtype:?}, which {device:?} does not support; use another precision or device"
    )]
    Precision {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// Element type of the precision in effect.
        dtype: DType,
        /// The device of the argument.
        device: Box<Device>,
    },
    /// A repeated edge id.
    #[error(
        "{op}: `eids[{position}]` is edge {id}, and so is `eids[{first}]`; give every edge once"
    )]
    EdgeRepeated {
        /// Operator.
        op: &'static str,
        /// Position of the repeated id.
        position: usize,
        /// Position of its first occurrence.
        first: usize,
        /// The id.
        id: u32,
    },
    /// A list of a wrong length.
    #[error(
        "{op}: `{arg}` must have {expected} entries ({why}), got {actual}; give as many entries"
    )]
    Count {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// Meaning of the expected length.
        why: &'static str,
        /// Entries expected.
        expected: usize,
        /// Entries found.
        actual: usize,
    },
    /// A tensor of a list that differs from the other tensors, or does not fit its table or relation.
    #[error(
        "{op}: {what} of `{arg}[{position}]` must be {expected}, got {actual}; {}",
        member_remedy(what)
    )]
    Member {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// Position in the list.
        position: usize,
        /// Property that is wrong.
        what: &'static str,
        /// Expected value.
        expected: String,
        /// Value found.
        actual: String,
    },
    /// An unknown or invalid field, node type or edge type.
    #[error(transparent)]
    Graph(#[from] GraphFault),
    /// A reduce function that reads a message which the message function does not return.
    #[error(
        "{op}: the reduce function reads message `{reads}`, the message function returns {made:?}; use one name in both"
    )]
    MessageField {
        /// Operator.
        op: &'static str,
        /// Message that the reduce function reads.
        reads: String,
        /// Messages that the message function returns.
        made: Vec<String>,
    },
    /// Two fields of one message with different element types or devices.
    #[error("{op}: {field} has {what} {actual}, {like} has {expected}; convert one of them")]
    UnlikeFields {
        /// Message function.
        op: &'static str,
        /// Field and frame.
        field: Box<str>,
        /// Field and frame with the expected value.
        like: Box<str>,
        /// Property that differs: element type or device.
        what: &'static str,
        /// Its value for `field`.
        actual: Box<str>,
        /// Its value for `like`.
        expected: Box<str>,
    },
    /// A call for one edge type on a graph that does not have exactly one.
    #[error(
        "{op}: expected a graph of one edge type, got {known:?}; choose one with `on(edge_type)`"
    )]
    EdgeTypes {
        /// Operator.
        op: &'static str,
        /// Edge types of the graph.
        known: Vec<String>,
    },
    /// A repeated id.
    #[error("{op}: `{arg}[{position}]` is {id}, and so is `{arg}[{first}]`; give every id once")]
    Repeated {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// Position of the repeated id.
        position: usize,
        /// Position of its first occurrence.
        first: usize,
        /// The id.
        id: u32,
    },
    /// A dense mailbox of nodes with different numbers of messages.
    #[error(
        "mailbox: nodes of this batch have {least} to {most} messages, a dense mailbox requires equal numbers; \
         wrap the reduce function in `by_degree`"
    )]
    Degrees {
        /// Fewest messages.
        least: u32,
        /// Most messages.
        most: u32,
    },
    /// A reduce function under `by_degree` that returns different fields for different degrees.
    #[error(
        "{op}: by_degree: the reduce function must return {expected:?} for every degree, returned {actual:?} for degree {degree}; \
         return the same fields for every degree"
    )]
    BucketFields {
        /// Operator.
        op: &'static str,
        /// Degree.
        degree: usize,
        /// Fields returned for the smallest degree.
        expected: Vec<String>,
        /// Fields returned for this degree.
        actual: Vec<String>,
    },
    /// A user-defined reduce function for the messages of several edge types together.
    #[error(
        "{op}: messages of several edge types can be reduced together by sum, mean, max or min only; \
         use `multi_update_all`, or `on(edge_type)` for a single edge type"
    )]
    Joint {
        /// Operator.
        op: &'static str,
    },
    /// Edge types into one node type whose results cannot be combined.
    #[error(
        "{op}: into node type `{ntype}`, edge type `{etype}` gives {what} {actual}, `{first}` gives {expected}; make them equal"
    )]
    Relations {
        /// Operator.
        op: &'static str,
        /// Destination node type.
        ntype: Box<str>,
        /// The first edge type.
        first: Box<str>,
        /// The edge type that differs from it.
        etype: Box<str>,
        /// Property that differs.
        what: &'static str,
        /// Its value for `first`.
        expected: Box<str>,
        /// Its value for `etype`.
        actual: Box<str>,
    },
    /// Edge features for a layer that does not read any.
    #[error(
        "{op}: edge type `{etype}`: expected no edge features, got some; remove them, this layer does not use them"
    )]
    UnreadFeatures {
        /// Name of the layer.
        op: &'static str,
        /// Edge type.
        etype: String,
    },
    /// One tensor of features for an edge type that joins two node types.
    #[error(
        "{op}: edge type `{etype}` joins different node types; give the features of both as `(x_src, x_dst)`"
    )]
    TwoTables {
        /// Operator.
        op: &'static str,
        /// Edge type.
        etype: String,
    },
}

burn_gnn_graph::internal::debug_is_message!(OpsError);

/// The remedy in the text of [`OpsError::Member`].
fn member_remedy(what: &str) -> &'static str {
    match what {
        "device" => "move it",
        "element type" => "cast it",
        _ if what.starts_with("feature shape") => "reshape it",
        _ => "give the tensors in the order of the stack",
    }
}

/// A [`GraphError`] inside an [`OpsError`]. Two are equal if their texts are.
#[derive(Clone, Debug)]
pub struct GraphFault(Arc<GraphError>);

impl std::ops::Deref for GraphFault {
    type Target = GraphError;
    fn deref(&self) -> &GraphError {
        &self.0
    }
}
impl fmt::Display for GraphFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
impl std::error::Error for GraphFault {}
impl PartialEq for GraphFault {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}
impl From<GraphError> for OpsError {
    fn from(error: GraphError) -> Self {
        Self::Graph(GraphFault(Arc::new(error)))
    }
}

/// The last arm of a match over element types. [`check_dtype`](crate::check::check_dtype) rejects types without a kernel
/// in this build. The only remaining case is a 16-bit type on a CPU without the feature `f16`, in a build with a GPU
/// backend.
#[cold]
#[track_caller]
pub(crate) fn no_kernel(dtype: DType) -> ! {
    match dtype {
        DType::F16 | DType::BF16 => {
            panic!("{dtype:?} on the CPU needs the cargo feature `f16`; add it or cast to F32")
        }
        other => {
            panic!("no kernel for element type {other:?}, expected F32, F64, F16 or BF16; cast it")
        }
    }
}
