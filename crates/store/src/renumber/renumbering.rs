//! A permutation of node ids for locality in files.

use std::path::Path;

use burn_gnn_structure::NodeKey;
use burn_gnn_structure::internal::{check_ids, setting};

use crate::build::{EdgeChunk, EdgeStream};
use crate::error::{StoreError, format};
use crate::partition::Assignment;
use crate::section_writer::replace;
use crate::sections::{Header, SectionFile};

/// Kind of the files, and name of their section.
const KIND: &str = "renumbering";
const ORIGINAL: &str = "original";
/// Edges per chunk of the stream.
const CHUNK: usize = 1 << 16;

/// A permutation of the nodes of a type: new ids and original ids. Takes 8 bytes per node in memory and 4 in a file.
///
/// Renumbered files have better locality: the in-edges and features of hubs, or of a community, share pages and
/// sectors. The order of the in-edges of a node does not change, so sampling, which is keyed by original ids, gives the
/// same result.
///
/// * [`RenumberedEdges`](crate::RenumberedEdges) converts the edges of a build, in the pass that sorts them.
/// * [`write_rows`](Self::write_rows) writes a file of features in the new order, and `RenumberedRows` reads it by
///   original ids.
/// * `StoredGraph::by_original_ids` reads the files of such a build by original ids: the same batches, bit for bit.
///
/// ```
/// use std::sync::Arc;
/// use burn_gnn_store::{CscBuild, EdgeIter, Renumbering, RenumberedEdges, StoredCsc};
/// # let dir = tempfile::tempdir().unwrap();
/// let edges = || EdgeIter::new([(2, 0), (2, 1), (1, 2)]);
/// let of = Arc::new(Renumbering::by_degree(3, edges())?); // 2 is the source of most edges
/// assert_eq!((of.original_ids(), of.new_ids()), (&[2, 1, 0][..], &[2, 1, 0][..]));
/// of.write(dir.path().join("nodes"))?;
/// let file = dir.path().join("csc");
/// CscBuild::new(&file, 3, 3).run(RenumberedEdges::new(edges(), of.clone(), of))?;
/// assert_eq!(StoredCsc::open(&file)?.relation()?.csc().indices(), [1, 0, 0]);
/// assert_eq!(Renumbering::open(dir.path().join("nodes"))?.original_ids(), [2, 1, 0]);
/// # Ok::<(), burn_gnn_store::StoreError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renumbering {
    new: Vec<u32>,
    original: Vec<u32>,
}

impl Renumbering {
    /// Builds a renumbering from the original id of every new id: node `original_ids[i]` becomes node `i`.
    ///
    /// # Errors
    /// An id that is out of range or occurs twice.
    pub fn new(original_ids: Vec<u32>) -> Result<Self, StoreError> {
        let n = original_ids.len();
        check_ids("original_ids", "the nodes", &original_ids, n)?;
        let mut new = vec![u32::MAX; n];
        for (i, &v) in (0..).zip(&original_ids) {
            if new[v as usize] != u32::MAX {
                let found = format!("node {v} at {} and at {i}", new[v as usize]);
                return Err(setting("original_ids", "distinct nodes", &found).into());
            }
            new[v as usize] = i;
        }
        Ok(Self { new, original: original_ids })
    }

    /// Orders nodes by descending out-degree, ties by id: a node with many out-edges is read for many other nodes.
    /// `edges` are in original ids, and `nodes` is the number of sources.
    ///
    /// # Errors
    /// [`StoreError::NodeOutOfRange`]; errors of the stream.
    ///
    /// # Cost
    /// One pass over the stream, `O(nodes log nodes)`, 12 bytes of memory per node.
    pub fn by_degree(nodes: usize, mut edges: impl EdgeStream) -> Result<Self, StoreError> {
        let (mut degree, mut chunk, mut first) = (vec![0u32; nodes], EdgeChunk::default(), 0u64);
        while edges.read(CHUNK, &mut chunk)? > 0 {
            for (i, &u) in chunk.src.iter().enumerate() {
                let Some(degree) = degree.get_mut(u as usize) else {
                    return Err(StoreError::NodeOutOfRange {
                        edge: first + i as u64,
                        arg: "src",
                        bound: nodes as u64,
                        value: u.into(),
                    });
                };
                *degree = degree.saturating_add(1);
            }
            first += chunk.len() as u64;
            chunk.clear();
        }
        let mut order: Vec<u32> = (0..nodes as u32).collect();
        order.sort_unstable_by_key(|&v| (std::cmp::Reverse(degree[v as usize]), v));
        drop(degree);
        Self::new(order)
    }

    /// Orders the nodes of a type by part, then by id. With the parts of a [`StreamCut`](crate::StreamCut), nodes of a
    /// community are adjacent.
    ///
    /// # Panics
    /// There is no such type.
    ///
    /// # Cost
    /// `O(nodes)`.
    #[track_caller]
    pub fn by_part(of: &Assignment, ntype: impl NodeKey) -> Self {
        let (part_of, mut next) = (of.part_of(ntype), vec![0u32; of.parts() + 1]);
        part_of.iter().for_each(|&p| next[p as usize + 1] += 1);
        for p in 0..of.parts() {
            next[p + 1] += next[p];
        }
        let (mut new, mut original) = (vec![0; part_of.len()], vec![0; part_of.len()]);
        for (v, &p) in (0..).zip(part_of) {
            let i = &mut next[p as usize];
            (new[v as usize], original[*i as usize]) = (*i, v);
            *i += 1;
        }
        Self { new, original }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.new.len()
    }
    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty()
    }
    /// The new id of every node, by original id.
    pub fn new_ids(&self) -> &[u32] {
        &self.new
    }
    /// The original id of every node, by new id.
    pub fn original_ids(&self) -> &[u32] {
        &self.original
    }
    /// Converts original ids to new ids.
    ///
    /// # Errors
    /// An id out of range.
    pub fn to_new(&self, ids: &[u32]) -> Result<Vec<u32>, StoreError> {
        check_ids("ids", "the nodes", ids, self.len())?;
        Ok(ids.iter().map(|&v| self.new[v as usize]).collect())
    }
    /// Converts new ids to original ids.
    ///
    /// # Errors
    /// An id out of range.
    pub fn to_original(&self, ids: &[u32]) -> Result<Vec<u32>, StoreError> {
        check_ids("ids", "the nodes", ids, self.len())?;
        Ok(ids.iter().map(|&v| self.original[v as usize]).collect())
    }

    /// Writes the original ids to a file, which appears under its name when it is complete.
    ///
    /// # Errors
    /// [`StoreError::Data`] for a file that cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), StoreError> {
        let mut header = Header::new(KIND).with("nodes", self.len());
        header.section(ORIGINAL, 4 * self.len() as u64);
        replace(path.as_ref(), header, |out| out.put(0, bytemuck::cast_slice(&self.original)))
    }

    /// Reads a file of [`write`](Self::write).
    ///
    /// # Errors
    /// [`StoreError::Data`], [`StoreError::Truncated`], [`StoreError::Damaged`]; as [`new`](Self::new).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let file = SectionFile::open(path, KIND)?;
        let nodes = file.header.number(path, "nodes")?;
        let bytes = nodes
            .checked_mul(4)
            .ok_or_else(|| format(path, format!("{nodes} nodes, more than a file holds")))?;
        let section = file.required(ORIGINAL, bytes)?;
        section.check_range(0..section.bytes().len())?;
        Self::new(section.numbers::<u32>().to_vec())
    }
}
