//! Opens text files, decompressed and without a byte order mark.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burn_gnn_files::DataError;

use crate::files::decompression_limit::{FREE, MAX_EXPANSION, expansion_limit};
use crate::files::{
    CountingReader, MARK, Progress, format_error, io_error, open, reading_file, text_error,
};

/// Bounds on the logarithm of the window of a zstd frame, which the decoder keeps in memory.
#[cfg(feature = "zstd")]
const WINDOW: [u32; 2] = [24, 27];

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
}

/// Detects the compression from the first bytes, which are not valid UTF-8.
pub(crate) fn compressed(
    path: &Path,
    file: &mut BufReader<File>,
) -> Result<Option<Compression>, DataError> {
    let start = file.fill_buf().map_err(|e| io_error(path, e))?;
    Ok(if start.starts_with(b"\x1f\x8b") {
        Some(Compression::Gzip)
    } else if start.starts_with(b"\x28\xb5\x2f\xfd") {
        Some(Compression::Zstd)
    } else {
        None
    })
}

/// Detects a Parquet file from its first bytes.
pub(crate) fn is_parquet(path: &Path) -> Result<bool, DataError> {
    let mut start = [0; 4];
    match open(path)?.0.read_exact(&mut start) {
        Ok(()) => Ok(&start == b"PAR1"),
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(io_error(path, e)),
    }
}

/// A decompressor that fails as soon as its output is too long for the input so far, not only at the end of the file.
struct Bounded<R> {
    inner: R,
    taken: Arc<AtomicU64>,
    given: u64,
    max_expansion: u32,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.given += n as u64;
        let taken = self.taken.load(Ordering::Relaxed);
        if self.given > expansion_limit(taken, self.max_expansion) {
            let (given, most) = (self.given, self.max_expansion);
            return Err(std::io::Error::other(format!(
                "expands to more than {FREE} bytes and {most} for each compressed one ({given} bytes out of {taken}); raise `max_expansion` or \
                 decompress it first"
            )));
        }
        Ok(n)
    }
}

/// Opens the text of a file, decompressed to at most `max_expansion` times its length and 16 MiB.
pub(crate) fn text(
    path: &Path,
    max_expansion: u32,
    bar: &Progress,
) -> Result<Box<dyn Read + Send>, DataError> {
    let opened = open(path)?;
    let mut file = BufReader::with_capacity(1 << 17, opened.0);
    let compression = compressed(path, &mut file)?;
    let file = bar.read(file);
    let taken = Arc::<AtomicU64>::default();
    let counted = |file| {
        let taken = taken.clone();
        let count = move |bytes| {
            taken.fetch_add(bytes, Ordering::Relaxed);
        };
        CountingReader { inner: BufReader::new(file), count }
    };
    let text: Box<dyn Read + Send> = match compression {
        None => Box::new(file),
        Some(Compression::Gzip) => {
            let inner = flate2::bufread::MultiGzDecoder::new(counted(file));
            Box::new(Bounded { inner, taken, given: 0, max_expansion })
        }
        #[cfg(not(feature = "zstd"))]
        Some(Compression::Zstd) => {
            return Err(crate::files::missing_feature(path.display(), "zstd"));
        }
        #[cfg(feature = "zstd")]
        Some(Compression::Zstd) => {
            let mut inner = zstd::stream::read::Decoder::with_buffer(counted(file))
                .map_err(|e| io_error(path, e))?;
            let window =
                expansion_limit(opened.1, max_expansion).ilog2().clamp(WINDOW[0], WINDOW[1]);
            inner.window_log_max(window).map_err(|e| io_error(path, e))?;
            Box::new(Bounded { inner, taken, given: 0, max_expansion })
        }
    };
    without_mark(path, text)
}

/// Skips a byte order mark of UTF-8, which would be a part of the first field. Text in UTF-16 is an error.
fn without_mark(
    path: &Path,
    mut text: Box<dyn Read + Send>,
) -> Result<Box<dyn Read + Send>, DataError> {
    let mut start = vec![];
    text.by_ref().take(3).read_to_end(&mut start).map_err(|e| text_error(path, e))?;
    if start == MARK {
        return Ok(text);
    }
    if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
        let why = "expected UTF-8, found the byte order mark of UTF-16; convert the file (`iconv -f UTF-16 -t UTF-8`)";
        return Err(format_error(path, why));
    }
    Ok(Box::new(std::io::Cursor::new(start).chain(text)))
}

/// [`text`] with the default bound on expansion.
pub(crate) fn text_of(path: &Path, progress: bool) -> Result<Box<dyn Read + Send>, DataError> {
    text(path, MAX_EXPANSION, &reading_file(progress, path))
}
