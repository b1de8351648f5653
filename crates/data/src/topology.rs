//! The structure of a graph as one file, read into memory or mapped.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::internal::{LayoutArrays, Words};
use burn_gnn_graph::{EdgeType, Graph, Relation};
use burn_gnn_sampling::Placement;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::{Deserialize, Serialize};

use crate::checksum::checksum;
use crate::files::{MAX_HEADER, MappedFile, format_error, io_error, node_count, open, setting, tensor_header, version_error, write_atomic};

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

#[derive(Deserialize)]
struct Probe {
    format_version: Option<serde_json::Value>,
}

/// The structure of a graph out of a file: node types and counts, and every relation with its layouts by destination
/// and by source, so that nothing is sorted when it is opened. For graphs whose edges memory does not hold, or that
/// several processes of a machine share.
///
/// A mapped graph is a [`Graph`] like any other: samplers, layers and operators take it as it is, and sample the same
/// blocks. Features come from a [`FeatureSource`](burn_gnn_sampling::FeatureSource) of their own. What is derived from a relation
/// (a renumbered copy, a subgraph) is in memory.
///
/// The file is safetensors with u32 tensors `<src:relation:dst>/src` and `/dst` in edge order, `/csc/indptr`,
/// `/csc/indices`, `/csc/edge_ids` and the same of `/csr` (`edge_ids` where edges are not in the order of the layout),
/// and a description with a checksum in its header: up to 24 bytes per edge and 8 per node of each end. It must not be
/// changed while it is mapped, by any program; [`Placement::Mapped`] says what happens otherwise.
/// [`write`](Self::write) renames a new one over it, which does no harm: what is mapped stays the old one.
///
/// ```
/// use burn_gnn_data::Topology;
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::Placement;
/// use burn_gnn_sampling::{NeighborSampler, SampleKey};
/// # let dir = tempfile::tempdir().unwrap();
/// let file = dir.path().join("graph.topology");
/// let g = Graph::homogeneous(4, vec![0, 1, 2, 2], vec![1, 2, 3, 0])?;
/// Topology::write(&g, &file)?;
/// let topology = Topology::open(&file, Placement::Mapped)?;
/// assert_eq!(topology.graph().relation("_E")?.csc().indices(), [2, 0, 1, 2]);
/// let batch = NeighborSampler::new(topology.graph(), [-1])?.sample([("_N", [3])], SampleKey::new(0))?;
/// assert_eq!(batch.input_nodes(0), [3, 2]);
/// # Ok::<(), burn_gnn_data::DataError>(())
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
                tensors.extend(r.csc_has_edge_ids().then(|| (format!("{t}/{name}/edge_ids"), edges)));
            }
        }
        let node_types = graph.schema().ntypes().iter().zip(graph.node_counts()).map(|(t, &n)| (t.clone(), n as u64)).collect();
        let edge_types = graph.schema().etypes().iter().map(|t| (t.src.clone(), t.relation.clone(), t.dst.clone())).collect();
        let mut description = Description { format_version: VERSION, checksum: String::new(), node_types, edge_types };
        description.checksum = checksum(&description);
        let description = serde_json::to_string(&description).map_err(|e| format_error(path, e.to_string()))?;
        let head = tensor_header(tensors.iter().map(|(key, shape)| (&**key, Dtype::U32, &shape[..])), [(DESCRIPTION, &*description)]);
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
        let wrong = |found: String| format_error(path, format!("expected a file that `Topology::write` wrote, found {found}"));
        let (file, bytes) = open(path)?;
        let map = match placement {
            Placement::Mapped => Some(Arc::new(MappedFile::locked(path, file.try_clone().map_err(|e| io_error(path, e))?)?)),
            _ => None,
        };
        let (header, data) = read_header(path, &file, bytes)?;
        let text = header.metadata().as_ref().and_then(|m| m.get(DESCRIPTION)).ok_or_else(|| wrong("no description".into()))?;
        let version = serde_json::from_str::<Probe>(text).map_err(|e| wrong(e.to_string()))?.format_version;
        if version.as_ref().and_then(serde_json::Value::as_u64) != Some(u64::from(VERSION)) {
            return Err(version_error(path, version.as_ref(), VERSION));
        }
        let mut d: Description = serde_json::from_str(text).map_err(|e| wrong(e.to_string()))?;
        // Layouts are compared with edges below; that names and counts of types without edges are right, only the sum
        // tells.
        if std::mem::take(&mut d.checksum) != checksum(&d) {
            return Err(wrong("a description of another checksum: it was changed or damaged after it was written".into()));
        }
        let file = Source { path, file, data, map, header };
        let mut b = Graph::builder();
        for (name, count) in &d.node_types {
            b = b.nodes(name, node_count(path, name, *count, bytes)?);
        }
        let counts: BTreeMap<&str, u64> = d.node_types.iter().map(|(name, count)| (&**name, *count)).collect();
        let count = |name: &String| match counts.get(&**name) {
            Some(&n) => Ok(n as usize),
            None => Err(wrong(format!("no count of nodes `{name}`"))),
        };
        let mut used = 0;
        for (src, relation, dst) in &d.edge_types {
            let t = EdgeType::new(&**src, &**relation, &**dst);
            b = b.relation(t.clone(), file.relation(&t, count(src)?, count(dst)?, &mut used)?);
        }
        let tensors = file.header.tensors().len();
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

/// Names of the layouts in the file, in their order, each with the relation whose layout by destination it is.
fn layouts(r: &Relation) -> [(&'static str, Relation); 2] {
    [("csc", r.clone()), ("csr", r.reverse())]
}

/// The header of a safetensors file, and where its data begin; the file is as long as the header says.
fn read_header(path: &Path, mut file: &File, len: u64) -> Result<(Metadata, u64), DataError> {
    let wrong = |found: String| format_error(path, format!("expected a file that `Topology::write` wrote, found {found}"));
    let io = |e| io_error(path, e);
    let mut size = [0; 8];
    if len < 8 {
        return Err(wrong(format!("{len} bytes")));
    }
    file.read_exact(&mut size).map_err(io)?;
    let size = u64::from_le_bytes(size);
    if size > MAX_HEADER.min(len - 8) {
        return Err(wrong(format!("a header of {size} bytes in a file of {len}")));
    }
    let mut text = vec![0; size as usize];
    file.read_exact(&mut text).map_err(io)?;
    let header: Metadata = serde_json::from_slice(&text).map_err(|e| wrong(format!("another header: {e}")))?;
    let data = 8 + size;
    // Tensors are contiguous from 0 on: checked when the header was read.
    let end = header.tensors().values().map(|t| t.data_offsets.1 as u64).max().unwrap_or(0);
    match data.checked_add(end) {
        Some(expected) if expected == len => Ok((header, data)),
        _ => Err(wrong(format!("{len} bytes where its header asks for {data} and {end} more"))),
    }
}

/// Numbers in a mapped file.
struct MappedWords {
    map: Arc<MappedFile>,
    /// In bytes.
    start: usize,
    end: usize,
}

impl MappedWords {
    /// `None` where the file ends before, which may have become shorter since its length was checked, or where the
    /// numbers are not at a multiple of four bytes.
    fn new(map: Arc<MappedFile>, start: usize, bytes: usize) -> Option<Self> {
        let end = start.checked_add(bytes)?;
        let fits = map.get(start..end).is_some_and(|part| bytemuck::try_cast_slice::<u8, u32>(part).is_ok());
        fits.then_some(Self { map, start, end })
    }
}

impl AsRef<[u32]> for MappedWords {
    fn as_ref(&self) -> &[u32] {
        bytemuck::cast_slice(&self.map[self.start..self.end])
    }
}

/// A file that is being opened.
struct Source<'a> {
    path: &'a Path,
    file: File,
    /// Where the data begin.
    data: u64,
    /// The whole file, where it is to be mapped.
    map: Option<Arc<MappedFile>>,
    header: Metadata,
}

impl Source<'_> {
    fn relation(&self, t: &EdgeType, num_src: usize, num_dst: usize, used: &mut usize) -> Result<Relation, DataError> {
        let mut key = |name: &str| {
            *used += 1;
            format!("{t}/{name}")
        };
        // Nodes may stay in the file; what unsafe code relies on is memory, which nobody else can change once it was
        // checked.
        let (src, dst) = (self.nodes(&key("src"))?, self.nodes(&key("dst"))?);
        if src.len() != dst.len() {
            return Err(format_error(
                self.path,
                format!("`{t}`: expected as many sources as destinations, found {} and {}", src.len(), dst.len()),
            ));
        }
        let mut layout = |name: &str| -> Result<LayoutArrays, DataError> {
            let indices = self.nodes(&key(&format!("{name}/indices")))?;
            let indptr = self.numbers(&key(&format!("{name}/indptr")))?;
            let ids = format!("{name}/edge_ids");
            let has_ids = self.header.info(&format!("{t}/{ids}")).is_some();
            let edge_ids = if has_ids { Some(self.numbers(&key(&ids))?) } else { None };
            Ok(LayoutArrays { indptr, indices, edge_ids })
        };
        let (csc, csr) = (layout("csc")?, layout("csr")?);
        Relation::from_layouts(num_src, num_dst, src, dst, csc, csr).map_err(|e| match e {
            GraphError::Layout { layout, found, .. } => {
                format_error(self.path, format!("`{t}/{layout}`: expected the layout of the edges, found {found}"))
            }
            e => e.in_relation(&t.to_string()).into(),
        })
    }

    /// Where a tensor of ids or offsets lies in the file, and how many bytes it has.
    fn tensor(&self, key: &str) -> Result<(u64, usize), DataError> {
        let info = self.header.info(key).ok_or_else(|| format_error(self.path, format!("expected a tensor `{key}`, found none")))?;
        let &TensorInfo { dtype, ref shape, data_offsets: (from, to) } = info;
        if dtype != Dtype::U32 || shape.len() != 1 {
            return Err(format_error(self.path, format!("`{key}`: expected u32 of rank 1, found {dtype:?} {shape:?}")));
        }
        Ok((self.data + from as u64, to - from))
    }

    /// The numbers of a tensor, read, or left where they are in a mapped file.
    fn nodes(&self, key: &str) -> Result<Words, DataError> {
        let Some(map) = &self.map else { return self.numbers(key).map(Words::from) };
        let (place, bytes) = self.tensor(key)?;
        let words = usize::try_from(place).ok().and_then(|start| MappedWords::new(map.clone(), start, bytes));
        words
            .map(|words| Words::shared(Arc::new(words)))
            .ok_or_else(|| format_error(self.path, format!("`{key}`: expected a place at a multiple of four bytes, found another")))
    }

    /// The numbers of a tensor, read.
    fn numbers(&self, key: &str) -> Result<Vec<u32>, DataError> {
        let (place, bytes) = self.tensor(key)?;
        self.read(place, bytes).map_err(|e| io_error(self.path, e))
    }

    fn read(&self, place: u64, bytes: usize) -> std::io::Result<Vec<u32>> {
        let (mut file, mut words) = (&self.file, vec![]);
        // A file may claim a length (of holes) that no memory holds.
        words.try_reserve_exact(bytes / 4).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        words.resize(bytes / 4, 0);
        file.seek(SeekFrom::Start(place))?;
        file.read_exact(bytemuck::cast_slice_mut(&mut words))?;
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use burn::tensor::Device;
    use burn_gnn_graph::Stream;
    use burn_gnn_sampling::{NeighborSampler, SampleKey};

    use super::*;

    fn graph() -> Graph {
        let draws = Stream::new(3, "topology", 0);
        let ids = |column: u64, n: u32| (0..400).map(|i| (draws.uniform(i, column) * f64::from(n)) as u32).collect::<Vec<_>>();
        let b = Graph::builder().nodes("a", 50).nodes("b", 20).nodes("empty", 0);
        let b = b.edges(("a", "r", "b"), ids(0, 50), ids(1, 20)).edges(("b", "s", "a"), ids(2, 20), ids(3, 50));
        b.edges(("a", "none", "empty"), vec![], vec![]).edges(("a", "sorted", "a"), vec![4, 1], vec![0, 3]).build().unwrap()
    }

    #[test]
    fn same_graph_and_same_samples_wherever_it_lives() {
        let (dir, g) = (tempfile::tempdir().unwrap(), graph());
        let file = dir.path().join("g");
        Topology::write(&g, &file).unwrap();
        for placement in [Placement::Memory, Placement::Mapped] {
            let t = Topology::open(&file, placement.clone()).unwrap();
            assert_eq!((t.placement(), t.bytes()), (placement.clone(), std::fs::metadata(&file).unwrap().len()));
            assert_eq!((t.graph().schema(), t.graph().node_counts()), (g.schema(), g.node_counts()));
            for (a, b) in t.graph().relations().iter().zip(g.relations()) {
                assert_eq!((a, a.csc(), a.csr()), (b, b.csc(), b.csr()));
                let mapped = placement == Placement::Mapped;
                assert_eq!((a.is_mapped(), a.reverse().is_mapped(), b.is_mapped()), (mapped, mapped, false));
            }
            let sample =
                |g: &Graph| NeighborSampler::new(g, [3, 2]).unwrap().sample([("a", [7, 1]), ("b", [0, 9])], SampleKey::new(5)).unwrap();
            let (of_file, of_memory) = (sample(t.graph()), sample(&g));
            for (a, b) in of_file.blocks.iter().zip(&of_memory.blocks) {
                assert_eq!((0..3).map(|n| a.src_nodes(n)).collect::<Vec<_>>(), (0..3).map(|n| b.src_nodes(n)).collect::<Vec<_>>());
                assert_eq!((0..4).map(|e| a.edge_ids(e)).collect::<Vec<_>>(), (0..4).map(|e| b.edge_ids(e)).collect::<Vec<_>>());
            }
        }
        // A new file does not disturb what is open.
        let open = Topology::open(&file, Placement::Mapped).unwrap();
        Topology::write(&Graph::homogeneous(1, vec![], vec![]).unwrap(), &file).unwrap();
        assert_eq!(open.graph().relations(), g.relations());
    }

    #[test]
    fn every_wrong_number_is_found() {
        let (dir, g) = (tempfile::tempdir().unwrap(), graph());
        let file = dir.path().join("g");
        Topology::write(&g, &file).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        let data = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        // Every number of every array one more; the edges are random, so that no other graph comes out.
        for at in (data..bytes.len()).step_by(4) {
            let mut wrong = bytes.clone();
            let word = u32::from_le_bytes(wrong[at..at + 4].try_into().unwrap());
            wrong[at..at + 4].copy_from_slice(&word.wrapping_add(1).to_le_bytes());
            std::fs::write(&file, wrong).unwrap();
            for placement in [Placement::Memory, Placement::Mapped] {
                let e = Topology::open(&file, placement).map(|_| ()).unwrap_err();
                assert!(matches!(e.cause(), DataError::Format { .. } | DataError::Graph(GraphError::NodeOutOfRange { .. })), "{at}: {e}");
            }
        }
        // Cut short anywhere, or with something behind the end.
        let longer = [&bytes[..], &[0; 4]].concat();
        for wrong in [&bytes[..0], &bytes[..7], &bytes[..20], &bytes[..bytes.len() - 4], &longer] {
            std::fs::write(&file, wrong).unwrap();
            for placement in [Placement::Memory, Placement::Mapped] {
                let e = Topology::open(&file, placement).unwrap_err();
                assert!(matches!(e, DataError::Format { .. }) && e.to_string().contains("Topology::write"), "{e}");
            }
        }
        assert!(matches!(Topology::open(dir.path().join("other"), Placement::Memory), Err(DataError::Io { .. })));
        let e = Topology::open(&file, Placement::Device(Device::flex())).unwrap_err();
        assert!(matches!(e, DataError::Graph(GraphError::Setting { arg: "placement", .. })), "{e}");
    }

    /// Of a file that is in memory nothing is left to read: it may go.
    #[test]
    fn a_file_in_memory_may_be_cut_short() {
        let (dir, g) = (tempfile::tempdir().unwrap(), graph());
        let file = dir.path().join("g");
        Topology::write(&g, &file).unwrap();
        let t = Topology::open(&file, Placement::Memory).unwrap();
        let cut = File::options().write(true).open(&file).unwrap();
        // No lock is held either.
        assert!(!matches!(cut.try_lock(), Err(std::fs::TryLockError::WouldBlock)));
        cut.set_len(0).unwrap();
        for (a, b) in t.graph().relations().iter().zip(g.relations()) {
            assert_eq!((a, a.csc(), a.csr()), (b, b.csc(), b.csr()));
        }
    }

    /// Whatever is written over a mapped file: what unsafe code relies on is as it was checked, and safe code finds
    /// other nodes or panics.
    #[cfg(not(windows))]
    #[test]
    fn a_mapped_file_that_is_overwritten() {
        let (dir, g) = (tempfile::tempdir().unwrap(), graph());
        let file = dir.path().join("g");
        for garbage in [0, 1, u32::MAX] {
            Topology::write(&g, &file).unwrap();
            let t = Topology::open(&file, Placement::Mapped).unwrap();
            let words = std::fs::metadata(&file).unwrap().len() as usize / 4;
            let same = File::options().write(true).open(&file).unwrap();
            std::io::Write::write_all(&mut &same, bytemuck::cast_slice(&vec![garbage; words])).unwrap();
            for (a, b) in t.graph().relations().iter().zip(g.relations()) {
                for (a, b) in [(a.csc(), b.csc()), (a.csr(), b.csr())] {
                    assert_eq!((a.indptr(), a.edge_ids()), (b.indptr(), b.edge_ids()));
                    assert!(a.indices().iter().all(|&node| node == garbage), "nodes are those of the file");
                }
                assert!(a.src().iter().chain(a.dst()).all(|&node| node == garbage));
                // What is derived from a changed file is that file's, or a panic.
                let sorted = catch_unwind(AssertUnwindSafe(|| a.sorted_by_dst().src().to_vec()));
                assert!(sorted.map_or(garbage == u32::MAX, |src| src.len() == b.num_edges()), "{garbage}");
            }
            let sampler = NeighborSampler::new(t.graph(), [3, 2]).unwrap();
            for key in 0..20 {
                let sample = || sampler.sample([("a", [7, 1]), ("b", [0, 9])], SampleKey::new(key)).unwrap();
                if let Ok(batch) = catch_unwind(AssertUnwindSafe(sample)) {
                    for block in &batch.blocks {
                        for (t, r) in block.relations().iter().enumerate() {
                            let nodes = block.src_nodes(block.schema().ends(t).0).len();
                            assert!(r.src().iter().all(|&row| (row as usize) < nodes), "{garbage}");
                        }
                    }
                }
            }
        }
    }

    /// Without its checksum, and with another count, which only the checksum shows; the header stays as long as it is.
    #[test]
    fn a_description_without_checksum() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("g");
        let g = Graph::builder().nodes("idle", 7).edges(("a", "r", "a"), vec![2, 0], vec![0, 1]).build().unwrap();
        Topology::write(&g, &file).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let start = text.find(r#"\"checksum\""#).unwrap();
        let entry = &text[start..start + text[start..].find(',').unwrap() + 1];
        let refused = |changes: &[(&str, &str)], expected: &str| {
            let mut wrong = bytes.clone();
            for (from, to) in changes {
                let at = wrong.windows(from.len()).position(|w| w == from.as_bytes()).unwrap();
                wrong[at..at + from.len()].copy_from_slice(format!("{to:<0$}", from.len()).as_bytes());
            }
            std::fs::write(&file, wrong).unwrap();
            let e = Topology::open(&file, Placement::Memory).unwrap_err();
            assert!(e.to_string().contains(expected), "{e}");
        };
        let count = (r#"[\"idle\",7]"#, r#"[\"idle\",8]"#);
        refused(&[count], "another checksum");
        refused(&[(entry, "")], "missing field `checksum`");
        refused(&[(entry, ""), count], "missing field `checksum`");
        let version = (r#"\"format_version\":2"#, r#"\"format_version\":1"#);
        refused(&[version], "format version 1, this program reads version 2; write it again");
        refused(&[version, (entry, "")], "format version 1, this program reads version 2; write it again");
    }

    /// Names and counts of types that have no edges stand in the description alone.
    #[test]
    fn no_changed_byte_is_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("g");
        let g = Graph::builder().nodes("a", 3).nodes("idle", 7).edges(("a", "r", "a"), vec![2, 0, 0], vec![0, 1, 2]).build().unwrap();
        Topology::write(&g, &file).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        for at in 0..bytes.len() {
            for byte in [bytes[at] ^ 1, b'0' + (bytes[at].wrapping_add(1)) % 10] {
                let mut wrong = bytes.clone();
                wrong[at] = byte;
                std::fs::write(&file, wrong).unwrap();
                if let Ok(t) = Topology::open(&file, Placement::Memory) {
                    assert_eq!((t.graph().schema(), t.graph().node_counts()), (g.schema(), g.node_counts()), "byte {at}");
                    assert_eq!(t.graph().relations(), g.relations(), "byte {at}");
                }
            }
        }
    }

    /// Data of several times the memory that a process has.
    #[cfg(target_os = "linux")]
    mod limited {
        use super::*;
        use burn_gnn_sampling::RowType;
        use burn_gnn_sampling::{FeatureSource, MappedRows, TieredRows, write_rows};

        use crate::{NpyHead, load_graph, read_npy, save_graph};

        /// KiB of memory that the test below gives this process; each of the files is some times larger.
        const MEMORY: usize = 32 << 10;
        /// Edges of each node: as many sources and destinations in turn, so that edges are sorted by both ends.
        const DEGREE: usize = 132;
        const NODES: usize = 50_000;
        /// Rows of features, and numbers in each.
        const ROWS: [usize; 2] = [400_000, 64];
        const DIR: &str = "BURN_GNN_TEST_LARGE_FILES";

        fn large_graph() -> Graph {
            let edges = NODES * DEGREE;
            let ids = |shift: usize| (0..edges).map(|e| ((e + shift) / DEGREE).min(NODES - 1) as u32).collect();
            Graph::homogeneous(NODES, ids(DEGREE / 2), ids(0)).unwrap()
        }

        /// Run by the test below.
        #[test]
        #[ignore = "wants files and a limit on memory"]
        fn files_larger_than_memory() {
            let dir = PathBuf::from(std::env::var(DIR).unwrap());
            let (file, rows) = (dir.join("topology"), dir.join("rows.npy"));
            // The limit is one: none of the files can be read.
            for result in [Topology::open(&file, Placement::Memory).map(drop), read_npy(&rows).map(drop)] {
                let e = result.unwrap_err();
                let out_of_memory = matches!(e.cause(), DataError::Io { source, .. } if source.kind() == std::io::ErrorKind::OutOfMemory);
                assert!(out_of_memory, "{e}");
            }
            let topology = Topology::open(&file, Placement::Mapped).unwrap();
            let sampler = NeighborSampler::new(topology.graph(), [5, 5]).unwrap();
            let mapped = MappedRows::open(&rows).unwrap();
            let order: Vec<u32> = (0..ROWS[0] as u32).step_by(100).collect();
            let tiered = TieredRows::with_ratio(MappedRows::open(&rows).unwrap(), &order, 0.01).unwrap();
            for step in 0..100 {
                let seeds: Vec<u32> = (0..64).map(|i| (step * 499 + i * 7) % NODES as u32).collect();
                let batch = sampler.sample([("_N", &seeds)], SampleKey::new(1).at(0, u64::from(step))).unwrap();
                for block in &batch.blocks {
                    let (src, dst, edges) = (block.src_nodes(0), block.dst_nodes(0), &block.relations()[0]);
                    for e in 0..edges.num_edges() {
                        let (u, v) = (src[edges.src()[e] as usize], dst[edges.dst()[e] as usize]);
                        assert!(u == v || u == (v + 1).min(NODES as u32 - 1), "{u} -> {v}");
                    }
                }
                let ids: Vec<u32> = batch.input_nodes(0).iter().map(|v| v * (ROWS[0] / NODES) as u32).collect();
                for x in [mapped.gather(&ids).unwrap(), tiered.gather(&ids).unwrap()] {
                    assert!(x.chunks(ROWS[1]).zip(&ids).all(|(row, &id)| row[0] == id as f32 && row[1..] == [0.0; ROWS[1] - 1]));
                }
            }
            // Writers stream: a copy of the structure in either form, and of the rows in another type.
            Topology::write(topology.graph(), dir.join("copy")).unwrap();
            save_graph(topology.graph(), dir.join("saved")).unwrap();
            write_rows(dir.join("narrow"), &mapped, RowType::BF16).unwrap();
            assert_eq!(MappedRows::open(dir.join("narrow")).unwrap().gather(&[16 << 8]).unwrap()[0], f32::from(16u16 << 8));
        }

        /// Data of several times the memory that a process has: structure and features mapped, sampled, gathered and
        /// written.
        ///
        /// The limit is that on data (`RLIMIT_DATA`: all memory but what is mapped from files), since that on addresses
        /// counts mapped files as well.
        #[test]
        fn larger_than_memory() {
            let dir = tempfile::tempdir().unwrap();
            let (file, rows) = (dir.path().join("topology"), dir.path().join("rows.npy"));
            Topology::write(&large_graph(), &file).unwrap();
            // A file of holes, but for the rows that are read.
            let head = NpyHead::bytes("<f4", &ROWS);
            let (mut features, size) = (File::create(&rows).unwrap(), (head.len() + 4 * ROWS[0] * ROWS[1]) as u64);
            std::io::Write::write_all(&mut features, &head).unwrap();
            features.set_len(size).unwrap();
            for id in (0..ROWS[0]).step_by(ROWS[0] / NODES) {
                let at = (head.len() + 4 * ROWS[1] * id) as u64;
                std::os::unix::fs::FileExt::write_all_at(&features, &(id as f32).to_le_bytes(), at).unwrap();
            }
            for bytes in [size, std::fs::metadata(&file).unwrap().len()] {
                assert!(bytes > 3 * 1024 * MEMORY as u64, "{bytes} bytes");
            }
            let run = format!("ulimit -d {MEMORY} && exec \"$0\" --exact --ignored topology::tests::limited::files_larger_than_memory");
            let mut child = std::process::Command::new("sh");
            // A thread has a stack, of which a large machine would have many.
            let child = child.args(["-c", &run]).arg(std::env::current_exe().unwrap()).env(DIR, dir.path()).env("RAYON_NUM_THREADS", "2");
            let out = child.output().unwrap();
            assert!(out.status.success() && String::from_utf8_lossy(&out.stdout).contains("1 passed"), "{out:?}");
            let original = std::fs::read(&file).unwrap();
            assert!(original == std::fs::read(dir.path().join("copy")).unwrap(), "a copy is the same file");
            let saved = load_graph(dir.path().join("saved"), &burn::tensor::Device::flex()).unwrap();
            assert_eq!(saved.relations(), large_graph().relations());
        }
    }
}
