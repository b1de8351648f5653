//! Message-passing operators as Burn backend extensions, and the view of a graph that layers take.
//!
//! The chapter on message passing of the book:
//! <https://github.com/burn-gnn/burn-gnn/blob/main/docs/message-passing.md>.
//!
//! Suggested reading order:
//!
//! * [`gspmm`] (messages along edges, reduced at destinations) and its named forms such as [`copy_u_sum`] and
//!   [`u_mul_e_sum`]; [`gsddmm`] and [`edge_softmax`] (one result per edge)
//! * [`segment_reduce`], [`segment_mm`], [`gather_mm`]
//! * the fused operators [`gat_attention`], [`relational_aggregate`] and [`weighted_aggregate`]
//! * the dense operators [`bias_activation`], [`cross_entropy_rows`], [`adam_step`] and [`matmul_rows`]
//! * [`dropout`] and the initialisers, whose random numbers are functions of original ids through a [`Stream`]
//! * [`with_precision`], mixed precision
//! * [`GraphView`], the interface between layers and graphs, blocks and partitions, and its [`Edges`] of one type
//! * [`MessageOps`] and [`function`], message passing by field names as in DGL; [`MessagePassing`], the trait of custom
//!   layers
//!
//! Every operator validates its arguments and then runs through one Burn backend extension. Flex and NdArray run the
//! kernels of `burn-gnn-cpu`, GPUs those of `burn-gnn-cube`, every other backend plain Burn primitives. Autodiff uses
//! hand-written gradients.

#![forbid(unsafe_code)]

/// Calls a test that is generic over the backend on every CPU backend of this build, with its name.
#[cfg(all(test, feature = "flex"))]
macro_rules! on_cpu_backends {
    ($test:ident) => {{
        $test::<burn::backend::Flex>("flex");
        // Burn has deprecated its ndarray backend, but it is still in use.
        #[cfg(feature = "ndarray")]
        #[allow(deprecated)]
        $test::<burn::backend::NdArray>("ndarray");
    }};
}

mod activation;
mod aggregate;
mod attention;
mod cat_features;
mod check;
mod cpu_kernels;
mod dense;
mod div_by;
mod edge_softmax;
mod error;
// `families` is shared with the integration tests, which import this crate by name.
#[cfg(all(test, feature = "flex"))]
extern crate self as burn_gnn_ops;
#[cfg(all(test, feature = "flex"))]
mod fallback_tests;
#[cfg(all(test, feature = "flex"))]
#[allow(dead_code, unused_imports)]
#[path = "../tests/ops/families/mod.rs"]
mod families;
#[cfg(all(test, feature = "flex"))]
mod fused_tests;
mod gsddmm;
mod gspmm;
mod init;
mod logsumexp;
mod message;
mod multi;
mod operator;
mod pending_gradients;
mod primitives;
mod relational;
mod segment;
mod split_rows;
mod typed;
mod view;
#[cfg(all(test, feature = "flex"))]
mod zero_width_tests;

pub use aggregate::{
    AggregateOptions, DegreeScale, DegreesOf, try_weighted_aggregate, weighted_aggregate,
    weighted_aggregate_reference,
};
pub use attention::*;
/// The backend of all GPUs, for custom extensions.
#[doc(hidden)]
#[cfg(feature = "cube")]
pub use burn_cubecl::CubeBackend;
/// Edges and sampling on GPUs.
#[cfg(feature = "cube")]
pub use burn_gnn_cube::{
    CubeError, DeviceBatch, DeviceLinkBatch, DeviceLinkRows, DeviceLinkSampler,
    DeviceNegativeSampler, DeviceNegatives, DeviceSampleError, DeviceSampler, DeviceSubgraph,
    edges_to_device,
};
pub use burn_gnn_graph::{Stream, philox4x32};
pub use burn_gnn_plan::{Activation, PlanError};
pub use cat_features::cat_features;
pub use cpu_kernels::{CpuKernels, cpu_kernels};
pub use dense::adam::*;
pub use dense::cross_entropy::*;
pub use dense::dropout::{EdgeDropout, KeyedDropout, RowDropout, dropout, try_dropout};
pub use dense::epilogue::*;
pub use dense::matmul::{matmul_rows, matmul_rows_onto, try_matmul_rows, try_matmul_rows_onto};
pub use dense::precision::{Precision, precision, with_precision};
pub use div_by::div_by;
pub use edge_softmax::*;
pub use error::{GraphFault, OpsError};
pub use gsddmm::*;
pub use gspmm::*;
pub use init::{glorot_uniform, normal, normal_rows, uniform_rows};
pub use logsumexp::*;
pub use message::batch::edge_batch::EdgeBatch;
pub use message::batch::edge_selection::Selection;
pub use message::batch::mailbox::Mailbox;
pub use message::batch::node_batch::NodeBatch;
pub use message::data::block_data::BlockData;
pub use message::data::relation_data::RelationData;
pub use message::fields::Fields;
pub use message::function::{self, MessageFunction, ReduceFunction};
pub use message::hetero::cross::{Cross, RelationCall, on};
pub use message::layer::edge_tensor::EdgeTensor;
pub use message::layer::endpoints::{ConvInput, Endpoints};
pub use message::layer::message_passing::MessagePassing;
pub use message::ops::{GraphMessageOps, MessageOps, OnRelation};
pub use multi::*;
pub use relational::*;
pub use segment::*;
pub use split_rows::split_rows;
pub use typed::*;
pub use view::GraphView;
pub use view::draw_key::DrawKey;
pub use view::dropout_key::DropoutKey;
pub use view::edge_types::EdgeTypes;
pub use view::edges::Edges;
pub use view::keyed::Keyed;
pub use view::seed_scope::{next_stream, seeded};
