//! Saves the structure of a graph as a file, and loads or memory-maps it.

mod source;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn_gnn_files::DataError;
use burn_gnn_graph::{EdgeType, Graph, Relation};
use burn_gnn_sampling::Placement;
use safetensors::Dtype;
use serde::{Deserialize, Serialize};

use crate::files::checksum::checksum;
use crate::files::{
    FormatVersion, MappedFile, TensorIndex, format_error, io_error, node_count, open, setting,
    tensor_header, write_atomic,
};
use source::{Source, other_file};

/// Key of the description in the header of the file.
const DESCRIPTION: &str = "topology";
/// Version of the format. Version 2 added the checksum.
const VERSION: u32 = 2;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    format_version: u32,
    /// Checksum of the description with an empty checksum.
    #[serde(skip_serializing_if = "String::is_empty")]
    checksum: String,
    node_types: Vec<(String, u64)>,
    edge_types: Vec<(String, String, String)>,
}

/// The structure of a graph in a file, without features: for graphs whose edges do not fit in memory, or that several
/// processes share.
///
/// The file contains node types and counts, and each relation with its CSC and CSR layouts, so that opening it sorts
/// nothing. A memory-mapped graph is an ordinary [`Graph`]: samplers, layers and operators accept it, and samplers draw the
/// same blocks. Its features come from a separate [`FeatureSource`](burn_gnn_sampling::FeatureSource). Graphs derived from
/// it, such as subgraphs, are in memory.
///
/// # File format
/// A safetensors file with u32 tensors. For each relation it contains `<src:relation:dst>/src` and `/dst` in edge order,
/// `/csc/indptr`, `/csc/indices` and `/csc/edge_ids`, and the same for `/csr`. `edge_ids` is missing if the edges are in the
/// order of the layout. The header contains a description with a checksum. The size is at most 24 bytes per edge, and 8
/// bytes per source and destination node.
///
/// No program may modify the file while it is mapped; see [`Placement::Mapped`]. [`write`](Self::write) is safe: it renames
/// a new file to the path, and mapped graphs keep the old content.
///
/// ```
/// use burn_gnn_data::Topology;
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::Placement;
/// use burn_gnn_sampling::{NeighborSampler, SampleKey};
///
/// fn main() -> Result<(), burn_gnn_data::DataError> {
///     let dir = tempfile::tempdir().unwrap();
///     let file = dir.path().join("graph.topology");
///     let g = Graph::homogeneous(4, vec![0, 1, 2, 2], vec![1, 2, 3, 0])?;
///     Topology::write(&g, &file)?;
///     let topology = Topology::open(&file, Placement::Mapped)?;
///     assert_eq!(topology.graph().relation("_E")?.csc().indices(), [2, 0, 1, 2]);
///     let batch = NeighborSampler::new(topology.graph(), [-1])?.sample([("_N", [3])], SampleKey::new(0))?;
///     assert_eq!(batch.input_nodes(0), [3, 2]);
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Topology {
    graph: Graph,
    placement: Placement,
    path: PathBuf,
    bytes: u64,
}

impl Topology {
    /// Writes the structure of a graph, without features and ids. The file is written to a temporary name and renamed.
    ///
    /// # Errors
    /// [`DataError::Io`] if the file cannot be written.
    ///
    /// # Cost
    /// `O(E + V)`. A layout that has not been built yet is built, written and freed before the next one, with 8 bytes per
    /// edge. Existing layouts need no further memory.
    pub fn write(graph: &Graph, path: impl AsRef<Path>) -> Result<(), DataError> {
        let path = path.as_ref();
        let mut tensors: Vec<(String, [usize; 1])> = vec![];
        for (t, r) in graph.schema().etypes().iter().zip(graph.relations()) {
            let edges = [r.num_edges()];
            tensors.extend(["src", "dst"].map(|end| (format!("{t}/{end}"), edges)));
            for (name, r) in layouts(r) {
                tensors.push((format!("{t}/{name}/indptr"), [r.num_dst() + 1]));
                tensors.push((format!("{t}/{name}/indices"), edges));
                tensors
                    .extend(r.csc_has_edge_ids().then(|| (format!("{t}/{name}/edge_ids"), edges)));
            }
        }
        let node_types = graph
            .schema()
            .ntypes()
            .iter()
            .zip(graph.node_counts())
            .map(|(t, &n)| (t.clone(), n as u64))
            .collect();
        let edge_types = graph
            .schema()
            .etypes()
            .iter()
            .map(|t| (t.src.clone(), t.relation.clone(), t.dst.clone()))
            .collect();
        let mut description = Description {
            format_version: VERSION,
            checksum: String::new(),
            node_types,
            edge_types,
        };
        description.checksum = checksum(&description);
        let description =
            serde_json::to_string(&description).map_err(|e| format_error(path, e.to_string()))?;
        let head = tensor_header(
            tensors.iter().map(|(key, shape)| (&**key, Dtype::U32, &shape[..])),
            [(DESCRIPTION, &*description)],
        );
        write_atomic(path, |w| {
            w.write_all(&head)?;
            let mut put = |words: &[u32]| w.write_all(bytemuck::cast_slice(words));
            for r in graph.relations() {
                put(r.src())?;
                put(r.dst())?;
                for (_, r) in layouts(r) {
                    r.with_csc(|l| {
                        put(l.indptr())?;
                        put(l.indices())?;
                        l.edge_ids().map_or(Ok(()), &mut put)
                    })?;
                }
            }
            Ok(())
        })
    }

    /// Opens a file that [`write`](Self::write) wrote, in memory or memory-mapped.
    ///
    /// # Errors
    /// * [`DataError::Io`] if the file cannot be read.
    /// * [`DataError::Format`] for a damaged file, another format, and layouts that do not match the edges.
    /// * [`DataError::Version`] for another version of the format.
    /// * [`GraphError::NodeOutOfRange`](burn_gnn_graph::GraphError::NodeOutOfRange) for an edge with an invalid endpoint.
    /// * [`GraphError::Setting`](burn_gnn_graph::GraphError::Setting) for [`Placement::Device`].
    ///
    /// # Cost
    /// Reads and validates the whole file once, in parallel. With [`Placement::Mapped`], `src`, `dst` and `indices` stay in
    /// the page cache, which the system can reclaim; `indptr` and `edge_ids` are in memory.
    pub fn open(path: impl AsRef<Path>, placement: Placement) -> Result<Self, DataError> {
        if let Placement::Device(device) = &placement {
            let expected = "`Placement::Memory` or `Placement::Mapped`; operators copy edges to a device on first use";
            return Err(setting("placement", expected, &format!("{device:?}")));
        }
        Self::read(path.as_ref(), placement).map_err(|e| e.in_file(path))
    }

    fn read(path: &Path, placement: Placement) -> Result<Self, DataError> {
        let wrong = |found: String| other_file(path, &found);
        let (file, bytes) = open(path)?;
        let map = match placement {
            Placement::Mapped => Some(Arc::new(MappedFile::locked(
                path,
                file.try_clone().map_err(|e| io_error(path, e))?,
            )?)),
            _ => None,
        };
        let read = TensorIndex::read(&file, bytes).map_err(|e| io_error(path, e))?;
        let (header, data) = read.map_err(wrong)?;
        let text = header.text(DESCRIPTION).ok_or_else(|| wrong("no description".into()))?;
        let json = |e: serde_json::Error| wrong(e.to_string());
        serde_json::from_str::<FormatVersion>(text).map_err(json)?.check(path, VERSION)?;
        let mut d: Description = serde_json::from_str(text).map_err(json)?;
        // Layouts are compared with the edges below. Names and counts of types without edges are protected only by the
        // checksum.
        if std::mem::take(&mut d.checksum) != checksum(&d) {
            return Err(wrong(
                "a description with a wrong checksum: it was modified or damaged after it was written"
                    .into(),
            ));
        }
        let file = Source { path, file, data, map, header };
        let mut b = Graph::builder();
        for (name, count) in &d.node_types {
            b = b.nodes(name, node_count(path, name, *count, bytes)?);
        }
        let counts: BTreeMap<&str, u64> =
            d.node_types.iter().map(|(name, count)| (&**name, *count)).collect();
        let count = |name: &String| match counts.get(&**name) {
            Some(&n) => Ok(n as usize),
            None => Err(wrong(format!("no count of nodes `{name}`"))),
        };
        let mut used = 0;
        for (src, relation, dst) in &d.edge_types {
            let t = EdgeType::new(&**src, &**relation, &**dst);
            b = b.relation(t.clone(), file.relation(&t, count(src)?, count(dst)?, &mut used)?);
        }
        let tensors = file.header.count();
        if used != tensors {
            return Err(wrong(format!("{tensors} tensors instead of the described {used}")));
        }
        Ok(Self { graph: b.build()?, placement, path: path.into(), bytes })
    }

    /// The graph, without features.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
    /// Returns the graph, without features. A mapped file stays open until the graph and its clones are dropped.
    pub fn into_graph(self) -> Graph {
        self.graph
    }
    /// Placement of the arrays.
    pub fn placement(&self) -> Placement {
        self.placement.clone()
    }
    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Names of the layouts in the order of the file. Each layout is the CSC layout of the returned relation.
fn layouts(r: &Relation) -> [(&'static str, Relation); 2] {
    [("csc", r.clone()), ("csr", r.reverse())]
}
