//! Defines the errors of this crate.

use std::path::PathBuf;

use burn_gnn_files::DataError;
use burn_gnn_files::internal::cut_quoted;
use burn_gnn_graph::GraphError;

use crate::comm::Failure;

/// What can be wrong with a partitioning, its files or a distributed run.
///
/// Variants hold data; the message names the argument, what was expected and what was found.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum DistError {
    /// A setting outside its range.
    #[error("`{arg}`: expected {expected}, got {found}")]
    Config {
        /// Which setting.
        arg: &'static str,
        /// What is allowed.
        expected: String,
        /// What was given.
        found: String,
    },
    /// More parts than nodes.
    #[error(
        "`num_parts`: expected at most {nodes} (one part per node), got {parts}; use fewer parts"
    )]
    TooManyParts {
        /// Parts asked for.
        parts: usize,
        /// Nodes of all types.
        nodes: usize,
    },
    /// More nodes or edges than the partitioner can number.
    #[error(
        "{count} {what} exceed the {limit} that METIS can number; use a streaming method, `PartitionMethod::Ldg` or `PartitionMethod::Fennel`, or a custom assignment"
    )]
    TooLarge {
        /// `nodes` or `edges (both directions)`, for example.
        what: &'static str,
        /// The count found.
        count: u64,
        /// The largest count allowed.
        limit: u64,
    },
    /// METIS refused the graph.
    #[error(
        "METIS failed on {nodes} nodes, {edges} edges, {parts} parts: {message}; use another `PartitionMethod`"
    )]
    Metis {
        /// Nodes handed over.
        nodes: usize,
        /// Undirected edges handed over, without self loops and repeats.
        edges: usize,
        /// Parts asked for.
        parts: usize,
        /// The message of METIS.
        message: String,
    },
    /// A custom assignment that does not fit the graph.
    #[error("assignment of node type `{ntype}`{}: expected {expected}, got {found}", position.map_or(String::new(), |p| format!(", node {p}")))]
    Assignment {
        /// Node type.
        ntype: String,
        /// Node, where one entry is wrong.
        position: Option<usize>,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// An id, type or part outside its numbering.
    #[error("{what} {id} is out of range 0..{bound}; number them from 0")]
    OutOfRange {
        /// Which numbering.
        what: String,
        /// The id.
        id: u64,
        /// Exclusive upper bound.
        bound: u64,
    },
    /// A local id was asked for in a part that does not own the node or edge.
    #[error("{what} {id} belongs to part {owner}, not to part {part}; ask part {owner} for it")]
    NotOwned {
        /// Which numbering.
        what: String,
        /// The type-wise id.
        id: u64,
        /// The part asked.
        part: usize,
        /// The part that owns it.
        owner: usize,
    },
    /// A range of ids was asked for where ids were kept as they are in the input, so that a part owns no range.
    #[error(
        "part {part} has no contiguous range of {what} ids: the graph was partitioned without reshuffling; use `nids_of_part` or `eids_of_part`"
    )]
    KeptIds {
        /// `node` or `edge`.
        what: String,
        /// The part asked.
        part: usize,
    },
    /// A part was opened by a rank that it does not belong to.
    #[error(
        "rank {rank} of {size} cannot take part {part} of {num_parts}: rank `i` of `num_parts` ranks takes part `i`{}; \
         start as many ranks, each with its own part",
        if *trainers > 1 { format!(", or part `i / {trainers}` of `num_parts · {trainers}` ranks, where trainers share parts of a `DistGraph`") } else { String::new() }
    )]
    WrongRank {
        /// This rank.
        rank: usize,
        /// Number of ranks.
        size: usize,
        /// The part given.
        part: usize,
        /// Number of parts.
        num_parts: usize,
        /// Trainers per part that the graph was cut for.
        trainers: usize,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// File.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A file's content is not what the format asks for: truncated, of wrong lengths, with ids out of range.
    #[error("{}: {message}", path.display())]
    Format {
        /// File.
        path: PathBuf,
        /// What is wrong, with the expected and the found value.
        message: String,
    },
    /// A file of another version of the format.
    #[error("{}: format version {found}, this program reads version {expected}; partition the graph again", path.display())]
    Version {
        /// File.
        path: PathBuf,
        /// Version found.
        found: String,
        /// Version this program reads.
        expected: u32,
    },
    /// A file is not what was written: damaged, or of another writing.
    #[error("{}: the metadata says checksum {expected}, the file has {found}: it was changed or damaged; partition the graph again", path.display())]
    Checksum {
        /// File.
        path: PathBuf,
        /// Of the metadata.
        expected: String,
        /// Of the file.
        found: String,
    },
    /// A part's file belongs to another partitioning than the metadata: a directory half overwritten.
    #[error("{}: belongs to partitioning {found}, the metadata to {expected}; partition the graph again", path.display())]
    Mixed {
        /// File.
        path: PathBuf,
        /// Fingerprint of the metadata.
        expected: String,
        /// Fingerprint of the file.
        found: String,
    },
    /// A pair of nodes without an edge where one was asked for.
    #[error(
        "relation `{relation}`, position {position}: there is no edge {src} -> {dst}; `in_subgraph` lists the edges into a node"
    )]
    NoSuchEdge {
        /// Relation.
        relation: String,
        /// Index of the pair.
        position: usize,
        /// Source, by type-wise id.
        src: u64,
        /// Destination, by type-wise id.
        dst: u64,
    },
    /// A partition policy that the graph does not have.
    #[error(
        "no partition policy `{policy}`: policies are those of the graph's types and fixed when it is opened; there are {known:?}: \
         name one of these"
    )]
    UnknownPolicy {
        /// The policy asked for, `node~type` or `edge~src:relation:dst`.
        policy: String,
        /// All there are.
        known: Vec<String>,
    },
    /// A tensor without policy, whose first dimension does not tell which one it is.
    #[error(
        "tensor `{name}`: {} {rows} rows{}; name the policy",
        if candidates.is_empty() { "no type of the graph has" } else { "several types of the graph have" },
        if candidates.is_empty() { String::new() } else { format!(": {candidates:?}") }
    )]
    Policy {
        /// Name of the tensor.
        name: String,
        /// Its first dimension.
        rows: u64,
        /// Policies with as many rows.
        candidates: Vec<String>,
    },
    /// A checkpoint of another run than the one that would go on with it.
    #[error("{}: made with {what} {found}, this run has {expected}; {remedy}", path.display())]
    Checkpoint {
        /// Manifest.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// What this run has.
        expected: String,
        /// What the checkpoint has.
        found: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Models of ranks differ where they must be replicas.
    #[error(
        "{what} on rank {rank}: expected {expected} as on rank 0, found {found}; ranks would train different models: call \
         `broadcast_module` before the first step, or make the model on every rank in \
         `seeded(broadcast_seed(&comm)?, || …)`, which makes dropout keys equal too"
    )]
    Replicas {
        /// What differs: a parameter, by its path of field names, or the number of parameters.
        what: String,
        /// The first rank that differs from rank 0.
        rank: usize,
        /// What rank 0 has.
        expected: String,
        /// What the rank has.
        found: String,
    },
    /// The structure or a frame is wrong.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A file of a graph or of features is wrong.
    #[error(transparent)]
    Data(Box<DataError>),
    /// A collective call failed: some rank ended with an error.
    #[error(transparent)]
    Rank(#[from] Failure),
}

burn_gnn_graph::internal::debug_is_message!(DistError);

impl From<DataError> for DistError {
    fn from(e: DataError) -> Self {
        match e {
            DataError::Graph(e) => Self::Graph(e),
            other => Self::Data(Box::new(other)),
        }
    }
}

impl DistError {
    /// Texts in quotes are cut, whatever file they came from.
    pub(crate) fn format(path: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self::Format { path: path.into(), message: cut_quoted(message.into()) }
    }
    /// The same error, of a file.
    pub(crate) fn of_file(e: DataError) -> Self {
        match e {
            DataError::Io { path, source } => Self::Io { path, source },
            DataError::Format { path, message } => Self::Format { path, message },
            other => other.into(),
        }
    }
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

#[cfg(test)]
mod tests {
    /// Errors travel in every `Result`; a large one costs the good case.
    #[test]
    fn errors_are_small() {
        println!("{} {}", size_of::<burn_gnn_graph::GraphError>(), size_of::<super::DistError>());
        assert!(size_of::<super::DistError>() < 129);
    }
}
