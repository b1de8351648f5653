//! Checksums of JSON descriptions.

use serde::Serialize;

use burn_gnn_files::internal::Hash;

/// Hash of the canonical JSON of a part of a description. White space in the file does not change it.
pub(crate) fn checksum(of: &impl Serialize) -> String {
    let mut h = Hash::new();
    // Serialisation cannot fail: all map keys are strings.
    h.bytes(&serde_json::to_vec(of).unwrap_or_default());
    h.text()
}
