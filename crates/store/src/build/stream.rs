//! Reads edges as a stream.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use crate::error::{StoreError, format, io};

/// Some edges, in the order of the stream. Lists of weights and times are empty where edges have none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EdgeChunk {
    /// Sources.
    pub src: Vec<u32>,
    /// Destinations.
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
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.src.is_empty()
    }
    /// Drops all edges, and keeps their memory.
    pub fn clear(&mut self) {
        self.src.clear();
        self.dst.clear();
        self.weights.clear();
        self.times.clear();
    }
}

/// A stream of edges: what a build reads, once, from its beginning.
///
/// A build that is resumed reads the same stream again and [skips](Self::skip) what it has.
pub trait EdgeStream {
    /// Appends up to `most` edges to `chunk` and returns how many, 0 where there are no more.
    ///
    /// # Errors
    /// What keeps the stream from being read.
    fn read(&mut self, most: usize, chunk: &mut EdgeChunk) -> Result<usize, StoreError>;

    /// Passes over `edges` edges; by default they are read.
    ///
    /// # Errors
    /// As [`read`](Self::read); fewer edges than that.
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

    /// Number of edges, where it is known: for progress alone.
    fn total(&self) -> Option<u64> {
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
}

/// A stream of `(source, destination)` pairs of an iterator.
#[derive(Debug)]
pub struct EdgeIter<I>(I);

impl<I: Iterator<Item = (u32, u32)>> EdgeIter<I> {
    /// Of any iterator of pairs.
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

/// A stream of results, as readers give them: of pairs with a weight each or without.
#[derive(Debug)]
pub struct EdgeResults<I>(I);

impl<I> EdgeResults<I> {
    /// Of any iterator of results.
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

/// A text edge list: a line has a source, a destination and, if asked for, a weight, separated by spaces, tabs,
/// commas or semicolons. Empty lines and those that begin with `#` or `%` are passed over. The reader may
/// decompress on its way.
#[derive(Debug)]
pub struct TextEdges<R> {
    path: PathBuf,
    reader: R,
    weights: bool,
    line: u64,
    text: String,
}

impl<R: BufRead> TextEdges<R> {
    /// Of any reader; `path` is for errors.
    pub fn new(path: impl AsRef<Path>, reader: R) -> Self {
        Self { path: path.as_ref().into(), reader, weights: false, line: 0, text: String::new() }
    }
    /// The third field of a line is a weight, finite and not negative.
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

/// Edges of two `.npy` files of 64-bit or 32-bit integers, sources and destinations, or of one file of shape
/// `[2, edges]`, as OGB has them.
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
    offset: u64,
    /// Bytes of a number.
    width: usize,
}

impl NpyEdges {
    /// Of a file of sources and one of destinations.
    ///
    /// # Errors
    /// [`StoreError::Data`] for files that cannot be read, of other dtypes, or of different lengths.
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
    /// Of one file of shape `[2, edges]`.
    ///
    /// # Errors
    /// As [`of_two`](Self::of_two).
    pub fn of_one(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let (src, shape) = NpyEnd::open(path.as_ref())?;
        let &[2, total] = &shape[..] else {
            return Err(format(&src.path, format!("expected shape [2, edges], found {shape:?}")));
        };
        let (mut dst, _) = NpyEnd::open(path.as_ref())?;
        dst.offset += (total * dst.width) as u64;
        Ok(Self { endpoints: [src, dst], total: total as u64, next: 0, bytes: vec![] })
    }
}

impl NpyEnd {
    fn open(path: &Path) -> Result<(Self, Vec<usize>), StoreError> {
        let (file, len) = burn_gnn_files::internal::open(path)?;
        let mut head = vec![0; len.min(1 << 16) as usize];
        crate::section_writer::read_at(&file, &mut head, 0).map_err(io(path))?;
        let head = burn_gnn_files::NpyHead::read(path, &head[..])?;
        let width: usize = match &*head.descr {
            "<i8" | "<u8" => 8,
            "<i4" | "<u4" => 4,
            other => {
                return Err(format(
                    path,
                    format!("expected dtype int64, uint64, int32 or uint32, found '{other}'"),
                ));
            }
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
        Ok((Self { path: path.into(), file, offset: head.offset as u64, width }, head.shape))
    }
    fn read(
        &self,
        from: u64,
        count: usize,
        arg: &'static str,
        bytes: &mut Vec<u8>,
        out: &mut Vec<u32>,
    ) -> Result<(), StoreError> {
        let width = self.width;
        bytes.resize(count * width, 0);
        crate::section_writer::read_at(&self.file, bytes, self.offset + from * width as u64)
            .map_err(io(&self.path))?;
        let far = |i: usize, value| StoreError::NodeOutOfRange {
            edge: from + i as u64,
            arg,
            bound: 1 << 32,
            value,
        };
        if width == 4 {
            out.extend(bytes.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)));
            // A negative number is one of 2^31 and more, which is refused where there are fewer nodes.
            return Ok(());
        }
        for (i, b) in bytes.as_chunks().0.iter().enumerate() {
            let value = u64::from_le_bytes(*b);
            out.push(u32::try_from(value).map_err(|_| far(i, value))?);
        }
        Ok(())
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
            return Err(StoreError::source(format!(
                "expected {edges} edges more, found {}",
                self.total - self.next
            )));
        }
        self.next += edges;
        Ok(())
    }
    fn total(&self) -> Option<u64> {
        Some(self.total)
    }
}

/// Edges in the other direction: what is built of them is the CSR of the relation, in a file of its own.
#[derive(Debug)]
pub struct ReversedEdges<S>(pub S);

impl<S: EdgeStream> EdgeStream for ReversedEdges<S> {
    fn read(&mut self, most: usize, chunk: &mut EdgeChunk) -> Result<usize, StoreError> {
        // What is in the chunk already is not of this stream.
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
}

/// Edges of one stream after those of another: inverse relations beside the edges, for example.
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
    /// Moves edge `from` to place `to`.
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
