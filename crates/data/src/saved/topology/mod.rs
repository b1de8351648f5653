//! Saves the structure of a graph as one file, and loads or maps it.

mod source;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::internal::{LayoutArrays, U32Array};
use burn_gnn_graph::{EdgeType, Graph, Relation};
use burn_gnn_sampling::Placement;
use safetensors::Dtype;
use serde::{Deserialize, Serialize};

use crate::files::checksum::checksum;
use crate::files::{
    FormatVersion, MappedFile, TensorIndex, TensorInfo, format_error, io_error, node_count, open,
    setting, tensor_header, write_atomic,
};
use source::Source;

/// Key of the description in the header of the file.
const DESCRIPTION: &str = "topology";
/// The version that this program writes and reads. Descriptions of version 1 need no checksum.
const VERSION: u32 = 2;
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    format_version: u32,
    /// Of the description without this entry, which is empty meanwhile.
    #[serde(skip_serializing_if = "String::is_empty")]
    checksum: String,
    node_types: Vec<(String, u64)>,
    edge_types: Vec<(String, String, String)>,
}

/// The structure of a graph out of a file: node types and counts, and every relation with its layouts by destination
/// and by source, so that nothing is sorted when it is opened. For graphs whose edges memory does not hold, or that
/// several processes of a machine share.
///
/// A mapped graph is a [`Graph`] like any other: samplers, layers and operators take it as it is, and sample the same
/// blocks. Features come from a [`FeatureSource`](burn_gnn_sampling::FeatureSource) of their own. What is derived from
/// a relation (a renumbered copy, a subgraph) is in memory.
///
/// The file is safetensors with u32 tensors `<src:relation:dst>/src` and `/dst` in edge order, `/csc/indptr`,
/// `/csc/indices`, `/csc/edge_ids` and the same of `/csr` (`edge_ids` where edges are not in the order of the layout),
/// and a description with a checksum in its header: up to 24 bytes per edge and 8 per node of each endpoint. It must
/// not be changed while it is mapped, by any program; [`Placement::Mapped`] says what happens otherwise.
/// [`write`](Self::write) renames a new one over it, which does no harm: what is mapped stays the old one.
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
    /// Writes the structure of a graph, without features and ids, under a temporary name that is renamed to `path`.
    ///
    /// # Errors
    /// [`DataError::Io`].
    ///
    /// # Cost
    /// A layout that is not there yet is made, written and freed before the next one: `O(E + V)` and 8 bytes per edge
    /// for each. Otherwise no memory grows with the graph.
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

    /// Opens a file that [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// [`DataError::Io`]; [`DataError::Format`] for a file that is damaged, of another kind or version, or whose
    /// layouts are not those of its edges; [`GraphError::NodeOutOfRange`]; [`Placement::Device`].
    ///
    /// # Cost
    /// Reads the file once and checks it, by all threads; the nodes of a mapped one take no memory for that but what
    /// the system can drop.
    pub fn open(path: impl AsRef<Path>, placement: Placement) -> Result<Self, DataError> {
        if let Placement::Device(device) = &placement {
            let expected = "`Placement::Memory` or `Placement::Mapped`: operators copy edges to a device when they first need them";
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
        // Layouts are compared with edges below; that names and counts of types without edges are right, only the sum
        // tells.
        if std::mem::take(&mut d.checksum) != checksum(&d) {
            return Err(wrong(
                "a description of another checksum: it was changed or damaged after it was written"
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
            return Err(wrong(format!("{tensors} tensors where {used} are described")));
        }
        Ok(Self { graph: b.build()?, placement, path: path.into(), bytes })
    }

    /// The graph, with no features.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
    /// The graph, with no features; a mapped file stays open as long as it or a clone of it is there.
    pub fn into_graph(self) -> Graph {
        self.graph
    }
    /// Where it lives.
    pub fn placement(&self) -> Placement {
        self.placement.clone()
    }
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The error for a file of another kind or a damaged one.
fn other_file(path: &Path, found: &str) -> DataError {
    format_error(path, format!("expected a file that `Topology::write` wrote, found {found}"))
}

/// Names of the layouts in the file, in their order, each with the relation whose layout by destination it is.
fn layouts(r: &Relation) -> [(&'static str, Relation); 2] {
    [("csc", r.clone()), ("csr", r.reverse())]
}
