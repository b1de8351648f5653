//! Access to the relations of a graph in files.

use std::sync::Arc;

use burn_gnn_structure::internal::setting;
use burn_gnn_structure::{EdgeReader, Schema};

use crate::csc::StoredCsc;
use crate::error::StoreError;
#[cfg(feature = "sampling")]
use crate::graph::StoredGraph;

/// A graph in files that can be partitioned: a [`StoredGraph`](crate::StoredGraph), or a [`StoredCsc`] on one node
/// type, which is named `_N` with edges `_E`.
pub trait GraphFiles {
    /// Returns types, counts and files.
    ///
    /// # Errors
    /// A [`StoredCsc`] between two node types.
    #[doc(hidden)]
    fn relations(&self) -> Result<RelationFiles<'_>, StoreError>;
}

/// Types, node counts and the file of each relation, in schema order.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct RelationFiles<'a> {
    pub(crate) schema: Arc<Schema>,
    pub(crate) counts: Vec<usize>,
    pub(crate) files: Vec<&'a StoredCsc>,
}

impl RelationFiles<'_> {
    pub(super) fn num_edges(&self) -> u64 {
        self.files.iter().map(|csc| csc.num_edges()).sum()
    }
}

impl GraphFiles for StoredCsc {
    fn relations(&self) -> Result<RelationFiles<'_>, StoreError> {
        let (sources, nodes) = self.num_nodes();
        if sources != nodes {
            let expected =
                "a relation on one node type; describe one between two by `StoredGraph::create`";
            let found = format!("{sources} sources and {nodes} destinations");
            return Err(setting("graph", expected, &found).into());
        }
        let schema = Schema::new(vec!["_N".into()], vec![("_N", "_E", "_N").into()])?;
        Ok(RelationFiles { schema: Arc::new(schema), counts: vec![nodes], files: vec![self] })
    }
}

impl<T: GraphFiles + ?Sized> GraphFiles for Arc<T> {
    fn relations(&self) -> Result<RelationFiles<'_>, StoreError> {
        (**self).relations()
    }
}

#[cfg(feature = "sampling")]
impl GraphFiles for StoredGraph {
    fn relations(&self) -> Result<RelationFiles<'_>, StoreError> {
        Ok(RelationFiles {
            schema: self.graph().schema().clone(),
            counts: self.graph().node_counts().to_vec(),
            files: self.files().iter().map(|csc| &**csc).collect(),
        })
    }
}
