//! Between typed graphs and graphs of one type.

use std::collections::BTreeMap;

use crate::graph::{ONE_NODE_TYPE, ONE_RELATION};
use crate::{Column, EdgeType, Graph, GraphError, IdMap};

/// A graph of one type made from a typed one, with what leads back.
#[derive(Clone, Debug)]
pub struct Homogeneous {
    /// Node type `_N`, edge type `_E`; nodes and edges are numbered type by type in schema order.
    pub graph: Graph,
    /// Joint node id ↔ (node type, type-wise id).
    pub node_ids: IdMap,
    /// Joint edge id ↔ (edge type, type-wise id).
    pub edge_ids: IdMap,
}

impl Graph {
    /// All nodes and edges in one numbering, type by type in schema order; `ndata` and `edata` name the
    /// columns to carry along.
    ///
    /// # Errors
    /// A column that some type lacks or has with another shape, kind, dtype or device; more nodes or
    /// edges than one relation can number.
    pub fn to_homogeneous(&self, ndata: &[&str], edata: &[&str]) -> Result<Homogeneous, GraphError> {
        let (node_ids, edge_ids) = (self.node_ids()?, self.edge_ids()?);
        let limit = u64::from(u32::MAX) - 1;
        for (what, count) in [("nodes", node_ids.total()), ("edges", edge_ids.total())] {
            if count > limit {
                return Err(GraphError::TooLarge { relation: "(all)".into(), what, count, limit });
            }
        }
        let total = edge_ids.total() as usize;
        let (mut src, mut dst) = (Vec::with_capacity(total), Vec::with_capacity(total));
        for (t, r) in self.relations().iter().enumerate() {
            let (s, d) = self.schema().ends(t);
            let (s, d) = (node_ids.range(s)?.start as u32, node_ids.range(d)?.start as u32);
            src.extend(r.src().iter().map(|u| u + s));
            dst.extend(r.dst().iter().map(|v| v + d));
        }
        let mut graph = Self::homogeneous(node_ids.total() as usize, src, dst)?;
        for name in ndata {
            let parts = self.node_frames().iter().map(|f| f.column(name).cloned()).collect::<Result<Vec<_>, _>>()?;
            if let Some(joint) = join("all nodes", name, &parts)? {
                graph.nodes_mut(ONE_NODE_TYPE)?.insert_column(name, joint)?;
            }
        }
        for name in edata {
            let parts = self.edge_frames().iter().map(|f| f.column(name).cloned()).collect::<Result<Vec<_>, _>>()?;
            if let Some(joint) = join("all edges", name, &parts)? {
                graph.edges_mut(ONE_RELATION)?.insert_column(name, joint)?;
            }
        }
        Ok(Homogeneous { graph, node_ids, edge_ids })
    }
}

fn join(frame: &str, name: &str, parts: &[Column]) -> Result<Option<Column>, GraphError> {
    let Some(first) = parts.first() else {
        return Ok(None);
    };
    let mismatch = |what, expected: String, actual: String| GraphError::ColumnMismatch {
        frame: frame.into(),
        name: name.into(),
        what,
        expected,
        actual,
    };
    for c in parts {
        let (a, b) = (&first.shape().as_slice()[1..], &c.shape().as_slice()[1..]);
        if a != b {
            return Err(mismatch("row shape", format!("{a:?}"), format!("{b:?}")));
        }
        if c.dtype() != first.dtype() {
            return Err(mismatch("dtype", format!("{:?}", first.dtype()), format!("{:?}", c.dtype())));
        }
        if c.device() != first.device() {
            return Err(mismatch("device", format!("{:?}", first.device()), format!("{:?}", c.device())));
        }
    }
    Ok(Some(Column::cat(parts)))
}

/// A typed graph out of one numbering: node `i` has type `ntypes[ntype[i]]`, edge `j` relation
/// `relations[etype[j]]`. Inside a type the order of ids is kept. A relation that occurs between several
/// pairs of node types becomes one canonical edge type per pair. Columns of the first node type and
/// edge type of `graph` are split along.
///
/// Returns the graph, the joint node ids per node type and the joint edge ids per edge type (schema order).
///
/// # Errors
/// `graph` has several types, lengths differ, or a type number is out of range.
#[allow(clippy::type_complexity)]
pub fn to_heterogeneous(
    graph: &Graph,
    ntypes: &[&str],
    ntype: &[u32],
    relations: &[&str],
    etype: &[u32],
) -> Result<(Graph, Vec<Vec<u32>>, Vec<Vec<u32>>), GraphError> {
    let [relation] = graph.relations() else {
        return Err(GraphError::UnknownEdgeType {
            name: "the only edge type".into(),
            known: graph.schema().etypes().iter().map(ToString::to_string).collect(),
        });
    };
    let [nodes] = graph.node_counts() else {
        return Err(GraphError::UnknownNodeType { name: "the only node type".into(), known: graph.schema().ntypes().to_vec() });
    };
    for (arg, why, expected, actual) in
        [("ntype", "one entry per node", *nodes, ntype.len()), ("etype", "one entry per edge", relation.num_edges(), etype.len())]
    {
        if expected != actual {
            return Err(GraphError::Length { relation: String::new(), arg: arg.into(), why, expected, actual });
        }
    }
    for (what, types, bound) in [("node type", ntype, ntypes.len()), ("edge type", etype, relations.len())] {
        if let Some(&t) = types.iter().find(|&&t| t as usize >= bound) {
            return Err(GraphError::IdOutOfRange { what: what.into(), id: u64::from(t), bound: bound as u64 });
        }
    }
    let mut members: Vec<Vec<u32>> = vec![vec![]; ntypes.len()];
    let local: Vec<u32> = ntype
        .iter()
        .enumerate()
        .map(|(i, &t)| {
            members[t as usize].push(i as u32);
            members[t as usize].len() as u32 - 1
        })
        .collect();
    let mut edges: BTreeMap<EdgeType, (Vec<u32>, Vec<u32>, Vec<u32>)> = BTreeMap::new();
    for (j, &t) in etype.iter().enumerate() {
        let (u, v) = (relation.src()[j] as usize, relation.dst()[j] as usize);
        let key = EdgeType::new(ntypes[ntype[u] as usize], relations[t as usize], ntypes[ntype[v] as usize]);
        let e = edges.entry(key).or_default();
        e.0.push(local[u]);
        e.1.push(local[v]);
        e.2.push(j as u32);
    }
    let mut b = Graph::builder();
    for (name, m) in ntypes.iter().zip(&members) {
        b = b.nodes(*name, m.len());
    }
    let mut joint_edges = vec![];
    for (t, (s, d, j)) in edges {
        b = b.edges(t, s, d);
        joint_edges.push(j);
    }
    let mut out = b.build()?;
    let joint_nodes =
        out.schema().ntypes().iter().map(|t| members[ntypes.iter().position(|n| n == t).unwrap_or(0)].clone()).collect::<Vec<_>>();
    let names = out.schema().clone();
    for (name, c) in graph.node_frames()[0].columns() {
        for (t, ids) in names.ntypes().iter().zip(&joint_nodes) {
            out.nodes_mut(t)?.insert_column(name, c.select(ids))?;
        }
    }
    for (name, c) in graph.edge_frames()[0].columns() {
        for (t, ids) in joint_edges.iter().enumerate() {
            out.edges_mut(t)?.insert_column(name, c.select(ids))?;
        }
    }
    Ok((out, joint_nodes, joint_edges))
}
