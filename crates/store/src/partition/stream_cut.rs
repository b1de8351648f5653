//! Streaming partitioner: assigns nodes to parts one by one, reading each row of the files once per pass.

use burn_gnn_structure::internal::setting;
use burn_gnn_structure::{EdgeReader, Schema};

use super::assignment::Assignment;
use super::files::NONE;
use super::relation_files::{GraphFiles, RelationFiles};
use super::row_stream::{EDGES, each_node};
use crate::error::StoreError;

/// Maximal size of a part relative to the mean.
const SLACK: f64 = 1.05;
/// Ranges of ids are the initial assignment if they cut less than this share of the edges that a random one cuts.
const LOCALITY: f64 = 0.8;

/// Score of part `p` for a node with `n_p` neighbours in it, where `p` has `|p|` nodes of the node's type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamMethod {
    /// `n_p (1 - |p| / C)`, where `C` is the maximal size of a part (LDG: Stanton and Kliot, KDD 2012).
    #[default]
    Ldg,
    /// `n_p - α γ |p|^½` with `γ = 3/2` (Fennel: Tsourakakis et al., WSDM 2014).
    Fennel,
}

/// Partitions a graph by streaming over the in-edges of its nodes. Memory is 4 bytes per node, independent of the
/// number of edges.
///
/// * Nodes are assigned type by type in the order of their ids. The score of a part counts the in-neighbours of all
///   types that are already assigned to it. With [`with_passes`](Self::with_passes), later passes use the parts of the
///   previous pass (restreaming: Nishimura and Ugander, KDD 2013).
/// * If equal ranges of ids cut less than 0.8 of the edges that a random assignment cuts (as for ids of web crawls),
///   the first pass starts from these ranges. They are also the result if no pass cuts fewer edges.
/// * A node of a type without in-edges is assigned to the part of most of its destinations, which a majority vote finds
///   in 8 bytes per node (Boyer and Moore, 1981: exact if more than half of the edges agree).
/// * A part has at most 1.05 times the mean number of nodes of each type, or the mean rounded up.
/// * No part is empty if there are at least as many nodes as parts: once the number of empty parts equals the number of
///   remaining nodes in a pass, each remaining node is assigned to an empty part.
/// * Every choice is a function of the files, so all machines compute the same parts.
///
/// METIS, which `burn-gnn-dist` offers, needs several times the memory of the graph.
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

impl StreamCut {
    /// LDG with one pass.
    pub fn new(parts: usize) -> Self {
        Self { parts, method: StreamMethod::Ldg, passes: 1 }
    }
    /// Sets the score.
    #[must_use]
    pub fn with_method(mut self, method: StreamMethod) -> Self {
        self.method = method;
        self
    }
    /// Sets the number of passes over the files, at least one.
    #[must_use]
    pub fn with_passes(mut self, passes: usize) -> Self {
        self.passes = passes.max(1);
        self
    }
    /// Memory in bytes for this number of nodes of all types. Add 8 bytes for each node of a type without in-edges, and
    /// for each part and further type.
    pub fn memory(&self, nodes: u64) -> u64 {
        4 * nodes + 25 * self.parts as u64 + 12 * EDGES
    }

    /// Assigns every node to a part.
    ///
    /// # Errors
    /// The number of parts is 0; a [`StoredCsc`](crate::StoredCsc) between two node types; [`StoreError::Damaged`].
    ///
    /// # Cost
    /// `O(passes · (edges + nodes · parts))` on one thread. Each pass reads all files sequentially, those of one
    /// destination type interleaved. One or two more passes evaluate ranges of ids.
    pub fn assign(&self, graph: &(impl GraphFiles + ?Sized)) -> Result<Assignment, StoreError> {
        let of = graph.relations()?;
        if self.parts == 0 || self.parts >= NONE as usize {
            let expected = format!("1 to {} parts", NONE - 1);
            return Err(setting("parts", &expected, &self.parts.to_string()).into());
        }
        let range = |t: usize, v: u32| {
            (u64::from(v) * self.parts as u64 / of.counts[t].max(1) as u64) as u32
        };
        let by_range = |part_of: &mut [Vec<u32>]| {
            for (t, list) in part_of.iter_mut().enumerate() {
                (0..).zip(list).for_each(|(v, p)| *p = range(t, v));
            }
        };
        let mut cut_by_ranges = 0u64;
        each_node(&of, |t, v, edges| {
            cut_by_ranges +=
                edges.sources().filter(|&(s, u)| range(s, u) != range(t, v)).count() as u64;
            Ok(())
        })?;
        let edges = of.num_edges();
        // Ranges leave no part empty if some type has at least as many nodes as there are parts.
        let local = (cut_by_ranges as f64)
            < LOCALITY * (1.0 - 1.0 / self.parts as f64) * edges as f64
            && of.counts.iter().any(|&n| n >= self.parts);
        let mut part_of: Vec<Vec<u32>> = of.counts.iter().map(|&n| vec![NONE; n]).collect();
        if local {
            by_range(&mut part_of);
        }
        let types = Schema::new(of.schema.ntypes().to_vec(), vec![])?;
        let mut found = Assignment::of_schema(types, part_of, self.parts);
        found.edges = edges;
        for _ in 0..self.passes {
            self.pass(&of, &mut found)?;
        }
        if local && found.count_cut(&of)? >= cut_by_ranges {
            by_range(&mut found.part_of);
            found.cut = cut_by_ranges;
        }
        Ok(found)
    }

    /// One pass over all nodes.
    fn pass(&self, of: &RelationFiles<'_>, found: &mut Assignment) -> Result<(), StoreError> {
        let types = 0..of.counts.len();
        let mut fills: Vec<Fill> = types.clone().map(|t| Fill::new(self, of, t)).collect();
        // For nodes of types without in-edges: the part with the majority of votes so far, and its lead.
        let no_edges_into = |t: usize| of.schema.etypes_into(t).next().is_none();
        let mut votes: Vec<Vec<(u32, u32)>> =
            types.map(|t| vec![(0, 0); if no_edges_into(t) { of.counts[t] } else { 0 }]).collect();
        let (mut counts, mut counted) = (vec![0u32; self.parts], vec![]);
        let mut unfilled = Unfilled::new(self.parts, of);
        let Assignment { part_of, cut, .. } = found;
        *cut = 0;
        each_node(of, |t, v, edges| {
            for (s, u) in edges.sources().filter(|&from| from != (t, v)) {
                let p = part_of[s][u as usize];
                if p != NONE {
                    if counts[p as usize] == 0 {
                        counted.push(p);
                    }
                    counts[p as usize] += 1;
                }
            }
            let p = fills[t].choose(&counts, &mut unfilled);
            part_of[t][v as usize] = p;
            for (s, u) in edges.sources() {
                *cut += u64::from(part_of[s][u as usize] != p);
                match votes[s].get_mut(u as usize) {
                    Some((of, lead)) if *lead == 0 => (*of, *lead) = (p, 1),
                    Some((of, lead)) if *of == p => *lead = lead.saturating_add(1),
                    Some((_, lead)) => *lead -= 1,
                    None => {}
                }
            }
            counted.drain(..).for_each(|p: u32| counts[p as usize] = 0);
            Ok(())
        })?;
        for (t, votes) in votes.iter().enumerate() {
            for (&(p, lead), to) in votes.iter().zip(&mut part_of[t]) {
                counts[p as usize] = lead;
                *to = fills[t].choose(&counts, &mut unfilled);
                counts[p as usize] = 0;
            }
        }
        Ok(())
    }
}

/// Counts the empty parts and the remaining nodes of a pass.
struct Unfilled {
    is_empty: Vec<bool>,
    parts: u64,
    nodes: u64,
}

impl Unfilled {
    fn new(parts: usize, of: &RelationFiles<'_>) -> Self {
        let nodes = of.counts.iter().map(|&n| n as u64).sum();
        Self { is_empty: vec![true; parts], parts: parts as u64, nodes }
    }
    /// Whether the next node may be assigned to a part.
    fn allows(&self, part: usize) -> bool {
        self.parts != self.nodes || self.is_empty[part]
    }
    fn add(&mut self, part: usize) {
        self.nodes -= 1;
        self.parts -= u64::from(std::mem::take(&mut self.is_empty[part]));
    }
}

/// Number of nodes of a type in each part, during a pass.
struct Fill {
    method: StreamMethod,
    sizes: Vec<u64>,
    mean: f64,
    most: u64,
    /// `0.75 · edges / nodes`, for Fennel.
    price: f64,
}

impl Fill {
    fn new(cut: &StreamCut, of: &RelationFiles<'_>, t: usize) -> Self {
        let (n, parts) = (of.counts[t], cut.parts);
        let edges: u64 = of.schema.etypes_into(t).map(|e| of.files[e].num_edges()).sum();
        let mean = n as f64 / parts as f64;
        Self {
            method: cut.method,
            sizes: vec![0; parts],
            mean,
            most: ((mean * SLACK) as u64).max(n.div_ceil(parts) as u64),
            price: 0.75 * edges as f64 / n.max(1) as f64,
        }
    }
    /// Assigns a node with `counts` neighbours in each part to the best part with room.
    fn choose(&mut self, counts: &[u32], unfilled: &mut Unfilled) -> u32 {
        let mut best = (f64::NEG_INFINITY, f64::NEG_INFINITY, 0);
        for (p, (&count, &size)) in counts.iter().zip(&self.sizes).enumerate() {
            if size >= self.most || !unfilled.allows(p) {
                continue;
            }
            let (count, fill) = (f64::from(count), size as f64 / self.mean);
            let score = match self.method {
                StreamMethod::Ldg => count * (1.0 - fill / SLACK).max(0.0),
                StreamMethod::Fennel => count - self.price * fill.sqrt(),
            };
            // Ties go to the first part.
            if score > best.0 || score == best.0 && -fill > best.1 {
                best = (score, -fill, p);
            }
        }
        self.sizes[best.2] += 1;
        unfilled.add(best.2);
        best.2 as u32
    }
}
