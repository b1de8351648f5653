//! Says which edges a link batch leaves out of message passing.

use burn_gnn_graph::internal::check_len;
use burn_gnn_graph::{EdgeName, Graph, GraphError};

/// Edges that are left out of message passing, because they would leak the target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LinkExclusion {
    /// None: every edge may be sampled.
    Nothing,
    /// The seed edges.
    #[default]
    Seeds,
    /// The seed edges, and of each the edge of the same type whose id this list has at its place.
    Reverse(Vec<u32>),
    /// The seed edges, and those of the same ids in the type that holds their reverses, such as one made by
    /// [`Graph::with_inverse_relations`](burn_gnn_graph::Graph::with_inverse_relations).
    /// [`reverse_type`](Self::reverse_type) makes it of names.
    ReverseType(EdgeName),
}

impl LinkExclusion {
    /// The seed edges, and those of the same ids in this edge type, [`ReverseType`](Self::ReverseType): three names or,
    /// where that is unique, the relation alone.
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

    /// Whether it is one of seed edges of type number `etype`; the number of the reverse type, if it names one.
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
}
