//! Implements `GraphView` for the part of a rank, for full-graph training.

use std::borrow::Cow;
use std::sync::Arc;

use burn::tensor::{Device, Tensor};
use burn_gnn_graph::{EdgeKey, Frame, HomoId, NodeKey, Relation, Schema, of_etype, of_ntype};
use burn_gnn_ops::GraphView;

use crate::column::column;
use crate::comm::{Communicator, Failure};
use crate::error::DistError;
use crate::exchange::{Pack, Unpack};
use crate::halo::{HaloPlan, TypeHalo, halo_exchange};
use crate::partition::Partition;
use crate::partition::part::partition::Features;
use crate::partition_book::{PartitionBook, etype_number, ntype_number};
use crate::trainer_rank::{TrainerRank, wrong_rank};

/// The part of a rank as a [`GraphView`]. Layers compute the inner nodes of the part, from rows of inner nodes and rows
/// that a halo exchange fetches.
///
/// Source rows of a node type are its inner nodes in id order, then the halo nodes that are sources of inner edges,
/// sorted by (owner, id). Destination rows are the inner nodes. Messages are computed for inner edges only, in the
/// order of their original ids, so every destination sums its messages in the order of the whole graph. Degrees are
/// those of the whole graph.
///
/// [`src_rows`](GraphView::src_rows) is a [`halo_exchange`]: all ranks must make the same calls in the same order.
#[derive(Debug)]
pub struct LocalPartition {
    comm: Arc<dyn Communicator>,
    book: Arc<PartitionBook>,
    plan: Arc<HaloPlan>,
    relations: Vec<Relation>,
    in_degrees: Vec<Vec<u32>>,
    out_degrees: Vec<Vec<u32>>,
    orig_nodes: Vec<Arc<[u64]>>,
    orig_halo: Vec<Vec<u64>>,
    orig_edges: Vec<Arc<[u64]>>,
    node_frames: Vec<Frame>,
    edge_frames: Vec<Frame>,
}

impl LocalPartition {
    /// Exchanges with all ranks which rows each of them sends. Collective. Features are constants on `device`, without
    /// its autodiff.
    ///
    /// # Errors
    /// The number of the part is not the rank; ranks have parts of different partitionings; a feature has more than
    /// five axes; some rank failed.
    ///
    /// # Cost
    /// `O(V + E)` for the nodes and edges of the part; three small exchanges.
    pub fn new(
        partition: &Partition,
        comm: Arc<dyn Communicator>,
        device: &Device,
    ) -> Result<Self, DistError> {
        let book = partition.book.clone();
        let (part, num_parts) = (partition.part, book.num_parts());
        if comm.rank() != part || comm.size() != num_parts {
            return Err(wrong_rank(&*comm, part, num_parts, 1));
        }
        same_partitioning(partition, &*comm)?;
        let LocalStructure { relations, halo, orig_nodes, orig_halo, orig_edges } =
            local_structure(partition)?;
        let plan = HaloPlan::new(
            comm.clone(),
            requests(&book, TrainerRank { part, trainers: 1, trainer: 0 }, &halo, &*comm)?,
        )?;
        let out_degrees = global_out_degrees(&book, &relations, &plan)?;
        let device = device.clone().inner();
        let schema = book.schema();
        let frames = |kind: &str, names: Vec<String>, lens: Vec<usize>, feats: &Features| {
            let mut out: Vec<_> = names
                .iter()
                .zip(lens)
                .map(|(n, len)| Frame::new(format!("{kind} of `{n}`"), len))
                .collect();
            for ((t, name), data) in feats {
                out[*t].insert_column(name, column(name, data.clone(), &device)?)?;
            }
            Ok::<_, DistError>(out)
        };
        let orig_nodes: Vec<Arc<[u64]>> = orig_nodes.into_iter().map(Into::into).collect();
        let orig_edges: Vec<Arc<[u64]>> = orig_edges.into_iter().map(Into::into).collect();
        let inner = orig_nodes.iter().map(|o| o.len()).collect();
        let node_frames =
            frames("inner nodes", schema.ntypes().to_vec(), inner, &partition.node_feats)?;
        let names = schema.etypes().iter().map(ToString::to_string).collect();
        let edges = relations.iter().map(Relation::num_edges).collect();
        let edge_frames = frames("inner edges", names, edges, &partition.edge_feats)?;
        Ok(Self {
            in_degrees: relations.iter().map(|r| r.in_degrees().collect()).collect(),
            comm,
            plan,
            relations,
            out_degrees,
            orig_nodes,
            orig_halo,
            orig_edges,
            node_frames,
            edge_frames,
            book,
        })
    }

    /// The communicator of the ranks.
    pub fn comm(&self) -> &Arc<dyn Communicator> {
        &self.comm
    }
    /// The partition book: owners and numberings.
    pub fn book(&self) -> &Arc<PartitionBook> {
        &self.book
    }
    /// The rows that each rank sends and receives in a halo exchange.
    pub fn plan(&self) -> &Arc<HaloPlan> {
        &self.plan
    }
    /// Number of nodes of a type that this part owns.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn num_inner(&self, ntype: impl NodeKey) -> usize {
        let ntype = ntype_number(self.book.schema(), ntype);
        self.plan.num_inner(ntype)
    }
    /// Original ids of the inner nodes of a type, by row, ascending.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn inner_nodes(&self, ntype: impl NodeKey) -> &[u64] {
        let ntype = ntype_number(self.book.schema(), ntype);
        &of_ntype(&self.orig_nodes, ntype)[..]
    }
    /// Original ids of the halo rows of a type, which follow the rows of inner nodes.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn halo_nodes(&self, ntype: impl NodeKey) -> &[u64] {
        let ntype = ntype_number(self.book.schema(), ntype);
        &of_ntype(&self.orig_halo, ntype)[..]
    }
    /// Original ids of the edges of a relation, by local edge id, for example to select edge weights of the whole
    /// graph.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn edge_original_ids(&self, etype: impl EdgeKey) -> &[u64] {
        let etype = etype_number(self.book.schema(), etype);
        &of_etype(&self.orig_edges, etype)[..]
    }
    /// Rows of the nodes in `original` that this part owns, in the given order: this rank's share of a split.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn inner_rows(&self, ntype: impl NodeKey, original: &[u64]) -> Vec<u32> {
        let ntype = ntype_number(self.book.schema(), ntype);
        let own = of_ntype(&self.orig_nodes, ntype);
        original.iter().filter_map(|id| own.binary_search(id).ok()).map(|row| row as u32).collect()
    }
    /// Features of the inner nodes of a type.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn nodes(&self, ntype: impl NodeKey) -> &Frame {
        let ntype = ntype_number(self.book.schema(), ntype);
        of_ntype(&self.node_frames, ntype)
    }
    /// Features of the inner edges of a type, by local edge id.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn edges(&self, etype: impl EdgeKey) -> &Frame {
        let etype = etype_number(self.book.schema(), etype);
        of_etype(&self.edge_frames, etype)
    }
}

impl GraphView for LocalPartition {
    fn schema(&self) -> &Schema {
        self.book.schema()
    }
    #[track_caller]
    fn relation(&self, etype: usize) -> &Relation {
        of_etype(&self.relations, etype)
    }
    fn num_src(&self, ntype: usize) -> usize {
        self.plan.num_inner(ntype) + self.plan.num_halo(ntype)
    }
    fn num_dst(&self, ntype: usize) -> usize {
        self.plan.num_inner(ntype)
    }
    #[track_caller]
    fn total_nodes(&self, ntype: usize) -> u64 {
        of_ntype(self.book.nodes.starts_of_parts(), ntype).last().copied().unwrap_or(0)
    }
    #[track_caller]
    fn total_edges(&self, etype: usize) -> u64 {
        of_etype(self.book.edges.starts_of_parts(), etype).last().copied().unwrap_or(0)
    }
    fn src_rows(&self, call: &'static str, x: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
        halo_exchange(&self.plan, call, x)
    }
    #[track_caller]
    fn in_degrees(&self, etype: usize) -> Cow<'_, [u32]> {
        Cow::Borrowed(&of_etype(&self.in_degrees, etype)[..])
    }
    #[track_caller]
    fn out_degrees(&self, etype: usize) -> Cow<'_, [u32]> {
        Cow::Borrowed(&of_etype(&self.out_degrees, etype)[..])
    }
    #[track_caller]
    fn original_ids(&self, ntype: usize) -> Option<Arc<[u64]>> {
        Some(of_ntype(&self.orig_nodes, ntype).clone())
    }
    #[track_caller]
    fn original_edge_ids(&self, etype: usize) -> Option<Arc<[u64]>> {
        Some(of_etype(&self.orig_edges, etype).clone())
    }
    #[track_caller]
    fn node_columns(&self, ntype: usize) -> Option<&Frame> {
        Some(of_ntype(&self.node_frames, ntype))
    }
    #[track_caller]
    fn edge_columns(&self, etype: usize) -> Option<&Frame> {
        Some(of_etype(&self.edge_frames, etype))
    }
}

pub(crate) fn same_partitioning(
    partition: &Partition,
    comm: &dyn Communicator,
) -> Result<(), Failure> {
    let all =
        comm.all_gather("partition fingerprint", partition.fingerprint.to_le_bytes().to_vec())?;
    match all.iter().position(|b| b[..] != partition.fingerprint.to_le_bytes()) {
        Some(p) => {
            let message = format!(
                "holds a part of another partitioning than rank {p}; load all parts from one metadata file"
            );
            Err(Failure { rank: comm.rank(), message })
        }
        None => Ok(()),
    }
}

/// The structure that layers compute on: inner edges, and the halo nodes that are their sources.
pub(crate) struct LocalStructure {
    pub(crate) relations: Vec<Relation>,
    /// Type-wise ids of the halo nodes that are sources of inner edges, per type, sorted by (owner, id). This is also
    /// the order of their positions.
    pub(crate) halo: Vec<Vec<u64>>,
    pub(crate) orig_nodes: Vec<Vec<u64>>,
    pub(crate) orig_halo: Vec<Vec<u64>>,
    pub(crate) orig_edges: Vec<Vec<u64>>,
}

pub(crate) fn local_structure(p: &Partition) -> Result<LocalStructure, DistError> {
    let schema = p.book.schema();
    let types = schema.ntypes().len();
    let mut used = vec![false; p.nid.len()];
    p.src[..p.num_inner_edges].iter().for_each(|&u| used[u as usize] = true);
    // Row of each local node among the source rows of its type; halo nodes follow in the order of global ids,
    // which is by owner, then by id.
    let mut rows = vec![0u32; p.nid.len()];
    let mut next = vec![0u32; types];
    let (mut halo, mut orig_nodes, mut orig_halo) =
        (vec![vec![]; types], vec![vec![]; types], vec![vec![]; types]);
    for (i, &global) in p.nid.iter().enumerate() {
        let inner = i < p.num_inner_nodes;
        if !inner && !used[i] {
            continue;
        }
        let id = p.book.global_to_node(HomoId(global))?;
        rows[i] = next[id.ty];
        next[id.ty] += 1;
        if inner {
            orig_nodes[id.ty].push(p.orig_nid[i]);
        } else {
            halo[id.ty].push(id.id);
            orig_halo[id.ty].push(p.orig_nid[i]);
        }
    }
    let (mut relations, mut orig_edges) = (Vec::new(), Vec::new());
    let mut at = 0;
    for t in 0..schema.etypes().len() {
        let end = at + p.book.edges.inner(p.part, t)? as usize;
        // Inner edges of a type are in their original order, and so are the in-edges of each destination.
        let edge = |j: usize| (rows[p.src[j] as usize], rows[p.dst[j] as usize]);
        let (src, dst) = (at..end).map(edge).unzip();
        let (s, d) = schema.endpoints(t);
        let relation = Relation::from_coo(next[s] as usize, orig_nodes[d].len(), src, dst);
        relations.push(relation.map_err(|e| e.in_relation(&schema.etypes()[t].to_string()))?);
        orig_edges.push(p.orig_eid[at..end].to_vec());
        at = end;
    }
    Ok(LocalStructure { relations, halo, orig_nodes, orig_halo, orig_edges })
}

/// Sends every owner the rows that this rank requests, and returns the rows to send and to receive for each node type.
pub(crate) fn requests(
    book: &PartitionBook,
    trainer: TrainerRank,
    halo: &[Vec<u64>],
    comm: &dyn Communicator,
) -> Result<Vec<TypeHalo>, DistError> {
    let mut messages = vec![Pack::default(); comm.size()];
    let mut types = Vec::with_capacity(halo.len());
    for (t, ids) in halo.iter().enumerate() {
        let mut wanted = vec![Vec::<u32>::new(); comm.size()];
        for &id in ids {
            let owner = book.nid2partid(t, id)?;
            wanted[trainer.rank_of(owner)].push(book.nid2localnid(t, id, owner)? as u32);
        }
        messages.iter_mut().zip(&wanted).for_each(|(message, w)| message.list(w));
        let recv = wanted.iter().map(Vec::len).collect();
        types.push(TypeHalo {
            num_inner: book.nodes.inner(trainer.part, t)? as usize,
            send: Vec::with_capacity(comm.size()),
            recv,
        });
    }
    let messages = messages.into_iter().map(Pack::into_bytes).collect();
    let received = comm.all_to_all_v("halo requests", messages)?;
    for (p, message) in received.into_iter().enumerate() {
        let mut message = Unpack::new(message, p, comm.rank());
        for h in &mut types {
            let ids = message.list::<u32>().map_err(|_| Failure {
                rank: comm.rank(),
                message: format!("rank {p} sent a halo request that cannot be decoded"),
            })?;
            h.send.push(ids);
        }
    }
    Ok(types)
}

/// In-degree in the whole graph of every source row, for edge types on one node type; empty for all other edge types.
/// The owner of a node has all its in-edges, so owners send the degrees of halo rows.
pub(crate) fn global_in_degrees(
    book: &PartitionBook,
    relations: &[Relation],
    plan: &HaloPlan,
) -> Result<Vec<Vec<u32>>, Failure> {
    let mut degrees = vec![vec![]; relations.len()];
    let on_one_type = |t: &usize| book.schema().endpoints(*t).0 == book.schema().endpoints(*t).1;
    for t in (0..relations.len()).filter(on_one_type) {
        degrees[t] = relations[t].in_degrees().collect();
        degrees[t].resize(relations[t].num_src(), 0);
    }
    send_degrees(book, &mut degrees, plan, "in-degrees")?;
    Ok(degrees)
}

/// Out-degree in the whole graph of every source row. Ranks send their counts of halo rows to the owners, which add
/// them and send the sums back.
pub(crate) fn global_out_degrees(
    book: &PartitionBook,
    relations: &[Relation],
    plan: &HaloPlan,
) -> Result<Vec<Vec<u32>>, Failure> {
    let mut degrees: Vec<Vec<u32>> = relations.iter().map(|r| r.out_degrees().collect()).collect();
    let source = |t: usize| &plan.types[book.schema().endpoints(t).0];
    let mut messages = vec![vec![]; plan.comm.size()];
    for (t, degrees) in degrees.iter().enumerate() {
        for (message, rows) in messages.iter_mut().zip(source(t).halo_rows()) {
            message.extend_from_slice(&degrees[rows]);
        }
    }
    let mut next = swap_degrees(&*plan.comm, "gather out-degrees", &messages)?;
    for (t, degrees) in degrees.iter_mut().enumerate() {
        for (p, rows) in source(t).rows_to_send().enumerate() {
            for (&row, count) in rows.iter().zip(next(p, rows.len())?) {
                let degree = &mut degrees[row as usize];
                *degree = degree.saturating_add(count);
            }
        }
    }
    send_degrees(book, &mut degrees, plan, "out-degrees")?;
    Ok(degrees)
}

/// Sends the degrees of own rows to the ranks that have them in their halo, for each relation with a list of degrees.
fn send_degrees(
    book: &PartitionBook,
    degrees: &mut [Vec<u32>],
    plan: &HaloPlan,
    name: &str,
) -> Result<(), Failure> {
    let source = |t: usize| &plan.types[book.schema().endpoints(t).0];
    let mut messages = vec![vec![]; plan.comm.size()];
    for (t, degrees) in degrees.iter().enumerate().filter(|(_, degrees)| !degrees.is_empty()) {
        for (message, rows) in messages.iter_mut().zip(source(t).rows_to_send()) {
            message.extend(rows.iter().map(|&row| degrees[row as usize]));
        }
    }
    let mut next = swap_degrees(&*plan.comm, name, &messages)?;
    for (t, degrees) in degrees.iter_mut().enumerate().filter(|(_, degrees)| !degrees.is_empty()) {
        for (p, rows) in source(t).halo_rows().enumerate() {
            let incoming = next(p, rows.len())?;
            degrees[rows].copy_from_slice(&incoming);
        }
    }
    Ok(())
}

/// Sends a list of degrees to every rank. The returned function takes the next `n` degrees that rank `p` sent.
fn swap_degrees(
    comm: &dyn Communicator,
    name: &str,
    messages: &[Vec<u32>],
) -> Result<impl FnMut(usize, usize) -> Result<Vec<u32>, Failure>, Failure> {
    let messages = messages.iter().map(|m| bytemuck::cast_slice(m).to_vec()).collect();
    let received = comm.all_to_all_v(name, messages)?;
    let list = |b: &Vec<u8>| bytemuck::pod_collect_to_vec::<u8, u32>(&b[..b.len() / 4 * 4]);
    let mut rest: Vec<_> = received.iter().map(|b| list(b).into_iter()).collect();
    let rank = comm.rank();
    Ok(move |p: usize, n: usize| {
        let next: Vec<u32> = rest[p].by_ref().take(n).collect();
        let short = || Failure { rank, message: format!("rank {p} sent too few degrees") };
        if next.len() == n { Ok(next) } else { Err(short()) }
    })
}
