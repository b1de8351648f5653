//! Defines `LinkExclusion`: edges that a link batch excludes from message passing.

use burn_gnn_graph::internal::check_len;
use burn_gnn_graph::{EdgeName, Graph, GraphError, Relation};

/// Which edges are excluded from message passing because they would leak the label.
///
/// With an edge, all parallel edges of its type (from the same source to the same destination) are excluded. If edges of
/// a type have times, only the edge itself is excluded: earlier edges of the pair are legitimate input, and later ones are
/// no candidates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LinkExclusion {
    /// Excludes no edges.
    Nothing,
    /// Excludes the seed edges.
    #[default]
    Seeds,
    /// Excludes the seed edges and their reverse edges of the same type: the reverse of edge `e` is entry `e` of the list.
    Reverse(Vec<u32>),
    /// Excludes the seed edges and the edges with the same ids in another edge type, which holds the reverse edges, such
    /// as one made by [`Graph::with_inverse_relations`](burn_gnn_graph::Graph::with_inverse_relations). Construct it with
    /// [`reverse_type`](Self::reverse_type).
    ReverseType(EdgeName),
}

impl LinkExclusion {
    /// [`ReverseType`](Self::ReverseType) of an edge type, given by its triple or, if that is unique, by its relation name.
    ///
    /// ```
    /// use burn_gnn_sampling::LinkExclusion;
    /// let exclusion = LinkExclusion::reverse_type(("paper", "written_by", "author"));
    /// assert_eq!(exclusion, LinkExclusion::ReverseType(("paper", "written_by", "author").into()));
    /// assert_eq!(LinkExclusion::reverse_type("written_by"), LinkExclusion::ReverseType("written_by".into()));
    /// ```
    pub fn reverse_type(etype: impl Into<EdgeName>) -> Self {
        Self::ReverseType(etype.into())
    }

    /// Validates the exclusion for seed edges of type `etype`, and returns the number of the reverse type, if any.
    ///
    /// # Errors
    /// As [`LinkSampler::with_exclusion`](crate::LinkSampler::with_exclusion).
    #[doc(hidden)]
    pub fn check(&self, g: &Graph, etype: usize) -> Result<Option<usize>, GraphError> {
        let edges = g.relations()[etype].num_edges();
        match self {
            Self::Nothing | Self::Seeds => Ok(None),
            Self::Reverse(ids) => {
                g.check_per_edge("reverse", "one per edge", etype, ids.len())?;
                g.check_edges("reverse", etype, ids)?;
                Ok(None)
            }
            Self::ReverseType(t) => {
                let t = g.schema().etype(t)?;
                let found = g.relations()[t].num_edges();
                check_len("reverse type", "that of the seed edges", edges, found)
                    .map_err(|e| g.in_etype(t, e))?;
                Ok(Some(t))
            }
        }
    }

    /// Adds the excluded edges of a batch of seed edges of type `etype` to `excluded`, per edge type, without parallel
    /// edges.
    #[doc(hidden)]
    pub fn leave_out(
        &self,
        etype: usize,
        reverse_type: Option<usize>,
        edges: &[u32],
        excluded: &mut [Vec<u32>],
    ) {
        if *self != Self::Nothing {
            excluded[etype].extend_from_slice(edges);
        }
        if let Self::Reverse(ids) = self {
            excluded[etype].extend(edges.iter().map(|&e| ids[e as usize]));
        }
        if let Some(t) = reverse_type {
            excluded[t].extend_from_slice(edges);
        }
    }
}

/// Whether a relation has parallel edges.
///
/// # Errors
/// Edges in a file cannot be read.
#[doc(hidden)]
pub fn has_parallel_edges(relation: &Relation) -> Result<bool, GraphError> {
    relation.read_stored()?;
    let (csc, mut row) = (relation.csc(), vec![]);
    Ok((0..relation.num_dst()).any(|v| {
        row.clear();
        row.extend_from_slice(&csc.indices()[csc.row(v)]);
        row.sort_unstable();
        row.windows(2).any(|pair| pair[0] == pair[1])
    }))
}

/// Adds all parallel edges of the given edges, in `O(in-degree · log edges)` per destination.
///
/// # Errors
/// Edges in a file cannot be read.
#[doc(hidden)]
pub fn add_parallel_edges(relation: &Relation, edges: &mut Vec<u32>) -> Result<(), GraphError> {
    if edges.is_empty() {
        return Ok(());
    }
    relation.read_stored()?;
    let (src, dst) = (relation.src(), relation.dst());
    let mut pairs: Vec<(u32, u32)> =
        edges.iter().map(|&e| (dst[e as usize], src[e as usize])).collect();
    pairs.sort_unstable();
    pairs.dedup();
    edges.clear();
    let csc = relation.csc();
    for of_dst in pairs.chunk_by(|a, b| a.0 == b.0) {
        let row = csc.row(of_dst[0].0 as usize);
        let is_one = |&p: &usize| of_dst.binary_search_by_key(&csc.indices()[p], |e| e.1).is_ok();
        edges.extend(row.filter(is_one).map(|p| csc.edge_id(p)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_of_the_same_pair_come_along() {
        // Edges 0, 3 and 5 are parallel; 1 is the reverse of them; 2 and 4 share one endpoint.
        let r = Relation::from_coo(3, 3, vec![0, 1, 0, 0, 2, 0], vec![1, 0, 2, 1, 1, 1]).unwrap();
        let with = |edges: &[u32]| {
            let mut edges = edges.to_vec();
            add_parallel_edges(&r, &mut edges).unwrap();
            edges.sort_unstable();
            edges
        };
        assert_eq!(with(&[3]), [0, 3, 5]);
        assert_eq!(with(&[5, 1, 0, 1]), [0, 1, 3, 5]);
        assert_eq!(with(&[4, 2]), [2, 4]);
        assert_eq!(with(&[]), [0; 0]);
        assert!(has_parallel_edges(&r).unwrap());
        let simple = Relation::from_coo(2, 2, vec![0, 1, 1], vec![1, 0, 1]).unwrap();
        assert!(!has_parallel_edges(&simple).unwrap());
    }
}
