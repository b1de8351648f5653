//! Edges of a relation in a device's memory, uploaded at the first use and kept beside the relation.

use std::sync::Arc;

use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::{Compressed, Relation};
use serde::{Deserialize, Serialize};

use crate::device::upload;
use crate::message::Visit;
use crate::tune::{self, Launch};

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
    /// Rows by number of edges, most first; of large layouts, where variants of launches are measured.
    pub(crate) order: Option<CubeTensor>,
    pub(crate) degrees: Degrees,
}

/// Edges from which a layout has an order of rows.
const ORDERED: usize = 1 << 16;

/// Bounds of classes of rows by number of edges; those above the last are another class.
const CLASSES: [u32; 5] = [2, 8, 32, 128, CHUNK as u32];

/// How edges are spread over rows, coarsely: launches over layouts that agree in it do the same work in the same shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Degrees {
    /// Logarithm of the number of rows.
    rows: u32,
    /// Eighths of the edges in rows of at most 2, 8, 32, 128 and 256 edges and of more, rounded up.
    eighths: [u8; CLASSES.len() + 1],
    /// Whether there is an order of rows.
    pub(crate) ordered: bool,
}

impl Degrees {
    fn new(indptr: &[u32], ordered: bool) -> Self {
        let (rows, mut edges) = (indptr.len() - 1, [0u64; CLASSES.len() + 1]);
        for w in indptr.windows(2) {
            let degree = w[1] - w[0];
            edges[CLASSES.partition_point(|&most| most < degree)] += u64::from(degree);
        }
        let all = edges.iter().sum::<u64>().max(1);
        Self { rows: rows.max(1).ilog2(), eighths: edges.map(|n| (8 * n).div_ceil(all) as u8), ordered }
    }
}

/// Rows by number of edges, most first, equal ones in ascending order.
fn by_degree(indptr: &[u32]) -> Vec<u32> {
    // A launch leaves rows above the limit to another, so they need no order among themselves.
    let class = |row: usize| CHUNK + 1 - ((indptr[row + 1] - indptr[row]) as usize).min(CHUNK + 1);
    let rows = indptr.len() - 1;
    let mut next = vec![0u32; CHUNK + 3];
    for row in 0..rows {
        next[class(row) + 1] += 1;
    }
    for i in 1..next.len() {
        next[i] += next[i - 1];
    }
    let mut order = vec![0; rows];
    for row in 0..rows {
        let at = &mut next[class(row)];
        order[*at as usize] = row as u32;
        *at += 1;
    }
    order
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
        let edges = host.indices().len();
        let ordered = edges >= ORDERED && tune::enabled();
        Self {
            order: ordered.then(|| upload("order of rows", &by_degree(host.indptr()), device)),
            degrees: Degrees::new(host.indptr(), ordered),
            rows: host.num_rows(),
            edges,
            indptr: upload("row offsets", host.indptr(), device),
            indices: upload("neighbours", host.indices(), device),
            edge_ids: host.edge_ids().map(|ids| upload("edge ids", ids, device)),
            heavy,
        }
    }
    /// Edge ids by position; where they are positions, any array.
    pub(crate) fn ids(&self) -> &CubeTensor {
        self.edge_ids.as_ref().unwrap_or(&self.indptr)
    }
    /// The rows of launches: chunks, or the order of rows; where there is none, any array.
    pub(crate) fn table(&self, visit: Visit) -> &CubeTensor {
        let table = match visit {
            Visit::Chunks => self.heavy.as_ref().map(|heavy| &heavy.table),
            _ => self.order.as_ref(),
        };
        table.unwrap_or(&self.indptr)
    }
    /// A launch over the rows or chunks, with messages of `width` entries of which a unit holds `vector`.
    pub(crate) fn launch(&self, visit: Visit, width: usize, vector: usize) -> Launch {
        let degrees = Degrees { ordered: self.degrees.ordered && visit == Visit::Rows, ..self.degrees };
        Launch { edges: self.edges, width, vector, degrees }
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

    #[test]
    fn rows_stand_by_number_of_edges() {
        let n = CHUNK as u32;
        let degrees = [1, 0, n, 7, n + 1, 7, n + 9, 0];
        let indptr: Vec<u32> =
            std::iter::once(0).chain(degrees.iter().scan(0, |sum, d| Some(std::mem::replace(sum, *sum + d) + d))).collect();
        assert_eq!(by_degree(&indptr), [4, 6, 2, 3, 5, 0, 1, 7]);
        assert_eq!(by_degree(&[0]), [0u32; 0]);
    }

    #[test]
    fn degrees_are_shares_of_edges() {
        // Rows of 1, 8 and 300 edges, and two of 100.
        let degrees = Degrees::new(&[0, 1, 9, 309, 409, 509], false);
        assert_eq!(degrees, Degrees { rows: 2, eighths: [1, 1, 0, 4, 0, 5], ordered: false });
        assert_eq!(Degrees::new(&[0], true), Degrees { rows: 0, eighths: [0; 6], ordered: true });
    }
}
