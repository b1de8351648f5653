//! Extracts one part of a graph.

use burn_gnn_graph::Graph;
use rayon::prelude::*;

use super::checks::check_size;
use super::extras::no_extras;
use super::feature_columns::Rows;
use super::{Features, Partition, PartitionedGraph};
use crate::DistError;
use crate::partition_book::{ByPart, Numbering};

/// Edges between parts: which of a part's own edges come from which other part.
#[derive(Debug)]
pub(crate) struct CrossPartEdges {
    /// By destination part, then by edge type.
    lists: Vec<Vec<FromParts>>,
    /// Destination parts of the edges from each part, ascending.
    targets: Vec<Vec<u32>>,
}

/// Places of edges that end in one part, by the part they come from; ascending for each. Only the parts that edges come
/// from are listed: with a counter for every pair of parts, memory would grow with their square.
#[derive(Debug)]
struct FromParts {
    /// Part, and where its places begin.
    starts: Vec<(u32, u32)>,
    places: Vec<u32>,
}

impl FromParts {
    fn new(mut crossing: Vec<(u32, u32)>) -> Self {
        // By part, and in it by place, which are given in ascending order.
        crossing.sort_by_key(|c| c.0);
        let mut starts: Vec<(u32, u32)> = vec![];
        for (i, &(part, _)) in crossing.iter().enumerate() {
            if starts.last().is_none_or(|last| last.0 != part) {
                starts.push((part, i as u32));
            }
        }
        Self { starts, places: crossing.into_iter().map(|c| c.1).collect() }
    }
    fn from(&self, part: usize) -> &[u32] {
        let Ok(at) = self.starts.binary_search_by_key(&part, |s| s.0 as usize) else { return &[] };
        let end = self.starts.get(at + 1).map_or(self.places.len(), |next| next.1 as usize);
        &self.places[self.starts[at].1 as usize..end]
    }
}

impl CrossPartEdges {
    pub(crate) fn new(graph: &Graph, owner: &[Vec<u32>], edges: &[ByPart], parts: usize) -> Self {
        let schema = graph.schema();
        let starts: Vec<Vec<usize>> = edges
            .iter()
            .map(|by_part| {
                let running = by_part.counts.iter().scan(0, |sum, &n| {
                    let from = *sum;
                    *sum += n as usize;
                    Some(from)
                });
                running.collect()
            })
            .collect();
        let list = |part: usize, t: usize| {
            let (of, src, by_part) =
                (&owner[schema.endpoints(t).0], graph.relations()[t].src(), &edges[t]);
            let from = starts[t][part];
            let places = from..from + by_part.counts[part] as usize;
            let crossing: Vec<(u32, u32)> = places
                .map(|i| (of[src[by_part.ids[i] as usize] as usize], i as u32))
                .filter(|&(p, _)| p as usize != part)
                .collect();
            FromParts::new(crossing)
        };
        let of_part = |p| (0..edges.len()).map(|t| list(p, t)).collect();
        let lists: Vec<Vec<FromParts>> = (0..parts).into_par_iter().map(of_part).collect();
        let mut targets: Vec<Vec<u32>> = vec![vec![]; parts];
        for (to, lists) in lists.iter().enumerate() {
            for &(from, _) in lists.iter().flat_map(|l| &l.starts) {
                let targets = &mut targets[from as usize];
                if targets.last() != Some(&(to as u32)) {
                    targets.push(to as u32);
                }
            }
        }
        Self { lists, targets }
    }
    /// Number of a part's own edges that come from other parts.
    pub(crate) fn entering(&self, part: usize) -> u64 {
        self.lists[part].iter().map(|l| l.places.len() as u64).sum()
    }
    /// Edge types and places of the edges from other parts to one.
    fn entering_edges(&self, part: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.lists[part]
            .iter()
            .enumerate()
            .flat_map(|(t, l)| l.places.iter().map(move |&place| (t, place)))
    }
    /// Edge types and places of the edges from one part to others, in the order of global ids.
    fn out_of(&self, part: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        let between = move |&to: &u32| {
            self.lists[to as usize]
                .iter()
                .enumerate()
                .flat_map(move |(t, l)| l.from(part).iter().map(move |&place| (t, place)))
        };
        self.targets[part].iter().flat_map(between)
    }
}

/// What a part holds besides features: edges as (type, place) and halo nodes as (owner, type, place), both in the order
/// of the file.
pub(crate) struct Outline {
    pub(crate) outer: Vec<(usize, u32)>,
    pub(crate) halo: Vec<(u32, u32, u32)>,
}

impl PartitionedGraph {
    /// Cuts one part out.
    ///
    /// # Errors
    /// No such part, more local nodes or edges than `u32` can number.
    ///
    /// # Cost
    /// Time and memory of the part; from two hops on the relations' CSC, which then stay in memory.
    pub fn part(&self, part: usize) -> Result<Partition, DistError> {
        let feats = |rows: &[Rows], by_part: &[ByPart], of: &Numbering| {
            let mut out = Features::new();
            for (t, rows) in rows.iter().enumerate() {
                for (name, source) in rows {
                    out.insert(
                        (t, name.clone()),
                        source.rows(self.inner_ids(part, t, by_part, of)?),
                    );
                }
            }
            Ok::<_, DistError>(out)
        };
        let mut partition = self.structure(part)?;
        partition.extras = self.extras(&partition)?;
        partition.node_feats = feats(&self.node_rows, &self.nodes, &self.book.nodes)?;
        partition.edge_feats = feats(&self.edge_rows, &self.edges, &self.book.edges)?;
        Ok(partition)
    }

    /// Original ids of what a part owns of a type, ascending.
    pub(crate) fn inner_ids<'a>(
        &self,
        part: usize,
        t: usize,
        by_part: &'a [ByPart],
        of: &Numbering,
    ) -> Result<&'a [u32], DistError> {
        let places = of.places(part, t)?;
        Ok(&by_part[t].ids[places.start as usize..places.end as usize])
    }

    /// A part without its features, lists, texts and ids.
    pub(crate) fn structure(&self, part: usize) -> Result<Partition, DistError> {
        let Outline { outer, halo } = self.outline(part)?;
        let (book, schema) = (&self.book, self.graph.schema());
        let (types, relations) = (schema.ntypes().len(), self.graph.relations());
        let num_inner_nodes = book.nodes.part_total(part) as usize;
        let num_inner_edges = book.edges.part_total(part) as usize;
        let (nodes, count) = (num_inner_nodes + halo.len(), num_inner_edges + outer.len());
        check_size(part, nodes, count)?;
        // Local id of a node, by original id: a table of which only the entries of local nodes are ever touched.
        let mut local: Vec<Vec<u32>> =
            self.graph.node_counts().iter().map(|&n| vec![0; n]).collect();
        let mut at = 0;
        for (t, local) in local.iter_mut().enumerate() {
            for &v in self.inner_ids(part, t, &self.nodes, &book.nodes)? {
                local[v as usize] = at;
                at += 1;
            }
        }
        for &(_, t, place) in &halo {
            let t = t as usize;
            local[t][self.nodes[t].ids[place as usize] as usize] = at;
            at += 1;
        }

        let (mut src, mut dst) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (mut eid, mut orig_eid) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut push = |t: usize, place: u32, owner: usize| {
            let (e, (s, d)) = (self.edges[t].ids[place as usize], schema.endpoints(t));
            src.push(local[s][relations[t].src()[e as usize] as usize]);
            dst.push(local[d][relations[t].dst()[e as usize] as usize]);
            eid.push(book.edges.global_id(owner, t, u64::from(place)).0);
            orig_eid.push(u64::from(e));
        };
        for t in 0..relations.len() {
            book.edges.places(part, t)?.for_each(|place| push(t, place as u32, part));
        }
        for (t, place) in outer {
            let owner = self.owner_of_edge(t, self.edges[t].ids[place as usize]);
            push(t, place, owner);
        }

        let (mut nid, mut orig_nid) = (Vec::with_capacity(nodes), Vec::with_capacity(nodes));
        let mut trainer_id = self.trainers.as_ref().map(|_| Vec::with_capacity(num_inner_nodes));
        for t in 0..types {
            let places = book.nodes.places(part, t)?;
            nid.extend(places.clone().map(|i| book.nodes.global_id(part, t, i).0));
            let ids = self.inner_ids(part, t, &self.nodes, &book.nodes)?;
            orig_nid.extend(ids.iter().map(|&v| u64::from(v)));
            if let (Some(out), Some(trainers)) = (&mut trainer_id, &self.trainers) {
                out.extend(ids.iter().map(|&v| trainers[t][v as usize]));
            }
        }
        nid.extend(halo.iter().map(|&(owner, t, place)| {
            book.nodes.global_id(owner as usize, t as usize, u64::from(place)).0
        }));
        orig_nid.extend(
            halo.iter().map(|&(_, t, place)| u64::from(self.nodes[t as usize].ids[place as usize])),
        );
        Ok(Partition {
            book: book.clone(),
            fingerprint: self.fingerprint,
            graph_name: self.config.graph_name.clone(),
            part,
            num_hops: self.config.num_hops,
            num_trainers: self.config.num_trainers_per_machine,
            num_inner_nodes,
            num_inner_edges,
            src,
            dst,
            nid,
            eid,
            orig_nid,
            orig_eid,
            trainer_id,
            node_feats: Features::new(),
            edge_feats: Features::new(),
            extras: no_extras(schema),
        })
    }

    fn owner_of_edge(&self, t: usize, e: u32) -> usize {
        let d = self.graph.schema().endpoints(t).1;
        self.owner[d][self.graph.relations()[t].dst()[e as usize] as usize] as usize
    }

    /// Edges beyond a part's own, and the nodes of other parts that any of its edges touches.
    pub(crate) fn outline(&self, part: usize) -> Result<Outline, DistError> {
        let parts = self.config.num_parts;
        if part >= parts {
            return Err(DistError::OutOfRange {
                what: "partition".into(),
                id: part as u64,
                bound: parts as u64,
            });
        }
        let schema = self.graph.schema();
        let endpoints = |t: usize, place: u32| {
            let (e, r) = (self.edges[t].ids[place as usize] as usize, &self.graph.relations()[t]);
            (r.src()[e], r.dst()[e])
        };
        let mut seen: Vec<Vec<bool>> =
            self.graph.node_counts().iter().map(|&n| vec![false; n]).collect();
        let mut halo = vec![];
        let mut touch = |halo: &mut Vec<_>, t: usize, v: u32| {
            if !std::mem::replace(&mut seen[t][v as usize], true) {
                let owner = self.owner[t][v as usize];
                if owner as usize != part {
                    halo.push((owner, t as u32, self.node_places[t][v as usize]));
                }
            }
        };
        // Sources of own edges.
        for (t, place) in self.crossing.entering_edges(part) {
            touch(&mut halo, schema.endpoints(t).0, endpoints(t, place).0);
        }
        let mut outer = vec![];
        if self.config.num_hops > 0 {
            outer.extend(self.crossing.out_of(part));
        }
        if self.config.num_hops > 1 {
            self.further_hops(part, &halo, &mut outer);
        }
        for &(t, place) in &outer {
            let ((s, d), (u, v)) = (schema.endpoints(t), endpoints(t, place));
            touch(&mut halo, s, u);
            touch(&mut halo, d, v);
        }
        halo.sort_unstable();
        if self.config.num_hops > 1 || !self.config.reshuffle {
            let global = |&(t, place): &(usize, u32)| {
                self.book.edges.global_id(
                    self.owner_of_edge(t, self.edges[t].ids[place as usize]),
                    t,
                    u64::from(place),
                )
            };
            outer.sort_by_cached_key(global);
            outer.dedup();
        }
        Ok(Outline { outer, halo })
    }

    /// In-edges of `frontier`, of their sources, and so on, one hop less than the halo has.
    fn further_hops(
        &self,
        part: usize,
        frontier: &[(u32, u32, u32)],
        outer: &mut Vec<(usize, u32)>,
    ) {
        let (schema, relations) = (self.graph.schema(), self.graph.relations());
        let edge_places: Vec<Vec<u32>> = self.edges.iter().map(ByPart::places).collect();
        let mut reached: Vec<Vec<bool>> =
            self.owner.iter().map(|o| o.iter().map(|&p| p as usize == part).collect()).collect();
        let mut frontier: Vec<(usize, u32)> = frontier
            .iter()
            .map(|&(_, t, i)| (t as usize, self.nodes[t as usize].ids[i as usize]))
            .collect();
        frontier.iter().for_each(|&(t, v)| reached[t][v as usize] = true);
        for _ in 1..self.config.num_hops {
            // All there is has been reached.
            if frontier.is_empty() {
                break;
            }
            let mut next = vec![];
            for &(d, v) in &frontier {
                for t in schema.etypes_into(d) {
                    let (s, csc) = (schema.endpoints(t).0, relations[t].csc());
                    for p in csc.row(v as usize) {
                        let (u, e) = (csc.indices()[p], csc.edge_id(p));
                        outer.push((t, edge_places[t][e as usize]));
                        if !std::mem::replace(&mut reached[s][u as usize], true) {
                            next.push((s, u));
                        }
                    }
                }
            }
            frontier = next;
        }
    }
}
