//! Extracts one part of a graph.

use burn_gnn_graph::Frame;

use super::feature_columns::FeatureColumns;
use super::partitioned_graph::PartitionedGraph;
use crate::error::DistError;
use crate::partition::part::attributes::{Attributes, AttributesByType, no_attributes};
use crate::partition::part::check::check_size;
use crate::partition::part::partition::{Features, Partition};
use crate::partition_book::{ByPart, Numbering};

/// The edges of a part that it does not own, as (type, position), and its halo nodes, as (owner, type, position), both
/// in the order of the file.
pub(crate) struct Outline {
    pub(crate) outer: Vec<(usize, u32)>,
    pub(crate) halo: Vec<(u32, u32, u32)>,
}

impl PartitionedGraph {
    /// Extracts one part.
    ///
    /// # Errors
    /// `part` is out of range; more local nodes or edges than `u32` can number.
    ///
    /// # Cost
    /// Time and memory proportional to the part. From two hops on also the CSC of all relations, which stay in memory.
    pub fn part(&self, part: usize) -> Result<Partition, DistError> {
        let feats = |rows: &[FeatureColumns], by_part: &[ByPart], of: &Numbering| {
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
        partition.attributes = self.attributes(&partition)?;
        partition.node_feats = feats(&self.node_rows, &self.nodes, &self.book.nodes)?;
        partition.edge_feats = feats(&self.edge_rows, &self.edges, &self.book.edges)?;
        Ok(partition)
    }

    /// Lists, texts and ids of the local nodes and edges of a part.
    pub(crate) fn attributes(&self, part: &Partition) -> Result<AttributesByType, DistError> {
        let frames = [self.graph.node_frames(), self.graph.edge_frames()];
        let has_none = |f: &Frame| {
            f.lists().next().is_none()
                && f.texts().next().is_none()
                && f.ids().is_none()
                && f.global_ids().is_none()
        };
        if frames.iter().all(|f| f.iter().all(has_none)) {
            return Ok(no_attributes(self.book.schema()));
        }
        let rows = part.original_rows()?;
        let of = |i: usize| {
            frames[i]
                .iter()
                .zip(&rows[i])
                .map(|(frame, rows)| Attributes::of(frame, rows))
                .collect::<Result<_, _>>()
        };
        Ok([of(0)?, of(1)?])
    }

    /// Original ids of the nodes or edges of a type that a part owns, ascending.
    pub(crate) fn inner_ids<'a>(
        &self,
        part: usize,
        t: usize,
        by_part: &'a [ByPart],
        of: &Numbering,
    ) -> Result<&'a [u32], DistError> {
        let positions = of.positions(part, t)?;
        Ok(&by_part[t].ids[positions.start as usize..positions.end as usize])
    }

    /// Extracts a part without its features, lists, texts and ids.
    pub(crate) fn structure(&self, part: usize) -> Result<Partition, DistError> {
        let Outline { outer, halo } = self.outline(part)?;
        let (book, schema) = (&self.book, self.graph.schema());
        let (types, relations) = (schema.ntypes().len(), self.graph.relations());
        let num_inner_nodes = book.nodes.part_total(part) as usize;
        let num_inner_edges = book.edges.part_total(part) as usize;
        let (nodes, count) = (num_inner_nodes + halo.len(), num_inner_edges + outer.len());
        check_size(part, nodes, count)?;
        // Local id of a node, by original id. Only the entries of local nodes are ever accessed.
        let mut local: Vec<Vec<u32>> =
            self.graph.node_counts().iter().map(|&n| vec![0; n]).collect();
        let mut at = 0;
        for (t, local) in local.iter_mut().enumerate() {
            for &v in self.inner_ids(part, t, &self.nodes, &book.nodes)? {
                local[v as usize] = at;
                at += 1;
            }
        }
        for &(_, t, position) in &halo {
            let t = t as usize;
            local[t][self.nodes[t].ids[position as usize] as usize] = at;
            at += 1;
        }

        let (mut src, mut dst) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (mut eid, mut orig_eid) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut push = |t: usize, position: u32, owner: usize| {
            let (e, (s, d)) = (self.edges[t].ids[position as usize], schema.endpoints(t));
            src.push(local[s][relations[t].src()[e as usize] as usize]);
            dst.push(local[d][relations[t].dst()[e as usize] as usize]);
            eid.push(book.edges.global_id(owner, t, u64::from(position)).0);
            orig_eid.push(u64::from(e));
        };
        for t in 0..relations.len() {
            book.edges.positions(part, t)?.for_each(|position| push(t, position as u32, part));
        }
        for (t, position) in outer {
            let owner = self.owner_of_edge(t, self.edges[t].ids[position as usize]);
            push(t, position, owner);
        }

        let (mut nid, mut orig_nid) = (Vec::with_capacity(nodes), Vec::with_capacity(nodes));
        let mut trainer_id = self.trainers.as_ref().map(|_| Vec::with_capacity(num_inner_nodes));
        for t in 0..types {
            let positions = book.nodes.positions(part, t)?;
            nid.extend(positions.clone().map(|i| book.nodes.global_id(part, t, i).0));
            let ids = self.inner_ids(part, t, &self.nodes, &book.nodes)?;
            orig_nid.extend(ids.iter().map(|&v| u64::from(v)));
            if let (Some(out), Some(trainers)) = (&mut trainer_id, &self.trainers) {
                out.extend(ids.iter().map(|&v| trainers[t][v as usize]));
            }
        }
        nid.extend(halo.iter().map(|&(owner, t, position)| {
            book.nodes.global_id(owner as usize, t as usize, u64::from(position)).0
        }));
        orig_nid.extend(
            halo.iter()
                .map(|&(_, t, position)| u64::from(self.nodes[t as usize].ids[position as usize])),
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
            attributes: no_attributes(schema),
        })
    }

    fn owner_of_edge(&self, t: usize, e: u32) -> usize {
        let d = self.graph.schema().endpoints(t).1;
        self.owner[d][self.graph.relations()[t].dst()[e as usize] as usize] as usize
    }

    /// The edges of a part that it does not own, and the nodes of other parts at the endpoints of its edges.
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
        let endpoints = |t: usize, position: u32| {
            let (e, r) =
                (self.edges[t].ids[position as usize] as usize, &self.graph.relations()[t]);
            (r.src()[e], r.dst()[e])
        };
        let mut seen: Vec<Vec<bool>> =
            self.graph.node_counts().iter().map(|&n| vec![false; n]).collect();
        let mut halo = vec![];
        let mut touch = |halo: &mut Vec<_>, t: usize, v: u32| {
            if !std::mem::replace(&mut seen[t][v as usize], true) {
                let owner = self.owner[t][v as usize];
                if owner as usize != part {
                    halo.push((owner, t as u32, self.node_positions[t][v as usize]));
                }
            }
        };
        // Sources of own edges.
        for (t, position) in self.crossing.entering_edges(part) {
            touch(&mut halo, schema.endpoints(t).0, endpoints(t, position).0);
        }
        let mut outer = vec![];
        if self.config.num_hops > 0 {
            outer.extend(self.crossing.out_of(part));
        }
        if self.config.num_hops > 1 {
            self.further_hops(part, &halo, &mut outer);
        }
        for &(t, position) in &outer {
            let ((s, d), (u, v)) = (schema.endpoints(t), endpoints(t, position));
            touch(&mut halo, s, u);
            touch(&mut halo, d, v);
        }
        halo.sort_unstable();
        if self.config.num_hops > 1 || !self.config.reshuffle {
            let global = |&(t, position): &(usize, u32)| {
                self.book.edges.global_id(
                    self.owner_of_edge(t, self.edges[t].ids[position as usize]),
                    t,
                    u64::from(position),
                )
            };
            outer.sort_by_cached_key(global);
            outer.dedup();
        }
        Ok(Outline { outer, halo })
    }

    /// Adds the in-edges of `frontier`, of their sources, and so on: one hop less than the depth of the halo.
    fn further_hops(
        &self,
        part: usize,
        frontier: &[(u32, u32, u32)],
        outer: &mut Vec<(usize, u32)>,
    ) {
        let (schema, relations) = (self.graph.schema(), self.graph.relations());
        let edge_positions: Vec<Vec<u32>> = self.edges.iter().map(ByPart::positions).collect();
        let mut reached: Vec<Vec<bool>> =
            self.owner.iter().map(|o| o.iter().map(|&p| p as usize == part).collect()).collect();
        let mut frontier: Vec<(usize, u32)> = frontier
            .iter()
            .map(|&(_, t, i)| (t as usize, self.nodes[t as usize].ids[i as usize]))
            .collect();
        frontier.iter().for_each(|&(t, v)| reached[t][v as usize] = true);
        for _ in 1..self.config.num_hops {
            // The whole connected component has been reached.
            if frontier.is_empty() {
                break;
            }
            let mut next = vec![];
            for &(d, v) in &frontier {
                for t in schema.etypes_into(d) {
                    let (s, csc) = (schema.endpoints(t).0, relations[t].csc());
                    for p in csc.row(v as usize) {
                        let (u, e) = (csc.indices()[p], csc.edge_id(p));
                        outer.push((t, edge_positions[t][e as usize]));
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
