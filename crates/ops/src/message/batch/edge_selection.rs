//! Selects the edges of a call, with the frames of their endpoints.

use burn_gnn_graph::{Column, Frame, Relation};
use burn_gnn_plan::Target;

use crate::check::check_distinct;
use crate::error::OpsError;
use crate::message::batch::destinations::{ByDegree, in_edge_ids, into_nodes};
use crate::message::builtin::Message;
use crate::message::columns::{check_float, picked, picking};
use crate::message::expression::{Expression, Operand};
use crate::message::fields::Fields;

/// Nodes or edges of a call: `..` for all, or distinct ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection<'a> {
    /// All nodes or edges.
    All,
    /// The nodes or edges with these ids, in this order.
    Some(&'a [u32]),
}

impl From<std::ops::RangeFull> for Selection<'_> {
    fn from(_: std::ops::RangeFull) -> Self {
        Self::All
    }
}
impl<'a> From<&'a [u32]> for Selection<'a> {
    fn from(ids: &'a [u32]) -> Self {
        Self::Some(ids)
    }
}
impl<'a> From<&'a Vec<u32>> for Selection<'a> {
    fn from(ids: &'a Vec<u32>) -> Self {
        Self::Some(ids)
    }
}
impl<'a, const N: usize> From<&'a [u32; N]> for Selection<'a> {
    fn from(ids: &'a [u32; N]) -> Self {
        Self::Some(ids)
    }
}

/// All or some edges of a relation, with the frames of their endpoints.
#[derive(Clone, Debug)]
pub(crate) struct EdgeSelection {
    /// The selected edges, renumbered. Sources are the rows of the source frame, destinations the rows in `nodes`.
    pub(crate) relation: Relation,
    pub(crate) src: Frame,
    pub(crate) dst: Frame,
    pub(crate) edges: Frame,
    /// Rows of the destinations in their frame; `None` for all rows. See [`picking`].
    pub(crate) nodes: Option<Relation>,
    /// Rows of the edges in their frame; `None` for all rows.
    pub(crate) eids: Option<Relation>,
}

impl EdgeSelection {
    /// The frame of sources, destinations or edges.
    pub(crate) fn frame(&self, target: Target) -> &Frame {
        match target {
            Target::Src => &self.src,
            Target::Dst => &self.dst,
            Target::Edge => &self.edges,
        }
    }

    /// A field of sources, destinations or edges, with the row numbers of [`relation`](Self::relation).
    pub(crate) fn column(&self, target: Target, field: &str) -> Result<Column, OpsError> {
        let pick = match target {
            Target::Src => None,
            Target::Dst => self.nodes.as_ref(),
            Target::Edge => self.eids.as_ref(),
        };
        Ok(picked(self.frame(target).column(field)?, pick))
    }

    fn operand(&self, (target, field): &(Target, String)) -> Result<Operand, OpsError> {
        let frame = self.frame(*target);
        check_float(frame.label(), field, frame.column(field)?)?;
        Ok(Operand {
            target: *target,
            rows: self.column(*target, field)?,
            name: format!("`{field}` of {}", frame.label()),
        })
    }

    pub(crate) fn expression(&self, message: &Message) -> Result<Expression, OpsError> {
        let lhs = self.operand(&message.lhs)?;
        Ok(match &message.rhs {
            None => Expression::Copy(lhs),
            Some(rhs) => Expression::Binary(message.op, lhs, self.operand(rhs)?),
        })
    }

    /// Computes the messages of a builtin, one row per edge.
    pub(crate) fn fields(&self, message: &Message) -> Result<Fields, OpsError> {
        let rows = self.expression(message)?.rows(message.name, &self.relation)?;
        Ok(Fields::default().with_column(&message.out, rows))
    }

    /// The same edges, sorted by destination.
    pub(crate) fn sorted(&self) -> Self {
        let Some(order) = self.relation.dst_order() else { return self.clone() };
        // Selections of some edges are sorted already.
        debug_assert!(self.eids.is_none());
        Self { relation: self.relation.sorted_by_dst(), eids: Some(order.clone()), ..self.clone() }
    }

    /// The same edges, with destinations sorted by number of edges, and the rows of these destinations in their frame.
    /// `order` is the order of this relation.
    pub(crate) fn by_degree(&self, order: &ByDegree) -> Result<(Self, Relation), OpsError> {
        let nodes = compose(self.nodes.as_ref(), &order.reached.nodes)?;
        let eids = Some(compose(self.eids.as_ref(), &order.edges)?);
        Ok((
            Self {
                relation: order.reached.relation.clone(),
                nodes: Some(nodes.clone()),
                eids,
                ..self.clone()
            },
            nodes,
        ))
    }

    /// The in-edges of some destinations, in the order of `nodes`.
    pub(crate) fn ending_in(&self, op: &'static str, nodes: &[u32]) -> Result<Self, OpsError> {
        different(op, "nodes", nodes, self.relation.num_dst())?;
        let csc = self.relation.csc();
        let relation = into_nodes(&self.relation, csc, nodes)?;
        self.part(relation, nodes.to_vec(), in_edge_ids(csc, nodes))
    }

    /// Some edges, sorted by destination. Destinations are their endpoints.
    pub(crate) fn of_edges(&self, op: &'static str, edges: &[u32]) -> Result<Self, OpsError> {
        different(op, "edges", edges, self.relation.num_edges())?;
        let end = |e: u32| self.relation.dst()[e as usize];
        let mut eids = edges.to_vec();
        eids.sort_unstable_by_key(|&e| (end(e), e));
        let mut nodes: Vec<u32> = eids.iter().map(|&e| end(e)).collect();
        nodes.dedup();
        let mut at = 0;
        let dst = eids.iter().map(|&e| {
            at += usize::from(end(e) != nodes[at]);
            at as u32
        });
        let dst = dst.collect();
        let src = eids.iter().map(|&e| self.relation.src()[e as usize]).collect();
        let relation = Relation::from_coo(self.relation.num_src(), nodes.len(), src, dst)?;
        self.part(relation, nodes, eids)
    }

    /// Some edges in the given order. Destinations are all rows of the frame.
    pub(crate) fn only_edges(&self, op: &'static str, edges: &[u32]) -> Result<Self, OpsError> {
        different(op, "edges", edges, self.relation.num_edges())?;
        let endpoints = |ids: &[u32]| edges.iter().map(|&e| ids[e as usize]).collect();
        let (src, dst) = (endpoints(self.relation.src()), endpoints(self.relation.dst()));
        let relation =
            Relation::from_coo(self.relation.num_src(), self.relation.num_dst(), src, dst)?;
        Ok(Self {
            relation,
            eids: Some(picking(self.edges.len(), edges.to_vec())?),
            ..self.clone()
        })
    }

    fn part(&self, relation: Relation, nodes: Vec<u32>, eids: Vec<u32>) -> Result<Self, OpsError> {
        let (nodes, eids) = (picking(self.dst.len(), nodes)?, picking(self.edges.len(), eids)?);
        Ok(Self { relation, nodes: Some(nodes), eids: Some(eids), ..self.clone() })
    }
}

/// Composes two selections of rows: `second` selects among the rows of `first`, where `None` stands for all rows.
pub(crate) fn compose(first: Option<&Relation>, second: &Relation) -> Result<Relation, OpsError> {
    match first {
        None => Ok(second.clone()),
        Some(first) => picking(
            first.num_src(),
            second.src().iter().map(|&i| first.src()[i as usize]).collect(),
        ),
    }
}

/// Checks that ids are in range and distinct.
pub(crate) fn different(
    op: &'static str,
    arg: &'static str,
    ids: &[u32],
    bound: usize,
) -> Result<(), OpsError> {
    let repeated = |position, first, id| OpsError::Repeated { op, arg, position, first, id };
    check_distinct(op, (arg, ids), "as many as the graph has", bound, repeated)
}
