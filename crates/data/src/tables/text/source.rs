//! Locates the rows of a table: a file, a list, a folder, or one shard of them.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;

use super::decompress::compressed;
use crate::files::{LOCK, format_error, io_error, open};

/// The files of a table. Each file has a header. The rows of the table are the rows of the first file, then those of the
/// second, and so on.
///
/// A folder stands for its files, sorted by name; a folder in it is an error. Files may be plain, gzip or zstd, detected
/// from their first bytes.
///
/// ```
/// use burn_gnn_data::Source;
/// # let dir = tempfile::tempdir().unwrap();
/// # for f in ["b", "a", "c"] { std::fs::write(dir.path().join(f), "id:int64\n").unwrap(); }
/// let all = Source::from(dir.path()).files()?;
/// assert_eq!(all.iter().map(|p| p.file_name().unwrap()).collect::<Vec<_>>(), ["a", "b", "c"]);
/// // With as many files as shards or more, shard i of n has the files i, i + n, …
/// let shard = Source::from(dir.path()).shard(0, 2).files()?;
/// assert_eq!(shard, [all[0].clone(), all[2].clone()]);
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    paths: Vec<PathBuf>,
    shard: (usize, usize),
    /// The text of a table that is a part of the program.
    built_in: Option<&'static [u8]>,
}

/// A file, or a range of its bytes (`None`: all).
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) path: PathBuf,
    pub(crate) range: Option<Range<u64>>,
    /// The text that is read instead of the file.
    pub(crate) built_in: Option<&'static [u8]>,
}

impl Source {
    /// Files and folders, in this order.
    pub fn list(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self { paths: paths.into_iter().map(Into::into).collect(), shard: (0, 1), built_in: None }
    }
    /// Plain text in memory; `path` is its name in errors.
    pub(crate) fn built_in(path: &Path, text: &'static [u8]) -> Self {
        Self { built_in: Some(text), ..Self::from(path) }
    }
    /// A list in GraphLearn's notation: paths joined by commas, with optional white space. (In other constructors a comma
    /// is a part of a path.)
    pub fn graphlearn(paths: &str) -> Self {
        Self::list(paths.split(',').map(|p| p.trim().to_owned()))
    }
    /// Selects shard `index` of `count`. Each row is in exactly one shard.
    ///
    /// With at least `count` files, file `i` is in shard `i mod count`, as GraphLearn assigns the files of a folder to its
    /// servers. With fewer, each file is split into `count` ranges of bytes at line ends; compressed files are an error
    /// then.
    #[must_use]
    pub fn shard(mut self, index: usize, count: usize) -> Self {
        self.shard = (index, count);
        self
    }
    /// Whether this is one of several shards.
    pub(crate) fn is_shard(&self) -> bool {
        self.shard.1 > 1
    }
    /// The files whose rows are read, in order.
    ///
    /// # Errors
    /// As for [`read_nodes`](crate::read_nodes): a path that is not there, an empty folder or one with folders in it,
    /// no path at all, a shard index that is not below the count.
    pub fn files(&self) -> Result<Vec<PathBuf>, DataError> {
        Ok(self.pieces()?.into_iter().map(|p| p.path).collect())
    }

    pub(crate) fn pieces(&self) -> Result<Vec<Piece>, DataError> {
        let (index, count) = self.shard;
        if index >= count {
            return Err(DataError::Graph(GraphError::IdOutOfRange {
                what: "shard".into(),
                id: index as u64,
                bound: count as u64,
            }));
        }
        if self.built_in.is_some() {
            return Ok(vec![Piece {
                path: self.label().into(),
                range: None,
                built_in: self.built_in,
            }]);
        }
        let mut files = vec![];
        for path in &self.paths {
            if path.is_dir() { files.extend(folder(path)?) } else { files.push(path.clone()) }
        }
        if files.is_empty() {
            return Err(no_files());
        }
        if files.len() >= count {
            let mine = files.into_iter().enumerate().filter(|(i, _)| i % count == index);
            return Ok(mine.map(|(_, path)| Piece { path, range: None, built_in: None }).collect());
        }
        files.into_iter().map(|path| range_of(path, index, count)).collect()
    }

    /// The name of the source in errors.
    pub(crate) fn label(&self) -> &Path {
        self.paths.first().map_or(Path::new(""), PathBuf::as_path)
    }
}

impl<P: AsRef<Path>> From<P> for Source {
    fn from(path: P) -> Self {
        Self::list([path.as_ref()])
    }
}

/// The error for a source without files.
pub(crate) fn no_files() -> DataError {
    let remedy = "name at least one file or a folder with files";
    DataError::Graph(GraphError::Empty { arg: "source", remedy })
}

/// The files of a folder, sorted by name.
fn folder(dir: &Path) -> Result<Vec<PathBuf>, DataError> {
    let mut files = vec![];
    for entry in std::fs::read_dir(dir).map_err(|e| io_error(dir, e))? {
        let path = entry.map_err(|e| io_error(dir, e))?.path();
        if path.file_name().is_some_and(|name| is_no_part(&name.to_string_lossy())) {
            continue;
        }
        if path.is_dir() {
            return Err(format_error(
                &path,
                "expected a folder of files only, found a folder in it; name each folder",
            ));
        }
        files.push(path);
    }
    if files.is_empty() {
        return Err(format_error(dir, "expected a folder with at least one file, found none"));
    }
    files.sort();
    Ok(files)
}

/// Whether a file is not a part of the table in its folder: our lock file, and files that Hadoop, Spark and Dask write
/// next to the parts.
fn is_no_part(name: &str) -> bool {
    let checksum = name.starts_with('.') && name.ends_with(".crc");
    checksum || [LOCK, "_SUCCESS", "_metadata", "_common_metadata"].contains(&name)
}

/// Range `index` of `count` of the bytes after the header, split at line ends.
fn range_of(path: PathBuf, index: usize, count: usize) -> Result<Piece, DataError> {
    let (file, len) = open(&path)?;
    let mut file = BufReader::new(file);
    if compressed(&path, &mut file)?.is_some() {
        let why = format!(
            "expected at least {count} files or plain text for {count} shards, found a compressed file; decompress it"
        );
        return Err(format_error(&path, why));
    }
    let body = after_line(&path, &mut file, 0)?;
    let mut cut = |i: usize| {
        let at = body + ((len.saturating_sub(body)) as u128 * i as u128 / count as u128) as u64;
        // A range ends after the line that contains its last byte.
        if at <= body { Ok(body) } else { after_line(&path, &mut file, at - 1) }
    };
    let range = cut(index)?..cut(index + 1)?;
    Ok(Piece { path, range: Some(range), built_in: None })
}

/// The start of the line after the one that contains byte `at`.
fn after_line(path: &Path, file: &mut BufReader<File>, at: u64) -> Result<u64, DataError> {
    let mut position = file.seek(SeekFrom::Start(at)).map_err(|e| io_error(path, e))?;
    loop {
        let buffer = file.fill_buf().map_err(|e| io_error(path, e))?;
        let (found, used) = match memchr::memchr(b'\n', buffer) {
            Some(i) => (true, i + 1),
            None => (buffer.is_empty(), buffer.len()),
        };
        position += used as u64;
        if found {
            return Ok(position);
        }
        file.consume(used);
    }
}
