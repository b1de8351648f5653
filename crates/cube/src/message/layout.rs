//! Uploads the edges of a relation to a device on first use, and caches them with the relation.

use std::sync::Arc;

use burn::backend::DispatchDevice;
use burn::tensor::Device;
use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::{Bytes, Compressed, CountBytes, Graph, Relation};

use crate::device::error::CubeError;
use crate::device::upload::{check_device, device_bytes, upload};

/// Largest number of edges that one thread of a kernel adds; longer rows are split into chunks of this size.
pub const CHUNK: usize = 256;

/// A CSC or CSR layout on a device.
pub(crate) struct Layout {
    pub(crate) rows: usize,
    pub(crate) edges: usize,
    /// `rows + 1` offsets.
    pub(crate) indptr: CubeTensor,
    /// The node at the other endpoint, by position.
    pub(crate) indices: CubeTensor,
    /// The edge id at each position; `None` if every edge id equals its position.
    pub(crate) edge_ids: Option<CubeTensor>,
    /// Rows of more than [`CHUNK`] edges, if there are any.
    pub(crate) heavy: Option<LongRows>,
}

/// Rows that are split into chunks.
pub(crate) struct LongRows {
    pub(crate) chunks: usize,
    /// The row of each chunk, followed by the first position of each chunk.
    pub(crate) table: CubeTensor,
    /// Number of long rows.
    pub(crate) rows: usize,
    /// The long rows, followed by the first chunk of each and the number of chunks.
    pub(crate) index: CubeTensor,
}

/// The chunks of long rows, on the host.
#[derive(Debug, PartialEq, Eq)]
struct Chunks {
    /// Row and start of each chunk.
    of_row: Vec<u32>,
    starts: Vec<u32>,
    /// The long rows.
    heavy: Vec<u32>,
    /// First chunk of each long row, and the number of chunks.
    first: Vec<u32>,
}

fn chunks(indptr: &[u32]) -> Option<Chunks> {
    let (mut of_row, mut starts, mut heavy, mut first) = (vec![], vec![], vec![], vec![]);
    for (row, w) in indptr.windows(2).enumerate() {
        if (w[1] - w[0]) as usize > CHUNK {
            heavy.push(row as u32);
            first.push(starts.len() as u32);
            for start in (w[0]..w[1]).step_by(CHUNK) {
                of_row.push(row as u32);
                starts.push(start);
            }
        }
    }
    first.push(starts.len() as u32);
    (!heavy.is_empty()).then_some(Chunks { of_row, starts, heavy, first })
}

/// Uploads node ids, which kernels use without bounds checks. Ids of a mapped file are copied to memory and validated
/// again, because the file may have changed since it was opened.
///
/// # Panics
/// If an id of a mapped file is not below `bound`.
#[track_caller]
fn upload_nodes(
    what: &'static str,
    nodes: &[u32],
    bound: usize,
    is_mapped: bool,
    device: &CubeDevice,
) -> CubeTensor {
    if !is_mapped {
        return upload(what, nodes, device);
    }
    let nodes = nodes.to_vec();
    let valid = nodes.iter().all(|&v| (v as usize) < bound);
    assert!(
        valid,
        "{what} of a mapped topology must be below {bound}; the file was changed while it was mapped: write it again and reopen it"
    );
    upload(what, &nodes, device)
}

impl Layout {
    fn new(host: &Compressed, far: usize, is_mapped: bool, device: &CubeDevice) -> Self {
        let heavy = chunks(host.indptr()).map(|Chunks { mut of_row, starts, mut heavy, first }| {
            let (chunks, rows) = (starts.len(), heavy.len());
            of_row.extend(starts);
            heavy.extend(first);
            let table = upload("chunks of rows", &of_row, device);
            LongRows { chunks, table, rows, index: upload("long rows", &heavy, device) }
        });
        let edges = host.indices().len();
        Self {
            rows: host.num_rows(),
            edges,
            indptr: upload("row offsets", host.indptr(), device),
            indices: upload_nodes("neighbours", host.indices(), far, is_mapped, device),
            edge_ids: host.edge_ids().map(|ids| upload("edge ids", ids, device)),
            heavy,
        }
    }
    fn uploaded(&self) -> u64 {
        let heavy = self.heavy.iter().flat_map(|heavy| [&heavy.table, &heavy.index]);
        bytes([&self.indptr, &self.indices].into_iter().chain(&self.edge_ids).chain(heavy))
    }
}

impl CountBytes for Layout {
    fn bytes(&self) -> Bytes {
        Bytes::device(self.uploaded() as usize)
    }
}

fn bytes<'a>(arrays: impl IntoIterator<Item = &'a CubeTensor>) -> u64 {
    arrays.into_iter().map(|x| x.meta.num_elements() as u64 * 4).sum()
}

/// The key of cached layouts and endpoints. A private type, so that it cannot collide with keys of other crates.
#[derive(PartialEq, Eq)]
struct Key(CubeDevice);

/// The layout by destination.
pub(crate) fn csc(relation: &Relation, device: &CubeDevice) -> Arc<Layout> {
    let host = relation.csc();
    host.attached().get_or_insert(Key(device.clone()), || {
        Layout::new(host, relation.num_src(), relation.is_mapped(), device)
    })
}

/// The layout by source.
pub(crate) fn csr(relation: &Relation, device: &CubeDevice) -> Arc<Layout> {
    let host = relation.csr();
    host.attached().get_or_insert(Key(device.clone()), || {
        Layout::new(host, relation.num_dst(), relation.is_mapped(), device)
    })
}

/// Source and destination of every edge, by edge id, on a device.
#[derive(Clone)]
pub(crate) struct Endpoints {
    pub(crate) src: CubeTensor,
    pub(crate) dst: CubeTensor,
    pub(crate) edges: usize,
}

/// The endpoints of all edges.
pub(crate) fn endpoints(relation: &Relation, device: &CubeDevice) -> Endpoints {
    let one = |attached: &burn_gnn_graph::Attached, values: &[u32], bound, what| {
        let make = || upload_nodes(what, values, bound, relation.is_mapped(), device);
        CubeTensor::clone(&attached.get_or_insert_sized(Key(device.clone()), make, device_bytes))
    };
    Endpoints {
        src: one(relation.src_attached(), relation.src(), relation.num_src(), "sources"),
        dst: one(relation.dst_attached(), relation.dst(), relation.num_dst(), "destinations"),
        edges: relation.num_edges(),
    }
}

/// Copies the edges of a graph to a device before their first use, which would copy them otherwise. Returns the device
/// memory that they take: CSC, CSR and both endpoints by edge id, for every relation. It returns 0 for CPU devices. Arrays
/// that are on the device already are not copied again.
///
/// ```no_run
/// use burn::tensor::{Device, DeviceKind};
/// use burn_gnn_cube::edges_to_device;
/// use burn_gnn_graph::Graph;
/// let g = Graph::homogeneous(3, vec![0, 2], vec![1, 1])?;
/// println!("{} bytes", edges_to_device(&g, &Device::wgpu(DeviceKind::DefaultDevice))?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
/// `O(nodes + edges)` per relation: the host builds CSC and CSR if they are not cached.
///
/// # Errors
/// An array is larger than one buffer of the device; then nothing is copied.
pub fn edges_to_device(graph: &Graph, device: &Device) -> Result<u64, CubeError> {
    let DispatchDevice::Cube(device) = device.clone().without_autodiff().as_dispatch().clone()
    else {
        return Ok(0);
    };
    for relation in graph.relations() {
        check_device(relation, &device)?;
    }
    let each = graph.relations().iter().map(|relation| {
        let (by_dst, by_src, endpoints) =
            (csc(relation, &device), csr(relation, &device), endpoints(relation, &device));
        by_dst.uploaded() + by_src.uploaded() + bytes([&endpoints.src, &endpoints.dst])
    });
    Ok(each.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_rows_are_split_into_chunks() {
        let n = CHUNK as u32;
        assert_eq!(chunks(&[0, 3, 3 + n]), None);
        let indptr = [0, 1, 2 + n, 2 + n, 2 + 4 * n];
        let starts = vec![1, 1 + n, 2 + n, 2 + 2 * n, 2 + 3 * n];
        let want =
            Chunks { of_row: vec![1, 1, 3, 3, 3], starts, heavy: vec![1, 3], first: vec![0, 2, 5] };
        assert_eq!(chunks(&indptr), Some(want));
        assert_eq!(chunks(&[0]), None);
    }
}
