//! Defines the errors of this crate.

use std::fmt;
use std::sync::Arc;

use burn::tensor::{DType, Device};
use burn_gnn_graph::GraphError;
use burn_gnn_plan::PlanError;

/// What can be wrong with the arguments of an operator.
///
/// Every check happens before any kernel runs. The functions without `try_` panic with the same text.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OpsError {
    /// Sizes, numbers or ids that are wrong, whatever the tensors.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The rank asked for is not the rank of the result.
    #[error(
        "{op}: the result has rank {expected}, the output type has rank {actual}; change the rank parameter of the output"
    )]
    Rank {
        /// Operator.
        op: &'static str,
        /// Rank of the result.
        expected: usize,
        /// Rank asked for.
        actual: usize,
    },
    /// An operand whose element type is not that of another.
    #[error("{op}: `{arg}` is {actual:?} and `{like}` is {expected:?}; cast one of them")]
    Dtype {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// Its element type.
        actual: DType,
        /// The argument it must be like.
        like: &'static str,
        /// Element type of that one.
        expected: DType,
    },
    /// An operand that lives on another device than another.
    #[error("{op}: `{arg}` is on {actual:?} and `{like}` is on {expected:?}; move one of them")]
    Device {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// Its device.
        actual: Box<Device>,
        /// The argument it must be like.
        like: &'static str,
        /// Device of that one.
        expected: Box<Device>,
    },
    /// An element type that no kernel knows.
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
    /// The device has no tensors of the type that mixed precision asks for.
    #[error(
        "{op}: `with_precision` casts `{arg}` to {dtype:?}, which {device:?} does not support; use another precision or device"
    )]
    Precision {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// The element type asked for.
        dtype: DType,
        /// The device of the argument.
        device: Box<Device>,
    },
    /// An edge id that was given twice.
    #[error(
        "{op}: `eids[{position}]` is edge {id}, and so is `eids[{first}]`; give every edge once"
    )]
    EdgeRepeated {
        /// Operator.
        op: &'static str,
        /// Position of the second among the ids.
        position: usize,
        /// Position of the first.
        first: usize,
        /// The id found.
        id: u32,
    },
    /// A list of another length than it must have.
    #[error(
        "{op}: `{arg}` must have {expected} entries ({why}), got {actual}; give as many entries"
    )]
    Count {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// What the entries stand for.
        why: &'static str,
        /// Entries expected.
        expected: usize,
        /// Entries found.
        actual: usize,
    },
    /// A tensor of a list that does not fit the others or what it belongs to.
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
        /// What is wrong.
        what: &'static str,
        /// What it must be.
        expected: String,
        /// What it is.
        actual: String,
    },
    /// A field, a node type or an edge type that is wrong or missing.
    #[error(transparent)]
    Graph(#[from] GraphFault),
    /// A reduce function reads a message that the message function does not make.
    #[error(
        "{op}: the reduce function reads message `{reads}`, the message function makes {made:?}; use one name in both"
    )]
    MessageField {
        /// Operator.
        op: &'static str,
        /// The message that is read.
        reads: String,
        /// The messages that are made.
        made: Vec<String>,
    },
    /// Two fields of one message whose element type or device differ.
    #[error("{op}: {field} has {what} {actual}, {like} has {expected}; convert one of them")]
    UnlikeFields {
        /// Message function.
        op: &'static str,
        /// Field and frame.
        field: Box<str>,
        /// Field and frame that it must be like.
        like: Box<str>,
        /// Element type or device.
        what: &'static str,
        /// That of `field`.
        actual: Box<str>,
        /// That of `like`.
        expected: Box<str>,
    },
    /// A call about one edge type on a graph that has not exactly one.
    #[error(
        "{op}: works on one edge type, the graph has {known:?}; choose one with `on(edge_type)`"
    )]
    EdgeTypes {
        /// Operator.
        op: &'static str,
        /// Edge types of the graph.
        known: Vec<String>,
    },
    /// An id that was given twice.
    #[error("{op}: `{arg}[{position}]` is {id}, and so is `{arg}[{first}]`; give every id once")]
    Repeated {
        /// Operator.
        op: &'static str,
        /// Argument.
        arg: &'static str,
        /// Position of the second among the ids.
        position: usize,
        /// Position of the first.
        first: usize,
        /// The id found.
        id: u32,
    },
    /// Nodes with different numbers of messages where all must have the same.
    #[error(
        "mailbox: nodes of this batch have {least} to {most} messages, a dense mailbox needs equal numbers; \
         wrap the reduce function in `by_degree`"
    )]
    Degrees {
        /// Fewest messages.
        least: u32,
        /// Most messages.
        most: u32,
    },
    /// A closure called by degree that returns different fields for different degrees.
    #[error(
        "{op}: by_degree: the reduce function must return {expected:?} for every degree, returned {actual:?} for degree {degree}; \
         return the same fields for every degree"
    )]
    BucketFields {
        /// Operator.
        op: &'static str,
        /// Degree.
        degree: usize,
        /// What it returned for the smallest degree.
        expected: Vec<String>,
        /// What it returned for this one.
        actual: Vec<String>,
    },
    /// A reduction over several relations by a closure, which knows the messages of one only.
    #[error(
        "{op}: messages of several edge types are reduced together by sum, mean, max or min only; \
         use `multi_update_all`, or `on(edge_type)` for one"
    )]
    Joint {
        /// Operator.
        op: &'static str,
    },
    /// Relations into one node type whose results cannot be combined.
    #[error(
        "{op}: into node type `{ntype}`, edge type `{etype}` gives {what} {actual}, `{first}` gives {expected}; make them equal"
    )]
    Relations {
        /// Operator.
        op: &'static str,
        /// Node type that the relations end in.
        ntype: Box<str>,
        /// The first edge type.
        first: Box<str>,
        /// The edge type that differs from it.
        etype: Box<str>,
        /// What differs.
        what: &'static str,
        /// What the first gives.
        expected: Box<str>,
        /// What the other gives.
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

/// The remedy of a tensor of a list that differs from what was expected in `what`.
fn member_remedy(what: &str) -> &'static str {
    match what {
        "device" => "move it",
        "element type" => "cast it",
        _ if what.starts_with("feature shape") => "reshape it",
        _ => "give the tensors in the order of the stack",
    }
}

/// A [`GraphError`] inside an [`OpsError`]: equal if it says the same.
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

/// Ends a kernel's match over element types. [`check_dtype`](crate::check::check_dtype) has refused what no backend of
/// this build knows; what is left is a 16-bit type on the CPU where a GPU backend is built in as well.
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
