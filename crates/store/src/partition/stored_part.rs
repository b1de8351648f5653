//! One part of a partitioned graph in files, for one rank.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn_gnn_structure::internal::OrPanic;
use burn_gnn_structure::{EdgeKey, EdgeReader, NodeKey, Relation, Schema};

use super::files::{
    FINGERPRINT, HALO, INNER, KIND, NodeCounts, OWNERS, STARTS, Types, edges_path, nodes_path,
    types,
};
use crate::csc::StoredCsc;
use crate::error::{StoreError, format};
use crate::sections::{Section, SectionFile};

/// One part of a graph in files. Local ids of a node type count the inner nodes, then the halo nodes, both in ascending
/// original id. The part has the in-edges of inner nodes, in the order of the whole graph. Random numbers are keyed by
/// original ids, so sampling gives the same result as on the whole graph.
///
/// A rank opens its part with [`open`](Self::open); the folder need not contain other parts. Clones share all data.
/// Types are given by name, or as `..` if there is only one.
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
/// assert_eq!((part.inner(..), part.halo(..), part.owners(..)), (&[1, 2][..], &[0, 3][..], &[0, 0][..]));
/// # Ok::<(), burn_gnn_store::StoreError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StoredPart {
    pub(super) of: Arc<Content>,
}

/// The content of a part, and its files.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) path: PathBuf,
    pub(super) schema: Arc<Schema>,
    pub(super) nodes: Vec<PartNodes>,
    pub(super) edges: Vec<PartEdges>,
    part: u32,
    parts: u32,
    fingerprint: u64,
}

/// The nodes of one type.
#[derive(Debug)]
pub(super) struct PartNodes {
    /// Original ids of inner nodes, then of halo nodes.
    pub(super) ids: Vec<u32>,
    pub(super) num_inner: usize,
    /// Part of each halo node.
    pub(super) owners: Vec<u32>,
    /// Number of nodes in the whole graph.
    pub(super) total: usize,
}

/// The edges of one type.
#[derive(Debug)]
pub(super) struct PartEdges {
    pub(super) csc: Arc<StoredCsc>,
    /// Position of each inner node's row in the file of the whole graph.
    starts: Section,
}

impl StoredPart {
    /// Opens part number `part` in `dir`, without accessing files of other parts. Reads node lists and offsets: 4 bytes
    /// per inner node, 16 per inner node and relation into it, and 8 per halo node. Edges are read when a sampler needs
    /// them.
    ///
    /// # Errors
    /// [`StoreError::Data`], [`StoreError::Truncated`], [`StoreError::Damaged`]; files of another part or of different
    /// partitionings.
    pub fn open(dir: impl AsRef<Path>, part: usize) -> Result<Self, StoreError> {
        let (dir, path) = (dir.as_ref(), nodes_path(dir.as_ref(), part));
        let file = SectionFile::open(&path, KIND)?;
        let number = |fact| file.header.number(&path, fact);
        let (found, parts, fingerprint) = (number("part")?, number("parts")?, number(FINGERPRINT)?);
        if found != part as u64 || found >= parts || parts > u64::from(u32::MAX) {
            let why = format!(
                "expected part {part}, found part {found} of {parts}; copy the files of this part"
            );
            return Err(format(&path, why));
        }
        let Types { nodes: counts, edges } = types(&file)?;
        let nodes = read_nodes(&file, &counts, (part, parts))?;
        let names: Vec<String> = counts.into_iter().map(|t| t.name).collect();
        let schema = Schema::new(names.clone(), edges.clone())?;
        if schema.ntypes() != names || schema.etypes() != edges {
            return Err(format(
                &path,
                "expected types in the order of their names, found another order; write the parts again",
            ));
        }
        let open = |e: usize| {
            let ((s, d), csc) = (schema.endpoints(e), StoredCsc::open(edges_path(dir, part, e))?);
            if csc.fact(FINGERPRINT).and_then(serde_json::Value::as_u64) != Some(fingerprint) {
                let why = "expected nodes and edges of one partitioning, found those of two; write the parts again";
                return Err(format(csc.path(), why));
            }
            let (of, expected) = (csc.num_nodes(), (nodes[s].ids.len(), nodes[d].num_inner));
            if of != expected {
                let why = format!(
                    "expected edges between {expected:?} nodes, found {of:?}; write the parts again"
                );
                return Err(format(csc.path(), why));
            }
            let starts = csc.required(STARTS, 8 * of.1 as u64)?;
            // Edge ids are needed in functions that cannot return an error, so the section is verified now.
            starts.check_range(0..starts.bytes().len())?;
            csc.check_offsets()?;
            Ok(PartEdges { csc, starts })
        };
        let edges = (0..edges.len()).map(open).collect::<Result<_, StoreError>>()?;
        let (part, parts, schema) = (part as u32, parts as u32, Arc::new(schema));
        Ok(Self { of: Arc::new(Content { path, schema, nodes, edges, part, parts, fingerprint }) })
    }

    /// A hash of the assignment and of the graph's sizes, which identifies a partitioning.
    pub fn fingerprint(&self) -> u64 {
        self.of.fingerprint
    }
    /// Number of this part, and number of parts.
    pub fn number(&self) -> (usize, usize) {
        (self.of.part as usize, self.of.parts as usize)
    }
    /// Node types and edge types of the graph.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.of.schema
    }
    /// Path of the node file.
    pub fn path(&self) -> &Path {
        &self.of.path
    }
    /// Number of nodes of a type in the whole graph.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn total_nodes(&self, ntype: impl NodeKey) -> usize {
        self.nodes_of(ntype).total
    }
    /// The edges of a type into inner nodes, by local ids. Edge ids, weights and times are included if the graph has
    /// them.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn csc(&self, etype: impl EdgeKey) -> &Arc<StoredCsc> {
        &self.of.edges[self.etype(etype)].csc
    }
    /// Original ids of the inner nodes of a type.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn inner(&self, ntype: impl NodeKey) -> &[u32] {
        self.nodes_of(ntype).inner()
    }
    /// Original ids of the halo nodes of a type.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn halo(&self, ntype: impl NodeKey) -> &[u32] {
        self.nodes_of(ntype).halo()
    }
    /// The part that owns each halo node of a type. Its rank has the in-edges and features of the node.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn owners(&self, ntype: impl NodeKey) -> &[u32] {
        &self.nodes_of(ntype).owners
    }
    /// Original ids of all local nodes of a type, inner nodes first.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn nodes(&self, ntype: impl NodeKey) -> &[u32] {
        &self.nodes_of(ntype).ids
    }
    /// The row of inner node number `local` in the file of the whole graph for an edge type: its first position and its
    /// number of edges.
    ///
    /// # Errors
    /// [`StoreError::Damaged`].
    ///
    /// # Panics
    /// There is no such type or inner node.
    #[track_caller]
    pub fn whole_row(&self, etype: impl EdgeKey, local: u32) -> Result<(u64, u32), StoreError> {
        let edges = &self.of.edges[self.etype(etype)];
        let (start, len) = (edges.start(local)?, edges.csc.row(local)?.1);
        match start.checked_add(len.into()) {
            Some(_) => Ok((start, len)),
            None => Err(format(
                edges.csc.path(),
                format!(
                    "row {local}: expected positions of the whole graph, found {len} from {start}"
                ),
            )),
        }
    }

    #[track_caller]
    fn nodes_of(&self, ntype: impl NodeKey) -> &PartNodes {
        &self.of.nodes[self.of.schema.ntype(ntype).or_panic()]
    }
    #[track_caller]
    fn etype(&self, etype: impl EdgeKey) -> usize {
        self.of.schema.etype(etype).or_panic()
    }
}

/// Reads the nodes of all types of part `part` of `parts`.
fn read_nodes(
    file: &Arc<SectionFile>,
    counts: &[NodeCounts],
    (part, parts): (usize, u64),
) -> Result<Vec<PartNodes>, StoreError> {
    let (path, most) = (&file.path, Relation::LIMIT);
    if let Some(t) = counts.iter().find(|t| t.total.max(t.inner).max(t.halo) > most) {
        let why = format!(
            "`{}`: expected at most {most} nodes, found more; write the parts again",
            t.name
        );
        return Err(format(path, why));
    }
    let list = |name: &str, len: u64| -> Result<Vec<u32>, StoreError> {
        let section = file.required(name, 4 * len)?;
        section.check_range(0..section.bytes().len())?;
        Ok(section.numbers::<u32>().to_vec())
    };
    let sum = |of: fn(&NodeCounts) -> u64| counts.iter().map(of).sum::<u64>();
    let (inner, borrowed) = (sum(|t| t.inner), sum(|t| t.halo));
    let (inner, halo, owners) =
        (list(INNER, inner)?, list(HALO, borrowed)?, list(OWNERS, borrowed)?);
    if let Some(p) = owners.iter().find(|&&p| u64::from(p) >= parts || p as usize == part) {
        let why = format!(
            "`{OWNERS}`: expected other parts in 0..{parts}, found {p}; write the parts again"
        );
        return Err(format(path, why));
    }
    let (mut inner, mut halo, mut owners) = (&inner[..], &halo[..], &owners[..]);
    let mut nodes = vec![];
    for t in counts {
        let (own, more) = (take(&mut inner, t.inner), take(&mut halo, t.halo));
        for ids in [own, more] {
            let ascend = ids.is_sorted_by(|a, b| a < b);
            if !ascend || ids.last().is_some_and(|&v| u64::from(v) >= t.total) {
                let why = format!(
                    "`{}`: expected ascending ids in 0..{}, found others; write the parts again",
                    t.name, t.total
                );
                return Err(format(path, why));
            }
        }
        let mut rest = own.iter().peekable();
        let shared = more.iter().find(|&u| {
            while rest.next_if(|v| *v < u).is_some() {}
            rest.peek() == Some(&u)
        });
        if let Some(u) = shared {
            let why = format!(
                "`{}`, node {u}: expected inner or halo, found both; write the parts again",
                t.name
            );
            return Err(format(path, why));
        }
        nodes.push(PartNodes {
            ids: [own, more].concat(),
            num_inner: own.len(),
            owners: take(&mut owners, t.halo).to_vec(),
            total: t.total as usize,
        });
    }
    Ok(nodes)
}

/// Removes and returns the first `n` entries of a list, which has at least as many.
fn take<'a>(list: &mut &'a [u32], n: u64) -> &'a [u32] {
    let (first, rest) = list.split_at(n as usize);
    *list = rest;
    first
}

impl PartNodes {
    pub(super) fn inner(&self) -> &[u32] {
        &self.ids[..self.num_inner]
    }
    pub(super) fn halo(&self) -> &[u32] {
        &self.ids[self.num_inner..]
    }
}

impl PartEdges {
    fn start(&self, local: u32) -> Result<u64, StoreError> {
        self.starts.check(8 * local as usize)?;
        Ok(self.starts.numbers::<u64>()[local as usize])
    }

    /// Ids in the whole graph of the edges at positions in this part: stored ids, or positions in the file of the whole
    /// graph.
    pub(super) fn edge_ids(&self, positions: &[u64], out: &mut [u64]) -> Result<(), StoreError> {
        if self.csc.has_edge_ids() {
            return Ok(self.csc.edge_ids(positions, out)?);
        }
        // Positions of the same row are consecutive.
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

impl Content {
    /// Local id of an inner node of a type, by original id.
    pub(super) fn local(&self, t: usize, v: u32) -> Result<u32, StoreError> {
        let nodes = &self.nodes[t];
        nodes.inner().binary_search(&v).map(|at| at as u32).map_err(|_| StoreError::OtherPart {
            path: self.path.clone(),
            ntype: self.schema.ntypes()[t].clone(),
            node: v,
            part: self.part,
            owner: nodes.halo().binary_search(&v).ok().map(|at| nodes.owners[at]),
        })
    }
}
