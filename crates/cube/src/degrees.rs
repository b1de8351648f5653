//! Summarises the degree distribution of a layout for the autotuner.

use serde::{Deserialize, Serialize};

/// Edges that one thread of a kernel adds up; a row of more goes in chunks of this many.
pub const CHUNK: usize = 256;

/// Bounds of classes of rows by number of edges; those above the last are another class.
const CLASSES: [u32; 3] = [8, 64, CHUNK as u32];

/// How edges are spread over rows, coarsely: a histogram of degrees by edges, and sizes by powers of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Degrees {
    /// Logarithm of the number of rows.
    rows: u32,
    /// Logarithm of the number of edges.
    edges: u32,
    /// Quarters of the edges in rows of at most 8, 64 and 256 edges and of more, rounded.
    quarters: [u8; CLASSES.len() + 1],
}

impl Degrees {
    /// Of rows with these offsets.
    pub(crate) fn new(indptr: &[u32]) -> Self {
        let (rows, mut edges) = (indptr.len() - 1, [0u64; CLASSES.len() + 1]);
        for w in indptr.windows(2) {
            let degree = w[1] - w[0];
            edges[CLASSES.partition_point(|&most| most < degree)] += u64::from(degree);
        }
        let all = edges.iter().sum::<u64>().max(1);
        let quarters = edges.map(|n| ((4 * n + all / 2) / all) as u8);
        Self { rows: rows.max(1).ilog2(), edges: all.ilog2(), quarters }
    }
    /// Of `chunks` pieces of rows, all of one length but the last ones of rows.
    pub(crate) fn of_chunks(chunks: usize, edges: usize) -> Self {
        Self { rows: chunks.max(1).ilog2(), edges: edges.max(1).ilog2(), quarters: [0, 0, 4, 0] }
    }
}

/// Rows by number of edges, most first, equal ones in ascending order.
pub(crate) fn by_degree(indptr: &[u32]) -> Vec<u32> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_by_number_of_edges() {
        let n = CHUNK as u32;
        let degrees = [1, 0, n, 7, n + 1, 7, n + 9, 0];
        let mut indptr = vec![0];
        for d in degrees {
            indptr.push(indptr[indptr.len() - 1] + d);
        }
        assert_eq!(by_degree(&indptr), [4, 6, 2, 3, 5, 0, 1, 7]);
        assert_eq!(by_degree(&[0]), [0u32; 0]);
    }

    #[test]
    fn degrees_are_shares_of_edges() {
        // Rows of 1, 8 and 300 edges, and two of 100: 2, 39 and 59 percent.
        let degrees = Degrees::new(&[0, 1, 9, 309, 409, 509]);
        assert_eq!(degrees, Degrees { rows: 2, edges: 8, quarters: [0, 0, 2, 2] });
        assert_eq!(Degrees::new(&[0]), Degrees::default());
    }
}
