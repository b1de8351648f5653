//! Defines the calls of message passing by field names: `update_all`, `apply_edges` and others.

use burn_gnn_graph::{EdgeKey, Graph, NodeKey};

use crate::error::OpsError;
use crate::message::batch::edge_selection::Selection;
use crate::message::batch::node_batch::NodeBatch;
use crate::message::data::graph_data::GraphData;
use crate::message::data::relation_data::{RelationData, apply_nodes};
use crate::message::fields::Fields;
use crate::message::function::{MessageFunction, ReduceFunction};
use crate::message::hetero::all_etypes::update_across_etypes;
use crate::message::hetero::cross::{Cross, RelationCall, multi};
use crate::message::reduce::Call;

/// Operation on the data of one edge type.
type Change<'a> = dyn FnMut(&mut RelationData) -> Result<(), OpsError> + 'a;

/// Message passing along one edge type: on a [`Graph`] or block ([`BlockData`](crate::BlockData)) of one edge type, on
/// one of several edge types through [`on`](GraphMessageOps::on), on any relation through [`RelationData`].
///
/// A call reads fields of sources (`u`), destinations (`v`) and edges (`e`), and returns a copy with new fields; the
/// original is not modified. Copies share structure and tensors, and gradients flow through fields.
///
/// # Semantics
/// - A destination without messages gets 0 and gradient 0, from every reducer, builtin or closure.
/// - Parallel edges all count. Of equal messages under max or min the one with the smallest edge id is the argmax; a NaN
///   is beyond every number; infinities propagate.
/// - A call that writes all rows replaces the column, whatever its rank and element type. A call that writes some rows
///   keeps the other rows; in a new column they are 0.
/// - Under [`with_precision`](crate::with_precision) messages and results have its element type.
///
/// # Errors
/// Unknown names ([`OpsError::Graph`] lists the known ones); different message names in message and reduce function;
/// fields of the wrong rank or kind; different element types or devices; shapes that do not broadcast; closures that
/// return a wrong number of rows; ids that are out of range or repeated.
///
/// # Cost
/// `copy_u`, `copy_e` and `u_{add,sub,mul,div}_e` (for add and mul also `e_{add,mul}_u`) with any builtin reducer run
/// as one [`gspmm`](crate::gspmm), which allocates nothing per edge. Every other pair computes the messages, `[edges, ..]`,
/// once, sorted by destination ([`sorted_by_dst`](burn_gnn_graph::Relation::sorted_by_dst)), and reduces them
/// sequentially. A closure gathers rows of sources once per field that it reads.
pub trait MessageOps {
    /// Result of a call.
    type Output;

    /// Runs `change` on the data of the edge type, and returns a copy with the changes.
    #[doc(hidden)]
    fn along(&self, op: &'static str, change: &mut Change<'_>) -> Result<Self::Output, OpsError>;

    /// Sends messages along all edges and reduces them at destinations: `v.out = reduce of message(u, v, e) over
    /// in-edges`.
    ///
    /// On a graph of several edge types builtins reduce the messages of all edge types into a node together: mean divides
    /// by their total number, and of equal messages the one of the first edge type is the argmax. Every node type with
    /// incoming edge types gets the field. The results for one node type must have one row shape and element type.
    ///
    /// # Errors
    /// See [`MessageOps`]; a closure as reduce function on several edge types.
    fn update_all<M: MessageFunction, R: ReduceFunction>(
        &self,
        message: M,
        reduce: R,
    ) -> Result<Self::Output, OpsError> {
        let call = Call::new("update_all", &message, &reduce);
        self.along(call.op, &mut |data| data.update_all(&call).map(drop))
    }

    /// Writes the fields that the message function returns to edges: all (`..`), or those with some ids.
    ///
    /// A closure gets the edges in the order of the ids. On a graph of several edge types `..` processes each of them.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_ops::function::u_dot_v;
    /// use burn_gnn_ops::{EdgeBatch, Fields, MessageOps};
    /// let mut g = Graph::homogeneous(2, vec![0, 1], vec![1, 1])?;
    /// g.nodes_mut("_N")?.insert("h", Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.0]], &Device::flex()))?;
    /// let g = g.apply_edges(.., u_dot_v("h", "h", "score"))?;
    /// let double = |edges: &EdgeBatch| Ok(Fields::of("score", edges.data::<2>("score")? * 2.0));
    /// let g = g.apply_edges(&[1], double)?;
    /// assert_eq!(g.edges("_E")?.get::<2>("score")?.into_data().try_to_vec::<f32>().unwrap(), [11.0, 50.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`MessageOps`].
    fn apply_edges<'a, M: MessageFunction>(
        &self,
        edges: impl Into<Selection<'a>>,
        message: M,
    ) -> Result<Self::Output, OpsError> {
        let edges = edges.into();
        self.along("apply_edges", &mut |data| data.apply_edges("apply_edges", edges, &message))
    }

    /// [`update_all`](Self::update_all) for some destinations, over all their in-edges. Other destinations keep their
    /// rows. Without ids nothing changes.
    ///
    /// # Errors
    /// See [`MessageOps`]; an existing column with another row shape or element type.
    fn pull<M: MessageFunction, R: ReduceFunction>(
        &self,
        nodes: &[u32],
        message: M,
        reduce: R,
    ) -> Result<Self::Output, OpsError> {
        let call = Call::new("pull", &message, &reduce);
        self.along(call.op, &mut |data| data.pull(&call, nodes))
    }

    /// [`send_and_recv`](Self::send_and_recv) along the out-edges of some sources.
    ///
    /// # Errors
    /// As [`pull`](Self::pull).
    fn push<M: MessageFunction, R: ReduceFunction>(
        &self,
        nodes: &[u32],
        message: M,
        reduce: R,
    ) -> Result<Self::Output, OpsError> {
        let call = Call::new("push", &message, &reduce);
        self.along(call.op, &mut |data| data.push(&call, nodes))
    }

    /// Sends messages along some edges only, and writes to their destinations; other nodes keep their rows. Without ids
    /// nothing changes.
    ///
    /// # Errors
    /// As [`pull`](Self::pull).
    fn send_and_recv<M: MessageFunction, R: ReduceFunction>(
        &self,
        edges: &[u32],
        message: M,
        reduce: R,
    ) -> Result<Self::Output, OpsError> {
        let call = Call::new("send_and_recv", &message, &reduce);
        self.along(call.op, &mut |data| data.send_and_recv(&call, edges))
    }

    /// [`pull`](Self::pull) for sets of nodes sequentially, where each set reads the results of the previous sets: from
    /// the leaves of a tree to its root, or in topological order of a directed acyclic graph.
    ///
    /// Every set writes a whole column, so the cost is sets × rows in addition to the messages.
    ///
    /// # Errors
    /// As [`pull`](Self::pull).
    fn prop_nodes<M: MessageFunction, R: ReduceFunction>(
        &self,
        fronts: impl IntoIterator<Item = impl AsRef<[u32]>>,
        message: M,
        reduce: R,
    ) -> Result<Self::Output, OpsError> {
        let call = Call::new("prop_nodes", &message, &reduce);
        let mut fronts = fronts.into_iter();
        self.along(call.op, &mut |data| {
            fronts.by_ref().try_for_each(|nodes| data.pull(&call, nodes.as_ref()))
        })
    }

    /// [`send_and_recv`](Self::send_and_recv) for sets of edges sequentially, where each set reads the results of the
    /// previous sets: along a traversal ([`bfs_edges`](burn_gnn_graph::Relation::bfs_edges),
    /// [`dfs_edges`](burn_gnn_graph::Relation::dfs_edges)).
    ///
    /// The cost is as for [`prop_nodes`](Self::prop_nodes).
    ///
    /// # Errors
    /// As [`pull`](Self::pull).
    fn prop_edges<M: MessageFunction, R: ReduceFunction>(
        &self,
        fronts: impl IntoIterator<Item = impl AsRef<[u32]>>,
        message: M,
        reduce: R,
    ) -> Result<Self::Output, OpsError> {
        let call = Call::new("prop_edges", &message, &reduce);
        let mut fronts = fronts.into_iter();
        self.along(call.op, &mut |data| {
            fronts.by_ref().try_for_each(|edges| data.send_and_recv(&call, edges.as_ref()))
        })
    }
}

impl MessageOps for RelationData {
    type Output = Self;

    fn along(&self, _: &'static str, change: &mut Change<'_>) -> Result<Self, OpsError> {
        let mut data = self.clone();
        change(&mut data)?;
        Ok(data)
    }
}

fn along_one<G: GraphMessageOps>(
    g: &G,
    etype: usize,
    change: &mut Change<'_>,
) -> Result<G, OpsError> {
    let mut data = g.message_data(etype);
    change(&mut data)?;
    let mut g = g.clone();
    let (_, dst) = g.message_schema().endpoints(etype);
    *g.message_nodes(dst)? = data.dst().clone();
    *g.message_edges(etype)? = data.edges().clone();
    Ok(g)
}

impl<G: GraphMessageOps> MessageOps for G {
    type Output = Self;

    fn along(&self, op: &'static str, change: &mut Change<'_>) -> Result<Self, OpsError> {
        let etypes = self.message_schema().etypes();
        match etypes.len() {
            1 => along_one(self, 0, change),
            _ => Err(OpsError::EdgeTypes {
                op,
                known: etypes.iter().map(ToString::to_string).collect(),
            }),
        }
    }

    fn update_all<M: MessageFunction, R: ReduceFunction>(
        &self,
        message: M,
        reduce: R,
    ) -> Result<Self, OpsError> {
        let call = Call::new("update_all", &message, &reduce);
        match self.message_schema().etypes().len() {
            0 | 1 => self.along(call.op, &mut |data| data.update_all(&call).map(drop)),
            _ => update_across_etypes(self, &call),
        }
    }

    fn apply_edges<'a, M: MessageFunction>(
        &self,
        edges: impl Into<Selection<'a>>,
        message: M,
    ) -> Result<Self, OpsError> {
        const OP: &str = "apply_edges";
        match edges.into() {
            Selection::All => {
                (0..self.message_schema().etypes().len()).try_fold(self.clone(), |g, etype| {
                    along_one(&g, etype, &mut |data| data.apply_edges(OP, Selection::All, &message))
                })
            }
            some => self.along(OP, &mut |data| data.apply_edges(OP, some, &message)),
        }
    }
}

/// One edge type of a graph or block, for [`MessageOps`]; see [`on`](GraphMessageOps::on).
#[derive(Debug)]
pub struct OnRelation<'g, G = Graph> {
    graph: &'g G,
    etype: usize,
}

impl<G> Clone for OnRelation<'_, G> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<G> Copy for OnRelation<'_, G> {}

impl<G: GraphMessageOps> MessageOps for OnRelation<'_, G> {
    type Output = G;

    fn along(&self, _: &'static str, change: &mut Change<'_>) -> Result<G, OpsError> {
        along_one(self.graph, self.etype, change)
    }
}

/// Message passing on graphs and blocks of several types.
///
/// A block ([`BlockData`](crate::BlockData)) has one frame for the sources and one for the destinations of a node type. A
/// call reads fields `u` of sources and `v` of destinations, and writes to destinations.
pub trait GraphMessageOps: GraphData {
    /// Selects an edge type for calls of [`MessageOps`]: `g.on("follows")?.update_all(..)`, as `g[etype]` in DGL.
    ///
    /// # Errors
    /// An unknown edge type; a relation name that several edge types share.
    fn on(&self, etype: impl EdgeKey) -> Result<OnRelation<'_, Self>, OpsError> {
        Ok(OnRelation { graph: self, etype: self.message_schema().etype(etype)? })
    }

    /// Writes the fields that `f` returns to nodes of a type (to destinations on a block): all (`..`), or those with some
    /// ids.
    ///
    /// # Errors
    /// An unknown node type; ids that are out of range or repeated; a wrong number of rows; an error of `f`.
    fn apply_nodes<'a>(
        &self,
        ntype: impl NodeKey,
        nodes: impl Into<Selection<'a>>,
        f: impl Fn(&NodeBatch) -> Result<Fields, OpsError>,
    ) -> Result<Self, OpsError> {
        let mut g = self.clone();
        let ntype = g.message_schema().ntype(ntype)?;
        apply_nodes("apply_nodes", g.message_nodes(ntype)?, nodes.into(), &f)?;
        Ok(g)
    }

    /// Reduces inside every edge type of `calls`, then over the edge types into one node type.
    ///
    /// # Semantics
    /// - Edge types are combined in the order of the schema: by source type, then relation. [`Cross::stack`] has this
    ///   order, and of equal maxima the first one is selected and gets the gradient.
    /// - An edge type without messages for a node contributes 0. If the reduce function and `cross` are both max or both
    ///   min, it contributes nothing, and the node gets 0 only if no edge type has a message for it. A node type without
    ///   incoming edge types in `calls` is not modified.
    /// - Mean over edge types divides by the number of edge types in `calls` into the node type.
    /// - All edge types into a node type must write the same fields, with one row shape and element type. An apply
    ///   function of a reduce function runs before edge types are combined, an apply function of `cross` afterwards.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_ops::function::{copy_u, mean, sum};
    /// use burn_gnn_ops::{Cross, GraphMessageOps, on};
    /// let mut g = Graph::builder()
    ///     .edges(("user", "follows", "user"), vec![0], vec![1])
    ///     .edges(("game", "played_by", "user"), vec![0, 1], vec![1, 1])
    ///     .build()?;
    /// g.nodes_mut("user")?.insert("h", Tensor::<1>::from_data([1.0, 2.0], &Device::flex()))?;
    /// g.nodes_mut("game")?.insert("h", Tensor::<1>::from_data([10.0, 30.0], &Device::flex()))?;
    /// let calls = [on("follows", copy_u("h", "m"), sum("m", "y")), on("played_by", copy_u("h", "m"), mean("m", "y"))];
    /// let g = g.multi_update_all(calls, Cross::sum())?;
    /// assert_eq!(g.nodes("user")?.get::<1>("y")?.into_data().try_to_vec::<f32>().unwrap(), [0.0, 21.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`MessageOps`]; a repeated edge type; edge types into one node type that write different fields or row shapes.
    ///
    /// # Cost
    /// One [`update_all`](MessageOps::update_all) and one pass over the rows of destinations per edge type. For many
    /// relations with weight matrices see [`relational_aggregate`](crate::relational_aggregate).
    fn multi_update_all<'a>(
        &self,
        calls: impl IntoIterator<Item = RelationCall<'a>>,
        cross: impl Into<Cross<'a>>,
    ) -> Result<Self, OpsError> {
        multi(self, calls.into_iter().collect(), &cross.into())
    }
}

impl<G: GraphData> GraphMessageOps for G {}
