//! Streams of edges: the input of builds.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use burn_gnn_files::internal::{ArrayHead, EntryType, NpyHead};
use burn_gnn_structure::internal::check_len;

use crate::error::{StoreError, format, io};

/// A chunk of edges, in the order of the stream. The lists of weights and times are empty if edges have none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EdgeChunk {
    /// Source of each edge.
    pub src: Vec<u32>,
    /// Destination of each edge.
    pub dst: Vec<u32>,
    /// Weights, one per edge.
    pub weights: Vec<f32>,
    /// Times, one per edge.
    pub times: Vec<i64>,
}

impl EdgeChunk {
    /// Number of edges.
    pub fn len(&self) -> usize {
        self.src.len()
    }
    /// Whether the chunk is empty.
    pub fn is_empty(&self) -> bool {
        self.src.is_empty()
    }
    /// Removes all edges and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.src.clear();
        self.dst.clear();
        self.weights.clear();
        self.times.clear();
    }
}

/// A stream of edges, which a build reads once from the beginning.
///
/// A resumed build gets the same stream again and [skips](Self::skip) the edges that it has already sorted.
pub trait EdgeStream {
    /// Appends up to `most` edges to `chunk` and returns their number; 0 means the end of the stream.
    ///
    /// # Errors
    /// The stream cannot be read.
    fn read(&mut self, most: usize, chunk: &mut EdgeChunk) -> Result<usize, StoreError>;

    /// Skips `edges` edges. The default implementation reads them.
    ///
    /// # Errors
    /// As [`read`](Self::read); the stream has fewer edges.
    fn skip(&mut self, edges: u64) -> Result<(), StoreError> {
        let (mut left, mut chunk) = (edges, EdgeChunk::default());
        while left > 0 {
            chunk.clear();
            match self.read(left.min(1 << 16) as usize, &mut chunk)? {
                0 => {
                    return Err(StoreError::source(format!(
                        "the stream has {left} edges fewer than when the build began"
                    )));
                }
                n => left -= n as u64,
            }
        }
        Ok(())
    }

    /// Number of edges if it is known, for the progress bar only.
    fn total(&self) -> Option<u64> {
        None
    }

    /// The file that contains an endpoint (0: sources, 1: destinations) if there is one, for errors only.
    fn path(&self, endpoint: usize) -> Option<&Path> {
        let _ = endpoint;
        None
    }
}

impl<S: EdgeStream + ?Sized> EdgeStream for Box<S> {
    fn read(&mut self, most: usize, chunk: &mut EdgeChunk) -> Result<usize, StoreError> {
        (**self).read(most, chunk)
    }
    fn skip(&mut self, edges: u64) -> Result<(), StoreError> {
        (**self).skip(edges)
    }
    fn total(&self) -> Option<u64> {
        (**self).total()
    }
    fn path(&self, endpoint: usize) -> Option<&Path> {
        (**self).path(endpoint)
    }
}

/// A stream of edges from an iterator of `(source, destination)` pairs.
#[derive(Debug)]
pub struct EdgeIter<I>(I);

impl<I: Iterator<Item = (u32, u32)>> EdgeIter<I> {
    /// A stream of the pairs of an iterator.
    pub fn new(edges: impl IntoIterator<IntoIter = I>) -> Self {
        Self(edges.into_iter())
    }
}

impl<I: Iterator<Item = (u32, u32)>> EdgeStream for EdgeIter<I> {
    fn read(&mut self, most: usize, chunk: &mut EdgeChunk) -> Result<usize, StoreError> {
        let before = chunk.len();
        for (u, v) in self.0.by_ref().take(most) {
            chunk.src.push(u);
            chunk.dst.push(v);
        }
        Ok(chunk.len() - before)
    }
    fn total(&self) -> Option<u64> {
        match self.0.size_hint() {
            (low, Some(high)) if low == high => Some(low as u64),
            _ => None,
        }
    }
}

/// A stream of edges from slices, such as those of a relation in memory. Nothing is copied before a build reads it.
///
/// ```
/// use burn_gnn_store::{CscBuild, EdgeSlices, StoredCsc};
/// # let dir = tempfile::tempdir().unwrap();
/// let file = dir.path().join("graph.csc");
/// let edges = EdgeSlices::new(&[0, 2, 1], &[1, 0, 1])?.with_times(&[10, 20, 30])?;
/// CscBuild::new(&file, 3, 3).with_times().run(edges)?;
/// let mut times = vec![];
/// StoredCsc::open(&file)?.times_of(0..3, &mut times)?;
/// assert_eq!(times, [20, 10, 30]); // by destination
/// # Ok::<(), burn_gnn_store::StoreError>(())
/// ```
#[derive(Clone, Debug)]
pub struct EdgeSlices<'a> {
    src: &'a [u32],
    dst: &'a [u32],
    weights: &'a [f32],
    times: &'a [i64],
    next: usize,
}

impl<'a> EdgeSlices<'a> {
    /// A stream of edges from `src[i]` to `dst[i]`.
    ///
    /// # Errors
    /// Slices of different lengths.
    pub fn new(src: &'a [u32], dst: &'a [u32]) -> Result<Self, StoreError> {
        check_len("dst", "one per source", src.len(), dst.len())?;
        Ok(Self { src, dst, weights: &[], times: &[], next: 0 })
    }
    /// Adds a weight per edge.
    ///
    /// # Errors
    /// A number of weights other than that of edges.
    pub fn with_weights(self, weights: &'a [f32]) -> Result<Self, StoreError> {
        check_len("weights", "one per edge", self.src.len(), weights.len())?;
        Ok(Self { weights, ..self })
    }
    /// Adds a time per edge.
    ///
    /// # Errors
    /// A number of times other than that of edges.
    pub fn with_times(self, times: &'a [i64]) -> Result<Self, StoreError> {
        check_len("times", "one per edge", self.src.len(), times.len())?;
        Ok(Self { times, ..self })
    }
}

impl EdgeStream for EdgeSlices<'_> {
    fn read(&mut self, most: usize, chunk: &mut EdgeChunk) -> Result<usize, StoreError> {
        let n = most.min(self.src.len() - self.next);
        let edges = self.next..self.next + n;
        chunk.src.extend_from_slice(&self.src[edges.clone()]);
        chunk.dst.extend_from_slice(&self.dst[edges.clone()]);
        // There are no weights and times, or one per edge.
        chunk.weights.extend_from_slice(self.weights.get(edges.clone()).unwrap_or_default());
        chunk.times.extend_from_slice(self.times.get(edges).unwrap_or_default());
        self.next += n;
        Ok(n)
    }
    fn total(&self) -> Option<u64> {
        Some(self.src.len() as u64)
    }
}

/// A stream of edges from an iterator of results, such as a reader: pairs with or without a weight.
#[derive(Debug)]
pub struct EdgeResults<I>(I);

impl<I> EdgeResults<I> {
    /// A stream of the results of an iterator.
    pub fn new(edges: impl IntoIterator<IntoIter = I>) -> Self {
        Self(edges.into_iter())
    }
}

impl<I: Iterator<Item = Result<(u32, u32, Option<f32>), StoreError>>> EdgeStream
    for EdgeResults<I>
{
    fn read(&mut self, most: usize, chunk: &mut EdgeChunk) -> Result<usize, StoreError> {
        let before = chunk.len();
        for edge in self.0.by_ref().take(most) {
            let (u, v, weight) = edge?;
            chunk.src.push(u);
            chunk.dst.push(v);
            chunk.weights.extend(weight);
        }
        Ok(chunk.len() - before)
    }
}

/// A stream of edges from a text edge list. A line has a source, a destination and optionally a weight, separated by
/// spaces, tabs, commas or semicolons. Empty lines and lines that start with `#` or `%` are skipped. The reader may
/// decompress.
#[derive(Debug)]
pub struct TextEdges<R> {
    path: PathBuf,
    reader: R,
    weights: bool,
    line: u64,
    text: String,
}

impl<R: BufRead> TextEdges<R> {
    /// A stream of the lines of a reader. Errors name `path`.
    pub fn new(path: impl AsRef<Path>, reader: R) -> Self {
        Self { path: path.as_ref().into(), reader, weights: false, line: 0, text: String::new() }
    }
    /// Reads the third field of a line as a weight, which must be finite and not negative.
    #[must_use]
    pub fn with_weights(mut self) -> Self {
        self.weights = true;
        self
    }
    fn wrong(&self, column: usize, expected: &str, found: &str) -> StoreError {
        let (path, expected) = (self.path.clone(), expected.to_owned());
        let found = burn_gnn_files::internal::cut(found).to_string();
        let (line, remedy) = (self.line, "");
        burn_gnn_files::DataError::Table { path, line, column, expected, found, remedy }.into()
    }
}

impl<R: BufRead> EdgeStream for TextEdges<R> {
    fn read(&mut self, most: usize, chunk: &mut EdgeChunk) -> Result<usize, StoreError> {
        let mut count = 0;
        while count < most {
            self.text.clear();
            if self.reader.read_line(&mut self.text).map_err(io(&self.path))? == 0 {
                break;
            }
            self.line += 1;
            let text = self.text.trim();
            if text.is_empty() || text.starts_with(['#', '%']) {
                continue;
            }
            let mut fields = text.split([' ', '\t', ',', ';']).filter(|f| !f.is_empty());
            let mut node = |column| {
                let field = fields.next().unwrap_or_default();
                field
                    .parse::<u32>()
                    .map_err(|_| self.wrong(column, "a node id, a whole number below 2^32", field))
            };
            let (src, dst) = (node(1)?, node(2)?);
            if self.weights {
                let field = fields.next().unwrap_or_default();
                let weight = field.parse::<f32>().ok().filter(|w| w.is_finite() && *w >= 0.0);
                chunk
                    .weights
                    .push(weight.ok_or_else(|| {
                        self.wrong(3, "a weight, finite and not negative", field)
                    })?);
            }
            chunk.src.push(src);
            chunk.dst.push(dst);
            count += 1;
        }
        Ok(count)
    }
}

/// A stream of edges from `.npy` files of integers of any type: two files of sources and destinations, or one file of
/// shape `[2, edges]` as in OGB, in C or Fortran order (`edge_index.T`).
#[derive(Debug)]
pub struct NpyEdges {
    endpoints: [NpyEnd; 2],
    total: u64,
    next: u64,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct NpyEnd {
    path: PathBuf,
    file: std::fs::File,
    /// Byte of the first number.
    offset: u64,
    ty: EntryType,
    fortran: bool,
    /// Distance of two numbers in bytes.
    stride: usize,
}

impl NpyEdges {
    /// Opens a file of sources and a file of destinations.
    ///
    /// # Errors
    /// [`StoreError::Data`]: a file cannot be read, has another dtype, or the lengths differ. Reading returns the same
    /// error, with the name of the file, for an id below 0 or above 2³².
    pub fn of_two(src: impl AsRef<Path>, dst: impl AsRef<Path>) -> Result<Self, StoreError> {
        let (src, shape) = NpyEnd::open(src.as_ref())?;
        let (dst, other) = NpyEnd::open(dst.as_ref())?;
        match (&shape[..], &other[..]) {
            (&[total], &[n]) if total == n => {
                Ok(Self { endpoints: [src, dst], total: total as u64, next: 0, bytes: vec![] })
            }
            _ => Err(format(
                &dst.path,
                format!("expected one number per source, shape {shape:?}, found shape {other:?}"),
            )),
        }
    }
    /// Opens one file of shape `[2, edges]`.
    ///
    /// # Errors
    /// As [`of_two`](Self::of_two).
    pub fn of_one(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let (mut src, shape) = NpyEnd::open(path.as_ref())?;
        let &[2, total] = &shape[..] else {
            return Err(format(&src.path, format!("expected shape [2, edges], found {shape:?}")));
        };
        let (mut dst, _) = NpyEnd::open(path.as_ref())?;
        if src.fortran {
            // Fortran order: pairs of source and destination.
            dst.offset += dst.stride as u64;
            (src.stride, dst.stride) = (2 * src.stride, 2 * dst.stride);
        } else {
            dst.offset += (total * dst.stride) as u64;
        }
        Ok(Self { endpoints: [src, dst], total: total as u64, next: 0, bytes: vec![] })
    }
}

impl NpyEnd {
    fn open(path: &Path) -> Result<(Self, Vec<usize>), StoreError> {
        let (file, len) = burn_gnn_files::internal::open(path)?;
        let mut head = vec![0; len.min(1 << 16) as usize];
        crate::section_writer::read_at(&file, &mut head, 0).map_err(io(path))?;
        let ArrayHead { ty, fortran, head } = NpyHead::any(path, &mut &head[..])?;
        let Some(width) = ty.integer_bytes() else {
            let expected = "int8 to int64 or uint8 to uint64";
            return Err(format(path, format!("expected dtype {expected}, found '{}'", head.descr)));
        };
        let data = head
            .shape
            .iter()
            .try_fold(width, |bytes, &n| bytes.checked_mul(n))
            .and_then(|bytes| bytes.checked_add(head.offset))
            .map(|bytes| bytes as u64);
        if data != Some(len) {
            return Err(format(
                path,
                format!(
                    "shape {:?}: expected as many bytes of data, found {len} in all",
                    head.shape
                ),
            ));
        }
        let offset = head.offset as u64;
        Ok((Self { path: path.into(), file, offset, ty, fortran, stride: width }, head.shape))
    }
    fn read(
        &self,
        from: u64,
        count: usize,
        arg: &'static str,
        bytes: &mut Vec<u8>,
        out: &mut Vec<u32>,
    ) -> Result<(), StoreError> {
        let stride = self.stride;
        // The last number is not followed by the rest of its stride.
        let width = self.ty.integer_bytes().unwrap_or(stride);
        bytes.clear();
        bytes.resize(count * stride, 0);
        let len = (count * stride).saturating_sub(stride - width);
        crate::section_writer::read_at(
            &self.file,
            &mut bytes[..len],
            self.offset + from * stride as u64,
        )
        .map_err(io(&self.path))?;
        self.ty.integers(bytes, stride, out).map_err(|(i, found)| {
            let edge = from + i as u64;
            let why = format!("edge {edge}: expected `{arg}` in 0..{}, found {found}", 1u64 << 32);
            format(&self.path, why)
        })
    }
}

impl EdgeStream for NpyEdges {
    fn read(&mut self, most: usize, chunk: &mut EdgeChunk) -> Result<usize, StoreError> {
        let count = (self.total - self.next).min(most as u64).min(1 << 20) as usize;
        self.endpoints[0].read(self.next, count, "src", &mut self.bytes, &mut chunk.src)?;
        self.endpoints[1].read(self.next, count, "dst", &mut self.bytes, &mut chunk.dst)?;
        self.next += count as u64;
        Ok(count)
    }
    fn skip(&mut self, edges: u64) -> Result<(), StoreError> {
        if edges > self.total - self.next {
            let found = self.total - self.next;
            let why =
                format!("expected {edges} edges more, as when the build began, found {found}");
            return Err(format(&self.endpoints[0].path, why));
        }
        self.next += edges;
        Ok(())
    }
    fn total(&self) -> Option<u64> {
        Some(self.total)
    }
    fn path(&self, endpoint: usize) -> Option<&Path> {
        self.endpoints.get(endpoint).map(|end| &*end.path)
    }
}

/// A stream of reversed edges. A build of it is the CSR of the relation, in a separate file.
#[derive(Debug)]
pub struct ReversedEdges<S>(pub S);

impl<S: EdgeStream> EdgeStream for ReversedEdges<S> {
    fn read(&mut self, most: usize, chunk: &mut EdgeChunk) -> Result<usize, StoreError> {
        // Edges that are already in the chunk belong to another stream.
        let before = chunk.len();
        let (mut dst, mut src) = (chunk.dst.split_off(before), chunk.src.split_off(before));
        let n = self.0.read(most, chunk)?;
        src.extend(chunk.dst.drain(before..));
        dst.extend(chunk.src.drain(before..));
        chunk.src.append(&mut src);
        chunk.dst.append(&mut dst);
        Ok(n)
    }
    fn skip(&mut self, edges: u64) -> Result<(), StoreError> {
        self.0.skip(edges)
    }
    fn total(&self) -> Option<u64> {
        self.0.total()
    }
    fn path(&self, endpoint: usize) -> Option<&Path> {
        self.0.path(1 - endpoint.min(1))
    }
}

/// Concatenation of two streams, for example of the edges of a relation and of its inverse.
#[derive(Debug)]
pub struct ChainedEdges<A, B>(pub A, pub B);

impl<A: EdgeStream, B: EdgeStream> EdgeStream for ChainedEdges<A, B> {
    fn read(&mut self, most: usize, chunk: &mut EdgeChunk) -> Result<usize, StoreError> {
        match self.0.read(most, chunk)? {
            0 => self.1.read(most, chunk),
            n => Ok(n),
        }
    }
    fn total(&self) -> Option<u64> {
        Some(self.0.total()? + self.1.total()?)
    }
}

impl EdgeChunk {
    /// Moves edge `from` to position `to`.
    pub(super) fn shift(&mut self, from: usize, to: usize) {
        (self.src[to], self.dst[to]) = (self.src[from], self.dst[from]);
        if !self.weights.is_empty() {
            self.weights[to] = self.weights[from];
        }
        if !self.times.is_empty() {
            self.times[to] = self.times[from];
        }
    }
    pub(super) fn truncate(&mut self, len: usize) {
        self.src.truncate(len);
        self.dst.truncate(len);
        self.weights.truncate(len);
        self.times.truncate(len);
    }
}
