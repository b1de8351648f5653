//! Graphs whose relations are in files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn_gnn_files::internal::{inside, read_bounded};
use burn_gnn_files::write_atomic;
use burn_gnn_graph::{EdgeType, Graph, GraphError, Relation, Schema};
use serde::{Deserialize, Serialize};

use crate::csc::StoredCsc;
use crate::error::{StoreError, format};

/// Name of the file that describes a stored graph.
const MANIFEST: &str = "graph.json";
/// Version of the format that this crate writes and reads.
const VERSION: u32 = 1;
/// Maximal length of the description in bytes.
const LONGEST: u64 = 64 << 20;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format_version: u32,
    node_types: Vec<(String, u64)>,
    /// Source type, relation, destination type, and path of the file.
    relations: Vec<(String, String, String, String)>,
}

/// A graph of several types whose relations are in files of one folder. Samplers use it like any other graph.
///
/// ```text
/// folder/
///   graph.json          node types with their counts; for each edge type its file
///   cites.csc           one section file per edge type:
///                         header | indptr u64 | sources u32 | edge_ids, weights, times | checksums
///   writes.csc          |<- one page ->|<- sections are page-aligned, with a checksum per 64 KiB ->|
///   paper.rows          features, section file of rows (any name, opened by `StoredRows`)
///   parts/              parts of the graph, one pair of files per part and edge type:
///     part-00000.nodes    header | types JSON | inner u32 | halo u32 | owners u32 | checksums
///     part-00000.0.csc    header | indptr | sources (local) | starts u64 | … | checksums
/// ```
///
/// The book: [graphs larger than memory](https://github.com/burn-gnn/burn-gnn/blob/main/docs/out-of-core.md).
///
/// ```
/// use burn_gnn_sampling::{NeighborSampler, SampleKey};
/// use burn_gnn_store::{CscBuild, EdgeIter, StoredGraph};
/// # let dir = tempfile::tempdir().unwrap();
/// let cites = ("paper", "cites", "paper");
/// CscBuild::new(dir.path().join("cites.csc"), 3, 3).run(EdgeIter::new([(0, 1), (2, 1)]))?;
/// let stored = StoredGraph::create(dir.path(), [("paper", 3)], [(cites, "cites.csc")])?;
/// let batch = NeighborSampler::new(stored.graph(), [-1])?.sample([("paper", [1])], SampleKey::new(0))?;
/// assert_eq!(batch.input_nodes(0), [1, 0, 2]);
/// assert_eq!(StoredGraph::open(dir.path())?.graph().total_nodes(), 3);
/// # Ok::<(), burn_gnn_store::StoreError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StoredGraph {
    dir: PathBuf,
    graph: Graph,
    files: Vec<Arc<StoredCsc>>,
}

impl StoredGraph {
    /// Writes the description of files in `dir` or its subfolders, and opens them. Link files of other folders into
    /// `dir`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn create<'a, E: Into<EdgeType>>(
        dir: impl AsRef<Path>,
        node_types: impl IntoIterator<Item = (&'a str, usize)>,
        relations: impl IntoIterator<Item = (E, &'a str)>,
    ) -> Result<Self, StoreError> {
        let node_types =
            node_types.into_iter().map(|(name, n)| (name.to_owned(), n as u64)).collect();
        let relation = |(etype, file): (E, &str)| {
            let EdgeType { src, relation, dst } = etype.into();
            (src, relation, dst, file.to_owned())
        };
        let relations = relations.into_iter().map(relation).collect();
        let (manifest, path) = (
            Manifest { format_version: VERSION, node_types, relations },
            dir.as_ref().join(MANIFEST),
        );
        let stored = Self::of(dir.as_ref(), &manifest)?;
        let text =
            serde_json::to_vec_pretty(&manifest).map_err(|e| format(&path, e.to_string()))?;
        write_atomic(&path, |w| w.write_all(&text))?;
        Ok(stored)
    }

    /// Opens a folder that has a description. Only headers of files are read.
    ///
    /// # Errors
    /// [`StoreError::Data`] if the description or a file cannot be read, a path leads out of the folder, or a file has
    /// other node counts than its types; [`StoreError::Graph`] for an invalid schema; as [`StoredCsc::open`].
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = dir.as_ref().join(MANIFEST);
        let manifest: Manifest =
            serde_json::from_slice(&read_bounded(&path, LONGEST)?).map_err(|e| {
                format(&path, format!("expected a description of a stored graph, found {e}"))
            })?;
        if manifest.format_version != VERSION {
            let found = manifest.format_version.to_string();
            return Err(
                burn_gnn_files::DataError::Version { path, found, expected: VERSION }.into()
            );
        }
        Self::of(dir.as_ref(), &manifest)
    }

    fn of(dir: &Path, manifest: &Manifest) -> Result<Self, StoreError> {
        let etypes: Vec<EdgeType> =
            manifest.relations.iter().map(|(s, r, d, _)| (&**s, &**r, &**d).into()).collect();
        let schema =
            Schema::new(manifest.node_types.iter().map(|t| t.0.clone()).collect(), etypes.clone())?;
        let mut counts = vec![0; schema.ntypes().len()];
        for (name, n) in &manifest.node_types {
            if *n > Relation::LIMIT {
                let (what, limit) = ("nodes", Relation::LIMIT);
                let relation = format!("node type {name}");
                return Err(GraphError::TooLarge { relation, what, count: *n, limit }.into());
            }
            counts[schema.ntype(&**name)?] = *n as usize;
        }
        let mut found = vec![];
        for (etype, (.., file)) in etypes.iter().zip(&manifest.relations) {
            let file = inside(dir, &dir.join(MANIFEST), file)?;
            let (t, stored) = (schema.etype(etype)?, StoredCsc::open(file)?);
            let (s, d) = schema.endpoints(t);
            let (expected, counts) =
                ((counts[s], counts[d]), (stored.num_nodes().0, stored.num_nodes().1));
            if expected != counts {
                let why = format!(
                    "relation `{etype}`: expected {expected:?} sources and destinations, found {counts:?}"
                );
                return Err(format(stored.path(), why));
            }
            found.push((t, stored));
        }
        found.sort_unstable_by_key(|f| f.0);
        let files: Vec<Arc<StoredCsc>> = found.into_iter().map(|f| f.1).collect();
        let relations = files.iter().map(StoredCsc::relation).collect::<Result<_, _>>()?;
        Ok(Self {
            dir: dir.into(),
            graph: Graph::assemble(Arc::new(schema), counts, relations),
            files,
        })
    }

    /// Path of the folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
    /// The graph, without features. These come from a [`FeatureSource`](burn_gnn_sampling::FeatureSource), such as
    /// [`StoredRows`](crate::StoredRows).
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
    /// The file of each relation, in schema order.
    pub fn files(&self) -> &[Arc<StoredCsc>] {
        &self.files
    }
    /// Verifies the checksums of all blocks of all files.
    ///
    /// # Errors
    /// As [`StoredCsc::verify`].
    pub fn verify(&self) -> Result<(), StoreError> {
        self.files.iter().try_for_each(|file| file.verify())
    }
}
