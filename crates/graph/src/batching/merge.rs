//! Merges graphs over the same nodes.

use std::collections::BTreeSet;

use crate::batching::batch::{names_of_all, stack};
use crate::features::frame::Frame;
use crate::features::rows::join_all;
use crate::graph::Graph;
use burn_gnn_structure::internal::check_counts;
use burn_gnn_structure::{GraphError, Ragged, Relation, Texts};

/// Makes one graph with the edges of all `graphs` over shared nodes: node `i` of a type is the same node in all of them
/// ([`batch`](crate::batch()) makes them different nodes). As DGL's `merge`, which requires the same types.
///
/// The result has all node types and edge types that occur in any graph, and for each node type the largest number of
/// nodes. Edges and their features are concatenated in the order of the graphs. If several graphs have a node column, list
/// or text of the same name, the row of a node is that of the first graph that contains the node. File ids and global ids
/// of nodes are those of the first graph that contains all nodes of the type.
///
/// ```
/// use burn_gnn_graph::{Graph, merge};
/// let (a, b) = (Graph::homogeneous(2, vec![0], vec![1])?, Graph::homogeneous(4, vec![3, 0], vec![0, 1])?);
/// let g = merge([&a, &b])?;
/// assert_eq!((g.num_nodes("_N")?, g.relation("_E")?.src()), (4, &[0, 3, 0][..]));
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Errors
/// No graphs; more than `u32::MAX - 1` edges of a type; an edge column that a graph with edges of the type lacks; a node
/// column that no graph has for the last nodes; columns with different row shapes, dtypes or devices; edges in a file that
/// cannot be read.
///
/// # Cost
/// `O(V + E)` and a copy of the features.
pub fn merge<'a>(graphs: impl IntoIterator<Item = &'a Graph>) -> Result<Graph, GraphError> {
    let graphs: Vec<&Graph> = graphs.into_iter().collect();
    if graphs.is_empty() {
        return Err(GraphError::Empty {
            arg: "graphs",
            remedy: "give one graph at least, whose types the result has",
        });
    }
    graphs.iter().try_for_each(|g| g.read_stored())?;
    let ntypes: BTreeSet<&String> = graphs.iter().flat_map(|g| g.schema().ntypes()).collect();
    let etypes: BTreeSet<_> = graphs.iter().flat_map(|g| g.schema().etypes()).collect();
    let nodes_of =
        |name: &str| graphs.iter().filter_map(|g| g.num_nodes(name).ok()).max().unwrap_or(0);
    let mut merged = Graph::builder();
    for name in &ntypes {
        merged = merged.nodes(*name, nodes_of(name));
    }
    for &t in &etypes {
        let parts = || graphs.iter().filter_map(move |g| g.relation(t).ok());
        let (num_src, num_dst) = (nodes_of(&t.src), nodes_of(&t.dst));
        let in_type = |e: GraphError| e.in_relation(&t.to_string());
        check_counts(num_src, num_dst, parts().map(Relation::num_edges).sum()).map_err(in_type)?;
        let endpoints = |of: fn(&Relation) -> &[u32]| parts().flat_map(of).copied().collect();
        let relation = Relation::from_coo(
            num_src,
            num_dst,
            endpoints(Relation::src),
            endpoints(Relation::dst),
        );
        merged = merged.relation(t.clone(), relation.map_err(in_type)?);
    }
    let mut merged = merged.build()?;
    for name in ntypes {
        let frames: Vec<&Frame> = graphs.iter().filter_map(|g| g.nodes(name).ok()).collect();
        overlay(merged.nodes_mut(name)?, &frames)?;
    }
    for t in etypes {
        let frames: Vec<&Frame> = graphs.iter().filter_map(|g| g.edges(t).ok()).collect();
        stack(merged.edges_mut(t)?, &frames)?;
    }
    Ok(merged)
}

/// Combines frames over the same nodes: each row is that of the first frame that contains it.
fn overlay(into: &mut Frame, frames: &[&Frame]) -> Result<(), GraphError> {
    let rows = |from: usize, frame: &Frame| (from as u32..frame.len() as u32).collect::<Vec<u32>>();
    for name in names_of_all(frames, Frame::columns) {
        let (mut parts, mut have) = (vec![], 0);
        for (frame, column) in frames.iter().filter_map(|f| Some((f, f.column(name).ok()?))) {
            if parts.is_empty() {
                parts.push(column.clone());
            } else if frame.len() > have {
                parts.push(column.select(&rows(have, frame)));
            }
            have = have.max(frame.len());
        }
        if let Some(column) = join_all(into.label(), name, &parts)? {
            into.insert_column(name, column)?;
        }
    }
    for name in names_of_all(frames, Frame::lists) {
        let mut lists = Ragged::default();
        for (frame, list) in frames.iter().filter_map(|f| Some((f, f.list(name).ok()?))) {
            lists.append(&list.select(&rows(lists.len(), frame)));
        }
        into.insert_list(name, lists)?;
    }
    for name in names_of_all(frames, Frame::texts) {
        let mut joint = Texts::new();
        for (frame, texts) in frames.iter().filter_map(|f| Some((f, f.text(name).ok()?))) {
            joint.append(&texts.select(joint.len()..frame.len()));
        }
        into.insert_text(name, joint)?;
    }
    let len = into.len();
    let whole = || frames.iter().filter(move |f| f.len() == len);
    if let Some(ids) = whole().find_map(|f| f.ids()) {
        into.set_ids(ids.clone())?;
    }
    match whole().find_map(|f| f.global_ids()) {
        Some(ids) => into.set_global_ids(ids.clone()),
        None => Ok(()),
    }
}
