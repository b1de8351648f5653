//! Defines the errors of graphs.

/// Implements `Debug` by `Display`. An error that `main` returns or that `unwrap` panics with is formatted with `Debug`;
/// this way it prints the message with the expected value, the found value and the fix.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_is_message {
    ($error:ty) => {
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}

/// The name of a relation in errors until [`GraphError::in_relation`] sets it.
pub const UNNAMED: &str = "(unnamed)";

/// Errors of graphs, features and samples.
///
/// Variants hold data rather than text, so that a program can react to them. The message names the argument, the
/// expected value, the found value and, if there is one, the fix.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A node id is outside of `0..bound`.
    #[error(
        "relation `{relation}`, position {position}: `{arg}` must lie in 0..{bound}, got {value}; {}",
        if *.arg == "table" { "number tables from 0" } else { "number nodes from 0, or give the graph more nodes" }
    )]
    NodeOutOfRange {
        /// Relation as `src:relation:dst`, or `(unnamed)`.
        relation: String,
        /// Which array: `src`, `dst` or `indices`.
        arg: &'static str,
        /// Index of the entry.
        position: usize,
        /// Exclusive upper bound.
        bound: usize,
        /// The value found.
        value: i128,
    },
    /// A compressed layout that was passed together with edges is not the layout of these edges.
    #[error(
        "relation `{relation}`, `{layout}`: expected the layout of the edges, found {found}; build the layout from these edges"
    )]
    Layout {
        /// Relation.
        relation: String,
        /// `csc` or `csr`.
        layout: &'static str,
        /// How the layout differs.
        found: String,
    },
    /// An edge id in a compressed layout is out of range or occurs twice.
    #[error(
        "relation `{relation}`, position {position}: `edge_ids` must be a permutation of 0..{bound}, got {value}{}; give every edge id once",
        if *.repeated { " a second time" } else { "" }
    )]
    EdgeIds {
        /// Relation.
        relation: String,
        /// Index of the entry.
        position: usize,
        /// Number of edges.
        bound: usize,
        /// The value found.
        value: u64,
        /// Whether the value is a duplicate; otherwise it is out of range.
        repeated: bool,
    },
    /// `indptr` decreases, does not start at 0 or does not end at the number of edges.
    #[error(
        "relation `{relation}`: `indptr[{position}]` must be {expected}, got {value}; \
         compute `indptr` as the cumulative sum of the row lengths, from 0"
    )]
    Indptr {
        /// Relation.
        relation: String,
        /// Index into `indptr`.
        position: usize,
        /// The expected value, in words.
        expected: String,
        /// The value found.
        value: i128,
    },
    /// Two lengths that must be equal differ.
    #[error(
        "{}{}: expected length {expected} ({why}), got {actual}; give {expected} entries",
        quoted(.arg),
        if .relation.is_empty() || .relation == UNNAMED {
            String::new()
        } else {
            format!(" of {} `{}`", kind_of(.relation), .relation)
        }
    )]
    Length {
        /// Relation or node type, or empty.
        relation: String,
        /// Argument, or a phrase with names in backticks, such as "nodes of `a`: column `x`".
        arg: String,
        /// Where the expected length comes from.
        why: &'static str,
        /// Expected length.
        expected: usize,
        /// Length found.
        actual: usize,
    },
    /// There are more nodes, edges or seeds than `u32` ids.
    #[error(
        "{}{count} {what} exceed the limit of {limit}{}",
        if .relation.is_empty() { String::new() } else { format!("relation `{}`: ", .relation) },
        if .relation.is_empty() { "; give fewer at a time" } else { " per relation; split the relation or partition the graph" }
    )]
    TooLarge {
        /// Relation, or empty if the count is not of a relation.
        relation: String,
        /// `nodes`, `edges`, `seeds` or, if nodes and edges share a numbering, `ids`.
        what: &'static str,
        /// The count found.
        count: u64,
        /// The largest count allowed.
        limit: u64,
    },
    /// A node type that the graph does not have.
    #[error("unknown node type `{name}`; the graph has {known:?}: {}", name_one(known))]
    UnknownNodeType {
        /// The requested name.
        name: String,
        /// Names that exist.
        known: Vec<String>,
    },
    /// `..` for the only node type of a graph that has several.
    #[error("`..` stands for the only node type; the graph has {candidates:?}: name one")]
    AmbiguousNodeType {
        /// Names that exist.
        candidates: Vec<String>,
    },
    /// An edge type that the graph does not have.
    #[error("unknown edge type `{name}`; the graph has {known:?}: {}", name_one(known))]
    UnknownEdgeType {
        /// The requested name.
        name: String,
        /// Canonical names that exist.
        known: Vec<String>,
    },
    /// A relation name that several canonical edge types share.
    #[error(
        "edge type `{name}` is ambiguous: {candidates:?}; use the canonical (src, relation, dst)"
    )]
    AmbiguousEdgeType {
        /// The requested name.
        name: String,
        /// Canonical names that match.
        candidates: Vec<String>,
    },
    /// A graph is built with the same type twice.
    #[error("{what} `{name}` was given twice; give it once")]
    Duplicate {
        /// `node type` or `edge type`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A name that cannot be stored in files.
    #[error("{what} name {name:?} {why}; choose another name")]
    BadName {
        /// The kind of object that has the name.
        what: &'static str,
        /// The name.
        name: String,
        /// Why the name is invalid.
        why: &'static str,
    },
    /// An id outside the range of its numbering.
    #[error("{what} id {id} is out of range 0..{bound}; give ids that are numbered from 0")]
    IdOutOfRange {
        /// Which numbering.
        what: String,
        /// The id.
        id: u64,
        /// Exclusive upper bound.
        bound: u64,
    },
    /// A feature column that the frame does not have.
    #[error("{frame}: no column `{name}`; there are {known:?}: {}", name_one(known))]
    UnknownColumn {
        /// Which frame.
        frame: String,
        /// The requested name.
        name: String,
        /// Names that exist.
        known: Vec<String>,
    },
    /// A column is read with the wrong rank or kind.
    #[error(
        "{frame}: column `{name}`: expected a {expected}, found a {actual}{}",
        if expected.contains(';') { "" } else { "; read it as stored, or convert the column" }
    )]
    ColumnType {
        /// Which frame.
        frame: String,
        /// Column.
        name: String,
        /// The requested type.
        expected: String,
        /// The stored type.
        actual: String,
    },
    /// A column is on another device than its frame, or has another dtype than the column it is appended to.
    #[error(
        "{frame}: column `{name}` has {what} {actual}, expected {expected}; {}",
        column_remedy(what)
    )]
    ColumnMismatch {
        /// Which frame.
        frame: String,
        /// Column.
        name: String,
        /// `device`, `dtype`, `kind` or `row shape`.
        what: &'static str,
        /// What was expected.
        expected: String,
        /// What was found.
        actual: String,
    },
    /// An operation that needs equal source and destination type was called on a bipartite relation.
    #[error(
        "relation `{relation}`: {op} needs the same source and destination node type; choose an edge type between nodes of one type"
    )]
    Bipartite {
        /// Relation.
        relation: String,
        /// Operation.
        op: &'static str,
    },
    /// A topological traversal of a relation that has a cycle.
    #[error(
        "relation `{relation}`: expected no cycle for topological traversal, found {nodes} nodes on or downstream of a cycle, \
         such as node {node}; remove the edges that close cycles"
    )]
    Cycle {
        /// Relation.
        relation: String,
        /// The first node on or downstream of a cycle.
        node: u32,
        /// Number of such nodes.
        nodes: usize,
    },
    /// A duplicate in a list of distinct ids.
    #[error("{what} id {id} was given twice (again at position {position}); give every id once")]
    RepeatedId {
        /// Argument and type.
        what: String,
        /// Index of the second occurrence.
        position: usize,
        /// The id.
        id: u64,
    },
    /// No row has this id.
    #[error("position {position}: no row has the id {id}; leave the id out, or give it a row")]
    UnknownId {
        /// Index in the list of ids.
        position: usize,
        /// The id.
        id: u64,
    },
    /// There is no edge between this pair of nodes.
    #[error(
        "relation `{relation}`, position {position}: there is no edge {src} -> {dst}; find the pairs that have an edge with `has_edges`"
    )]
    NoSuchEdge {
        /// Relation.
        relation: String,
        /// Index of the pair.
        position: usize,
        /// Source.
        src: u32,
        /// Destination.
        dst: u32,
    },
    /// Consecutive edge types of a metapath do not share a node type.
    #[error(
        "metapath, position {position}: `{etype}` must start in node type `{expected}`, where the previous edge type ends; \
         choose an edge type with source `{expected}`"
    )]
    Metapath {
        /// Index of the edge type.
        position: usize,
        /// The edge type.
        etype: String,
        /// The node type expected.
        expected: String,
    },
    /// An invalid number of neighbours.
    #[error(
        "fan-out of relation `{relation}`, hop {hop}: must be -1 (all), 0 (none) or a number of edges up to {limit}, got {value}"
    )]
    Fanout {
        /// Relation, or `(every)` for a fan-out of all relations.
        relation: String,
        /// Hop, from the seeds outward.
        hop: usize,
        /// The largest number.
        limit: i64,
        /// The value found.
        value: i64,
    },
    /// A per-relation argument has no entry for a relation.
    #[error("`{arg}` has no entry for relation `{relation}`; {remedy}")]
    MissingRelation {
        /// Argument.
        arg: &'static str,
        /// The relation.
        relation: String,
        /// How to fix it.
        remedy: &'static str,
    },
    /// A sampling weight is negative, infinite or NaN.
    #[error(
        "`{arg}` of {of}, position {position}: must be finite and not negative, got {value}; set 0 for entries that must never be drawn"
    )]
    Weight {
        /// Argument.
        arg: &'static str,
        /// The relation or node type.
        of: String,
        /// Index of the entry.
        position: usize,
        /// The value found.
        value: f64,
    },
    /// A setting is out of range, or conflicts with another setting.
    #[error("`{arg}`: expected {expected}, got {found}")]
    Setting {
        /// Argument.
        arg: &'static str,
        /// The expected value.
        expected: String,
        /// The value found.
        found: String,
    },
    /// A feature is out of range for the type that it is to be stored in.
    #[error(
        "row {row}, column {column}: expected a number in -{largest}..={largest}, the range of {row_type}, got {value}; {}",
        if .value.is_nan() { "replace it" } else { "store a wider type, or clip such numbers with `RowType::saturating`" }
    )]
    RowRange {
        /// Row.
        row: usize,
        /// Column.
        column: usize,
        /// The value found.
        value: f32,
        /// The storage type.
        row_type: String,
        /// The largest value of the storage type.
        largest: f32,
    },
    /// Parts of features differ in feature size or dtype.
    #[error(
        "features in several parts: part {part} has {what} {actual}, part 0 has {expected}; convert one of them"
    )]
    RowsMismatch {
        /// Index of the part.
        part: usize,
        /// `feature size` or `dtype`.
        what: &'static str,
        /// The value of part 0.
        expected: String,
        /// What was found.
        actual: String,
    },
    /// A list is empty that must not be.
    #[error("`{arg}` is empty; {remedy}")]
    Empty {
        /// Argument.
        arg: &'static str,
        /// How to fix it.
        remedy: &'static str,
    },
    /// The graphs of a batch have different types.
    #[error(
        "graph {position} of the batch has the types {actual:?}, graph 0 has {expected:?}; empty types and relations are allowed"
    )]
    SchemaMismatch {
        /// Index of the graph.
        position: usize,
        /// Types of graph 0.
        expected: Vec<String>,
        /// Types found.
        actual: Vec<String>,
    },
    /// An edge of a batch connects two graphs, or connects nodes of another graph than its position belongs to.
    #[error(
        "relation `{relation}`: edge {edge} belongs to graph {graph} of the batch, but its endpoints {src} -> {dst} are not nodes of \
         that graph; sort nodes and edges by graph, or correct `num_nodes` and `num_edges`"
    )]
    CrossesGraphs {
        /// Relation.
        relation: String,
        /// Edge id in the batch.
        edge: usize,
        /// Index of the graph.
        graph: usize,
        /// Source in the batch.
        src: u32,
        /// Destination in the batch.
        dst: u32,
    },
    /// A worker thread of a loader panicked.
    #[error(
        "a worker of the loader panicked in batch {batch} of epoch {epoch}: {message}; \
         set `with_workers(0)` to debug it in the calling thread"
    )]
    Worker {
        /// Epoch.
        epoch: u64,
        /// Batch of the epoch, from 0.
        batch: usize,
        /// The panic message.
        message: String,
    },
    /// An allocation failed.
    #[error("{what} needs {bytes} bytes, which could not be allocated; {remedy}")]
    OutOfMemory {
        /// The object to be allocated, with its size.
        what: String,
        /// Bytes needed, saturated at `u128::MAX`.
        bytes: u128,
        /// How to fix it.
        remedy: &'static str,
    },
    /// An error of a feature source or of a user-defined sampler, such as a file that cannot be read.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
}

crate::debug_is_message!(GraphError);

/// The kind of object that a name belongs to. Names of relations are edge types, which contain colons.
fn kind_of(name: &str) -> &'static str {
    if name.contains([':', '[']) { "relation" } else { "node type" }
}

/// An argument in backticks, unless it is a phrase that contains names in backticks.
fn quoted(arg: &str) -> String {
    if arg.contains('`') { arg.to_owned() } else { format!("`{arg}`") }
}

/// The fix for an unknown name.
fn name_one(known: &[String]) -> &'static str {
    if known.is_empty() { "add it first" } else { "name one of these" }
}

/// The fix for a column whose `what` differs from the expected one.
fn column_remedy(what: &str) -> &'static str {
    match what {
        "device" => "move the column",
        "dtype" | "kind" => "convert the column",
        _ => "reshape the column",
    }
}

impl GraphError {
    /// Wraps the error of a feature source or of a user-defined sampler.
    pub fn source(e: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Source(e.into())
    }
    /// The same error with the relation's name filled in.
    #[must_use]
    pub fn in_relation(mut self, name: &str) -> Self {
        match &mut self {
            Self::NodeOutOfRange { relation, .. }
            | Self::EdgeIds { relation, .. }
            | Self::Layout { relation, .. }
            | Self::Indptr { relation, .. }
            | Self::Length { relation, .. }
            | Self::TooLarge { relation, .. }
            | Self::Bipartite { relation, .. }
            | Self::Cycle { relation, .. }
            | Self::NoSuchEdge { relation, .. }
            | Self::CrossesGraphs { relation, .. } => *relation = name.to_owned(),
            _ => {}
        }
        self
    }
}

/// An error for an invalid setting.
pub fn setting(arg: &'static str, expected: &str, found: &str) -> GraphError {
    GraphError::Setting { arg, expected: expected.to_owned(), found: found.to_owned() }
}
