//! One part of a partitioned graph.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use burn::tensor::TensorData;
use burn_gnn_graph::{GraphError, HomoId, TypedId};

use super::{PartStats, PartitionTable, PartitionedGraph};
use crate::{DistError, PartitionBook};

/// One part: its nodes and edges with their neighbours, and the features of what it owns.
///
/// Local node ids: owned (inner) nodes first, by joint id, then halo nodes, by joint id, hence by owner.
/// Edges: those whose destination is owned (inner) first, by joint id, then the rest, by joint id. As
/// in DGL, a part holds every in-edge of its nodes (and, with more hops, of their sources and so on)
/// and every out-edge of its nodes to other parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    pub(crate) book: Arc<PartitionBook>,
    pub(crate) fingerprint: u64,
    pub(crate) graph_name: String,
    pub(crate) part: usize,
    pub(crate) num_inner_nodes: usize,
    pub(crate) num_inner_edges: usize,
    pub(crate) src: Vec<u32>,
    pub(crate) dst: Vec<u32>,
    /// Joint ids of local nodes and edges.
    pub(crate) nid: Vec<u64>,
    pub(crate) eid: Vec<u64>,
    /// Type-wise ids in the input graph of local nodes and edges.
    pub(crate) orig_nid: Vec<u64>,
    pub(crate) orig_eid: Vec<u64>,
    /// Rows of inner nodes and edges, by (type, column).
    pub(crate) node_feats: Features,
    pub(crate) edge_feats: Features,
}

pub(crate) type Features = BTreeMap<(usize, String), TensorData>;

impl Partition {
    /// Owners and numberings of the whole graph.
    pub fn book(&self) -> &Arc<PartitionBook> {
        &self.book
    }
    /// Name of the graph.
    pub fn graph_name(&self) -> &str {
        &self.graph_name
    }
    /// Number of this part.
    pub fn part(&self) -> usize {
        self.part
    }
    /// Nodes this part owns; they are the first local nodes.
    pub fn num_inner_nodes(&self) -> usize {
        self.num_inner_nodes
    }
    /// Edges this part owns; they are the first local edges.
    pub fn num_inner_edges(&self) -> usize {
        self.num_inner_edges
    }
    /// Local source of each edge.
    pub fn src(&self) -> &[u32] {
        &self.src
    }
    /// Local destination of each edge.
    pub fn dst(&self) -> &[u32] {
        &self.dst
    }
    /// Joint id of each local node.
    pub fn joint_nids(&self) -> &[u64] {
        &self.nid
    }
    /// Joint id of each local edge.
    pub fn joint_eids(&self) -> &[u64] {
        &self.eid
    }
    /// Type-wise id in the input graph of each local node.
    pub fn original_nids(&self) -> &[u64] {
        &self.orig_nid
    }
    /// Type-wise id in the input graph of each local edge.
    pub fn original_eids(&self) -> &[u64] {
        &self.orig_eid
    }
    /// Names of the feature columns of a node type.
    pub fn node_columns(&self, ntype: usize) -> impl Iterator<Item = &str> {
        columns(&self.node_feats, ntype)
    }
    /// Names of the feature columns of an edge type.
    pub fn edge_columns(&self, etype: usize) -> impl Iterator<Item = &str> {
        columns(&self.edge_feats, etype)
    }
    /// Features of the inner nodes of a type, in id order.
    pub fn node_feature(&self, ntype: usize, column: &str) -> Option<&TensorData> {
        self.node_feats.get(&(ntype, column.to_owned()))
    }
    /// Features of the inner edges of a type, in id order.
    pub fn edge_feature(&self, etype: usize, column: &str) -> Option<&TensorData> {
        self.edge_feats.get(&(etype, column.to_owned()))
    }

    /// Checks what a file says against the book; `path` names the file in errors.
    pub(crate) fn check(&self, path: &Path) -> Result<(), DistError> {
        let bad = |message: String| Err(DistError::format(path, message));
        let (nodes, edges) = (self.book.nodes.part_range(self.part), self.book.edges.part_range(self.part));
        for (what, ids, inner, range, total) in [
            ("NID", &self.nid, self.num_inner_nodes, nodes, self.book.nodes.total()),
            ("EID", &self.eid, self.num_inner_edges, edges, self.book.edges.total()),
        ] {
            if let Some(p) = ids.iter().position(|&i| i >= total) {
                return bad(format!("`{what}`, position {p}: must lie in 0..{total}, got {}", ids[p]));
            }
            let (head, tail) = ids.split_at(inner);
            if head.len() as u64 != range.end - range.start || !head.iter().copied().eq(range.clone()) {
                let n = head.len();
                return bad(format!("`{what}`: the first {n} entries are inner and must be {}..{}", range.start, range.end));
            }
            if !tail.is_sorted_by(|a, b| a < b) || tail.iter().any(|i| range.contains(i)) {
                return bad(format!("`{what}`: entries after the inner ones must increase and belong to other parts"));
            }
        }
        let schema = self.book.schema();
        let types = self.nid.iter().map(|&i| Ok(self.book.joint_to_node(HomoId(i))?.ty)).collect::<Result<Vec<_>, DistError>>()?;
        for (j, (&u, &v)) in self.src.iter().zip(&self.dst).enumerate() {
            let n = self.nid.len();
            let (Some(&s), Some(&d)) = (types.get(u as usize), types.get(v as usize)) else {
                return bad(format!("edge {j}: `src` and `dst` must lie in 0..{n}, got {u} and {v}"));
            };
            let TypedId { ty, .. } = self.book.joint_to_edge(HomoId(self.eid[j]))?;
            if schema.ends(ty) != (s, d) {
                let name = &schema.etypes()[ty];
                return bad(format!("edge {j} of type `{name}` joins `{}` and `{}`", schema.ntypes()[s], schema.ntypes()[d]));
            }
            if (j < self.num_inner_edges) != ((v as usize) < self.num_inner_nodes) {
                return bad(format!("edge {j}: inner edges, and only they, end in inner nodes; `dst` is {v}"));
            }
        }
        for (what, ids, orig, inner, of) in [
            ("orig_nid", &self.nid, &self.orig_nid, self.num_inner_nodes, &self.book.nodes),
            ("orig_eid", &self.eid, &self.orig_eid, self.num_inner_edges, &self.book.edges),
        ] {
            let mut before: Option<(usize, u64)> = None;
            for (i, (&joint, &old)) in ids.iter().zip(orig).enumerate() {
                let ty = of.locate(HomoId(joint))?.1.ty;
                let count = of.count(ty)?;
                if old >= count {
                    return bad(format!("`{what}`, position {i}: must lie in 0..{count}, got {old}"));
                }
                if let Some((_, last)) = before.filter(|b| i < inner && b.0 == ty && b.1 >= old) {
                    return bad(format!("`{what}`, position {i}: inner entries of a type must increase, got {old} after {last}"));
                }
                before = Some((ty, old));
            }
        }
        Ok(())
    }
}

fn columns(feats: &Features, ty: usize) -> impl Iterator<Item = &str> {
    feats.keys().filter(move |k| k.0 == ty).map(|k| k.1.as_str())
}

impl PartitionedGraph {
    /// Cuts one part out.
    ///
    /// # Errors
    /// No such part, more local nodes or edges than `u32` can number, a quantised feature column.
    ///
    /// # Cost
    /// `O(E)` time, memory of the part.
    pub fn part(&self, part: usize) -> Result<Partition, DistError> {
        let parts = self.config.num_parts;
        if part >= parts {
            return Err(DistError::OutOfRange { what: "partition".into(), id: part as u64, bound: parts as u64 });
        }
        let edges = self.edges_of(part)?;
        let own = self.book.nodes.part_range(part);
        let mut nid: Vec<u64> = own.clone().collect();
        let foreign = |id: u64| !own.contains(&id);
        let mut halo: Vec<u64> = edges.iter().flat_map(|e| [e.src, e.dst]).filter(|&i| foreign(i)).collect();
        halo.sort_unstable();
        halo.dedup();
        let local = |id: u64| {
            // Both ends of every edge are in one of the two lists.
            let at = if own.contains(&id) { (id - own.start) as usize } else { nid.len() + halo.partition_point(|&h| h < id) };
            at as u32
        };
        let (src, dst) = edges.iter().map(|e| (local(e.src), local(e.dst))).unzip();
        let num_inner_nodes = nid.len();
        nid.extend(halo);
        for (what, count) in [("nodes", nid.len()), ("edges", edges.len())] {
            let limit = u64::from(u32::MAX) - 1;
            if count as u64 > limit {
                return Err(GraphError::TooLarge { relation: format!("part {part}"), what, count: count as u64, limit }.into());
            }
        }
        let orig = |&i: &u64| self.book.joint_to_node(HomoId(i)).map(|t| u64::from(self.nodes[t.ty].old[t.id as usize]));
        let inner_edges = self.book.edges.part_range(part);
        let feats = |frames: &[burn_gnn_graph::Frame], ids: &[super::Renumbering], of: &crate::book::RangeBook| {
            let mut out = Features::new();
            for (t, frame) in frames.iter().enumerate() {
                let own = of.range(part, t)?;
                let rows = &ids[t].old[own.start as usize..own.end as usize];
                for (name, column) in frame.columns() {
                    out.insert((t, name.to_owned()), super::files::to_stored(name, column.select(rows).to_data())?);
                }
            }
            Ok::<_, DistError>(out)
        };
        Ok(Partition {
            book: self.book.clone(),
            fingerprint: self.fingerprint,
            graph_name: self.config.graph_name.clone(),
            part,
            num_inner_nodes,
            num_inner_edges: (inner_edges.end - inner_edges.start) as usize,
            src,
            dst,
            orig_nid: nid.iter().map(orig).collect::<Result<_, DistError>>()?,
            nid,
            eid: edges.iter().map(|e| e.id).collect(),
            orig_eid: edges.iter().map(|e| e.old).collect(),
            node_feats: feats(self.graph.node_frames(), &self.nodes, &self.book.nodes)?,
            edge_feats: feats(self.graph.edge_frames(), &self.edges, &self.book.edges)?,
        })
    }

    /// Sizes of all parts.
    ///
    /// # Errors
    /// As [`part`](Self::part).
    pub fn table(&self) -> Result<PartitionTable, DistError> {
        let mut parts = Vec::with_capacity(self.config.num_parts);
        for p in 0..self.config.num_parts {
            let edges = self.edges_of(p)?;
            let own = self.book.nodes.part_range(p);
            let inner = self.book.edges.part_range(p);
            let mut halo: Vec<u64> = edges.iter().flat_map(|e| [e.src, e.dst]).filter(|i| !own.contains(i)).collect();
            halo.sort_unstable();
            halo.dedup();
            parts.push(PartStats {
                nodes: own.end - own.start,
                edges: inner.end - inner.start,
                halo: halo.len() as u64,
                cut: edges.iter().filter(|e| inner.contains(&e.id) && !own.contains(&e.src)).count() as u64,
            });
        }
        Ok(PartitionTable { parts, method: self.config.method.name() })
    }

    /// Edges of a part: inner ones by joint id, then the others by joint id.
    fn edges_of(&self, part: usize) -> Result<Vec<StoredEdge>, DistError> {
        let schema = self.graph.schema();
        let mut inner = Vec::new();
        let mut outer = Vec::new();
        // Nodes whose in-edges the part holds: its own, then with each further hop their sources.
        let mut reached: Vec<Vec<bool>> = self.owner.iter().map(|o| o.iter().map(|&p| p as usize == part).collect()).collect();
        for _ in 1..self.config.num_hops {
            let mut next = reached.clone();
            for (t, r) in self.graph.relations().iter().enumerate() {
                let (s, d) = schema.ends(t);
                for (&u, &v) in r.src().iter().zip(r.dst()) {
                    next[s][u as usize] |= reached[d][v as usize];
                }
            }
            reached = next;
        }
        for (t, r) in self.graph.relations().iter().enumerate() {
            let (s, d) = schema.ends(t);
            for (e, (&u, &v)) in r.src().iter().zip(r.dst()).enumerate() {
                let mine = self.owner[d][v as usize] as usize == part;
                if !mine && self.owner[s][u as usize] as usize != part && !reached[d][v as usize] {
                    continue;
                }
                let id = |ids: &[super::Renumbering], ty: usize, old: u32| TypedId { ty, id: u64::from(ids[ty].new[old as usize]) };
                let edge = StoredEdge {
                    id: self.book.edge_to_joint(id(&self.edges, t, e as u32))?.0,
                    src: self.book.node_to_joint(id(&self.nodes, s, u))?.0,
                    dst: self.book.node_to_joint(id(&self.nodes, d, v))?.0,
                    old: e as u64,
                };
                if mine { inner.push(edge) } else { outer.push(edge) }
            }
        }
        // Inner edges come relation by relation in old order, which is the order of their joint ids.
        outer.sort_unstable_by_key(|e: &StoredEdge| e.id);
        inner.append(&mut outer);
        Ok(inner)
    }
}

struct StoredEdge {
    id: u64,
    src: u64,
    dst: u64,
    old: u64,
}
