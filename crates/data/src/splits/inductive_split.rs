//! Splits links by nodes: validation and test predict links of nodes that training has not seen.

use burn_gnn_files::DataError;
use burn_gnn_graph::{EdgeName, Graph};

use crate::splits::link_parts::{
    LinkPart, LinkSplit, TypeSplit, check_symmetric, draw_negatives, first_of_pairs, message_graph,
};
use crate::splits::node_split::{Share, shuffled, wrong};

/// Split of the edges of one type by nodes, for models that embed unseen nodes.
///
/// Nodes of the source type are drawn for validation and test. An edge is in the part of its later endpoint (training,
/// validation, test); in a relation between two node types only sources count. Of the edges in validation and test, a share
/// carries messages, the context of the unseen nodes, and the others are predicted:
///
/// | part | message edges | supervision edges |
/// | --- | --- | --- |
/// | train | edges of training nodes | the same |
/// | validation | those and the context of validation | other edges of validation nodes |
/// | test | those and the context of test | other edges of test nodes |
///
/// Negatives are distinct pairs without an edge in the whole relation, one per supervision edge. Edges of other types are
/// message edges of every part. Parallel edges stay together: no predicted pair carries messages.
///
/// ```
/// use burn_gnn_data::InductiveLinkSplit;
/// use burn_gnn_graph::Graph;
/// let n = 20u32;
/// let g = Graph::homogeneous(20, (0..3 * n).map(|e| e % n).collect(), (0..3 * n).map(|e| (e % n + 1 + e / n) % n).collect())?;
/// let split = InductiveLinkSplit::new().with_val(2).with_test(4).split(&g, 1)?;
/// let (train, test) = (&split.train.links[0], &split.test.links[0]);
/// let seen = |u: &u32| train.src.contains(u) || train.dst.contains(u);
/// assert!(test.src.iter().zip(&test.dst).all(|(u, v)| !seen(u) || !seen(v)));
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct InductiveLinkSplit {
    /// Number or ratio of nodes of validation. Default: 0.1.
    pub val: Share,
    /// Number or ratio of nodes of test. Default: 0.2.
    pub test: Share,
    /// Number or ratio of the pairs with an edge of unseen nodes that carry messages, of each part. Default: 0.5.
    pub context: Share,
    /// Whether the relation stores each edge in both directions. A pair is then predicted once, from the smaller id.
    pub is_undirected: bool,
    /// The edge type to split. May be missing if the graph has a single one.
    pub edge_type: Option<EdgeName>,
}

impl Default for InductiveLinkSplit {
    fn default() -> Self {
        Self {
            val: Share::Ratio(0.1),
            test: Share::Ratio(0.2),
            context: Share::Ratio(0.5),
            is_undirected: false,
            edge_type: None,
        }
    }
}

impl InductiveLinkSplit {
    /// 10 % validation nodes, 20 % test nodes, half of their edges as context.
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets the number (`500`) or ratio (`0.1`) of validation nodes.
    #[must_use]
    pub fn with_val(mut self, val: impl Into<Share>) -> Self {
        self.val = val.into();
        self
    }
    /// Sets the number or ratio of test nodes.
    #[must_use]
    pub fn with_test(mut self, test: impl Into<Share>) -> Self {
        self.test = test.into();
        self
    }
    /// Sets the number or ratio of edges of unseen nodes that carry messages.
    #[must_use]
    pub fn with_context(mut self, context: impl Into<Share>) -> Self {
        self.context = context.into();
        self
    }
    /// Declares that the relation stores each edge in both directions.
    #[must_use]
    pub fn undirected(mut self) -> Self {
        self.is_undirected = true;
        self
    }
    /// Sets the edge type to split.
    #[must_use]
    pub fn with_edges(mut self, etype: impl Into<EdgeName>) -> Self {
        self.edge_type = Some(etype.into());
        self
    }

    /// Splits the edges of a graph. The same seed returns the same split.
    ///
    /// # Errors
    /// An unknown edge type; [`DataError::Split`] if no training node or edge remains, for a ratio out of range, if the
    /// graph has several edge types and none is named, if an edge of an undirected relation has no reverse, or if there
    /// are fewer pairs without an edge than negatives.
    ///
    /// # Cost
    /// `O(E log E)`.
    pub fn split(&self, graph: &Graph, seed: u64) -> Result<LinkSplit, DataError> {
        let t = match &self.edge_type {
            Some(etype) => graph.schema().etype(etype)?,
            None if graph.relations().len() == 1 => 0,
            None => {
                let n = graph.relations().len();
                let expected = format!("the edge type to split, since the graph has {n}, got none");
                return Err(wrong("edge_type", expected));
            }
        };
        let (r, name) = (&graph.relations()[t], graph.schema().etypes()[t].clone());
        let (s, d) = graph.schema().endpoints(t);
        if self.is_undirected {
            if s != d {
                let expected = format!("a relation within one node type, got `{name}`");
                return Err(wrong("is_undirected", expected));
            }
            check_symmetric(r, &name)?;
        }
        let n = r.num_src();
        let (val, test) = (self.val.of("val", n)?, self.test.of("test", n)?);
        if val.saturating_add(test) >= n {
            let got = val.saturating_add(test);
            let expected = format!("fewer than the {n} nodes together, got {got}");
            return Err(wrong("val and test", expected));
        }
        let mut part_of_node = vec![0usize; n];
        let order = shuffled(0..n as u32, seed);
        order[..val].iter().for_each(|&v| part_of_node[v as usize] = 1);
        order[val..val + test].iter().for_each(|&v| part_of_node[v as usize] = 2);
        let mut edges: [Vec<u32>; 3] = Default::default();
        for (e, (&u, &v)) in r.src().iter().zip(r.dst()).enumerate() {
            if self.is_undirected && u > v {
                continue;
            }
            let of_dst = if s == d { part_of_node[v as usize] } else { 0 };
            edges[part_of_node[u as usize].max(of_dst)].push(e as u32);
        }
        let [train, val, test] = edges;
        if train.is_empty() {
            return Err(wrong(
                "val and test",
                format!("an edge of `{name}` between training nodes, got none"),
            ));
        }
        // Context and predicted edges of a part, ascending.
        let first = first_of_pairs(r);
        let cut = |edges: Vec<u32>| -> Result<(Vec<u32>, Vec<u32>), DataError> {
            let is_first = |e: &u32| first[*e as usize] == *e;
            let pairs: Vec<u32> = edges.iter().copied().filter(is_first).collect();
            let context = self.context.of("context", pairs.len())?;
            let mut context = shuffled(pairs, seed ^ 0x9e37_79b9)[..context].to_vec();
            context.sort_unstable();
            let has = |e: &u32| context.binary_search(&first[*e as usize]).is_ok();
            Ok(edges.into_iter().partition(has))
        };
        let ((val_context, val), (test_context, test)) = (cut(val)?, cut(test)?);
        let counts = [train.len(), val.len(), test.len()];
        let negatives = draw_negatives(graph, t, self.is_undirected, counts, seed)?;
        let of_type = TypeSplit {
            t,
            reverse: None,
            is_undirected: self.is_undirected,
            parts: [train.clone(), val, test],
            disjoint: vec![],
            negatives,
        };
        let context = [vec![], val_context.clone(), [val_context, test_context].concat()];
        let part = |which: usize| -> Result<LinkPart, DataError> {
            let messages = |_: &TypeSplit| {
                let mut edges = [&train[..], &context[which]].concat();
                edges.sort_unstable();
                edges
            };
            let links = of_type.links(graph, which, of_type.parts[which].clone());
            let graph = message_graph(graph, std::slice::from_ref(&of_type), messages)?;
            Ok(LinkPart { graph, links: vec![links] })
        };
        Ok(LinkSplit { train: part(0)?, val: part(1)?, test: part(2)? })
    }
}
