//! Edges of a relation in a device's memory, uploaded at the first use and kept beside the relation.

use std::sync::Arc;

use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::{Compressed, Relation};

use crate::device::upload;

/// Edges that one unit of a kernel adds up; a row of more goes in chunks of this many.
pub const CHUNK: usize = 256;

/// CSC or CSR.
pub(crate) struct Layout {
    pub(crate) rows: usize,
    pub(crate) edges: usize,
    /// `rows + 1` offsets.
    pub(crate) indptr: CubeTensor,
    /// The node at the other end, by position.
    pub(crate) indices: CubeTensor,
    /// The edge id at each position; `None` where they are the same number.
    pub(crate) edge_ids: Option<CubeTensor>,
    /// Rows of more than [`CHUNK`] edges, if there are any.
    pub(crate) heavy: Option<Heavy>,
}

/// Rows that are cut into chunks.
pub(crate) struct Heavy {
    /// Number of chunks.
    pub(crate) chunks: usize,
    /// The row of each chunk, then the position at which each starts.
    pub(crate) table: CubeTensor,
    /// Number of heavy rows.
    pub(crate) rows: usize,
    /// The heavy rows, then the first chunk of each and the number of chunks.
    pub(crate) index: CubeTensor,
}

/// The chunks of heavy rows on the host.
#[derive(Debug, PartialEq, Eq)]
struct Chunks {
    /// Row and start of each chunk.
    of_row: Vec<u32>,
    starts: Vec<u32>,
    /// The heavy rows.
    heavy: Vec<u32>,
    /// First chunk of each heavy row, and the number of chunks.
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

impl Layout {
    fn new(host: &Compressed, device: &CubeDevice) -> Self {
        let heavy = chunks(host.indptr()).map(|Chunks { mut of_row, starts, mut heavy, first }| {
            let (chunks, rows) = (starts.len(), heavy.len());
            of_row.extend(starts);
            heavy.extend(first);
            let table = upload("chunks of rows", &of_row, device);
            Heavy { chunks, table, rows, index: upload("long rows", &heavy, device) }
        });
        Self {
            rows: host.num_rows(),
            edges: host.indices().len(),
            indptr: upload("row offsets", host.indptr(), device),
            indices: upload("neighbours", host.indices(), device),
            edge_ids: host.edge_ids().map(|ids| upload("edge ids", ids, device)),
            heavy,
        }
    }
}

/// One key for each kind of value, so that others may keep theirs beside ours.
#[derive(PartialEq, Eq)]
struct Key(CubeDevice);

/// By destination.
pub(crate) fn csc(relation: &Relation, device: &CubeDevice) -> Arc<Layout> {
    let host = relation.csc();
    host.attached().get_or_insert(Key(device.clone()), || Layout::new(host, device))
}

/// By source.
pub(crate) fn csr(relation: &Relation, device: &CubeDevice) -> Arc<Layout> {
    let host = relation.csr();
    host.attached().get_or_insert(Key(device.clone()), || Layout::new(host, device))
}

/// Source and destination of every edge, by edge id.
#[derive(Clone)]
pub(crate) struct Ends {
    pub(crate) src: CubeTensor,
    pub(crate) dst: CubeTensor,
    pub(crate) edges: usize,
}

/// Both ends of all edges.
pub(crate) fn ends(relation: &Relation, device: &CubeDevice) -> Ends {
    let one = |attached: &burn_gnn_graph::Attached, values: &[u32], what| {
        let kept = attached.get_or_insert(Key(device.clone()), || upload(what, values, device));
        CubeTensor::clone(&kept)
    };
    Ends {
        src: one(relation.src_attached(), relation.src(), "sources"),
        dst: one(relation.dst_attached(), relation.dst(), "destinations"),
        edges: relation.num_edges(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_rows_are_cut() {
        let n = CHUNK as u32;
        assert_eq!(chunks(&[0, 3, 3 + n]), None);
        let indptr = [0, 1, 2 + n, 2 + n, 2 + 4 * n];
        let starts = vec![1, 1 + n, 2 + n, 2 + 2 * n, 2 + 3 * n];
        let want = Chunks { of_row: vec![1, 1, 3, 3, 3], starts, heavy: vec![1, 3], first: vec![0, 2, 5] };
        assert_eq!(chunks(&indptr), Some(want));
        assert_eq!(chunks(&[0]), None);
    }
}
