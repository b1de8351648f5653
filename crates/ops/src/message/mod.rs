//! Passes messages by field names, as in DGL, and by a trait of layers, as in PyG.

mod across_etypes;
mod batch;
mod block_data;
mod by_degree;
mod cross_types;
mod data;
mod degree_buckets;
mod destinations;
mod dynamic_rank;
mod edge_selection;
mod edge_tensor;
mod expression;
mod fields;
pub mod function;
mod layer;
mod mailbox;
mod ops;
mod reduce;

pub use batch::{EdgeBatch, NodeBatch};
pub use block_data::BlockData;
pub use cross_types::{Cross, RelationCall, on};
pub use data::RelationData;
pub use edge_tensor::EdgeTensor;
pub use fields::Fields;
pub use function::{MessageFunction, ReduceFunction};
pub use layer::{ConvInput, MessagePassing};
pub use mailbox::Mailbox;
pub use ops::{GraphMessageOps, MessageOps, OnRelation, Selection};
