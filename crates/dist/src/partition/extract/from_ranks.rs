//! Builds the part of a rank from the nodes and edges that the rank owns.

use std::path::PathBuf;
use std::sync::Arc;

use burn::tensor::TensorData;
use burn_gnn_graph::{EdgeKey, NodeKey, Schema};

use crate::comm::Communicator;
use crate::error::DistError;
use crate::exchange::{Pack, Unpack, agree, digest, round_trip};
use crate::partition::part::attributes::no_attributes;
use crate::partition::part::check::check_size;
use crate::partition::part::partition::{Features, Partition};
use crate::partition_book::{Numbering, PartitionBook, etype_number, ntype_number};

/// The nodes that a rank owns and their in-edges: the input of [`Partition::from_own_part`]. Ids are those of the whole
/// graph, per type.
#[derive(Clone, Debug)]
pub struct OwnPart {
    /// Name of the graph, the same on all ranks.
    pub graph_name: String,
    /// A hash that all parts of one partitioning share, or 0.
    pub fingerprint: u64,
    /// The file that the nodes and edges come from. Errors name it.
    pub path: PathBuf,
    /// Node types and edge types of the graph, the same on all ranks.
    pub schema: Arc<Schema>,
    /// Nodes of each type, in the order of the schema.
    pub nodes: Vec<OwnNodes>,
    /// Edges of each type, in the order of the schema.
    pub edges: Vec<OwnEdges>,
}

/// The nodes of one type in an [`OwnPart`].
#[derive(Clone, Debug, Default)]
pub struct OwnNodes {
    /// Ids of the nodes that the rank owns, ascending.
    pub inner: Vec<u32>,
    /// Ids of the halo nodes, ascending: sources of edges that other ranks own.
    pub halo: Vec<u32>,
    /// Rank that owns each halo node.
    pub owners: Vec<u32>,
}

/// The edges of one type in an [`OwnPart`]. Local ids count the `inner` nodes of the node type, then its `halo` nodes.
#[derive(Clone, Debug, Default)]
pub struct OwnEdges {
    /// Local id of the source of each edge.
    pub src: Vec<u32>,
    /// Local id of the destination of each edge, an inner node.
    pub dst: Vec<u32>,
    /// Id of each edge, ascending. Ids may have gaps, such as those of removed edges.
    pub edge_ids: Vec<u64>,
}

/// Number of nodes and edges of each rank, by type and then by rank, and a digest of both by rank.
struct Counts {
    nodes: Vec<Vec<u64>>,
    edges: Vec<Vec<u64>>,
    sums: Vec<u64>,
}

impl OwnNodes {
    fn len(&self) -> usize {
        self.inner.len() + self.halo.len()
    }
}

impl OwnPart {
    fn invalid(&self, message: String) -> DistError {
        DistError::format(&self.path, message)
    }

    /// Text with the name of the graph, its types and its fingerprint, which ranks compare.
    fn name(&self) -> String {
        let edges: Vec<String> = self.schema.etypes().iter().map(ToString::to_string).collect();
        let (nodes, edges) = (self.schema.ntypes().join(", "), edges.join(", "));
        format!(
            "{} with nodes {nodes}, edges {edges}, fingerprint {:x}",
            self.graph_name, self.fingerprint
        )
    }

    fn check(&self, rank: usize, ranks: usize) -> Result<(), DistError> {
        let (ntypes, etypes) = (self.schema.ntypes(), self.schema.etypes());
        let found = (self.nodes.len(), self.edges.len());
        if found != (ntypes.len(), etypes.len()) {
            return Err(self.invalid(format!(
                "`nodes` and `edges`: expected an entry for each of {} and {} types, found {found:?}",
                ntypes.len(),
                etypes.len()
            )));
        }
        for (name, nodes) in ntypes.iter().zip(&self.nodes) {
            self.check_nodes(name, nodes, rank, ranks)?;
        }
        for (e, (etype, edges)) in etypes.iter().zip(&self.edges).enumerate() {
            self.check_edges(&etype.to_string(), edges, self.schema.endpoints(e))?;
        }
        let nodes = self.nodes.iter().map(OwnNodes::len).sum();
        Ok(check_size(rank, nodes, self.edges.iter().map(|t| t.src.len()).sum())?)
    }

    fn check_nodes(
        &self,
        ntype: &str,
        OwnNodes { inner, halo, owners }: &OwnNodes,
        rank: usize,
        ranks: usize,
    ) -> Result<(), DistError> {
        for (name, ids) in [("inner", inner), ("halo", halo)] {
            if let Some(at) = ids.windows(2).position(|w| w[0] >= w[1]) {
                let (a, b) = (ids[at], ids[at + 1]);
                return Err(self.invalid(format!(
                    "`{name}` of `{ntype}`, position {at}: expected ascending ids, found {a} and {b}"
                )));
            }
        }
        if owners.len() != halo.len() {
            let (expected, found) = (halo.len(), owners.len());
            return Err(self.invalid(format!(
                "`owners` of `{ntype}`: expected {expected} entries, found {found}"
            )));
        }
        if let Some(p) = owners.iter().find(|&&p| p as usize >= ranks || p as usize == rank) {
            return Err(self.invalid(format!(
                "`owners` of `{ntype}`: expected other ranks in 0..{ranks}, found {p}; run one rank per part"
            )));
        }
        Ok(())
    }

    fn check_edges(
        &self,
        etype: &str,
        OwnEdges { src, dst, edge_ids }: &OwnEdges,
        (s, d): (usize, usize),
    ) -> Result<(), DistError> {
        for (name, found) in [("dst", dst.len()), ("edge_ids", edge_ids.len())] {
            if found != src.len() {
                let expected = src.len();
                return Err(self.invalid(format!(
                    "`{name}` of `{etype}`: expected {expected} entries, found {found}"
                )));
            }
        }
        let (nodes, n) = (self.nodes[s].len(), self.nodes[d].inner.len());
        if let Some(e) = (0..src.len()).find(|&e| src[e] as usize >= nodes || dst[e] as usize >= n)
        {
            let (u, v) = (src[e], dst[e]);
            return Err(self.invalid(format!(
                "edge {e} of `{etype}`: `src` must lie in 0..{nodes} and `dst` in 0..{n}, got {u} and {v}"
            )));
        }
        Ok(())
    }

    /// The message to each rank: the sizes of this rank's part, and its halo nodes that the other rank owns, by type.
    fn requests(&self, ranks: usize) -> Vec<Pack> {
        let nodes = self.nodes.iter().flat_map(|t| &t.inner);
        let endpoints = self.edges.iter().flat_map(|e| e.src.iter().chain(&e.dst));
        let ids = self.edges.iter().flat_map(|e| e.edge_ids.iter().copied());
        let sum = digest(nodes.chain(endpoints).map(|&i| u64::from(i)).chain(ids));
        let nodes: Vec<u64> = self.nodes.iter().map(|t| t.inner.len() as u64).collect();
        let edges: Vec<u64> = self.edges.iter().map(|e| e.src.len() as u64).collect();
        let mut borrowed = vec![vec![Vec::<u32>::new(); self.nodes.len()]; ranks];
        for (t, OwnNodes { halo, owners, .. }) in self.nodes.iter().enumerate() {
            halo.iter().zip(owners).for_each(|(&u, &p)| borrowed[p as usize][t].push(u));
        }
        let message = |by_type: &Vec<Vec<u32>>| {
            // The name comes first: it determines the number of counts.
            let pack = Pack::default().with(self.name().as_bytes()).with(&[sum]);
            by_type.iter().fold(pack.with(&nodes).with(&edges), |pack, ids| pack.with(ids))
        };
        borrowed.iter().map(message).collect()
    }

    /// Adds the sizes of a rank's part to the counts, and returns the positions of its halo nodes in this part, by
    /// type.
    fn answer(
        &self,
        rank: usize,
        mut asked: Unpack,
        counts: &mut Counts,
    ) -> Result<Pack, DistError> {
        let (from, name) = (asked.peer(), asked.list::<u8>()?);
        if name != self.name().as_bytes() {
            let found = String::from_utf8_lossy(&name);
            return Err(self.invalid(format!(
                "expected a part of `{}` on rank {from}, found one of `{found}`",
                self.name()
            )));
        }
        counts.sums.extend(asked.list_of::<u64>(1)?);
        for lists in [&mut counts.nodes, &mut counts.edges] {
            let of = asked.list_of::<u64>(lists.len())?;
            lists.iter_mut().zip(of).for_each(|(list, n)| list.push(n));
        }
        let mut pack = Pack::default();
        for (ntype, nodes) in self.schema.ntypes().iter().zip(&self.nodes) {
            let position = |u: u32| {
                let missing = |_| {
                    self.invalid(format!("rank {from} has node {u} of type `{ntype}` as a halo node of rank {rank}, which does not own it; write the parts again, of one partitioning"))
                };
                nodes.inner.binary_search(&u).map(|at| at as u64).map_err(missing)
            };
            let positions =
                asked.list::<u32>()?.into_iter().map(position).collect::<Result<Vec<_>, _>>()?;
            pack.list(&positions);
        }
        Ok(pack)
    }
}

impl Partition {
    /// Builds the part of this rank from the nodes and edges that the rank owns. No rank reads the part of another
    /// rank or holds an owner for every node of the graph: the owner of a halo node sends its position. The parts of
    /// all ranks together are the graph. Collective.
    ///
    /// The part serves full-graph training ([`LocalPartition`](crate::LocalPartition)) and sampling of in-edges. Its
    /// ids are those that [`partition_graph`](crate::partition_graph) assigns for the same owners, so losses and
    /// gradients are the same too. As with `num_hops` of 0 there, out-edges to other parts are not included.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use burn_gnn_dist::{Communicator, DistError, OwnEdges, OwnNodes, OwnPart, Partition, run_ranks};
    /// use burn_gnn_graph::Schema;
    /// // 0 -> 1, 2 -> 1, 1 -> 2; rank 0 owns nodes 0 and 1, rank 1 owns node 2.
    /// let global_ids = run_ranks(2, |comm| {
    ///     let (nodes, edges) = match comm.rank() {
    ///         0 => (
    ///             OwnNodes { inner: vec![0, 1], halo: vec![2], owners: vec![1] },
    ///             OwnEdges { src: vec![0, 2], dst: vec![1, 1], edge_ids: vec![0, 1] },
    ///         ),
    ///         _ => (
    ///             OwnNodes { inner: vec![2], halo: vec![1], owners: vec![0] },
    ///             OwnEdges { src: vec![1], dst: vec![0], edge_ids: vec![2] },
    ///         ),
    ///     };
    ///     let schema = Arc::new(Schema::new(vec!["_N".into()], vec![("_N", "_E", "_N").into()])?);
    ///     let (graph_name, path) = ("ring".to_owned(), "memory".into());
    ///     let own = OwnPart { graph_name, fingerprint: 0, path, schema, nodes: vec![nodes], edges: vec![edges] };
    ///     let part = Partition::from_own_part(Ok(own), &*comm)?;
    ///     Ok::<_, DistError>(part.global_nids().to_vec())
    /// })?;
    /// assert_eq!(global_ids, [[0, 1, 2].to_vec(), [2, 1].to_vec()]);
    /// # Ok::<(), DistError>(())
    /// ```
    ///
    /// # Errors
    /// On every rank: `own` is an error on one of them; lists that do not ascend or that differ in length; ids that are
    /// not local; edges whose destination is not in `inner`; a halo node that its owner does not have; parts of
    /// different graphs or partitionings.
    ///
    /// # Cost
    /// `O(E + H log H)` for `E` edges and `H` halo nodes of the part, and two exchanges of 8 bytes per halo node.
    pub fn from_own_part(
        own: Result<OwnPart, DistError>,
        comm: &dyn Communicator,
    ) -> Result<Self, DistError> {
        let (rank, ranks) = (comm.rank(), comm.size());
        let own =
            agree(comm, "own parts", own.and_then(|own| own.check(rank, ranks).map(|()| own)))?;
        let mut counts = Counts {
            nodes: vec![vec![]; own.nodes.len()],
            edges: vec![vec![]; own.edges.len()],
            sums: vec![],
        };
        let names = ["halo nodes", "positions of halo nodes"];
        let answers = round_trip(comm, names, Ok(own.requests(ranks)), |asked| {
            own.answer(rank, asked, &mut counts)
        })?;

        let OwnPart { graph_name, fingerprint: _, path, schema, nodes, edges } = own;
        let numbering = |what, counts: Vec<Vec<u64>>| {
            let too_many = || {
                DistError::format(
                    &path,
                    format!("expected at most {} {what}s, found more", u64::MAX),
                )
            };
            Numbering::ranges(what, ranks, &counts).ok_or_else(too_many)
        };
        let book = Arc::new(PartitionBook::new(
            schema.clone(),
            ranks,
            numbering("node", counts.nodes)?,
            numbering("edge", counts.edges)?,
        ));
        // Local ids: inner nodes type by type, then halo nodes by owner, type and id.
        let mut halo: Vec<(u32, usize, usize)> = vec![];
        for (t, nodes) in nodes.iter().enumerate() {
            halo.extend(nodes.owners.iter().enumerate().map(|(at, &p)| (p, t, at)));
        }
        halo.sort_unstable();
        let (mut local, mut next): (Vec<Vec<u32>>, u32) = (vec![], 0);
        for nodes in &nodes {
            let end = next + nodes.inner.len() as u32;
            local.push((next..end).chain(nodes.halo.iter().map(|_| 0)).collect());
            next = end;
        }
        let num_inner_nodes = next as usize;
        for (&(_, t, at), to) in halo.iter().zip(next..) {
            local[t][nodes[t].inner.len() + at] = to;
        }
        let mut nid: Vec<u64> = book.nodes.global_ids(rank).collect();
        for (owner, mut answer) in answers.into_iter().enumerate() {
            for t in 0..nodes.len() {
                let (found, first) = (answer.list::<u64>()?, book.partid2nids(owner, t)?.start);
                nid.extend(
                    found.into_iter().map(|at| book.nodes.global_id(owner, t, first + at).0),
                );
            }
        }
        let own_ids = nodes.iter().flat_map(|t| &t.inner);
        let orig_nid = own_ids.chain(halo.iter().map(|&(_, t, at)| &nodes[t].halo[at]));
        let (mut src, mut dst, mut orig_eid) = (vec![], vec![], vec![]);
        for (e, edges) in edges.into_iter().enumerate() {
            let (s, d) = schema.endpoints(e);
            src.extend(edges.src.into_iter().map(|u| local[s][u as usize]));
            dst.extend(edges.dst.into_iter().map(|v| local[d][v as usize]));
            orig_eid.extend(edges.edge_ids);
        }
        let partition = Self {
            fingerprint: digest(counts.sums),
            graph_name,
            part: rank,
            num_hops: 0,
            num_trainers: 1,
            num_inner_nodes,
            num_inner_edges: src.len(),
            src,
            dst,
            nid,
            eid: book.edges.global_ids(rank).collect(),
            orig_nid: orig_nid.map(|&v| u64::from(v)).collect(),
            orig_eid,
            trainer_id: None,
            book,
            node_feats: Features::new(),
            edge_feats: Features::new(),
            attributes: no_attributes(&schema),
        };
        // A build that drops edges leaves gaps in the ids of the remaining ones.
        let checked = partition.check(&path, true);
        agree(comm, "parts of own edges", checked.map(|()| partition))
    }

    /// Adds a column of features, labels or masks for the inner nodes of a type: one row per node, in the order of
    /// [`inner_nids`](Self::inner_nids).
    ///
    /// # Errors
    /// The number of rows differs.
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

    /// Adds a column for the inner edges of a type: one row per edge, in ascending order of their ids in the input
    /// graph.
    ///
    /// # Errors
    /// The number of rows differs.
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
