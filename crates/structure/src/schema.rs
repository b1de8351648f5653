//! Defines node types and canonical edge types: the metagraph.

use std::fmt;
use std::ops::RangeFull;

use serde::{Deserialize, Serialize};

use crate::error::GraphError;
use crate::error::count_noun::count_noun;
use crate::error::graph_error::setting;
use crate::error::or_panic::OrPanic;

/// A canonical edge type, `(src_type, relation, dst_type)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EdgeType {
    /// Node type of sources.
    pub src: String,
    /// Name of the relation.
    pub relation: String,
    /// Node type of destinations.
    pub dst: String,
}

impl EdgeType {
    /// From its three names.
    pub fn new(
        src: impl Into<String>,
        relation: impl Into<String>,
        dst: impl Into<String>,
    ) -> Self {
        Self { src: src.into(), relation: relation.into(), dst: dst.into() }
    }
}

impl fmt::Display for EdgeType {
    /// `src:relation:dst`, the form that partition files use.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.src, self.relation, self.dst)
    }
}

impl<A: Into<String>, B: Into<String>, C: Into<String>> From<(A, B, C)> for EdgeType {
    fn from((a, b, c): (A, B, C)) -> Self {
        Self::new(a, b, c)
    }
}

/// A key of a node type: its name, its number in the schema, or `..` for the only node type.
///
/// ```
/// use burn_gnn_structure::Schema;
/// let one = Schema::new(vec!["_N".into()], vec![("_N", "_E", "_N").into()])?;
/// assert_eq!((one.ntype(..)?, one.etype(..)?), (0, 0)); // as one.ntype("_N")?, one.etype("_E")?
/// let two = Schema::new(vec!["a".into(), "b".into()], vec![])?;
/// assert_eq!(two.ntype("b")?, 1);
/// assert!(two.ntype(..).is_err());
/// # Ok::<(), burn_gnn_structure::GraphError>(())
/// ```
pub trait NodeKey {
    /// Number of the node type in `schema`.
    ///
    /// # Errors
    /// The schema does not have this type. For `..`: the schema does not have exactly one node type.
    fn resolve(&self, schema: &Schema) -> Result<usize, GraphError>;
}

impl NodeKey for str {
    fn resolve(&self, schema: &Schema) -> Result<usize, GraphError> {
        schema
            .ntypes
            .binary_search_by(|n| n.as_str().cmp(self))
            .map_err(|_| schema.unknown_node(self))
    }
}
impl NodeKey for String {
    fn resolve(&self, schema: &Schema) -> Result<usize, GraphError> {
        NodeKey::resolve(self.as_str(), schema)
    }
}
impl NodeKey for usize {
    fn resolve(&self, schema: &Schema) -> Result<usize, GraphError> {
        if *self < schema.ntypes.len() {
            Ok(*self)
        } else {
            Err(schema.unknown_node(&self.to_string()))
        }
    }
}
impl NodeKey for RangeFull {
    fn resolve(&self, schema: &Schema) -> Result<usize, GraphError> {
        match schema.ntypes.len() {
            1 => Ok(0),
            0 => Err(schema.unknown_node("..")),
            _ => Err(GraphError::AmbiguousNodeType { candidates: schema.ntypes.clone() }),
        }
    }
}
impl<T: NodeKey + ?Sized> NodeKey for &T {
    fn resolve(&self, schema: &Schema) -> Result<usize, GraphError> {
        (**self).resolve(schema)
    }
}

/// A key of an edge type: its number in the schema, its canonical triple, its relation name if that is unique, or `..`
/// for the only edge type.
pub trait EdgeKey {
    /// Number of the edge type in `schema`.
    ///
    /// # Errors
    /// The schema does not have this type, or has several that match.
    fn resolve(&self, schema: &Schema) -> Result<usize, GraphError>;
}

impl EdgeKey for usize {
    fn resolve(&self, schema: &Schema) -> Result<usize, GraphError> {
        if *self < schema.etypes.len() {
            Ok(*self)
        } else {
            Err(schema.unknown_edge(&self.to_string()))
        }
    }
}
impl EdgeKey for EdgeType {
    fn resolve(&self, schema: &Schema) -> Result<usize, GraphError> {
        schema.etypes.binary_search(self).map_err(|_| schema.unknown_edge(&self.to_string()))
    }
}
impl EdgeKey for (&str, &str, &str) {
    fn resolve(&self, schema: &Schema) -> Result<usize, GraphError> {
        EdgeType::from(*self).resolve(schema)
    }
}
impl EdgeKey for str {
    fn resolve(&self, schema: &Schema) -> Result<usize, GraphError> {
        match schema.of_relation(self) {
            [] => Err(schema.unknown_edge(self)),
            [only] => Ok(*only),
            several => {
                let candidates = names(several.iter().map(|&e| &schema.etypes[e]));
                Err(GraphError::AmbiguousEdgeType { name: self.to_owned(), candidates })
            }
        }
    }
}
impl EdgeKey for RangeFull {
    fn resolve(&self, schema: &Schema) -> Result<usize, GraphError> {
        match schema.etypes.len() {
            1 => Ok(0),
            0 => Err(schema.unknown_edge("..")),
            _ => Err(GraphError::AmbiguousEdgeType {
                name: "..".to_owned(),
                candidates: names(&schema.etypes),
            }),
        }
    }
}
impl<T: EdgeKey + ?Sized> EdgeKey for &T {
    fn resolve(&self, schema: &Schema) -> Result<usize, GraphError> {
        (**self).resolve(schema)
    }
}

fn names<'a>(etypes: impl IntoIterator<Item = &'a EdgeType>) -> Vec<String> {
    etypes.into_iter().map(ToString::to_string).collect()
}

/// The name of an edge type, independent of a schema: its canonical triple, or its relation name if that is unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeName {
    /// Source type, relation and destination type.
    Triple(EdgeType),
    /// The relation name only.
    Relation(String),
}

impl From<EdgeType> for EdgeName {
    fn from(etype: EdgeType) -> Self {
        Self::Triple(etype)
    }
}
impl From<&EdgeType> for EdgeName {
    fn from(etype: &EdgeType) -> Self {
        etype.clone().into()
    }
}
impl<A: Into<String>, B: Into<String>, C: Into<String>> From<(A, B, C)> for EdgeName {
    fn from((src, relation, dst): (A, B, C)) -> Self {
        EdgeType::new(src, relation, dst).into()
    }
}
impl From<&str> for EdgeName {
    fn from(relation: &str) -> Self {
        Self::Relation(relation.to_owned())
    }
}
impl From<String> for EdgeName {
    fn from(relation: String) -> Self {
        Self::Relation(relation)
    }
}
impl std::fmt::Display for EdgeName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Triple(etype) => etype.fmt(f),
            Self::Relation(relation) => f.write_str(relation),
        }
    }
}
impl EdgeKey for EdgeName {
    fn resolve(&self, schema: &Schema) -> Result<usize, GraphError> {
        match self {
            Self::Triple(etype) => etype.resolve(schema),
            Self::Relation(relation) => EdgeKey::resolve(relation.as_str(), schema),
        }
    }
}

/// Node types and edge types of a graph, both sorted by name. The position in the sorted list is the number of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    ntypes: Vec<String>,
    etypes: Vec<EdgeType>,
    endpoints: Vec<(usize, usize)>,
    /// Numbers of the edge types out of and into each node type, ascending.
    from: Vec<Vec<usize>>,
    into: Vec<Vec<usize>>,
    /// Numbers of the edge types, sorted by relation name, then by number.
    by_relation: Vec<usize>,
}

fn check_name(what: &'static str, name: &str) -> Result<(), GraphError> {
    let why = if name.is_empty() {
        "is empty"
    } else if name.contains("__")
        || name.contains([':', '/', '\\', '\0'])
        || name.chars().any(char::is_control)
    {
        "must not contain `:`, `/`, `\\`, `__` or a control character, which separate names in files"
    } else if name.starts_with('.') {
        "must not start with a dot"
    } else {
        return Ok(());
    };
    Err(GraphError::BadName { what, name: name.to_owned(), why })
}

impl Schema {
    /// Sorts node types and edge types.
    ///
    /// # Errors
    /// A duplicate type, a name that cannot be stored in files, or an edge type between unknown node types.
    pub fn new(mut ntypes: Vec<String>, mut etypes: Vec<EdgeType>) -> Result<Self, GraphError> {
        ntypes.sort();
        etypes.sort();
        if let Some(w) = ntypes.windows(2).find(|w| w[0] == w[1]) {
            return Err(GraphError::Duplicate { what: "node type", name: w[0].clone() });
        }
        if let Some(w) = etypes.windows(2).find(|w| w[0] == w[1]) {
            return Err(GraphError::Duplicate { what: "edge type", name: w[0].to_string() });
        }
        for n in &ntypes {
            check_name("node type", n)?;
        }
        let find = |n: &String| {
            ntypes
                .binary_search(n)
                .map_err(|_| GraphError::UnknownNodeType { name: n.clone(), known: ntypes.clone() })
        };
        let mut endpoints = Vec::with_capacity(etypes.len());
        for t in &etypes {
            check_name("relation", &t.relation)?;
            endpoints.push((find(&t.src)?, find(&t.dst)?));
        }
        let mut from = vec![vec![]; ntypes.len()];
        let mut into = from.clone();
        for (e, &(s, d)) in endpoints.iter().enumerate() {
            from[s].push(e);
            into[d].push(e);
        }
        let mut by_relation: Vec<usize> = (0..etypes.len()).collect();
        by_relation.sort_by(|&a, &b| etypes[a].relation.cmp(&etypes[b].relation));
        Ok(Self { ntypes, etypes, endpoints, from, into, by_relation })
    }

    /// Numbers of the edge types with a relation of this name, ascending.
    fn of_relation(&self, relation: &str) -> &[usize] {
        let name = |&e: &usize| self.etypes[e].relation.as_str();
        let first = self.by_relation.partition_point(|e| name(e) < relation);
        let rest = &self.by_relation[first..];
        &rest[..rest.partition_point(|e| name(e) == relation)]
    }

    /// Node types, sorted.
    pub fn ntypes(&self) -> &[String] {
        &self.ntypes
    }
    /// Canonical edge types, sorted by (src, relation, dst).
    pub fn etypes(&self) -> &[EdgeType] {
        &self.etypes
    }
    /// Number of a node type.
    ///
    /// # Errors
    /// The type is unknown; [`GraphError::AmbiguousNodeType`] for `..` if there are several node types.
    pub fn ntype(&self, key: impl NodeKey) -> Result<usize, GraphError> {
        key.resolve(self)
    }
    /// Number of an edge type.
    ///
    /// # Errors
    /// The type is unknown, or several edge types have this relation name.
    pub fn etype(&self, key: impl EdgeKey) -> Result<usize, GraphError> {
        key.resolve(self)
    }
    /// Numbers of the source and destination node types of edge type `etype`.
    ///
    /// # Panics
    /// If `etype` is out of range.
    #[track_caller]
    pub fn endpoints(&self, etype: usize) -> (usize, usize) {
        *of_etype(&self.endpoints, etype)
    }
    /// Numbers of the edge types into node type `ntype`.
    pub fn etypes_into(&self, ntype: usize) -> impl Iterator<Item = usize> + '_ {
        self.into.get(ntype).into_iter().flatten().copied()
    }
    /// Numbers of the edge types out of node type `ntype`.
    pub fn etypes_from(&self, ntype: usize) -> impl Iterator<Item = usize> + '_ {
        self.from.get(ntype).into_iter().flatten().copied()
    }
    /// Whether there are one node type and one edge type.
    pub fn is_homogeneous(&self) -> bool {
        self.ntypes.len() == 1 && self.etypes.len() == 1
    }
    /// Returns an error unless the schema [is homogeneous](Self::is_homogeneous). `arg` is the name of the caller's
    /// argument, `remedy` the alternative for several types.
    ///
    /// # Errors
    /// [`GraphError::Setting`].
    #[doc(hidden)]
    pub fn expect_one_type(&self, arg: &'static str, remedy: &str) -> Result<(), GraphError> {
        if self.is_homogeneous() {
            return Ok(());
        }
        let (nodes, edges) = (
            count_noun(self.ntypes.len(), "node type"),
            count_noun(self.etypes.len(), "edge type"),
        );
        let expected = format!("one node type and one edge type ({remedy})");
        Err(setting(arg, &expected, &format!("{nodes} and {edges}")))
    }
    fn unknown_node(&self, name: &str) -> GraphError {
        GraphError::UnknownNodeType { name: name.to_owned(), known: self.ntypes.clone() }
    }
    fn unknown_edge(&self, name: &str) -> GraphError {
        GraphError::UnknownEdgeType { name: name.to_owned(), known: names(&self.etypes) }
    }
}

/// Entry `ntype` of a list with one entry per node type.
///
/// # Panics
/// If `ntype` is out of range; the message names the range.
#[inline]
#[track_caller]
pub fn of_ntype<T>(list: &[T], ntype: usize) -> &T {
    match list.get(ntype) {
        Some(entry) => entry,
        None => no_type("ntype", "node", list.len(), ntype),
    }
}

/// Entry `etype` of a list with one entry per edge type.
///
/// # Panics
/// If `etype` is out of range; the message names the range.
#[inline]
#[track_caller]
pub fn of_etype<T>(list: &[T], etype: usize) -> &T {
    match list.get(etype) {
        Some(entry) => entry,
        None => no_type("etype", "edge", list.len(), etype),
    }
}

/// Number of a node type.
///
/// # Panics
/// If the type is unknown.
#[track_caller]
pub fn ntype_number(schema: &Schema, key: impl NodeKey) -> usize {
    schema.ntype(key).or_panic()
}

/// Number of an edge type.
///
/// # Panics
/// If the type is unknown or ambiguous.
#[track_caller]
pub fn etype_number(schema: &Schema, key: impl EdgeKey) -> usize {
    schema.etype(key).or_panic()
}

#[cold]
#[track_caller]
fn no_type(arg: &str, kind: &str, count: usize, value: usize) -> ! {
    panic!(
        "`{arg}` must lie in 0..{count} ({kind} types in the order of the schema; `Schema::{arg}` gives the number of a name), got {value}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(
        expected = "`etype` must lie in 0..3 (edge types in the order of the schema; `Schema::etype` gives the number of a name), got 3"
    )]
    fn endpoints_of_an_unknown_edge_type_panic() {
        schema().endpoints(3);
    }

    fn schema() -> Schema {
        let e = |a: &str, r: &str, b: &str| EdgeType::new(a, r, b);
        Schema::new(
            vec!["z".into(), "a".into()],
            vec![e("z", "r", "a"), e("a", "q", "z"), e("a", "r", "a")],
        )
        .unwrap()
    }

    #[test]
    fn types_are_sorted_and_found() {
        let s = schema();
        assert_eq!(s.ntypes(), ["a", "z"]);
        assert_eq!(s.etypes()[0].to_string(), "a:q:z");
        assert_eq!(s.etype("q").unwrap(), 0);
        assert_eq!(s.etype(("z", "r", "a")).unwrap(), 2);
        assert_eq!(s.endpoints(2), (1, 0));
        assert_eq!(
            (s.ntype("z").unwrap(), s.ntype(String::from("a")).unwrap(), s.ntype(1).unwrap()),
            (1, 0, 1)
        );
        assert_eq!(s.etypes_into(0).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(s.etypes_from(1).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn ambiguous_unknown_and_invalid_names() {
        let s = schema();
        assert!(matches!(s.etype("r"), Err(GraphError::AmbiguousEdgeType { .. })));
        assert!(matches!(s.etype("nope"), Err(GraphError::UnknownEdgeType { .. })));
        assert!(matches!(s.ntype("nope"), Err(GraphError::UnknownNodeType { .. })));
        assert!(matches!(s.ntype(2), Err(GraphError::UnknownNodeType { .. })));
        assert!(matches!(
            Schema::new(vec!["a".into(), "a".into()], vec![]),
            Err(GraphError::Duplicate { .. })
        ));
        assert!(matches!(Schema::new(vec!["a:b".into()], vec![]), Err(GraphError::BadName { .. })));
        assert!(matches!(
            Schema::new(vec!["../x".into()], vec![]),
            Err(GraphError::BadName { .. })
        ));
        let e = EdgeType::new("a", "r", "b");
        assert!(matches!(
            Schema::new(vec!["a".into()], vec![e]),
            Err(GraphError::UnknownNodeType { .. })
        ));
    }

    #[test]
    fn full_range_is_the_key_of_the_only_type() {
        let one = Schema::new(vec!["a".into()], vec![EdgeType::new("a", "r", "a")]).unwrap();
        assert_eq!((one.ntype(..).unwrap(), one.etype(..).unwrap()), (0, 0));
        let several = schema();
        let text = |e: GraphError| e.to_string();
        assert_eq!(
            text(several.ntype(..).unwrap_err()),
            "`..` stands for the only node type; the graph has [\"a\", \"z\"]: name one"
        );
        assert!(
            matches!(several.etype(..), Err(GraphError::AmbiguousEdgeType { candidates, .. }) if candidates.len() == 3)
        );
        let none = Schema::new(vec![], vec![]).unwrap();
        assert!(matches!(none.ntype(..), Err(GraphError::UnknownNodeType { .. })));
        assert!(matches!(none.etype(..), Err(GraphError::UnknownEdgeType { .. })));
    }
}
