//! Builds the part of a rank from its own edge file.

use std::path::PathBuf;
use std::sync::Arc;

use burn::tensor::TensorData;
use burn_gnn_graph::{EdgeKey, EdgeType, NodeKey, Schema};

use super::{Features, Partition};
use crate::exchange::{Pack, Unpack, agree, digest, exchange};
use crate::partition_book::{Numbering, etype_number, ntype_number};
use crate::{Communicator, DistError, PartitionBook};

/// The nodes of one rank and their in-edges, of a graph of one node type and one edge type: what
/// [`Partition::from_own_edges`] makes a part of. Ids are those of the whole graph, local ids positions in `inner` and
/// then in `halo`.
#[derive(Clone, Debug)]
pub struct OwnEdges {
    /// Name of the graph, the same on all ranks.
    pub graph_name: String,
    /// A hash that all parts of one partitioning share; 0 where there is none.
    pub fingerprint: u64,
    /// The file that this comes from, for errors.
    pub path: PathBuf,
    /// Edge type; both of its node types are the one that there is.
    pub etype: EdgeType,
    /// Ids of the nodes that the rank owns, ascending.
    pub inner: Vec<u32>,
    /// Ids of the other nodes that edges come from, ascending.
    pub halo: Vec<u32>,
    /// Rank that owns each halo node.
    pub owners: Vec<u32>,
    /// Local id of the source of each edge.
    pub src: Vec<u32>,
    /// Local id of the destination of each edge, an inner node.
    pub dst: Vec<u32>,
    /// Id of each edge, ascending.
    pub edge_ids: Vec<u64>,
}

/// Of each rank: nodes and edges that it owns, and a digest of both.
#[derive(Default)]
struct Counts {
    nodes: Vec<u64>,
    edges: Vec<u64>,
    sums: Vec<u64>,
}

impl OwnEdges {
    fn bad(&self, message: String) -> DistError {
        DistError::format(&self.path, message)
    }

    /// Name of the graph, its edge type and the fingerprint, which ranks compare.
    fn name(&self) -> String {
        format!("{} with edges {}, fingerprint {:x}", self.graph_name, self.etype, self.fingerprint)
    }

    fn check(&self, rank: usize, ranks: usize) -> Result<(), DistError> {
        let Self { inner, halo, owners, src, dst, edge_ids, .. } = self;
        for (name, ids) in [("inner", inner), ("halo", halo)] {
            if let Some(at) = ids.windows(2).position(|w| w[0] >= w[1]) {
                let (a, b) = (ids[at], ids[at + 1]);
                return Err(self.bad(format!(
                    "`{name}`, position {at}: expected ascending ids, found {a} and {b}"
                )));
            }
        }
        let lens = [
            ("owners", owners.len(), halo.len()),
            ("dst", dst.len(), src.len()),
            ("edge_ids", edge_ids.len(), src.len()),
        ];
        if let Some((name, found, expected)) =
            lens.into_iter().find(|&(_, found, expected)| found != expected)
        {
            return Err(self.bad(format!("`{name}`: expected {expected} entries, found {found}")));
        }
        if let Some(p) = owners.iter().find(|&&p| p as usize >= ranks || p as usize == rank) {
            return Err(self.bad(format!(
                "`owners`: expected other ranks in 0..{ranks}, found {p}; run one rank per part"
            )));
        }
        let (nodes, n) = (inner.len() + halo.len(), inner.len());
        if let Some(e) = (0..src.len()).find(|&e| src[e] as usize >= nodes || dst[e] as usize >= n)
        {
            let (u, v) = (src[e], dst[e]);
            return Err(self.bad(format!(
                "edge {e}: `src` must lie in 0..{nodes} and `dst` in 0..{n}, got {u} and {v}"
            )));
        }
        Ok(())
    }

    /// For each rank: what this one owns, and the nodes that it borrows there.
    fn asks(&self, ranks: usize) -> Vec<Vec<u8>> {
        let mut borrowed = vec![Vec::<u32>::new(); ranks];
        self.halo.iter().zip(&self.owners).for_each(|(&u, &p)| borrowed[p as usize].push(u));
        let local = self.inner.iter().chain(&self.src).chain(&self.dst);
        let sum = digest(local.map(|&i| u64::from(i)).chain(self.edge_ids.iter().copied()));
        let message = |ids: &Vec<u32>| {
            let mut pack = Pack::default();
            pack.list(&[self.inner.len() as u64, self.src.len() as u64, sum]);
            pack.list(self.name().as_bytes());
            pack.list(ids);
            pack.into_bytes()
        };
        borrowed.iter().map(message).collect()
    }

    /// What all ranks own, and for each of them the places of the nodes that it borrows here.
    fn answers(&self, rank: usize, asked: &[Vec<u8>]) -> Result<(Counts, Vec<Vec<u8>>), DistError> {
        let (mut counts, mut answers) = (Counts::default(), vec![]);
        for (from, bytes) in asked.iter().enumerate() {
            let mut unpack = Unpack::new(bytes, from, rank);
            let facts = unpack.list_of::<u64>(3)?;
            counts.nodes.push(facts[0]);
            counts.edges.push(facts[1]);
            counts.sums.push(facts[2]);
            let name = unpack.list::<u8>()?;
            if name != self.name().as_bytes() {
                let found = String::from_utf8_lossy(&name);
                return Err(self.bad(format!(
                    "expected a part of `{}` on rank {from}, found one of `{found}`",
                    self.name()
                )));
            }
            let place = |u: u32| {
                let missing = |_| {
                    self.bad(format!("rank {from} borrows node {u}, which rank {rank} does not own; are all parts of one partitioning?"))
                };
                self.inner.binary_search(&u).map(|at| at as u64).map_err(missing)
            };
            let places =
                unpack.list::<u32>()?.into_iter().map(place).collect::<Result<Vec<_>, _>>()?;
            let mut pack = Pack::default();
            pack.list(&places);
            answers.push(pack.into_bytes());
        }
        Ok((counts, answers))
    }
}

impl Partition {
    /// The part of this rank, from its own nodes and edges alone: no rank sees those of another, and nobody holds
    /// an owner per node of the graph. Owners tell the places of halo nodes. Collective; all parts together are the
    /// graph.
    ///
    /// The part has what layers compute with ([`LocalPartition`](crate::LocalPartition)) and what in-edges are
    /// sampled from, with the ids of a graph that was cut by [`partition_graph`](crate::partition_graph): losses
    /// and gradients are the same. As with `num_hops` of 0 there, out-edges to other parts are not in it.
    ///
    /// ```
    /// use burn_gnn_dist::{Communicator, DistError, OwnEdges, Partition, run_ranks};
    /// use burn_gnn_graph::EdgeType;
    /// // 0 -> 1, 2 -> 1, 1 -> 2; rank 0 owns nodes 0 and 1, rank 1 owns node 2.
    /// let global_ids = run_ranks(2, |comm| {
    ///     let ids = |own: [&[u32]; 5]| own.map(<[u32]>::to_vec);
    ///     let (own, edge_ids) = match comm.rank() {
    ///         0 => (ids([&[0, 1], &[2], &[1], &[0, 2], &[1, 1]]), vec![0, 1]),
    ///         _ => (ids([&[2], &[1], &[0], &[1], &[0]]), vec![2]),
    ///     };
    ///     let [inner, halo, owners, src, dst] = own;
    ///     let etype = EdgeType::new("_N", "_E", "_N");
    ///     let own = OwnEdges { graph_name: "ring".into(), fingerprint: 0, path: "memory".into(), etype, inner, halo, owners, src, dst, edge_ids };
    ///     let part = Partition::from_own_edges(Ok(own), &*comm)?;
    ///     Ok::<_, DistError>(part.global_nids().to_vec())
    /// })?;
    /// assert_eq!(global_ids, [[0, 1, 2].to_vec(), [2, 1].to_vec()]);
    /// # Ok::<(), DistError>(())
    /// ```
    ///
    /// # Errors
    /// On every rank: `own` of one of them; lists that do not ascend, or differ in length; ids that are not local;
    /// edges that end outside of `inner`; a halo node that its owner does not have; parts of different graphs or
    /// partitionings.
    ///
    /// # Cost
    /// `O(E + H log H)` for `E` edges and `H` halo nodes of the part, and two exchanges of 8 bytes per halo node.
    pub fn from_own_edges(
        own: Result<OwnEdges, DistError>,
        comm: &dyn Communicator,
    ) -> Result<Self, DistError> {
        let (rank, ranks) = (comm.rank(), comm.size());
        let own =
            agree(comm, "own edges", own.and_then(|own| own.check(rank, ranks).map(|()| own)))?;
        let asked = exchange(comm, "nodes that parts borrow", Ok(own.asks(ranks)))?;
        let (counts, answers) = match own.answers(rank, &asked) {
            Ok((counts, answers)) => (counts, Ok(answers)),
            Err(e) => (Counts::default(), Err(e)),
        };
        let answers = exchange(comm, "places of borrowed nodes", answers)?;

        let OwnEdges {
            graph_name,
            fingerprint: _,
            path,
            etype,
            inner,
            halo,
            owners,
            src,
            dst,
            edge_ids,
        } = own;
        let schema = Arc::new(Schema::new(vec![etype.src.clone()], vec![etype])?);
        let numbering = |what, counts: Vec<u64>| {
            let many = || {
                DistError::format(
                    &path,
                    format!("expected at most {} {what}s, found more", u64::MAX),
                )
            };
            Numbering::ranges(what, ranks, &[counts]).ok_or_else(many)
        };
        let book = Arc::new(PartitionBook::new(
            schema,
            ranks,
            numbering("node", counts.nodes)?,
            numbering("edge", counts.edges)?,
        ));
        // Halo nodes by owner, then by id.
        let mut order: Vec<u32> = (0..halo.len() as u32).collect();
        order.sort_by_key(|&i| owners[i as usize]);
        let mut local: Vec<u32> = (0..(inner.len() + halo.len()) as u32).collect();
        order
            .iter()
            .zip(inner.len() as u32..)
            .for_each(|(&i, to)| local[inner.len() + i as usize] = to);
        let mut nid: Vec<u64> = book.nodes.global_ids(rank).collect();
        for (owner, bytes) in answers.iter().enumerate() {
            let (found, first) =
                (Unpack::new(bytes, owner, rank).list::<u64>()?, book.partid2nids(owner, 0)?.start);
            nid.extend(found.into_iter().map(|at| book.nodes.global_id(owner, 0, first + at).0));
        }
        let orig_nid = inner
            .iter()
            .copied()
            .chain(order.iter().map(|&i| halo[i as usize]))
            .map(u64::from)
            .collect();
        let mut partition = Self {
            fingerprint: digest(counts.sums),
            graph_name,
            part: rank,
            num_hops: 0,
            num_trainers: 1,
            num_inner_nodes: inner.len(),
            num_inner_edges: src.len(),
            src: src.into_iter().map(|u| local[u as usize]).collect(),
            dst,
            nid,
            eid: book.edges.global_ids(rank).collect(),
            orig_nid,
            orig_eid: edge_ids,
            trainer_id: None,
            book,
            node_feats: Features::new(),
            edge_feats: Features::new(),
            extras: [vec![], vec![]],
        };
        partition.extras = partition.no_extras();
        let checked = partition.check(&path);
        agree(comm, "parts of own edges", checked.map(|()| partition))
    }

    /// With a column of features, labels or masks of the inner nodes of a type: a row per node, in the order of
    /// [`original_nids`](Self::original_nids).
    ///
    /// # Errors
    /// Another number of rows.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn with_node_column(
        mut self,
        ntype: impl NodeKey,
        name: &str,
        data: TensorData,
    ) -> Result<Self, DistError> {
        let ty = ntype_number(self.book.schema(), ntype);
        let rows = self.book.nodes.inner(self.part, ty)?;
        self.node_feats.insert((ty, name.to_owned()), checked_rows(name, rows, data)?);
        Ok(self)
    }

    /// With a column of the inner edges of a type: a row per edge, in the order of
    /// [`original_eids`](Self::original_eids).
    ///
    /// # Errors
    /// Another number of rows.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn with_edge_column(
        mut self,
        etype: impl EdgeKey,
        name: &str,
        data: TensorData,
    ) -> Result<Self, DistError> {
        let ty = etype_number(self.book.schema(), etype);
        let rows = self.book.edges.inner(self.part, ty)?;
        self.edge_feats.insert((ty, name.to_owned()), checked_rows(name, rows, data)?);
        Ok(self)
    }
}

fn checked_rows(name: &str, rows: u64, data: TensorData) -> Result<TensorData, DistError> {
    match data.shape().as_slice() {
        [n, ..] if *n as u64 == rows => Ok(data),
        shape => {
            let (expected, found) =
                (format!("a first axis of {rows} for `{name}`"), format!("the shape {shape:?}"));
            Err(DistError::Config { arg: "data", expected, found })
        }
    }
}
