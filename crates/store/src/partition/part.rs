//! Opens one part of a partitioned graph, for one rank.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn_gnn_structure::EdgeReader;

use super::{FINGERPRINT, HALO, INNER, KIND, OWNERS, STARTS, paths};
use crate::StoredCsc;
use crate::error::{StoreError, format};
use crate::sections::{Section, SectionFile};

/// One part. Inner nodes come first, then halo nodes, each in ascending original id; only edges into inner nodes
/// are there, in the order of the whole graph. So draws that are keyed by original ids are those of the whole
/// graph.
///
/// A rank opens its own part with [`open`](Self::open), out of a folder that need not hold the others. A clone
/// shares everything.
///
/// ```
/// use burn_gnn_store::{Assignment, CscBuild, EdgeIter, StoredCsc, StoredPart};
/// # let dir = tempfile::tempdir().unwrap();
/// let file = dir.path().join("graph.csc");
/// CscBuild::new(&file, 4, 4).run(EdgeIter::new([(0, 1), (3, 1), (1, 2)]))?;
/// let csc = StoredCsc::open(&file)?;
/// Assignment::new(vec![0, 1, 1, 0], 2)?.write(&csc, dir.path().join("parts"))?;
///
/// // On rank 1.
/// let part = StoredPart::open(dir.path().join("parts"), 1)?;
/// assert_eq!((part.inner(), part.halo(), part.owners()), (&[1, 2][..], &[0, 3][..], &[0, 0][..]));
/// # Ok::<(), burn_gnn_store::StoreError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StoredPart {
    pub(super) of: Arc<Content>,
}

/// What is read of a part, and its files.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) csc: Arc<StoredCsc>,
    pub(super) path: PathBuf,
    /// Original ids of inner nodes, then of halo nodes.
    pub(super) nodes: Vec<u32>,
    pub(super) num_inner: usize,
    /// Part of each halo node.
    owners: Vec<u32>,
    /// Position of the row of each inner node in the file of the whole graph.
    starts: Section,
    part: u32,
    parts: u32,
    /// Nodes of the whole graph.
    pub(super) whole: usize,
}

impl StoredPart {
    /// Opens part number `part` of those in `dir`. No file of another part is looked at. Node lists and offsets are
    /// read, 20 bytes per inner node and 8 per halo node; edges are read when a sampler draws them.
    ///
    /// # Errors
    /// [`StoreError::Data`], [`StoreError::Truncated`], [`StoreError::Damaged`]; files that do not go together, or
    /// are of another part.
    pub fn open(dir: impl AsRef<Path>, part: usize) -> Result<Self, StoreError> {
        let [path, csc] = paths(dir.as_ref(), part);
        let (file, csc) = (SectionFile::open(&path, KIND)?, StoredCsc::open(csc)?);
        let number = |fact| file.header.number(&path, fact);
        let (found, parts, whole) = (number("part")?, number("parts")?, number("nodes")?);
        if found != part as u64
            || found >= parts
            || parts > u64::from(u32::MAX)
            || whole > u64::from(u32::MAX)
        {
            let why = format!(
                "expected part {part} of a graph of at most {} nodes, found part {found} of {parts}",
                u32::MAX
            );
            return Err(format(&path, why));
        }
        let list = |name: &str, len: Option<u64>| -> Result<Vec<u32>, StoreError> {
            let section = match len {
                Some(len) => file.required(name, 4 * len)?,
                None => file.section(name).ok_or_else(|| {
                    format(&path, format!("expected a section `{name}`, found none"))
                })?,
            };
            section.check_range(0..section.bytes().len())?;
            Ok(section.numbers::<u32>().to_vec())
        };
        let (mut nodes, halo, of) = (list(INNER, None)?, list(HALO, None)?, csc.num_nodes());
        let num_inner = nodes.len();
        let starts = file.required(STARTS, 8 * num_inner as u64)?;
        // Edge ids are asked for where an error has no way out.
        starts.check_range(0..starts.bytes().len())?;
        csc.check_offsets()?;
        let owners = list(OWNERS, Some(halo.len() as u64))?;
        nodes.extend(halo);
        if file.header.facts.get(FINGERPRINT) != csc.fact(FINGERPRINT) {
            return Err(format(
                &path,
                "expected nodes and edges of one partitioning, found those of two; write the parts again",
            ));
        }
        if of != (nodes.len(), num_inner) {
            let why =
                format!("expected edges from {} to {num_inner} nodes, found {of:?}", nodes.len());
            return Err(format(csc.path(), why));
        }
        let ascend = |ids: &[u32]| {
            ids.is_sorted_by(|a, b| a < b) && ids.last().is_none_or(|&v| u64::from(v) < whole)
        };
        if !ascend(&nodes[..num_inner]) || !ascend(&nodes[num_inner..]) {
            return Err(format(
                &path,
                format!("expected ascending ids in 0..{whole}, found others"),
            ));
        }
        if let Some(p) = owners.iter().find(|&&p| u64::from(p) >= parts || p as usize == part) {
            return Err(format(
                &path,
                format!("`{OWNERS}`: expected other parts in 0..{parts}, found {p}"),
            ));
        }
        let (part, parts, whole) = (part as u32, parts as u32, whole as usize);
        Ok(Self {
            of: Arc::new(Content {
                csc,
                path,
                nodes,
                num_inner,
                owners,
                starts,
                part,
                parts,
                whole,
            }),
        })
    }

    /// A hash of the assignment and of the graph's sizes: the same for all parts of one partitioning, another for
    /// those of others.
    pub fn fingerprint(&self) -> u64 {
        self.of.csc.fact(FINGERPRINT).and_then(serde_json::Value::as_u64).unwrap_or_default()
    }
    /// Number of this part, and of all.
    pub fn number(&self) -> (usize, usize) {
        (self.of.part as usize, self.of.parts as usize)
    }
    /// Nodes of the whole graph.
    pub fn total_nodes(&self) -> usize {
        self.of.whole
    }
    /// In-edges of inner nodes, by local ids: sources are places among inner and then halo nodes. Edge ids, weights
    /// and times are there where the graph has them.
    pub fn csc(&self) -> &Arc<StoredCsc> {
        &self.of.csc
    }
    /// Original ids of inner nodes.
    pub fn inner(&self) -> &[u32] {
        &self.of.nodes[..self.of.num_inner]
    }
    /// Original ids of halo nodes.
    pub fn halo(&self) -> &[u32] {
        &self.of.nodes[self.of.num_inner..]
    }
    /// The part of each halo node, whose rank has its in-edges and its features.
    pub fn owners(&self) -> &[u32] {
        &self.of.owners
    }
    /// Original ids of all local nodes, inner ones first.
    pub fn nodes(&self) -> &[u32] {
        &self.of.nodes
    }
    /// First position and number of edges of the row of inner node number `local` in the file of the whole graph.
    ///
    /// # Errors
    /// [`StoreError::Damaged`].
    ///
    /// # Panics
    /// There is no such inner node.
    pub fn whole_row(&self, local: u32) -> Result<(u64, u32), StoreError> {
        let (_, len) = self.of.csc.row(local)?;
        Ok((self.of.start(local)?, len))
    }
}

impl Content {
    fn start(&self, local: u32) -> Result<u64, StoreError> {
        self.starts.check(8 * local as usize)?;
        Ok(self.starts.numbers::<u64>()[local as usize])
    }

    /// Local id of an inner node, by its original id.
    pub(super) fn local(&self, v: u32) -> Result<u32, StoreError> {
        let (inner, halo) = self.nodes.split_at(self.num_inner);
        inner.binary_search(&v).map(|at| at as u32).map_err(|_| {
            let owner = halo.binary_search(&v).ok().map(|at| self.owners[at]);
            StoreError::OtherPart { path: self.path.clone(), node: v, part: self.part, owner }
        })
    }

    /// Ids in the whole graph of the edges at positions in this part: those of its file, where it has none
    /// positions there.
    pub(super) fn edge_ids(&self, positions: &[u64], out: &mut [u64]) -> Result<(), StoreError> {
        if self.csc.has_edge_ids() {
            return Ok(self.csc.edge_ids(positions, out)?);
        }
        // Positions of a row come one after the other.
        let (mut row, mut start) = (0..0, 0);
        for (&p, id) in positions.iter().zip(out) {
            if !row.contains(&p) {
                let local = self.csc.row_at(p)?;
                let (from, len) = self.csc.row(local)?;
                (row, start) = (from..from + u64::from(len), self.start(local)?);
                if !row.contains(&p) {
                    return Err(format(
                        self.csc.path(),
                        format!("position {p}: expected in row {local}, found that at {row:?}"),
                    ));
                }
            }
            *id = start.saturating_add(p - row.start);
        }
        Ok(())
    }
}
