//! Assigns nodes to parts one by one, reading each row of the file once per pass.

use burn_gnn_structure::EdgeReader;
use burn_gnn_structure::internal::setting;

use crate::StoredCsc;
use crate::error::StoreError;

/// What a part may hold of the mean.
const SLACK: f64 = 1.05;
/// Share of the edges of a random cut below which ranges of ids are a start.
const LOCAL: f64 = 0.8;
/// Not assigned yet.
const NONE: u32 = u32::MAX;
/// Rows that are read at a time, and the most edges of them.
const ROWS: usize = 1 << 12;
const EDGES: u64 = 1 << 20;

/// What a part is chosen by, of a node with `n_p` neighbours in part `p`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamMethod {
    /// `n_p (1 - |p| / C)`, `C` being what a part may hold (LDG: Stanton and Kliot, KDD 2012).
    #[default]
    Ldg,
    /// `n_p - α γ |p|^½` with `γ = 3/2` (Fennel: Tsourakakis et al., WSDM 2014).
    Fennel,
}

/// Cuts the nodes of one type into parts by streaming over their in-edges, in memory proportional to nodes: 4 bytes
/// each, whatever the number of edges.
///
/// Nodes come in the order of their ids, and of their in-neighbours those count that have a part already; under
/// [`with_passes`](Self::with_passes) later passes see the parts of the pass before (restreaming: Nishimura and
/// Ugander, KDD 2013). Where equal ranges of ids cut less than 0.8 of the edges that a random cut would, as ids of
/// crawls do, the first pass starts from these ranges, and they are the parts where no pass cuts less. A part has
/// at most 1.05 times the mean of nodes. Every choice is a function of the file: the same parts on every machine.
///
/// METIS, which `burn-gnn-dist` offers, holds the graph several times over: at this size it would need a coarsening
/// before it.
///
/// ```
/// use burn_gnn_store::{CscBuild, EdgeIter, StoredCsc, StreamCut};
/// # let dir = tempfile::tempdir().unwrap();
/// let file = dir.path().join("graph.csc");
/// // Two rings.
/// let edges = (0..40u32).map(|i| (i / 20 * 20 + (i + 1) % 20, i));
/// CscBuild::new(&file, 40, 40).run(EdgeIter::new(edges))?;
/// let stored = StoredCsc::open(&file)?;
/// let parts = StreamCut::new(2).with_passes(3).assign(&stored)?;
/// let written = parts.write(&stored, dir.path().join("parts"))?;
/// written.verify(&stored)?;
/// # Ok::<(), burn_gnn_store::StoreError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct StreamCut {
    parts: usize,
    method: StreamMethod,
    passes: usize,
}

/// The part of every node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub(super) part_of: Vec<u32>,
    pub(super) parts: usize,
    cut: u64,
    edges: u64,
}

impl Assignment {
    /// Parts that are known.
    ///
    /// # Errors
    /// A part out of range.
    pub fn new(part_of: Vec<u32>, parts: usize) -> Result<Self, StoreError> {
        burn_gnn_structure::internal::check_ids("part_of", "the nodes", &part_of, parts)?;
        Ok(Self { part_of, parts, cut: 0, edges: 0 })
    }
    /// The part of every node.
    pub fn part_of(&self) -> &[u32] {
        &self.part_of
    }
    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.parts
    }
    /// Nodes of each part.
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.parts];
        self.part_of.iter().for_each(|&p| sizes[p as usize] += 1);
        sizes
    }
    /// Share of edges between parts, as the last pass met them: an edge from a node that got its part later counts
    /// by the part of the pass before, in the first pass as cut.
    pub fn cut_seen(&self) -> f64 {
        if self.edges == 0 { 0.0 } else { self.cut as f64 / self.edges as f64 }
    }
    /// Whether this is of the nodes of a graph of one node type.
    pub(super) fn check(&self, csc: &StoredCsc) -> Result<(), StoreError> {
        let nodes = of_one_type(csc)?;
        if self.part_of.len() != nodes {
            return Err(setting(
                "part_of",
                &format!("the parts of {nodes} nodes"),
                &format!("those of {}", self.part_of.len()),
            )
            .into());
        }
        Ok(())
    }
    /// Share of edges between parts.
    ///
    /// # Errors
    /// Another number of nodes than the file has; a relation between two node types; [`StoreError::Damaged`].
    ///
    /// # Cost
    /// One pass over the file.
    pub fn cut(&self, csc: &StoredCsc) -> Result<f64, StoreError> {
        self.check(csc)?;
        let (mut cut, mut edges) = (0u64, 0u64);
        each_row(csc, |v, row| {
            let own = self.part_of[v as usize];
            cut += row.iter().filter(|&&u| self.part_of[u as usize] != own).count() as u64;
            edges += row.len() as u64;
            Ok(())
        })?;
        Ok(if edges == 0 { 0.0 } else { cut as f64 / edges as f64 })
    }
}

impl StreamCut {
    /// LDG in one pass.
    pub fn new(parts: usize) -> Self {
        Self { parts, method: StreamMethod::Ldg, passes: 1 }
    }
    /// How parts are chosen.
    #[must_use]
    pub fn with_method(mut self, method: StreamMethod) -> Self {
        self.method = method;
        self
    }
    /// Passes over the file, at least one.
    #[must_use]
    pub fn with_passes(mut self, passes: usize) -> Self {
        self.passes = passes.max(1);
        self
    }
    /// Bytes of memory for so many nodes.
    pub fn memory(&self, nodes: u64) -> u64 {
        4 * nodes + 24 * self.parts as u64 + 12 * EDGES
    }

    /// A part for every node.
    ///
    /// # Errors
    /// No part; a relation between two node types; [`StoreError::Damaged`].
    ///
    /// # Cost
    /// `O(passes · (edges + nodes · parts))`, on one thread; the file is read from its beginning to its end, and
    /// once or twice more to look at ranges.
    pub fn assign(&self, csc: &StoredCsc) -> Result<Assignment, StoreError> {
        let n = of_one_type(csc)?;
        if self.parts == 0 || self.parts >= NONE as usize {
            return Err(setting("parts", "at least one part", &self.parts.to_string()).into());
        }
        let (parts, mean) = (self.parts, n as f64 / self.parts as f64);
        let most = ((mean * SLACK) as u64).max(n.div_ceil(parts) as u64);
        let price = 0.75 * csc.num_edges() as f64 / n.max(1) as f64;
        let mut of = Assignment { part_of: vec![NONE; n], parts, cut: 0, edges: csc.num_edges() };
        let range = |v: u32| (u64::from(v) * parts as u64 / n as u64) as u32;
        let (mut counts, mut met, mut between) = (vec![0u32; parts], vec![], 0u64);
        each_row(csc, |v, row| {
            between += row.iter().filter(|&&u| range(u) != range(v)).count() as u64;
            Ok(())
        })?;
        let local = (between as f64) < LOCAL * (1.0 - 1.0 / parts as f64) * csc.num_edges() as f64;
        if local {
            (0..).zip(&mut of.part_of).for_each(|(v, p)| *p = range(v));
        }
        for _ in 0..self.passes {
            let mut sizes = vec![0u64; parts];
            of.cut = 0;
            each_row(csc, |v, row| {
                for &u in row.iter().filter(|&&u| u != v) {
                    let p = of.part_of[u as usize];
                    if p != NONE {
                        if counts[p as usize] == 0 {
                            met.push(p);
                        }
                        counts[p as usize] += 1;
                    }
                }
                let mut best = (f64::NEG_INFINITY, f64::NEG_INFINITY, 0);
                for p in (0..parts).filter(|&p| sizes[p] < most) {
                    let (count, fill) = (f64::from(counts[p]), sizes[p] as f64 / mean);
                    let score = match self.method {
                        StreamMethod::Ldg => count * (1.0 - fill / SLACK).max(0.0),
                        StreamMethod::Fennel => count - price * fill.sqrt(),
                    };
                    // The first of equals.
                    if score > best.0 || score == best.0 && -fill > best.1 {
                        best = (score, -fill, p);
                    }
                }
                let p = best.2;
                sizes[p] += 1;
                of.part_of[v as usize] = p as u32;
                of.cut +=
                    row.iter().filter(|&&u| of.part_of[u as usize] != p as u32).count() as u64;
                met.drain(..).for_each(|p: u32| counts[p as usize] = 0);
                Ok(())
            })?;
        }
        if local && of.cut(csc)? * csc.num_edges() as f64 >= between as f64 {
            (0..).zip(&mut of.part_of).for_each(|(v, p)| *p = range(v));
            of.cut = between;
        }
        Ok(of)
    }
}

/// Number of nodes of a relation on one node type.
fn of_one_type(csc: &StoredCsc) -> Result<usize, StoreError> {
    match csc.num_nodes() {
        (sources, n) if n == sources => Ok(n),
        (sources, n) => Err(setting(
            "csc",
            "a relation on one node type",
            &format!("{sources} sources and {n} destinations"),
        )
        .into()),
    }
}

/// Calls `f` with every row of a file, in their order. A row of more edges than are read at a time is held as a whole.
pub(super) fn each_row(
    csc: &StoredCsc,
    mut f: impl FnMut(u32, &[u32]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let n = csc.num_nodes().1;
    rows_of(csc, (0..n).map(|v| v as u32), &mut |v, _, row| f(v, row))
}

/// Calls `f` with the rows of ascending nodes: the node, the position of its first edge, and its sources.
pub(super) fn rows_of(
    csc: &StoredCsc,
    nodes: impl Iterator<Item = u32>,
    f: &mut impl FnMut(u32, u64, &[u32]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let (mut batch, mut rows, mut sources, mut nodes) = (vec![], vec![], vec![], nodes.peekable());
    while nodes.peek().is_some() {
        batch.clear();
        rows.clear();
        batch.extend(nodes.by_ref().take(ROWS));
        csc.rows(&batch, &mut rows)?;
        let mut from = 0;
        while from < batch.len() {
            // Rows that are consecutive in the file are one read.
            let (start, mut end, mut to) =
                (rows[from].0, rows[from].0 + u64::from(rows[from].1), from + 1);
            while to < batch.len() && rows[to].0 == end && end - start < EDGES {
                end += u64::from(rows[to].1);
                to += 1;
            }
            sources.clear();
            csc.sources_of(start..end, &mut sources)?;
            for i in from..to {
                let at = (rows[i].0 - start) as usize;
                f(batch[i], rows[i].0, &sources[at..at + rows[i].1 as usize])?;
            }
            from = to;
        }
    }
    Ok(())
}
