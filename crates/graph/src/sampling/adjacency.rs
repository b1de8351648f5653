//! Which pairs of nodes have an edge, for draws of pairs that have none.

use rayon::prelude::*;

use crate::Relation;

/// Distinct destinations of each source, ascending: 4 bytes per edge.
#[derive(Debug)]
pub(crate) struct Adjacency {
    indptr: Vec<u32>,
    indices: Vec<u32>,
}

impl Adjacency {
    /// `diagonal` counts each node among its own destinations.
    pub(crate) fn new(r: &Relation, diagonal: bool) -> Self {
        let csr = r.csr();
        let row = |u: usize| {
            let mut row = csr.indices()[csr.row(u)].to_vec();
            row.extend(diagonal.then_some(u as u32));
            row.sort_unstable();
            row.dedup();
            row
        };
        // Rows of a range together, so that a short row costs no block of memory to keep.
        let ranges: Vec<usize> = (0..r.num_src()).step_by(1024).collect();
        let parts: Vec<(Vec<u32>, Vec<u32>)> = ranges
            .into_par_iter()
            .map(|from| {
                let (mut lengths, mut all) = (vec![], vec![]);
                for u in from..(from + 1024).min(r.num_src()) {
                    let row = row(u);
                    lengths.push(row.len() as u32);
                    all.extend(row);
                }
                (lengths, all)
            })
            .collect();
        let mut indptr = Vec::with_capacity(r.num_src() + 1);
        let (mut indices, mut sum) = (Vec::with_capacity(parts.iter().map(|p| p.1.len()).sum()), 0);
        indptr.push(0);
        for (lengths, all) in parts {
            indptr.extend(lengths.iter().map(|n| {
                sum += n;
                sum
            }));
            indices.extend(all);
        }
        Self { indptr, indices }
    }

    #[inline]
    pub(crate) fn row(&self, u: u32) -> &[u32] {
        &self.indices[self.indptr[u as usize] as usize..self.indptr[u as usize + 1] as usize]
    }
    #[inline]
    pub(crate) fn contains(&self, u: u32, v: u32) -> bool {
        self.row(u).binary_search(&v).is_ok()
    }
    /// The node of rank `rank` among those that are not destinations of `u`, ascending.
    pub(crate) fn outside(&self, u: u32, rank: u32) -> u32 {
        let row = self.row(u);
        // Below destination number `j` there are `row[j] - j` nodes outside.
        let (mut low, mut high) = (0, row.len());
        while low < high {
            let j = low.midpoint(high);
            if row[j] - j as u32 <= rank { low = j + 1 } else { high = j }
        }
        rank + low as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_outside_enumerate_the_rest() {
        let r = Relation::from_coo(4, 6, vec![0, 0, 0, 0, 2, 2, 2, 2, 2, 2], vec![5, 1, 1, 0, 0, 1, 2, 3, 4, 5]).unwrap();
        let a = Adjacency::new(&r, false);
        assert_eq!((a.row(0), a.row(1), a.row(2).len()), (&[0, 1, 5][..], &[][..], 6));
        assert_eq!((0..3).map(|i| a.outside(0, i)).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!((0..6).map(|i| a.outside(1, i)).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        assert!(a.contains(0, 5) && !a.contains(0, 4));
        assert_eq!(Adjacency::new(&r, true).row(3), [3]);
    }
}
