//! What every reader does first: open a plain file, bound its size, keep names inside the folder.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::GraphError;
use crate::relation::LIMIT;

/// Largest JSON file that is read; a description of ten thousand edge types takes about 2 MB.
const MAX_JSON: u64 = 64 << 20;

/// A [`GraphError::Format`]; texts in quotes are cut, whatever file they came from.
pub(crate) fn format_error(path: &Path, message: impl Into<String>) -> GraphError {
    GraphError::Format { path: path.into(), message: cut_quoted(message.into()) }
}

/// A [`GraphError::Table`].
pub(crate) fn table_error(path: &Path, line: u64, column: usize, expected: impl Into<String>, found: impl Into<Cut>) -> GraphError {
    GraphError::Table { path: path.into(), line, column, expected: cut_quoted(expected.into()), found: found.into().0 }
}

/// A [`GraphError::Version`] of what a description says, which may be anything.
pub(crate) fn version_error(path: &Path, found: Option<&serde_json::Value>, expected: u32) -> GraphError {
    let found = found.map_or("none".into(), |v| cut(&v.to_string()));
    GraphError::Version { path: path.into(), found, expected }
}

/// What is wrong with a zip archive.
#[cfg(any(feature = "download", feature = "npz", feature = "torch"))]
pub(crate) fn zip_error(path: &Path, e: zip::result::ZipError) -> GraphError {
    match e {
        zip::result::ZipError::Io(e) if e.get_ref().is_none() && e.kind() != std::io::ErrorKind::UnexpectedEof => io_error(path, e),
        e => format_error(path, format!("expected a zip archive, found: {}", cut(&e.to_string()))),
    }
}

/// Opens a zip archive that starts with its file. Where the start is searched for, zip 9.4 takes the second entry of
/// some files of PyTorch for the first: those with ZIP64 records, which are as long as the header of an entry with a
/// name of 30 bytes.
#[cfg(any(feature = "download", feature = "npz", feature = "torch"))]
pub(crate) fn open_zip<R: std::io::Read + std::io::Seek>(path: &Path, reader: R) -> Result<zip::ZipArchive<R>, GraphError> {
    let config = zip::read::Config { archive_offset: zip::read::ArchiveOffset::Known(0) };
    zip::ZipArchive::with_config(config, reader).map_err(|e| zip_error(path, e))
}

/// A [`GraphError::Io`].
pub(crate) fn io_error(path: &Path, source: std::io::Error) -> GraphError {
    GraphError::Io { path: path.into(), source }
}

/// Opens a regular file and gives its length. Anything else (a directory, a pipe that blocks, a device that never ends)
/// is refused, by what the opened file is, so that nothing else can take its place meanwhile.
///
/// # Errors
/// [`GraphError::Io`]; [`GraphError::Format`] for what is no regular file.
#[doc(hidden)]
pub fn open(path: &Path) -> Result<(File, u64), GraphError> {
    let regular = |meta: &Metadata| {
        if meta.is_file() {
            return Ok(());
        }
        Err(format_error(path, format!("expected a regular file, found {}; copy its content to a file", kind(meta))))
    };
    // Before it is opened, since that alone has effects on some devices.
    regular(&std::fs::metadata(path).map_err(|e| io_error(path, e))?)?;
    let mut options = File::options();
    options.read(true);
    // Opening a pipe waits for a writer otherwise; a regular file is opened and read as without.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path).map_err(|e| io_error(path, e))?;
    let meta = file.metadata().map_err(|e| io_error(path, e))?;
    regular(&meta)?;
    Ok((file, meta.len()))
}

/// What there is in place of a regular file.
fn kind(meta: &Metadata) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let ty = meta.file_type();
        if ty.is_fifo() {
            return "a pipe";
        } else if ty.is_char_device() || ty.is_block_device() {
            return "a device";
        } else if ty.is_socket() {
            return "a socket";
        }
    }
    if meta.is_dir() { "a directory" } else { "something else" }
}

/// All of a regular file.
///
/// # Errors
/// As [`open`]; [`GraphError::Io`] for more bytes than memory holds.
#[doc(hidden)]
pub fn read_file(path: &Path) -> Result<Vec<u8>, GraphError> {
    read_bounded(path, u64::MAX)
}

/// The whole file, if it is not longer than `limit`.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, GraphError> {
    let (file, len) = open(path)?;
    if len > limit {
        return Err(format_error(path, format!("expected at most {limit} bytes, found {len}")));
    }
    let mut bytes = vec![];
    reserve(path, len, &mut bytes)?;
    // The bound holds even if the file grows while it is read.
    file.take(limit).read_to_end(&mut bytes).map_err(|e| io_error(path, e))?;
    Ok(bytes)
}

/// Room for `more` bytes of a file; a file may claim a length (of holes) that no memory holds.
pub(crate) fn reserve(path: &Path, more: u64, bytes: &mut Vec<u8>) -> Result<(), GraphError> {
    let room = usize::try_from(more).is_ok_and(|n| bytes.try_reserve_exact(n).is_ok());
    if room { Ok(()) } else { Err(io_error(path, std::io::ErrorKind::OutOfMemory.into())) }
}

/// Nodes of one type that any description may declare; beyond it, the files must hold data for them.
const NODES_FREE: u64 = 1 << 26;
/// Nodes of one type that one byte of data may stand for.
const NODES_PER_BYTE: u64 = 16;

/// A declared number of nodes, refused if `bytes` of data (edges, features, labels) cannot be about so many: whoever
/// uses the graph takes memory for every node.
pub(crate) fn node_count(described_in: &Path, ntype: &str, count: u64, bytes: u64) -> Result<usize, GraphError> {
    if count > LIMIT {
        return Err(GraphError::TooLarge { relation: format!("node type {ntype}"), what: "nodes", count, limit: LIMIT });
    }
    let limit = NODES_FREE.max(bytes.saturating_mul(NODES_PER_BYTE));
    if count > limit {
        let why = format!("node type `{ntype}`: expected at most {limit} nodes beside {bytes} bytes of data, found {count}");
        return Err(format_error(described_in, why));
    }
    Ok(count as usize)
}

/// JSON of a known form; serde's message names line, column, key and what was expected.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, GraphError> {
    let bytes = read_bounded(path, MAX_JSON)?;
    serde_json::from_slice(&bytes).map_err(|e| format_error(path, format!("expected a JSON description, found: {e}")))
}

/// Bytes of the files that a description names, each once. A file may be named several times (by both directions of a
/// relation), but not so often that a short description makes much of it. One that is not there counts nothing and is
/// missed when it is read.
pub(crate) fn referenced(described_in: &Path, files: impl IntoIterator<Item = Result<PathBuf, GraphError>>) -> Result<u64, GraphError> {
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
        let why =
            format!("file names: expected files of {once} bytes to be named at most {MOST} times on average, found names of {all} bytes");
        return Err(format_error(described_in, why));
    }
    Ok(once)
}

/// `dir/file`, where `file` was written by somebody else (into `described_in`) and must stay inside `dir`.
pub(crate) fn inside(dir: &Path, described_in: &Path, file: &str) -> Result<PathBuf, GraphError> {
    let plain = Path::new(file).components().all(|c| matches!(c, Component::Normal(_)));
    // A drive letter or a backslash is a plain name on one system and a way out on another.
    if file.is_empty() || !plain || file.contains([':', '\\', '\0']) {
        return Err(format_error(described_in, format!("file name: expected a relative path inside the folder, found {file:?}")));
    }
    Ok(dir.join(file))
}

/// Characters of a text from elsewhere that an error message carries.
const SHOWN: usize = 80;
/// Characters of a message that holds such texts.
const LONGEST: usize = 1000;

/// A text for an error message: its first 80 characters and, where there are more, its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut(pub(crate) String);

impl Cut {
    fn new(start: &str, most: usize, bytes: usize) -> Self {
        match start.char_indices().nth(most) {
            None => Self(start.to_owned()),
            Some((end, _)) => Self(format!("{}… ({bytes} bytes)", &start[..end])),
        }
    }
}

impl From<&str> for Cut {
    fn from(text: &str) -> Self {
        Self::new(text, SHOWN, text.len())
    }
}
impl From<&String> for Cut {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}
impl From<&[u8]> for Cut {
    /// Bytes that should be UTF-8; only those that are shown are looked at.
    fn from(bytes: &[u8]) -> Self {
        // A character takes at most four bytes.
        Self::new(&String::from_utf8_lossy(&bytes[..bytes.len().min(4 * (SHOWN + 1))]), SHOWN, bytes.len())
    }
}

/// `text` as [`Cut`].
#[doc(hidden)]
pub fn cut(text: &str) -> String {
    Cut::from(text).0
}

/// A message whose texts in quotes are cut, and that is cut itself where it is very long: what a parser says may hold a
/// text of the file, and a list of names may be as long as the file.
#[doc(hidden)]
pub fn cut_quoted(message: String) -> String {
    if message.len() <= SHOWN {
        return message;
    }
    let (mut out, mut rest) = (String::new(), &*message);
    while let Some(at) = rest.find(['`', '"']).filter(|_| out.len() < 4 * LONGEST) {
        let quote = &rest[at..=at];
        let inside = &rest[at + 1..];
        // Texts in double quotes were written by `Debug`, which escapes.
        let end = match quote {
            "`" => inside.find('`'),
            _ => inside.match_indices('"').map(|m| m.0).find(|&i| !escaped(&inside[..i])),
        };
        out.push_str(&rest[..=at]);
        let Some(end) = end else {
            rest = inside;
            break;
        };
        let text = &inside[..end];
        // One that was cut before it got here has its length.
        let is_cut = text.ends_with(" bytes)") && text.len() < 8 * SHOWN && text.contains('…');
        out.push_str(&if is_cut { text.to_owned() } else { cut(text) });
        out.push_str(quote);
        rest = &inside[end + 1..];
    }
    out.push_str(rest);
    Cut::new(&out, LONGEST, message.len()).0
}

/// Whether what follows a text is escaped by a backslash at its end.
fn escaped(text: &str) -> bool {
    text.bytes().rev().take_while(|&b| b == b'\\').count() % 2 == 1
}

/// Refuses a declared count that differs from what a file holds.
pub(crate) fn same_count(path: &Path, what: &str, declared: u64, found: usize) -> Result<(), GraphError> {
    if declared == found as u64 {
        return Ok(());
    }
    Err(format_error(path, format!("{what}: expected {declared} as the description says, found {found}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside_the_folder() {
        let (dir, json) = (Path::new("d"), Path::new("d/m.json"));
        assert_eq!(inside(dir, json, "edges/a.npy").unwrap(), Path::new("d/edges/a.npy"));
        for bad in ["", "../x", "a/../../x", "/etc/passwd", "C:x", "a\\..\\x", "a\0b", "./a", ".."] {
            let e = inside(dir, json, bad).unwrap_err();
            assert!(
                matches!(&e, GraphError::Format { path, message } if path == json && message.contains("inside the folder")),
                "{bad}: {e}"
            );
        }
    }

    #[test]
    fn only_plain_files_of_bounded_size() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "12345").unwrap();
        assert_eq!(read_bounded(&file, 5).unwrap(), b"12345");
        assert!(read_bounded(&file, 4).unwrap_err().to_string().contains("expected at most 4 bytes, found 5"));
        assert!(matches!(read_bounded(dir.path(), 9), Err(GraphError::Format { .. })));
        assert!(matches!(read_bounded(&dir.path().join("none"), 9), Err(GraphError::Io { .. })));
    }

    #[test]
    fn a_length_that_no_memory_holds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("holes");
        // More than an address space has; file systems without such files are covered by `reserve` alone.
        let long = 1u64 << 60;
        let made = File::create(&path).unwrap().set_len(long).is_ok();
        let e = if made { read_bounded(&path, u64::MAX).unwrap_err() } else { reserve(&path, long, &mut vec![]).unwrap_err() };
        assert!(matches!(&e, GraphError::Io { source, .. } if source.kind() == std::io::ErrorKind::OutOfMemory), "{e:?}");
        assert!(reserve(&path, u64::MAX, &mut vec![]).is_err());
    }

    #[test]
    fn nodes_without_data() {
        let json = Path::new("d/m.json");
        assert_eq!(node_count(json, "a", 1 << 26, 0).unwrap(), 1 << 26);
        assert_eq!(node_count(json, "a", 16 << 23, 1 << 23).unwrap(), 16 << 23);
        let e = node_count(json, "a", (1 << 26) + 1, 3).unwrap_err();
        assert_eq!(e.to_string(), "d/m.json: node type `a`: expected at most 67108864 nodes beside 3 bytes of data, found 67108865");
        assert!(matches!(node_count(json, "a", u64::MAX, u64::MAX), Err(GraphError::TooLarge { .. })));
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(cut("ab"), "ab");
        assert_eq!(cut(&"é".repeat(200)), format!("{}… (400 bytes)", "é".repeat(80)));
        assert_eq!(Cut::from(&b"\xff".repeat(99)[..]).0, format!("{}… (99 bytes)", "\u{fffd}".repeat(80)));
        assert_eq!(Cut::from("🦀".repeat(81).as_bytes()).0, format!("{}… (324 bytes)", "🦀".repeat(80)));
    }

    #[test]
    fn texts_in_messages_are_cut() {
        let (x, shown) = ("x".repeat(300), "x".repeat(80));
        let plain = "expected what stands here, in words that nobody took from a file, found something else in its place";
        assert_eq!(cut_quoted(plain.to_owned()), plain);
        assert_eq!(cut_quoted(format!("expected `a`, found `{x}` in `b`")), format!("expected `a`, found `{shown}… (300 bytes)` in `b`"));
        let quoted = format!("{:?}", format!("\"{x}"));
        assert_eq!(cut_quoted(format!("found {quoted}, at 7")), format!("found \"\\\"{}… (302 bytes)\", at 7", "x".repeat(78)));
        // One that was cut before keeps its length.
        assert_eq!(cut_quoted(format!("found `{}`", cut(&x))), format!("found `{shown}… (300 bytes)`"));
        let names = cut_quoted(format!("{:?}", vec!["name"; 100_000]));
        assert_eq!((names.chars().count(), names.ends_with("… (800000 bytes)")), (1000 + 16, true));
        assert!(cut_quoted("`".to_owned() + &"y".repeat(5000)).len() < 1100);
    }
}
