//! Partitions a graph in files without loading its edges into memory: parts are assigned, written, read and verified.

mod assignment;
mod files;
mod part_reader;
mod relation_files;
mod row_stream;
mod stored_part;
mod stored_parts;
mod stream_cut;
mod verify;
mod write;

pub use assignment::Assignment;
pub use relation_files::{GraphFiles, RelationFiles};
pub use stored_part::StoredPart;
pub use stored_parts::StoredParts;
pub use stream_cut::{StreamCut, StreamMethod};
