//! Reads the in-edges of a relation from a CSC file, row by row.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use burn_gnn_structure::internal::{check_id, prefetch};
use burn_gnn_structure::{EdgeReader, GraphError, Relation};

use crate::error::{StoreError, format};
use crate::sections::{Section, SectionFile};

/// Kind of these files.
pub(crate) const KIND: &str = "csc";
pub(crate) const INDPTR: &str = "indptr";
pub(crate) const SOURCES: &str = "sources";
pub(crate) const EDGE_IDS: &str = "edge_ids";
pub(crate) const WEIGHTS: &str = "weights";
pub(crate) const TIMES: &str = "times";
/// Exclusive upper bound of edge ids, in files with edge ids.
pub(crate) const EDGE_ID_BOUND: &str = "edge_id_bound";

/// Distance of the prefetch in positions.
const AHEAD: usize = 24;

/// A CSC file of a relation that [`CscBuild`](crate::CscBuild) wrote: a `u64` offset per destination and a `u32` source
/// per edge, with a checksum per 64 KiB.
///
/// ```text
/// header     kind `csc`, num_src, num_dst, num_edges
/// indptr     u64 · (num_dst + 1)   row v is positions indptr[v]..indptr[v + 1]
/// sources    u32 · num_edges
/// edge_ids   u64 · num_edges       optional, as are weights (f32) and times (i64)
/// checksums  u64 per 64 KiB of every section
/// ```
///
/// Opening reads only the header. The checksum of a block is verified on its first use; [`verify`](Self::verify) checks
/// all blocks. A row is found in `O(1)`. If pages are missing in memory, those of a whole request are prefetched
/// together.
///
/// ```
/// use burn_gnn_store::{CscBuild, EdgeIter, StoredCsc};
/// # let dir = tempfile::tempdir().unwrap();
/// let file = dir.path().join("graph.csc");
/// CscBuild::new(&file, 3, 3).run(EdgeIter::new([(0, 1), (2, 0), (1, 1)]))?;
/// let stored = StoredCsc::open(&file)?;
/// assert_eq!(stored.relation()?.csc().indices(), [2, 0, 1]); // of destination 0, then of 1
/// # Ok::<(), burn_gnn_store::StoreError>(())
/// ```
#[derive(Debug)]
pub struct StoredCsc {
    file: Arc<SectionFile>,
    num_src: usize,
    num_dst: usize,
    num_edges: u64,
    edge_id_bound: u64,
    indptr: Section,
    sources: Section,
    edge_ids: Option<Section>,
    weights: Option<Section>,
    times: Option<Section>,
}

impl StoredCsc {
    /// Opens a file.
    ///
    /// # Errors
    /// [`StoreError::Data`] if the file cannot be read or is of another kind; [`StoreError::Truncated`];
    /// [`StoreError::Damaged`] for a damaged header.
    pub fn open(path: impl AsRef<Path>) -> Result<Arc<Self>, StoreError> {
        let path = path.as_ref();
        let file = SectionFile::open(path, KIND)?;
        let count = |fact| file.header.number(path, fact);
        let (num_src, num_dst, num_edges) =
            (count("num_src")?, count("num_dst")?, count("num_edges")?);
        let limit = Relation::LIMIT;
        for (what, n) in [("num_src", num_src), ("num_dst", num_dst)] {
            if n > limit {
                return Err(format(path, format!("`{what}`: expected at most {limit}, found {n}")));
            }
        }
        // Files of parts have edge ids of the whole graph, and no bound.
        let edge_id_bound = match file.header.facts.contains_key(EDGE_ID_BOUND) {
            true => count(EDGE_ID_BOUND)?,
            false => num_edges,
        };
        if edge_id_bound < num_edges {
            let why =
                format!("`{EDGE_ID_BOUND}`: expected at least {num_edges}, found {edge_id_bound}");
            return Err(format(path, why));
        }
        let bytes = |each: u64| {
            num_edges
                .checked_mul(each)
                .ok_or_else(|| format(path, format!("{num_edges} edges, more than a file holds")))
        };
        let optional = |name: &str, each: u64| match file.section(name) {
            None => Ok(None),
            Some(_) => file.required(name, bytes(each)?).map(Some),
        };
        Ok(Arc::new(Self {
            num_src: num_src as usize,
            num_dst: num_dst as usize,
            num_edges,
            edge_id_bound,
            indptr: file.required(INDPTR, 8 * (num_dst + 1))?,
            sources: file.required(SOURCES, bytes(4)?)?,
            edge_ids: optional(EDGE_IDS, 8)?,
            weights: optional(WEIGHTS, 4)?,
            times: optional(TIMES, 8)?,
            file: file.clone(),
        }))
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.file.path
    }
    /// Length of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.file.header.bytes
    }
    /// Number of sources and number of destinations.
    pub fn num_nodes(&self) -> (usize, usize) {
        (self.num_src, self.num_dst)
    }
    /// A value in the header.
    pub(crate) fn fact(&self, name: &str) -> Option<&serde_json::Value> {
        self.file.header.facts.get(name)
    }
    /// A required section that only files of parts have.
    pub(crate) fn required(&self, name: &str, bytes: u64) -> Result<Section, StoreError> {
        self.file.required(name, bytes)
    }
    /// Verifies the blocks of all offsets, and that offsets ascend to the number of edges: one pass over 8 bytes per
    /// destination.
    pub(crate) fn check_offsets(&self) -> Result<(), StoreError> {
        self.indptr.check_range(0..self.indptr.bytes().len())?;
        let indptr = self.indptr.numbers::<u64>();
        if indptr[0] != 0 || indptr[self.num_dst] != self.num_edges || !indptr.is_sorted() {
            return Err(format(
                self.path(),
                format!("expected offsets that ascend from 0 to {}, found others", self.num_edges),
            ));
        }
        Ok(())
    }
    /// Whether edges have weights.
    pub fn has_weights(&self) -> bool {
        self.weights.is_some()
    }
    /// Whether edges have times.
    pub fn has_times(&self) -> bool {
        self.times.is_some()
    }

    /// The edges as a relation. Samplers read it row by row; all other uses read it into memory as a whole.
    ///
    /// # Errors
    /// As [`Relation::from_stored_csc`].
    pub fn relation(self: &Arc<Self>) -> Result<Relation, GraphError> {
        Relation::from_stored_csc(self.clone())
    }

    /// Verifies the checksums of all blocks, and the ranges of all offsets and sources.
    ///
    /// # Errors
    /// [`StoreError::Damaged`]; [`StoreError::Data`] for offsets that do not ascend from 0 to the number of edges, and
    /// for a source out of range.
    ///
    /// # Cost
    /// One pass over the file; only memory of the page cache.
    pub fn verify(&self) -> Result<(), StoreError> {
        self.file.verify()?;
        self.check_offsets()?;
        let sources = self.sources.numbers::<u32>();
        match sources.iter().position(|&u| u as usize >= self.num_src) {
            None => Ok(()),
            Some(p) => Err(self.far(p, sources[p])),
        }
    }

    /// First position and number of edges of a row.
    ///
    /// # Errors
    /// [`GraphError::IdOutOfRange`] for a destination out of range; [`StoreError::Damaged`]; offsets out of range.
    #[inline]
    pub fn row(&self, v: u32) -> Result<(u64, u32), StoreError> {
        let (v, indptr) = (v as usize, self.indptr.numbers::<u64>());
        if v >= self.num_dst {
            return Err(self.out_of_range("destination", v as u64, self.num_dst as u64));
        }
        self.indptr.check(8 * v)?;
        self.indptr.check(8 * v + 8)?;
        self.checked_row(v, indptr[v], indptr[v + 1])
    }

    #[inline]
    fn checked_row(&self, v: usize, start: u64, end: u64) -> Result<(u64, u32), StoreError> {
        match end.checked_sub(start).and_then(|len| u32::try_from(len).ok()) {
            Some(len) if end <= self.num_edges => Ok((start, len)),
            _ => Err(format(
                self.path(),
                format!("row {v}: expected offsets in 0..{}, found {start}..{end}", self.num_edges),
            )),
        }
    }

    #[cold]
    fn out_of_range(&self, what: &str, id: u64, bound: u64) -> StoreError {
        let what = format_args!("{}: {what}", self.path().display());
        match check_id(what, id, bound) {
            Err(e) => e.into(),
            Ok(()) => unreachable!("the caller has compared it with the bound"),
        }
    }

    /// Returns an error for positions after the last edge.
    fn check_positions(&self, positions: &[u64]) -> Result<(), StoreError> {
        match positions.iter().copied().max() {
            Some(most) if most >= self.num_edges => {
                Err(self.out_of_range("position", most, self.num_edges))
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn far(&self, position: usize, found: u32) -> StoreError {
        format(
            self.path(),
            format!("position {position}: expected a source in 0..{}, found {found}", self.num_src),
        )
    }

    fn read_sources(&self, positions: &[u64], out: &mut [u32]) -> Result<(), StoreError> {
        self.check_positions(positions)?;
        let sources = self.sources.numbers::<u32>();
        let _request = self.sources.request(positions.iter().map(|&p| 4 * p));
        let (bound, verified) = (self.num_src as u32, self.sources.is_all_verified());
        let mut most = 0;
        for (i, (&p, u)) in positions.iter().zip(&mut *out).enumerate() {
            if let Some(&p) = positions.get(i + AHEAD) {
                prefetch(sources, p as usize, 1);
            }
            if !verified {
                self.sources.check(4 * p as usize)?;
            }
            *u = sources[p as usize];
            most = most.max(*u);
        }
        if most >= bound && !out.is_empty() {
            let i = out.iter().position(|&u| u >= bound).unwrap_or_default();
            return Err(self.far(positions[i] as usize, out[i]));
        }
        Ok(())
    }

    /// Verifies the blocks that are used later for sampled edges: their ids, and the degrees of their sources. Only
    /// flags are read if the blocks are verified already.
    fn check_ids_and_rows(&self, positions: &[u64], sources: &[u32]) -> Result<(), StoreError> {
        if let Some(ids) = self.edge_ids.as_ref().filter(|ids| !ids.is_all_verified()) {
            positions.iter().try_for_each(|&p| ids.check(8 * p as usize))?;
        }
        // If both endpoints have the same number of nodes, sources may be destinations too.
        if self.num_src == self.num_dst && !self.indptr.is_all_verified() {
            let _request = self.indptr.request(sources.iter().map(|&u| 8 * u64::from(u)));
            sources.iter().map(|&u| 8 * u as usize).try_for_each(|at| {
                self.indptr.check(at).and_then(|()| self.indptr.check(at + 8))
            })?;
        }
        Ok(())
    }

    /// Byte range of consecutive positions in a section of `T`.
    fn range<'a, T: bytemuck::Pod>(
        &self,
        section: &'a Section,
        positions: Range<u64>,
    ) -> Result<&'a [T], StoreError> {
        if positions.start > positions.end {
            let why = format!(
                "positions: expected an ascending range, found {positions:?}; swap its bounds"
            );
            return Err(format(self.path(), why));
        }
        // The end of the range is exclusive.
        if positions.end > self.num_edges {
            return Err(self.out_of_range("position", positions.end - 1, self.num_edges));
        }
        let (from, to) = (positions.start as usize, positions.end as usize);
        section.check_range(from * size_of::<T>()..to * size_of::<T>())?;
        Ok(&section.numbers::<T>()[from..to])
    }

    /// Finds the row of a position.
    pub(crate) fn row_at(&self, position: u64) -> Result<u32, StoreError> {
        // The caller reads the row that is found, which verifies its block.
        let indptr = self.indptr.numbers::<u64>();
        match indptr.partition_point(|&start| start <= position).checked_sub(1) {
            Some(v) if v < self.num_dst => Ok(v as u32),
            _ => Err(format(
                self.path(),
                format!("position {position}: expected in 0..{}, found in no row", self.num_edges),
            )),
        }
    }

    /// Appends the ids of the edges at consecutive positions. Returns `false` if ids are not stored, so that they equal
    /// positions.
    ///
    /// # Errors
    /// [`GraphError::IdOutOfRange`] for positions after the last edge; [`StoreError::Damaged`].
    pub fn edge_ids_of(
        &self,
        positions: Range<u64>,
        out: &mut Vec<u64>,
    ) -> Result<bool, StoreError> {
        let Some(ids) = &self.edge_ids else { return Ok(false) };
        out.extend_from_slice(self.range(ids, positions)?);
        Ok(true)
    }

    /// Appends the times of the edges at consecutive positions. Returns `false` if edges have none.
    ///
    /// # Errors
    /// [`GraphError::IdOutOfRange`] for positions after the last edge; [`StoreError::Damaged`].
    pub fn times_of(&self, positions: Range<u64>, out: &mut Vec<i64>) -> Result<bool, StoreError> {
        let Some(times) = &self.times else { return Ok(false) };
        out.extend_from_slice(self.range(times, positions)?);
        Ok(true)
    }
}

impl EdgeReader for StoredCsc {
    fn num_src(&self) -> usize {
        self.num_src
    }
    fn num_dst(&self) -> usize {
        self.num_dst
    }
    fn num_edges(&self) -> u64 {
        self.num_edges
    }
    fn rows(&self, nodes: &[u32], out: &mut Vec<(u64, u32)>) -> Result<(), GraphError> {
        let indptr = self.indptr.numbers::<u64>();
        out.reserve(nodes.len());
        let _request = self.indptr.request(nodes.iter().map(|&v| 8 * u64::from(v)));
        for (i, &v) in nodes.iter().enumerate() {
            if let Some(&v) = nodes.get(i + AHEAD) {
                prefetch(indptr, v as usize, 2);
            }
            out.push(self.row(v)?);
        }
        Ok(())
    }
    /// Also verifies the blocks of edge ids and of the offsets of the sources: a sampled block reads them later, in
    /// functions that cannot return an error.
    fn sources(&self, positions: &[u64], out: &mut [u32]) -> Result<(), GraphError> {
        self.read_sources(positions, out)?;
        Ok(self.check_ids_and_rows(positions, out)?)
    }
    fn sources_of(&self, positions: Range<u64>, out: &mut Vec<u32>) -> Result<(), GraphError> {
        let start = positions.start as usize;
        let found = self.range::<u32>(&self.sources, positions)?;
        match found.iter().position(|&u| u as usize >= self.num_src) {
            None => out.extend_from_slice(found),
            Some(i) => return Err(self.far(start + i, found[i]).into()),
        }
        Ok(())
    }
    fn has_edge_ids(&self) -> bool {
        self.edge_ids.is_some()
    }
    fn edge_id_bound(&self) -> u64 {
        self.edge_id_bound
    }
    fn edge_ids(&self, positions: &[u64], out: &mut [u64]) -> Result<(), GraphError> {
        let Some(ids) = &self.edge_ids else {
            out.copy_from_slice(positions);
            return Ok(());
        };
        self.check_positions(positions)?;
        let all = ids.numbers::<u64>();
        let _request = ids.request(positions.iter().map(|&p| 8 * p));
        for (&p, id) in positions.iter().zip(out) {
            ids.check(8 * p as usize)?;
            *id = all[p as usize];
        }
        Ok(())
    }
    fn weights_of(&self, positions: Range<u64>, out: &mut Vec<f32>) -> Result<bool, GraphError> {
        let Some(weights) = &self.weights else { return Ok(false) };
        out.extend_from_slice(self.range(weights, positions)?);
        Ok(true)
    }
    fn times_of(&self, positions: Range<u64>, out: &mut Vec<i64>) -> Result<bool, GraphError> {
        Ok(Self::times_of(self, positions, out)?)
    }
}
