//! Assigns nodes to parts one by one, reading each row of the files once per pass.

use burn_gnn_structure::internal::setting;
use burn_gnn_structure::{EdgeReader, Schema};

use super::assignment::Assignment;
use super::files::NONE;
use super::relation_files::{GraphFiles, RelationFiles};
use super::row_stream::{EDGES, each_node};
use crate::error::StoreError;

/// What a part may hold of the mean.
const SLACK: f64 = 1.05;
/// Share of the edges of a random cut below which ranges of ids are a start.
const LOCAL: f64 = 0.8;

/// What a part is chosen by, of a node with `n_p` neighbours in part `p`, which has `|p|` nodes of its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamMethod {
    /// `n_p (1 - |p| / C)`, `C` being what a part may hold (LDG: Stanton and Kliot, KDD 2012).
    #[default]
    Ldg,
    /// `n_p - α γ |p|^½` with `γ = 3/2` (Fennel: Tsourakakis et al., WSDM 2014).
    Fennel,
}

/// Cuts the nodes of a graph into parts by streaming over their in-edges, in memory proportional to nodes: 4 bytes
/// each, whatever the number of edges.
///
/// Nodes come type by type, in the order of their ids, and of their in-neighbours of all types those count that have
/// a part already; under [`with_passes`](Self::with_passes) later passes see the parts of the pass before
/// (restreaming: Nishimura and Ugander, KDD 2013). Where equal ranges of ids cut less than 0.8 of the edges that a
/// random cut would, as ids of crawls do, the first pass starts from these ranges, and they are the parts where no
/// pass cuts less. Nodes of a type that no relation leads to follow the part where most of their edges end, as a
/// majority vote in 8 bytes per node finds it (Boyer and Moore, 1981: exact where more than half of the edges do).
/// A part has at most 1.05 times the mean of the nodes of each type, or the mean rounded up. No part is empty where
/// there are at least as many nodes as parts: once as many parts are empty as nodes are left in a pass, each of these
/// goes to one of them. Every choice is a function of the files: the same parts on every machine.
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
    /// Passes over the files, at least one.
    #[must_use]
    pub fn with_passes(mut self, passes: usize) -> Self {
        self.passes = passes.max(1);
        self
    }
    /// Bytes of memory for so many nodes of all types; 8 more for each node of a type that no relation leads to, and for
    /// each part and further type.
    pub fn memory(&self, nodes: u64) -> u64 {
        4 * nodes + 25 * self.parts as u64 + 12 * EDGES
    }

    /// A part for every node.
    ///
    /// # Errors
    /// No part; a single relation between two node types; [`StoreError::Damaged`].
    ///
    /// # Cost
    /// `O(passes · (edges + nodes · parts))`, on one thread; the files are read from their beginnings to their ends,
    /// those of one destination type side by side, and once or twice more to look at ranges.
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
        let mut between = 0u64;
        each_node(&of, |t, v, edges| {
            between += edges.sources().filter(|&(s, u)| range(s, u) != range(t, v)).count() as u64;
            Ok(())
        })?;
        let edges = of.num_edges();
        // Ranges of a type leave no part empty where it has a node for each.
        let local = (between as f64) < LOCAL * (1.0 - 1.0 / self.parts as f64) * edges as f64
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
        if local && found.count_cut(&of)? >= between {
            by_range(&mut found.part_of);
            found.cut = between;
        }
        Ok(found)
    }

    /// One pass over all nodes.
    fn pass(&self, of: &RelationFiles<'_>, found: &mut Assignment) -> Result<(), StoreError> {
        let types = 0..of.counts.len();
        let mut fills: Vec<Fill> = types.clone().map(|t| Fill::new(self, of, t)).collect();
        // The part that has most votes so far, and by how many, of nodes that no relation leads to.
        let no_edges_into = |t: usize| of.schema.etypes_into(t).next().is_none();
        let mut votes: Vec<Vec<(u32, u32)>> =
            types.map(|t| vec![(0, 0); if no_edges_into(t) { of.counts[t] } else { 0 }]).collect();
        let (mut counts, mut met) = (vec![0u32; self.parts], vec![]);
        let mut unfilled = Unfilled::new(self.parts, of);
        let Assignment { part_of, cut, .. } = found;
        *cut = 0;
        each_node(of, |t, v, edges| {
            for (s, u) in edges.sources().filter(|&from| from != (t, v)) {
                let p = part_of[s][u as usize];
                if p != NONE {
                    if counts[p as usize] == 0 {
                        met.push(p);
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
            met.drain(..).for_each(|p: u32| counts[p as usize] = 0);
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

/// The parts that no node has in a pass, and the nodes without a part.
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
    /// Whether a part may have the next node.
    fn allows(&self, part: usize) -> bool {
        self.parts != self.nodes || self.is_empty[part]
    }
    fn add(&mut self, part: usize) {
        self.nodes -= 1;
        self.parts -= u64::from(std::mem::take(&mut self.is_empty[part]));
    }
}

/// How many nodes of a type each part has, in a pass.
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
    /// The best part for a node of `counts` neighbours in each, of parts that have room; it has one node more then.
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
            // The first of equals.
            if score > best.0 || score == best.0 && -fill > best.1 {
                best = (score, -fill, p);
            }
        }
        self.sizes[best.2] += 1;
        unfilled.add(best.2);
        best.2 as u32
    }
}
