//! Checks what descriptions say of files: versions, counts, names; makes the errors of readers.

pub(crate) mod checksum;
#[cfg(test)]
pub(crate) mod corrupt_file;
pub(crate) mod decompression_limit;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::Relation;
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[cfg(feature = "torch")]
pub(crate) use burn_gnn_files::internal::read_file;
pub(crate) use burn_gnn_files::internal::{
    ArrayHead, Counted, Cut, Hash, LOCK, MAX_HEADER, MappedFile, Progress, TensorViews, cut,
    cut_quoted, format_error, inside, io_error, open, read_bounded, read_error, remove_abandoned,
    reserve, tensor_header,
};
pub(crate) use burn_gnn_files::{NpyHead, create_dirs, lock_dir, sync_dir, write_atomic};

/// The most nodes of one type, and the most edges of one relation.
pub(crate) const LIMIT: u64 = Relation::LIMIT;

/// A setting that cannot be.
pub(crate) fn setting(arg: &'static str, expected: &str, found: &str) -> DataError {
    DataError::Graph(GraphError::Setting {
        arg,
        expected: expected.to_owned(),
        found: found.to_owned(),
    })
}

/// The error for a name that no node type has.
pub(crate) fn unknown_ntype(
    name: &str,
    known: impl IntoIterator<Item = impl Into<String>>,
) -> DataError {
    let known = known.into_iter().map(Into::into).collect();
    DataError::Graph(GraphError::UnknownNodeType { name: name.to_owned(), known })
}

/// The error for a name given to two of a kind.
pub(crate) fn duplicate(what: &'static str, name: impl Into<String>) -> DataError {
    DataError::Graph(GraphError::Duplicate { what, name: name.into() })
}

/// The error for a description of attributes that contradicts itself.
pub(crate) fn decoder_error(argument: impl Into<String>, message: impl Into<String>) -> DataError {
    DataError::Decoder { argument: argument.into(), message: message.into() }
}

/// Refuses more rows, nodes or edges than there are numbers for.
pub(crate) fn within_limit(
    of: impl Display,
    what: &'static str,
    count: u64,
) -> Result<(), DataError> {
    if count <= LIMIT {
        return Ok(());
    }
    let relation = of.to_string();
    Err(DataError::Graph(GraphError::TooLarge { relation, what, count, limit: LIMIT }))
}

/// What a build without a cargo feature says of a file or a data set.
#[cfg(not(all(feature = "npz", feature = "rdf", feature = "zstd")))]
pub(crate) fn missing_feature(what: impl Display, feature: &'static str) -> DataError {
    DataError::Feature { what: what.to_string(), feature }
}

/// Largest JSON file that is read; a description of ten thousand edge types takes about 2 MB.
const MAX_JSON: u64 = 64 << 20;

/// Bytes of files from which a progress bar is drawn.
const LONG: u64 = 64 << 20;

/// Progress of reading `len` bytes that begin with those of `path`; nothing for few of them, or unless `draw`.
pub(crate) fn reading(draw: bool, path: &Path, len: u64) -> Progress {
    let what = format!("reading {}", cut(&path.display().to_string()));
    Progress::bytes(draw && len >= LONG, &what, len)
}

/// [`reading`] of one file.
pub(crate) fn reading_file(draw: bool, path: &Path) -> Progress {
    reading(draw, path, std::fs::metadata(path).map_or(0, |m| m.len()))
}

/// What a field should have been.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) what: String,
    /// What to do where the file is right; empty where nothing but the file can be changed.
    pub(crate) remedy: &'static str,
}

impl Expected {
    /// Of a column with a name.
    pub(crate) fn of_column(self, name: &str) -> Self {
        Self { what: format!("{} (`{name}`)", self.what), ..self }
    }
    /// With another remedy.
    pub(crate) fn or(self, remedy: &'static str) -> Self {
        Self { remedy, ..self }
    }
}

impl From<String> for Expected {
    fn from(what: String) -> Self {
        Self { what, remedy: "" }
    }
}

impl From<&str> for Expected {
    fn from(what: &str) -> Self {
        what.to_owned().into()
    }
}

/// A [`DataError::Table`].
pub(crate) fn table_error(
    path: &Path,
    line: u64,
    column: usize,
    expected: impl Into<Expected>,
    found: impl Into<Cut>,
) -> DataError {
    let Expected { what, remedy } = expected.into();
    DataError::Table {
        path: path.into(),
        line,
        column,
        expected: cut_quoted(what),
        found: found.into().0,
        remedy,
    }
}

/// A table's error without a remedy: of a reader that chooses the format itself.
pub(crate) fn without_remedy(e: DataError) -> DataError {
    match e {
        DataError::Table { path, line, column, expected, found, .. } => {
            DataError::Table { path, line, column, expected, found, remedy: "" }
        }
        DataError::Problems { problems } => {
            DataError::Problems { problems: problems.into_iter().map(without_remedy).collect() }
        }
        other => other,
    }
}

/// Refuses another version than `expected`. What a description says may be anything.
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

/// The version of a description, which is looked at before the rest.
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

/// An error of a reader of text; what a decompressor says is about the content.
pub(crate) fn text_error(path: &Path, e: std::io::Error) -> DataError {
    if e.get_ref().is_some() { format_error(path, e.to_string()) } else { io_error(path, e) }
}

/// What is wrong with a zip archive.
#[cfg(any(feature = "download", feature = "npz", feature = "torch"))]
pub(crate) fn zip_error(path: &Path, e: zip::result::ZipError) -> DataError {
    match e {
        zip::result::ZipError::Io(e)
            if e.get_ref().is_none() && e.kind() != std::io::ErrorKind::UnexpectedEof =>
        {
            io_error(path, e)
        }
        e => format_error(path, format!("expected a zip archive, found: {}", cut(&e.to_string()))),
    }
}

/// Opens a zip archive that starts with its file. Where the start is searched for, zip 9.4 takes the second entry of
/// some files of PyTorch for the first: those with ZIP64 records, which are as long as the header of an entry with a
/// name of 30 bytes.
///
/// Each entry has its name twice, in the directory and where its bytes are; zip compares them not, Python does. So
/// damage in the directory, which has no checksum, does not exchange entries.
#[cfg(any(feature = "download", feature = "npz", feature = "torch"))]
pub(crate) fn open_zip<R: std::io::Read + std::io::Seek>(
    path: &Path,
    mut reader: R,
) -> Result<zip::ZipArchive<R>, DataError> {
    let config = zip::read::Config { archive_offset: zip::read::ArchiveOffset::Known(0) };
    let wrong = |e| zip_error(path, e);
    let archive = zip::ZipArchive::with_config(config, &mut reader).map_err(wrong)?;
    let entry = |i| archive.by_index_data(i).map(|e| (e.header_start(), e.name_raw().to_vec()));
    let entries: Vec<(u64, Vec<u8>)> =
        (0..archive.len()).map(entry).collect::<Result<_, _>>().map_err(wrong)?;
    drop(archive);
    for (start, name) in entries {
        let found = local_name(&mut reader, start, name.len());
        if found.map_err(|e| wrong(e.into()))?.as_ref() != Some(&name) {
            let name = cut(&String::from_utf8_lossy(&name));
            let why = format!(
                "entry `{name}`: expected the same name in the directory and before its bytes, found two"
            );
            return Err(format_error(path, why));
        }
    }
    zip::ZipArchive::with_config(config, reader).map_err(wrong)
}

/// The name in the header at `start`, if it has `len` bytes.
#[cfg(any(feature = "download", feature = "npz", feature = "torch"))]
fn local_name(
    reader: &mut (impl std::io::Read + std::io::Seek),
    start: u64,
    len: usize,
) -> std::io::Result<Option<Vec<u8>>> {
    /// Bytes before the name, the last of which are its length and that of further fields.
    const FIXED: usize = 30;
    let mut head = [0; FIXED];
    reader.seek(std::io::SeekFrom::Start(start))?;
    reader.read_exact(&mut head)?;
    if usize::from(u16::from_le_bytes([head[26], head[27]])) != len {
        return Ok(None);
    }
    let mut name = vec![0; len];
    reader.read_exact(&mut name)?;
    Ok(Some(name))
}

/// Nodes of one type that any description may declare; beyond it, the files must hold data for them.
const NODES_FREE: u64 = 1 << 26;
/// Nodes of one type that one byte of data may stand for.
const NODES_PER_BYTE: u64 = 16;

/// A declared number of nodes, refused if `bytes` of data (edges, features, labels) cannot be about so many: whoever
/// uses the graph takes memory for every node.
pub(crate) fn node_count(
    described_in: &Path,
    ntype: &str,
    count: u64,
    bytes: u64,
) -> Result<usize, DataError> {
    within_limit(format_args!("node type {ntype}"), "nodes", count)?;
    let limit = NODES_FREE.max(bytes.saturating_mul(NODES_PER_BYTE));
    if count > limit {
        let why = format!(
            "node type `{ntype}`: expected at most {limit} nodes beside {bytes} bytes of data, found {count}"
        );
        return Err(format_error(described_in, why));
    }
    Ok(count as usize)
}

/// The byte order mark of UTF-8, which some editors and programs put before a text.
pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";

/// JSON of a known form; serde's message names line, column, key and what was expected.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, DataError> {
    let bytes = read_bounded(path, MAX_JSON)?;
    serde_json::from_slice(bytes.strip_prefix(MARK).unwrap_or(&bytes))
        .map_err(|e| format_error(path, format!("expected a JSON description, found: {e}")))
}

/// Bytes of the files that a description names, each once. A file may be named several times (by both directions of a
/// relation), but not so often that a short description makes much of it. One that is not there counts nothing and is
/// missed when it is read.
pub(crate) fn referenced(
    described_in: &Path,
    files: impl IntoIterator<Item = Result<PathBuf, DataError>>,
) -> Result<u64, DataError> {
    /// How often a byte may be named on average.
    const MOST: u64 = 4;
    /// Bytes that may be named whatever the files hold.
    const FREE: u64 = 1 << 20;
    let (mut seen, mut once, mut all) = (BTreeMap::new(), 0u64, 0u64);
    for file in files {
        let len = match seen.entry(file?) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let len = std::fs::metadata(new.key()).map_or(0, |m| m.len());
                once = once.saturating_add(len);
                *new.insert(len)
            }
        };
        all = all.saturating_add(len);
    }
    let most = once.saturating_mul(MOST).saturating_add(FREE);
    if all > most {
        let why = format!(
            "file names: expected files of {once} bytes to be named at most {MOST} times on average, found names of {all} bytes"
        );
        return Err(format_error(described_in, why));
    }
    Ok(once)
}

/// Refuses a declared count that differs from what a file holds.
pub(crate) fn same_count(
    path: &Path,
    what: &str,
    declared: u64,
    found: usize,
) -> Result<(), DataError> {
    if declared == found as u64 {
        return Ok(());
    }
    Err(format_error(
        path,
        format!("{what}: expected {declared} as the description says, found {found}"),
    ))
}

/// Ids of an array, each below `bound`.
pub(crate) fn ids_below(
    path: &Path,
    what: &str,
    ids: Vec<i64>,
    bound: usize,
) -> Result<Vec<u32>, DataError> {
    let checked = |(i, v): (usize, i64)| {
        u32::try_from(v).ok().filter(|&v| (v as usize) < bound).ok_or_else(|| {
            format_error(path, format!("{what} of entry {i}: expected 0..{bound}, found {v}"))
        })
    };
    ids.into_iter().enumerate().map(checked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_before_json_are_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("m.json");
        std::fs::write(&file, "\u{feff}{\"a\": 1}").unwrap();
        assert_eq!(read_json::<BTreeMap<String, u64>>(&file).unwrap()["a"], 1);
    }

    #[test]
    fn nodes_without_data() {
        let json = Path::new("d/m.json");
        assert_eq!(node_count(json, "a", 1 << 26, 0).unwrap(), 1 << 26);
        assert_eq!(node_count(json, "a", 16 << 23, 1 << 23).unwrap(), 16 << 23);
        let e = node_count(json, "a", (1 << 26) + 1, 3).unwrap_err();
        assert_eq!(
            e.to_string(),
            "d/m.json: node type `a`: expected at most 67108864 nodes beside 3 bytes of data, found 67108865"
        );
        assert!(matches!(
            node_count(json, "a", u64::MAX, u64::MAX),
            Err(DataError::Graph(GraphError::TooLarge { .. }))
        ));
    }
}
