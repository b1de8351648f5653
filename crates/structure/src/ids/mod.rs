//! Node ids: type-wise, global, original, and as they occur in files.

mod global_ids;
mod id_map;
mod node_ids;
mod original_ids;

pub use global_ids::GlobalIds;
pub use id_map::{HomoId, IdMap, TypedId};
pub use node_ids::{FileId, Ids, NodeIds};
pub use original_ids::OriginalIds;
