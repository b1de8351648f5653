//! Converts between type-wise and homogeneous ids in a given order of types.

use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::{HomoId, IdMap, TypedId};

use crate::files::{duplicate, unknown_ntype};

/// Converts types and ids of a graph in DGL's chunked format, using only its `metadata.json`. This is the `IDConverter` of
/// DGL's user guide.
///
/// Types and homogeneous ids are in the order of the description, as in the files of DGL. A
/// [`Graph`](burn_gnn_graph::Graph) sorts its types, so the ids of
/// [`Graph::to_homogeneous`](burn_gnn_graph::Graph::to_homogeneous) may differ. Type-wise ids are the same in both. An id at
/// the boundary of two types belongs to the later type; the code in the guide assigns it to the earlier one.
///
/// ```
/// use burn_gnn_data::IdConverter;
/// use burn_gnn_graph::HomoId;
///
/// fn main() -> Result<(), burn_gnn_data::DataError> {
///     let dir = tempfile::tempdir().unwrap();
///     let file = dir.path().join("metadata.json");
///     let json = r#"{"graph_name": "mag", "node_type": ["paper", "author"], "num_nodes_per_chunk": [[100, 100], [200]],
///       "edge_type": ["author:writes:paper"], "num_edges_per_chunk": [[500]], "edges": {}}"#;
///     std::fs::write(&file, json).unwrap();
///     let ids = IdConverter::from_metadata(&file)?; // of 200 papers and 200 authors
///     assert_eq!((ids.ntype2id("author")?, ids.id2ntype(0)?), (1, "paper"));
///     assert_eq!((ids.etype2id("author:writes:paper")?, ids.id2etype(0)?), (0, "author:writes:paper"));
///     assert_eq!((ids.nodes().to_typed(HomoId(200))?, ids.nodes().to_homo("paper", 7)?), (("author", 0), HomoId(7)));
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdConverter {
    nodes: TypeIds,
    edges: TypeIds,
}

impl IdConverter {
    /// Creates a converter from node types and edge types. Edge types are named `src:relation:dst`.
    pub fn new(nodes: TypeIds, edges: TypeIds) -> Self {
        Self { nodes, edges }
    }
    /// Converter of node ids.
    pub fn nodes(&self) -> &TypeIds {
        &self.nodes
    }
    /// Converter of edge ids.
    pub fn edges(&self) -> &TypeIds {
        &self.edges
    }
    /// Number of a node type.
    ///
    /// # Errors
    /// [`GraphError::UnknownNodeType`] for an unknown name.
    pub fn ntype2id(&self, ntype: &str) -> Result<usize, DataError> {
        self.nodes.type2id(ntype)
    }
    /// Name of a node type.
    ///
    /// # Errors
    /// [`GraphError::IdOutOfRange`] for a number that no type has.
    pub fn id2ntype(&self, id: usize) -> Result<&str, DataError> {
        self.nodes.id2type("node type", id)
    }
    /// Number of an edge type by its name `src:relation:dst`.
    ///
    /// # Errors
    /// [`GraphError::UnknownEdgeType`] for an unknown name.
    pub fn etype2id(&self, etype: &str) -> Result<usize, DataError> {
        self.edges.type2id(etype)
    }
    /// Name of an edge type, `src:relation:dst`.
    ///
    /// # Errors
    /// [`GraphError::IdOutOfRange`] for a number that no type has.
    pub fn id2etype(&self, id: usize) -> Result<&str, DataError> {
        self.edges.id2type("edge type", id)
    }
}

/// Converts between type-wise and homogeneous ids of nodes or of edges, by the names of types. Homogeneous ids are
/// consecutive in a given order of the types.
///
/// ```
/// use burn_gnn_data::TypeIds;
/// use burn_gnn_graph::HomoId;
///
/// fn main() -> Result<(), burn_gnn_data::DataError> {
///     let ids = TypeIds::new([("paper", 200), ("author", 200)])?;
///     assert_eq!(ids.to_typed(HomoId(0))?, ("paper", 0));
///     assert_eq!((ids.to_typed(HomoId(199))?, ids.to_typed(HomoId(200))?), (("paper", 199), ("author", 0)));
///     assert_eq!(ids.to_homo("author", 1)?, HomoId(201));
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeIds {
    names: Vec<String>,
    map: IdMap,
}

impl TypeIds {
    /// Creates a converter from names and counts of types, in the order of the homogeneous ids.
    ///
    /// # Errors
    /// [`GraphError::Duplicate`] for a repeated name, and an error if the counts add up to more than `u64::MAX`.
    pub fn new(
        types: impl IntoIterator<Item = (impl Into<String>, usize)>,
    ) -> Result<Self, DataError> {
        let (names, counts): (Vec<String>, Vec<usize>) =
            types.into_iter().map(|(name, count)| (name.into(), count)).unzip();
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort();
        if let Some(w) = sorted.windows(2).find(|w| w[0] == w[1]) {
            return Err(duplicate("type", w[0]));
        }
        Ok(Self { map: IdMap::from_counts(counts)?, names })
    }
    /// Names of the types in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }
    /// The map of ids by type numbers.
    pub fn map(&self) -> &IdMap {
        &self.map
    }
    /// Type and type-wise id of a homogeneous id.
    ///
    /// # Errors
    /// [`GraphError::IdOutOfRange`] if the id is not below the number of all ids.
    pub fn to_typed(&self, id: HomoId) -> Result<(&str, u64), DataError> {
        let TypedId { ty, id } = self.map.to_typed(id)?;
        Ok((&self.names[ty], id))
    }
    /// Homogeneous id of a type-wise id.
    ///
    /// # Errors
    /// [`GraphError::UnknownNodeType`] or [`GraphError::UnknownEdgeType`] for an unknown name, and
    /// [`GraphError::IdOutOfRange`] for an id that the type does not have.
    pub fn to_homo(&self, name: &str, id: u64) -> Result<HomoId, DataError> {
        Ok(self.map.to_homo(TypedId { ty: self.type2id(name)?, id })?)
    }
    fn type2id(&self, name: &str) -> Result<usize, DataError> {
        let ty = self.names.iter().position(|n| n == name);
        ty.ok_or_else(|| {
            // Names of node types have no colon, names of edge types have two.
            if self.names.iter().any(|name| name.contains(':')) {
                let (name, known) = (name.to_owned(), self.names.clone());
                DataError::Graph(GraphError::UnknownEdgeType { name, known })
            } else {
                unknown_ntype(name, &self.names)
            }
        })
    }
    fn id2type(&self, what: &str, id: usize) -> Result<&str, DataError> {
        let name = self.names.get(id).map(String::as_str);
        name.ok_or_else(|| {
            DataError::Graph(GraphError::IdOutOfRange {
                what: what.to_owned(),
                id: id as u64,
                bound: self.names.len() as u64,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_unknown_edge_type_is_reported_as_such() {
        let nodes = TypeIds::new([("a", 2)]).unwrap();
        let edges = TypeIds::new([("a:r:a", 3)]).unwrap();
        let unknown = |e: Result<HomoId, DataError>| e.unwrap_err().to_string();
        assert!(unknown(edges.to_homo("a:s:a", 0)).contains("unknown edge type `a:s:a`"));
        assert!(unknown(nodes.to_homo("b", 0)).contains("unknown node type `b`"));
        let ids = IdConverter::new(nodes, edges);
        let e = ids.etype2id("q").unwrap_err();
        assert!(matches!(e, DataError::Graph(GraphError::UnknownEdgeType { .. })));
    }

    /// Ids at the offsets 0, 200 and 400 belong to the later type.
    #[test]
    fn boundary_ids() {
        let ids = TypeIds::new([("a", 200), ("b", 200)]).unwrap();
        let types = [0, 1, 199, 200, 201, 399].map(|i| ids.to_typed(HomoId(i)).unwrap().0);
        assert_eq!(types, ["a", "a", "a", "b", "b", "b"]);
        assert!(matches!(
            ids.to_typed(HomoId(400)),
            Err(DataError::Graph(GraphError::IdOutOfRange { id: 400, bound: 400, .. }))
        ));
        assert!(matches!(
            ids.to_homo("c", 0),
            Err(DataError::Graph(GraphError::UnknownNodeType { .. }))
        ));
        assert!(matches!(
            ids.to_homo("b", 200),
            Err(DataError::Graph(GraphError::IdOutOfRange { .. }))
        ));
        assert!(matches!(
            TypeIds::new([("a", 1), ("a", 2)]),
            Err(DataError::Graph(GraphError::Duplicate { .. }))
        ));
    }

    /// The files that the description names are not needed.
    #[test]
    fn converter_from_a_description() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("metadata.json");
        let write = |nodes: &str, counts: &str| {
            let json = format!(
                r#"{{"graph_name": "g", "node_type": {nodes}, "num_nodes_per_chunk": {counts}, "edge_type": ["b:r:a", "a:s:a"],
                "num_edges_per_chunk": [[3, 1], [2]], "edges": {{"b:r:a": {{"format": {{"name": "csv"}}, "data": ["no such file"]}}}}}}"#
            );
            std::fs::write(&file, json).unwrap();
        };
        write(r#"["b", "a"]"#, "[[4, 1], [2]]");
        let ids = IdConverter::from_metadata(&file).unwrap();
        assert_eq!(
            ids,
            IdConverter::new(
                TypeIds::new([("b", 5), ("a", 2)]).unwrap(),
                TypeIds::new([("b:r:a", 4), ("a:s:a", 2)]).unwrap()
            )
        );
        assert_eq!(
            [
                ids.ntype2id("b").unwrap(),
                ids.ntype2id("a").unwrap(),
                ids.etype2id("a:s:a").unwrap()
            ],
            [0, 1, 1]
        );
        assert_eq!([ids.id2ntype(1).unwrap(), ids.id2etype(0).unwrap()], ["a", "b:r:a"]);
        assert_eq!(ids.edges().to_typed(HomoId(4)).unwrap(), ("a:s:a", 0));
        assert!(matches!(
            ids.ntype2id("c"),
            Err(DataError::Graph(GraphError::UnknownNodeType { .. }))
        ));
        assert!(matches!(
            ids.etype2id("r"),
            Err(DataError::Graph(GraphError::UnknownEdgeType { .. }))
        ));
        assert_eq!(
            ids.id2ntype(2).unwrap_err().to_string(),
            "node type id 2 is out of range 0..2; give ids that are numbered from 0"
        );
        assert_eq!(
            ids.id2etype(9).unwrap_err().to_string(),
            "edge type id 9 is out of range 0..2; give ids that are numbered from 0"
        );
        let refused = |part: &str| {
            let e = IdConverter::from_metadata(&file).unwrap_err().to_string();
            assert!(e.contains("metadata.json") && e.contains(part), "{e}");
        };
        write(r#"["b", "a"]"#, "[[4, 1]]");
        refused("num_nodes_per_chunk: number of types");
        write(r#"["b", "b"]"#, "[[4, 1], [2]]");
        refused("`b` was given twice; give it once");
        write(r#"["b"]"#, "[[18446744073709551615, 1]]");
        refused("sum that fits in 64 bits");
        std::fs::write(&file, "{}").unwrap();
        refused("node_type");
    }

    proptest! {
        #[test]
        fn conversion_and_back_in_the_given_order(counts in prop::collection::vec(0usize..5, 0..6)) {
            // Names are in descending order, so that sorting would be detected.
            let named = counts.iter().enumerate().map(|(i, &c)| (format!("t{}", 9 - i), c));
            let ids = TypeIds::new(named).unwrap();
            let mut joint = 0;
            for (i, &c) in counts.iter().enumerate() {
                for id in 0..c as u64 {
                    let name = format!("t{}", 9 - i);
                    prop_assert_eq!(ids.to_homo(&name, id).unwrap(), HomoId(joint));
                    prop_assert_eq!(ids.to_typed(HomoId(joint)).unwrap(), (name.as_str(), id));
                    joint += 1;
                }
            }
            prop_assert!(ids.to_typed(HomoId(joint)).is_err());
        }
    }
}
