//! Hashes descriptions to detect damage.

use serde::Serialize;

use crate::files::Hash;

/// A hash of a part of a description that can be written as JSON, whatever its spaces and line ends in the file.
pub(crate) fn checksum(of: &impl Serialize) -> String {
    let mut h = Hash::new();
    // Maps have texts for keys and nothing here fails to be written.
    h.bytes(&serde_json::to_vec(of).unwrap_or_default());
    h.text()
}
