//! The structure of a graph as one file, read into memory or mapped.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use memmap2::Mmap;
use rayon::prelude::*;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

use crate::features::map_file;
use crate::io::files::{format_error, node_count, open};
use crate::io::write_atomic;
use crate::relation::{check_counts, check_nodes};
use crate::words::{MappedWords, Words};
use crate::{Compressed, EdgeType, Graph, GraphError, Relation};

/// Key of the description in the header of the file.
const DESCRIPTION: &str = "topology";
/// The version that this program writes and reads.
const VERSION: u32 = 1;

/// Where the structure of a graph lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Placement {
    /// In memory.
    #[default]
    Memory,
    /// In a file mapped into memory: the system reads what is asked for, keeps what is met often, and drops it when memory is short.
    Mapped,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    format_version: u32,
    node_types: Vec<(String, u64)>,
    edge_types: Vec<(String, String, String)>,
}

/// The structure of a graph out of a file: node types and counts, and every relation with its layouts by destination and by source, so
/// that nothing is sorted when it is opened. For graphs whose edges memory does not hold, or that several processes of a machine share.
///
/// A mapped graph is a [`Graph`] like any other: samplers, layers and operators take it as it is, and sample the same blocks. Features
/// come from a [`FeatureSource`](crate::FeatureSource) of their own. What is derived from a relation (a renumbered copy, a subgraph) is in
/// memory.
///
/// The file is safetensors with u32 tensors `<src:relation:dst>/src` and `/dst` in edge order, `/csc/indptr`, `/csc/indices`,
/// `/csc/edge_ids` and the same of `/csr` (`edge_ids` where edges are not in the order of the layout), and a description in its header: up
/// to 24 bytes per edge and 8 per node of each end. It must not be changed while it is mapped, by any program: what was checked
/// when it was opened is relied on afterwards, and a file cut short ends the process. [`write`](Self::write) renames a new one over it, which
/// does no harm.
///
/// ```
/// use burn_gnn_graph::{Fanouts, Graph, NeighborSampler, Placement, SampleKey, Topology};
/// # let dir = tempfile::tempdir().unwrap();
/// let file = dir.path().join("graph.topology");
/// let g = Graph::homogeneous(4, vec![0, 1, 2, 2], vec![1, 2, 3, 0])?;
/// Topology::write(&g, &file)?;
/// let topology = Topology::open(&file, Placement::Mapped)?;
/// assert_eq!(topology.graph().relation("_E")?.csc().indices(), [2, 0, 1, 2]);
/// let batch = NeighborSampler::new(topology.graph(), [-1])?.sample([("_N", [3])], SampleKey::new(0))?;
/// assert_eq!(batch.input_nodes(0), [3, 2]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
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
    /// [`GraphError::Io`].
    ///
    /// # Cost
    /// Sorts what has not been sorted yet; the file is put together in memory.
    pub fn write(graph: &Graph, path: impl AsRef<Path>) -> Result<(), GraphError> {
        let path = path.as_ref();
        let bad = |e: &dyn std::fmt::Display| format_error(path, e.to_string());
        let mut views = vec![];
        for (t, r) in graph.schema().etypes().iter().zip(graph.relations()) {
            let layouts = [("csc", r.csc()), ("csr", r.csr())].into_iter().flat_map(|(name, l)| {
                let ids = l.edge_ids().map(|ids| (format!("{t}/{name}/edge_ids"), ids));
                [(format!("{t}/{name}/indptr"), l.indptr()), (format!("{t}/{name}/indices"), l.indices())].into_iter().chain(ids)
            });
            for (key, words) in [(format!("{t}/src"), r.src()), (format!("{t}/dst"), r.dst())].into_iter().chain(layouts) {
                let view = TensorView::new(Dtype::U32, vec![words.len()], bytemuck::cast_slice(words)).map_err(|e| bad(&e))?;
                views.push((key, view));
            }
        }
        let node_types = graph.schema().ntypes().iter().zip(graph.node_counts()).map(|(t, &n)| (t.clone(), n as u64)).collect();
        let edge_types = graph.schema().etypes().iter().map(|t| (t.src.clone(), t.relation.clone(), t.dst.clone())).collect();
        let description = serde_json::to_string(&Description { format_version: VERSION, node_types, edge_types }).map_err(|e| bad(&e))?;
        let header = HashMap::from([(DESCRIPTION.to_owned(), description)]);
        let bytes = safetensors::serialize(views, Some(header)).map_err(|e| bad(&e))?;
        write_atomic(path, |w| w.write_all(&bytes))
    }

    /// Opens a file that [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// [`GraphError::Io`]; [`GraphError::Format`] for a file that is damaged, of another kind or version, or whose layouts are not those
    /// of its edges; [`GraphError::NodeOutOfRange`].
    ///
    /// # Cost
    /// Reads the file once to check it, by all threads; a mapped one takes no memory for that but what the system can drop.
    pub fn open(path: impl AsRef<Path>, placement: Placement) -> Result<Self, GraphError> {
        Self::read(path.as_ref(), placement).map_err(|e| e.in_file(path))
    }

    fn read(path: &Path, placement: Placement) -> Result<Self, GraphError> {
        let bytes = open(path)?.1;
        let map = Arc::new(map_file(path)?);
        let wrong = |found: String| format_error(path, format!("expected a file that `Topology::write` wrote, found {found}"));
        let tensors = SafeTensors::deserialize(&map).map_err(|e| wrong(e.to_string()))?;
        let (_, header) = SafeTensors::read_metadata(&map).map_err(|e| wrong(e.to_string()))?;
        let text = header.metadata().as_ref().and_then(|m| m.get(DESCRIPTION)).ok_or_else(|| wrong("no description".into()))?;
        let d: Description = serde_json::from_str(text).map_err(|e| wrong(e.to_string()))?;
        if d.format_version != VERSION {
            return Err(GraphError::Version { path: path.into(), found: d.format_version.to_string(), expected: VERSION });
        }
        let file = File { path, map: &map, tensors, placement };
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
        if used != file.tensors.len() {
            return Err(wrong(format!("{} tensors where {used} are described", file.tensors.len())));
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
        self.placement
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

struct File<'a> {
    path: &'a Path,
    map: &'a Arc<Mmap>,
    tensors: SafeTensors<'a>,
    placement: Placement,
}

impl File<'_> {
    fn relation(&self, t: &EdgeType, num_src: usize, num_dst: usize, used: &mut usize) -> Result<Relation, GraphError> {
        let mut words = |name: &str| {
            *used += 1;
            self.words(&format!("{t}/{name}"))
        };
        let (src, dst) = (words("src")?, words("dst")?);
        if src.len() != dst.len() {
            return Err(format_error(
                self.path,
                format!("`{t}`: expected as many sources as destinations, found {} and {}", src.len(), dst.len()),
            ));
        }
        check_counts(num_src, num_dst, src.len()).map_err(|e| e.in_relation(&t.to_string()))?;
        check_nodes("src", &src, num_src).map_err(|e| e.in_relation(&t.to_string()))?;
        check_nodes("dst", &dst, num_dst).map_err(|e| e.in_relation(&t.to_string()))?;
        let mut layout = |name: &str, rows: usize, key: &[u32], other: &[u32]| {
            let ids = self.tensors.tensor(&format!("{t}/{name}/edge_ids")).is_ok();
            let edge_ids = if ids { Some(words(&format!("{name}/edge_ids"))?) } else { None };
            let layout = Compressed::new(words(&format!("{name}/indptr"))?, words(&format!("{name}/indices"))?, edge_ids);
            match disagreement(&layout, rows, key, other) {
                None => Ok(OnceLock::from(layout)),
                Some(what) => Err(format_error(self.path, format!("`{t}/{name}`: expected the layout of the edges, found {what}"))),
            }
        };
        let layouts = [layout("csc", num_dst, &dst, &src)?, layout("csr", num_src, &src, &dst)?];
        Ok(Relation::from_words(num_src, num_dst, src, dst, layouts))
    }

    fn words(&self, key: &str) -> Result<Words, GraphError> {
        let view = self.tensors.tensor(key).map_err(|_| format_error(self.path, format!("expected a tensor `{key}`, found none")))?;
        if view.dtype() != Dtype::U32 || view.shape().len() != 1 {
            let (dtype, shape) = (view.dtype(), view.shape());
            return Err(format_error(self.path, format!("`{key}`: expected u32 of rank 1, found {dtype:?} {shape:?}")));
        }
        match self.placement {
            Placement::Memory => Ok(Words::Own(bytemuck::pod_collect_to_vec(view.data()))),
            Placement::Mapped => MappedWords::new(self.map, view.data())
                .map(Words::Mapped)
                .ok_or_else(|| format_error(self.path, format!("`{key}`: expected a place at a multiple of four bytes, found another"))),
        }
    }
}

/// What keeps a layout from being that of the edges `key[i]`, `other[i]`: every edge once, in its row, ascending there.
fn disagreement(l: &Compressed, rows: usize, key: &[u32], other: &[u32]) -> Option<String> {
    let (indptr, edges) = (l.indptr(), key.len());
    let lengths = (indptr.len(), l.indices().len(), l.edge_ids().map_or(edges, <[u32]>::len));
    if lengths != (rows + 1, edges, edges) {
        return Some(format!("arrays of {lengths:?} for {rows} rows and {edges} edges"));
    }
    if indptr[0] != 0 || indptr[rows] as usize != edges || !indptr.par_windows(2).all(|w| w[0] <= w[1]) {
        return Some(format!("offsets that do not go from 0 to {edges}"));
    }
    // Ids that ascend in a row and belong to it differ everywhere, so all of them are there.
    let is_right = |r: usize| {
        let ids = || l.row(r).map(|p| (p, l.edge_id(p) as usize));
        let in_row = ids().all(|(p, id)| id < edges && key[id] as usize == r && other[id] == l.indices()[p]);
        in_row && ids().zip(ids().skip(1)).all(|(a, b)| a.1 < b.1)
    };
    let wrong = (0..rows).into_par_iter().with_min_len(1 << 10).find_first(|&r| !is_right(r))?;
    Some(format!("other edges in row {wrong}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NeighborSampler, SampleKey, Stream};

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
            let t = Topology::open(&file, placement).unwrap();
            assert_eq!((t.placement(), t.bytes()), (placement, std::fs::metadata(&file).unwrap().len()));
            assert_eq!((t.graph().schema(), t.graph().node_counts()), (g.schema(), g.node_counts()));
            for (a, b) in t.graph().relations().iter().zip(g.relations()) {
                assert_eq!((a, a.csc(), a.csr()), (b, b.csc(), b.csr()));
                assert_eq!((a.placement(), a.reverse().placement(), b.placement()), (placement, placement, Placement::Memory));
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
                assert!(matches!(e.cause(), GraphError::Format { .. } | GraphError::NodeOutOfRange { .. }), "{at}: {e}");
            }
        }
        std::fs::write(&file, &bytes[..bytes.len() - 4]).unwrap();
        assert!(Topology::open(&file, Placement::Mapped).unwrap_err().to_string().contains("Topology::write"));
        assert!(matches!(Topology::open(dir.path().join("other"), Placement::Memory), Err(GraphError::Io { .. })));
    }
}
