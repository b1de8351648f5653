//! Runs the checks of `verify_partition`.

use std::collections::BTreeMap;

use burn::tensor::{DType, TensorData};
use burn_gnn_graph::{Frame, Graph, HomoId, Relation, TypedId};

use crate::error::DistError;
use crate::partition::extract::feature_columns::feature_columns;
use crate::partition::part::attributes::Attributes;
use crate::partition::part::partition::{Features, Partition};
use crate::partition::read::parts::PartitionFiles;
use crate::partition_book::Numbering;

/// The whole graph, reassembled from its parts, by position.
struct Whole {
    /// Original id of each node.
    nodes: Vec<Vec<u32>>,
    edges: Vec<EdgeTable>,
}

#[derive(Clone, Default)]
struct EdgeTable {
    src: Vec<u32>,
    dst: Vec<u32>,
    orig: Vec<u32>,
}

/// Type and position.
type Place = (usize, u32);

fn position(of: &Numbering, global: u64) -> Result<Place, DistError> {
    let id = of.locate(HomoId(global))?.1;
    Ok((id.ty, of.position(id)? as u32))
}

/// Dtype and row shape of columns, by type and name.
type Columns = [BTreeMap<(usize, String), (DType, Vec<usize>)>; 2];

pub(crate) struct Verifier<'a> {
    found: Vec<String>,
    opened: &'a PartitionFiles,
    whole: Whole,
    graph: Option<&'a Graph>,
    columns: Option<Columns>,
}

impl<'a> Verifier<'a> {
    pub(crate) fn new(opened: &'a PartitionFiles, graph: Option<&'a Graph>) -> Self {
        let schema = opened.book.schema();
        let whole = Whole {
            nodes: vec![vec![]; schema.ntypes().len()],
            edges: vec![EdgeTable::default(); schema.etypes().len()],
        };
        Self { found: vec![], opened, whole, graph, columns: None }
    }

    /// Runs all checks and returns the violations.
    pub(crate) fn run(mut self) -> Result<Vec<String>, DistError> {
        let parts = self.opened.meta.num_parts;
        let mut complete = true;
        for p in 0..parts {
            match self.opened.part(p) {
                Ok(part) => self.inner(&part)?,
                Err(e) => {
                    complete = false;
                    self.found.push(format!("part {p}: {e}"));
                }
            }
        }
        if !complete {
            return Ok(self.found);
        }
        self.originals();
        if let Some(graph) = self.graph {
            self.same_types(graph);
        }
        let mut relations = vec![];
        for (t, e) in self.whole.edges.iter().enumerate() {
            let (s, d) = self.opened.book.schema().endpoints(t);
            let nodes = |t: usize| self.whole.nodes[t].len();
            relations.push(Relation::from_coo(nodes(s), nodes(d), e.src.clone(), e.dst.clone())?);
        }
        let mut cut = 0;
        for p in 0..parts {
            // The first pass read all parts without an error.
            let part = self.opened.part(p)?;
            self.copies(&part)?;
            self.halo(&part, &relations)?;
            if let Some(graph) = self.graph {
                self.input(&part, graph)?;
            }
            cut += part.src[..part.num_inner_edges]
                .iter()
                .filter(|&&u| u as usize >= part.num_inner_nodes)
                .count() as u64;
        }
        if cut != self.opened.meta.edge_cut {
            self.found.push(format!(
                "metadata: `edge_cut` is {}, {cut} edges have endpoints in different parts",
                self.opened.meta.edge_cut
            ));
        }
        Ok(self.found)
    }

    /// Records violations of the same kind as one line.
    fn note(&mut self, position: &str, mut faults: impl Iterator<Item = String>) {
        if let Some(first) = faults.next() {
            let more = faults.count();
            let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
            self.found.push(format!("{position}: {first}{more}"));
        }
    }

    /// Records the inner nodes and edges of a part. Reading the part has already checked that inner ids match the book,
    /// that destinations of inner edges are inner, and that features have one row per inner node or edge.
    fn inner(&mut self, part: &Partition) -> Result<(), DistError> {
        let book = &self.opened.book;
        for (&global, &old) in part.nid.iter().zip(&part.orig_nid).take(part.num_inner_nodes) {
            self.whole.nodes[position(&book.nodes, global)?.0].push(old as u32);
        }
        for j in 0..part.num_inner_edges {
            let table = &mut self.whole.edges[position(&book.edges, part.eid[j])?.0];
            table.src.push(position(&book.nodes, part.nid[part.src[j] as usize])?.1);
            table.dst.push(position(&book.nodes, part.nid[part.dst[j] as usize])?.1);
            table.orig.push(part.orig_eid[j] as u32);
        }
        let columns = |feats: &Features| {
            feats
                .iter()
                .map(|(k, d)| (k.clone(), (d.dtype(), d.shape().as_slice()[1..].to_vec())))
                .collect()
        };
        let columns = [columns(&part.node_feats), columns(&part.edge_feats)];
        match &self.columns {
            None => self.columns = Some(columns),
            Some(first) if *first != columns => {
                self.found.push(format!(
                    "part {}: its feature columns differ from those of the parts before, in name, dtype or shape",
                    part.part
                ));
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Checks that every original id of a type occurs exactly once.
    fn originals(&mut self) {
        let schema = self.opened.book.schema().clone();
        let names = schema
            .ntypes()
            .iter()
            .map(|n| format!("node type `{n}`"))
            .chain(schema.etypes().iter().map(|t| format!("edge type `{t}`")));
        let lists: Vec<Vec<usize>> = {
            let ids = self.whole.nodes.iter().chain(self.whole.edges.iter().map(|e| &e.orig));
            ids.map(|ids| {
                let mut times = vec![0; ids.len()];
                // Reading the part has checked that original ids are in range.
                ids.iter().for_each(|&i| times[i as usize] += 1);
                times
            })
            .collect()
        };
        for (name, times) in names.zip(lists) {
            let times = times.iter().enumerate().filter(|t| *t.1 != 1);
            self.note(
                &name,
                times.map(|(id, n)| {
                    format!("original id {id} must be inner in exactly one part, is so in {n}")
                }),
            );
        }
    }

    /// Checks that halo nodes and copies of edges match those of their owner.
    fn copies(&mut self, part: &Partition) -> Result<(), DistError> {
        let (book, whole) = (&self.opened.book, &self.whole);
        let (mut nodes, mut edges) = (vec![], vec![]);
        for i in part.num_inner_nodes..part.nid.len() {
            let (t, at) = position(&book.nodes, part.nid[i])?;
            let (expected, found) = (u64::from(whole.nodes[t][at as usize]), part.orig_nid[i]);
            if expected != found {
                nodes.push(format!(
                    "halo node {} has original id {found}, expected {expected} as in its owner's part",
                    part.nid[i]
                ));
            }
        }
        for j in part.num_inner_edges..part.eid.len() {
            let (t, at) = position(&book.edges, part.eid[j])?;
            let (e, at) = (&whole.edges[t], at as usize);
            let end = |v: u32| Ok::<_, DistError>(position(&book.nodes, part.nid[v as usize])?.1);
            let found = (end(part.src[j])?, end(part.dst[j])?, part.orig_eid[j]);
            if found != (e.src[at], e.dst[at], u64::from(e.orig[at])) {
                edges.push(format!(
                    "edge {} has other endpoints or another original id than in its owner's part",
                    part.eid[j]
                ));
            }
        }
        let name = format!("part {}", part.part);
        self.note(&name, nodes.into_iter());
        self.note(&name, edges.into_iter());
        Ok(())
    }

    /// Checks that the edges that are not inner are exactly those of the halo's definition, and that every halo node
    /// has an edge.
    fn halo(&mut self, part: &Partition, relations: &[Relation]) -> Result<(), DistError> {
        let (p, book, hops) = (part.part, &self.opened.book, self.opened.meta.halo_hops);
        let schema = book.schema();
        let mut expected = vec![];
        let mut add = |t: usize, e: u32| -> Result<(), DistError> {
            let owner = book.edges.owner_of_position(t, u64::from(e));
            if owner != p {
                expected.push(book.edges.global_id(owner, t, u64::from(e)).0);
            }
            Ok(())
        };
        let mut reached: Vec<Vec<bool>> =
            self.whole.nodes.iter().map(|n| vec![false; n.len()]).collect();
        let mut frontier: Vec<Place> = vec![];
        for (t, reached) in reached.iter_mut().enumerate() {
            for v in book.nodes.positions(p, t)? {
                reached[v as usize] = true;
                frontier.push((t, v as u32));
            }
        }
        if hops > 0 {
            for &(s, u) in &frontier {
                for t in schema.etypes_from(s) {
                    let csr = relations[t].csr();
                    csr.row(u as usize).try_for_each(|at| add(t, csr.edge_id(at)))?;
                }
            }
        }
        // In-edges of the nodes that previous hops reached. In-edges of the part's own nodes are inner.
        for _ in 0..hops {
            // The halo cannot grow further.
            if frontier.is_empty() {
                break;
            }
            let mut next = vec![];
            for &(d, v) in &frontier {
                for t in schema.etypes_into(d) {
                    let (s, csc) = (schema.endpoints(t).0, relations[t].csc());
                    for at in csc.row(v as usize) {
                        add(t, csc.edge_id(at))?;
                        let u = csc.indices()[at];
                        if !std::mem::replace(&mut reached[s][u as usize], true) {
                            next.push((s, u));
                        }
                    }
                }
            }
            frontier = next;
        }
        expected.sort_unstable();
        expected.dedup();
        let stored = &part.eid[part.num_inner_edges..];
        let missing = expected.iter().filter(|e| stored.binary_search(e).is_err());
        let extra = stored.iter().filter(|e| expected.binary_search(e).is_err());
        let name = format!("part {p}");
        self.note(
            &name,
            missing.map(|e| format!("edge {e} is missing: a halo of {hops} hops has it")),
        );
        self.note(
            &name,
            extra.map(|e| format!("edge {e} is unexpected: it is not in a halo of {hops} hops")),
        );
        let mut used = vec![false; part.nid.len()];
        part.src.iter().chain(&part.dst).for_each(|&v| used[v as usize] = true);
        let idle = (part.num_inner_nodes..part.nid.len()).filter(|&i| !used[i]);
        self.note(&name, idle.map(|i| format!("halo node {} has no edge here", part.nid[i])));
        Ok(())
    }

    fn same_types(&mut self, graph: &Graph) {
        let book = &self.opened.book;
        if **graph.schema() != **book.schema() {
            self.found
                .push("input: its node and edge types are not those of the partitioning".into());
            self.graph = None;
            return;
        }
        let counts = |of: &Numbering, n: usize| {
            (0..n).map(|t| of.count(t).unwrap_or(0) as usize).collect::<Vec<_>>()
        };
        let nodes = counts(&book.nodes, graph.node_counts().len());
        let edges = counts(&book.edges, graph.relations().len());
        if nodes != graph.node_counts()
            || !edges.iter().copied().eq(graph.relations().iter().map(Relation::num_edges))
        {
            self.found
                .push("input: it has other numbers of nodes or edges than the partitioning".into());
            self.graph = None;
        }
    }

    /// Compares edges and features with the input graph.
    fn input(&mut self, part: &Partition, graph: &Graph) -> Result<(), DistError> {
        let book = &self.opened.book;
        let mut wrong = vec![];
        for j in 0..part.eid.len() {
            let TypedId { ty, .. } = book.global_to_edge(HomoId(part.eid[j]))?;
            let (r, old) = (&graph.relations()[ty], part.orig_eid[j] as usize);
            let endpoints = |v: u32| part.orig_nid[v as usize];
            if (endpoints(part.src[j]), endpoints(part.dst[j]))
                != (u64::from(r.src()[old]), u64::from(r.dst()[old]))
            {
                wrong.push(format!(
                    "edge {} joins other nodes than edge {old} of `{}` of the input",
                    part.eid[j],
                    book.etypes()[ty]
                ));
            }
        }
        let name = format!("part {}", part.part);
        self.note(&name, wrong.into_iter());
        let whole = &self.whole;
        let nodes = |t: usize| Ok(&whole.nodes[t][range(&book.nodes, part.part, t)?]);
        let edges = |t: usize| Ok(&whole.edges[t].orig[range(&book.edges, part.part, t)?]);
        let mut wrong = differing(graph.node_frames(), &part.node_feats, nodes)?;
        wrong.extend(differing(graph.edge_frames(), &part.edge_feats, edges)?);
        let rows = part.original_rows()?;
        for ((frames, of), rows) in
            [graph.node_frames(), graph.edge_frames()].iter().zip(&part.attributes).zip(&rows)
        {
            for ((frame, stored), rows) in frames.iter().zip(of).zip(rows) {
                if Attributes::of(frame, rows)? != *stored {
                    wrong.push(format!(
                        "lists, texts or ids are not those of the {} of the input",
                        frame.label()
                    ));
                }
            }
        }
        self.note(&name, wrong.into_iter());
        Ok(())
    }
}

fn range(of: &Numbering, part: usize, t: usize) -> Result<std::ops::Range<usize>, DistError> {
    of.positions(part, t).map(|r| r.start as usize..r.end as usize)
}

/// Lists the columns that are missing or whose rows differ from the input.
fn differing<'a>(
    frames: &[Frame],
    feats: &Features,
    ids: impl Fn(usize) -> Result<&'a [u32], DistError>,
) -> Result<Vec<String>, DistError> {
    let mut wrong = vec![];
    for (t, frame) in frames.iter().enumerate() {
        for (column, source) in &feature_columns(frame)? {
            let same = |stored: &TensorData| {
                let input = source.rows(ids(t)?);
                Ok::<_, DistError>(
                    stored.dtype() == input.dtype()
                        && stored.shape() == input.shape()
                        && stored.as_bytes() == input.as_bytes(),
                )
            };
            if !feats.get(&(t, column.clone())).map_or(Ok(false), same)? {
                wrong.push(format!(
                    "column `{column}` is not that of the {} of the input",
                    frame.label()
                ));
            }
        }
    }
    Ok(wrong)
}
