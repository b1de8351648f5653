//! Reads JSON descriptions and checks their versions.

use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_files::internal::{cut, format_error, read_bounded};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Largest JSON file that is accepted. A description of ten thousand edge types takes about 2 MB.
const MAX_JSON: u64 = 64 << 20;

/// The byte order mark of UTF-8, which some programs write at the start of a text file.
pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a JSON file of at most [`MAX_JSON`] bytes. Errors name line, column, key and the expected type.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, DataError> {
    let bytes = read_bounded(path, MAX_JSON)?;
    serde_json::from_slice(bytes.strip_prefix(MARK).unwrap_or(&bytes))
        .map_err(|e| format_error(path, format!("expected a JSON description, found: {e}")))
}

/// Returns an error if the version is not `expected`. The version in the file may be any JSON value.
pub(crate) fn check_version(
    path: &Path,
    found: Option<&serde_json::Value>,
    expected: u32,
) -> Result<(), DataError> {
    if found.and_then(serde_json::Value::as_u64) == Some(u64::from(expected)) {
        return Ok(());
    }
    let found = found.map_or("none".into(), |v| cut(&v.to_string()));
    Err(DataError::Version { path: path.into(), found, expected })
}

/// The version of a description, which is parsed before the other fields.
#[derive(Deserialize)]
pub(crate) struct FormatVersion {
    format_version: Option<serde_json::Value>,
}

impl FormatVersion {
    /// As [`check_version`].
    pub(crate) fn check(&self, path: &Path, expected: u32) -> Result<(), DataError> {
        check_version(path, self.format_version.as_ref(), expected)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_byte_order_mark_before_json_is_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("m.json");
        std::fs::write(&file, "\u{feff}{\"a\": 1}").unwrap();
        assert_eq!(read_json::<BTreeMap<String, u64>>(&file).unwrap()["a"], 1);
    }
}
