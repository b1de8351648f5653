//! Holds the features of a relation's nodes and edges for message passing.

use burn_gnn_graph::{Column, Frame, GraphError, Relation};

use crate::check::Difference;
use crate::error::OpsError;
use crate::message::batch::edge_selection::{EdgeSelection, Selection, different};
use crate::message::batch::node_batch::{NodeBatch, NodeFn};
use crate::message::columns::{features, merged, picking, scattered};
use crate::message::fields::Fields;
use crate::message::function::{MessageFunction, Messages};
use crate::message::reduce::{Call, messages_of, receive};

/// A relation with features of its sources, destinations and edges: a block, or one edge type of a graph.
///
/// Sources and destinations have separate frames, as in a block. It implements [`MessageOps`](crate::MessageOps) like a
/// graph. Cloning shares tensors.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Relation;
/// use burn_gnn_ops::function::{copy_u, max};
/// use burn_gnn_ops::{MessageOps, RelationData};
/// // A block: 3 sources, of which the first 2 are the destinations.
/// let mut block = RelationData::new(Relation::from_coo(3, 2, vec![0, 2, 1], vec![0, 0, 1])?);
/// block.src_mut().insert("h", Tensor::<1>::from_data([1.0, 2.0, 3.0], &Device::flex()))?;
/// let block = block.update_all(copy_u("h", "m"), max("m", "h"))?;
/// assert_eq!(block.dst().get::<1>("h")?.into_data().try_to_vec::<f32>().unwrap(), [3.0, 2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RelationData {
    pub(crate) relation: Relation,
    pub(crate) src: Frame,
    pub(crate) dst: Frame,
    pub(crate) edges: Frame,
    /// Whether sources and destinations are the same nodes, so that results are written to both frames.
    pub(crate) shares_nodes: bool,
}

impl RelationData {
    /// Creates empty frames.
    pub fn new(relation: Relation) -> Self {
        let src = Frame::new("sources", relation.num_src());
        let dst = Frame::new("destinations", relation.num_dst());
        let edges = Frame::new("edges", relation.num_edges());
        Self { relation, src, dst, edges, shares_nodes: false }
    }
    /// The edges.
    pub fn relation(&self) -> &Relation {
        &self.relation
    }
    /// Features of sources.
    pub fn src(&self) -> &Frame {
        &self.src
    }
    /// Features of sources, mutable.
    pub fn src_mut(&mut self) -> &mut Frame {
        &mut self.src
    }
    /// Features of destinations.
    pub fn dst(&self) -> &Frame {
        &self.dst
    }
    /// Features of destinations, mutable.
    pub fn dst_mut(&mut self) -> &mut Frame {
        &mut self.dst
    }
    /// Features of edges.
    pub fn edges(&self) -> &Frame {
        &self.edges
    }
    /// Features of edges, mutable.
    pub fn edges_mut(&mut self) -> &mut Frame {
        &mut self.edges
    }

    /// All edges.
    pub(crate) fn all_edges(&self) -> EdgeSelection {
        let (src, dst, edges) = (self.src.clone(), self.dst.clone(), self.edges.clone());
        EdgeSelection { relation: self.relation.clone(), src, dst, edges, nodes: None, eids: None }
    }

    /// Reduces over the edges of a selection and writes the results to its destinations. Returns the names of the fields.
    fn receive(&mut self, call: &Call<'_>, of: &EdgeSelection) -> Result<Vec<String>, OpsError> {
        let fields = receive(call, of)?;
        write(&mut self.dst, &fields, of.nodes.as_ref())?;
        let mut names = fields.owned_names();
        for f in &call.reducing.apply {
            names.extend(apply(call.op, &mut self.dst, of.nodes.as_ref(), f)?.owned_names());
        }
        if self.shares_nodes {
            self.src = self.dst.clone();
        }
        Ok(names)
    }

    /// Returns the fields that were written.
    pub(crate) fn update_all(&mut self, call: &Call<'_>) -> Result<Fields, OpsError> {
        let names = self.receive(call, &self.all_edges())?;
        names.into_iter().try_fold(Fields::default(), |f, name| {
            Ok(f.with_column(&name, self.dst.column(&name)?.clone()))
        })
    }

    pub(crate) fn pull(&mut self, call: &Call<'_>, nodes: &[u32]) -> Result<(), OpsError> {
        let selection = self.all_edges().ending_in(call.op, nodes)?;
        if nodes.is_empty() {
            return Ok(());
        }
        self.receive(call, &selection).map(drop)
    }

    pub(crate) fn send_and_recv(&mut self, call: &Call<'_>, edges: &[u32]) -> Result<(), OpsError> {
        let selection = self.all_edges().of_edges(call.op, edges)?;
        if edges.is_empty() {
            return Ok(());
        }
        self.receive(call, &selection).map(drop)
    }

    pub(crate) fn push(&mut self, call: &Call<'_>, nodes: &[u32]) -> Result<(), OpsError> {
        different(call.op, "nodes", nodes, self.relation.num_src())?;
        let csr = self.relation.csr();
        let edges: Vec<u32> =
            nodes.iter().flat_map(|&u| csr.row(u as usize)).map(|p| csr.edge_id(p)).collect();
        self.send_and_recv(call, &edges)
    }

    pub(crate) fn apply_edges(
        &mut self,
        op: &'static str,
        edges: Selection<'_>,
        message: &dyn MessageFunction,
    ) -> Result<(), OpsError> {
        let selection = match edges {
            Selection::All => self.all_edges(),
            Selection::Some(edges) => self.all_edges().only_edges(op, edges)?,
        };
        let fields = match message.messages() {
            Messages::Builtin(message) => selection.fields(message)?,
            Messages::User(f) => messages_of(op, f, &selection)?,
        };
        write(&mut self.edges, &fields, selection.eids.as_ref())
    }
}

/// Applies `f` to some rows of a frame.
pub(crate) fn apply_nodes(
    op: &'static str,
    frame: &mut Frame,
    nodes: Selection<'_>,
    f: NodeFn<'_>,
) -> Result<(), OpsError> {
    let pick = match nodes {
        Selection::All => None,
        Selection::Some(nodes) => {
            different(op, "nodes", nodes, frame.len())?;
            Some(picking(frame.len(), nodes.to_vec())?)
        }
    };
    apply(op, frame, pick.as_ref(), f).map(drop)
}

/// Calls an apply function on some rows of a frame, writes its fields to these rows, and returns them.
pub(crate) fn apply(
    op: &'static str,
    frame: &mut Frame,
    pick: Option<&Relation>,
    f: NodeFn<'_>,
) -> Result<Fields, OpsError> {
    let fields = NodeBatch::of(frame, pick, None).call(op, "apply function", f)?;
    write(frame, &fields, pick)?;
    Ok(fields)
}

/// Writes fields to a frame. With `pick` they are written to some rows; the other rows are kept, or are 0 if the frame
/// did not have the column.
pub(crate) fn write(
    frame: &mut Frame,
    fields: &Fields,
    pick: Option<&Relation>,
) -> Result<(), OpsError> {
    for (name, new) in fields.iter() {
        let column = match (pick, frame.column(name)) {
            (None, _) => new.clone(),
            (Some(pick), Err(_)) => scattered(frame.len(), pick.src(), new)?,
            (Some(pick), Ok(old)) => {
                let difference = Difference::of("dtype", old.dtype(), new.dtype())
                    .or_else(|| Difference::of("row shape", features(old), features(new)))
                    .or_else(|| Difference::of("device", old.device(), new.device()));
                if let Some(Difference { what, expected, actual }) = difference {
                    let (frame, name) = (frame.label().to_owned(), name.to_owned());
                    let error = GraphError::ColumnMismatch { frame, name, what, expected, actual };
                    return Err(error.into());
                }
                merged(old, pick.src(), new)?
            }
        };
        replace(frame, name, column)?;
    }
    Ok(())
}

/// A whole column, also instead of one of another element type. Frames are copies of the caller's here.
pub(crate) fn replace(frame: &mut Frame, name: &str, column: Column) -> Result<(), OpsError> {
    frame.remove(name);
    Ok(frame.insert_column(name, column)?)
}
