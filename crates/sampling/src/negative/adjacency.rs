//! Tests whether pairs of nodes have an edge, and enumerates those that have none.

use std::borrow::Cow;

use rayon::prelude::*;

use burn_gnn_graph::Relation;

/// Distinct destinations of each source, in ascending order: 4 bytes per edge, 12 with times.
#[derive(Debug)]
pub(crate) struct Adjacency {
    indptr: Vec<u32>,
    indices: Vec<u32>,
    /// Time of the earliest edge of each pair.
    first: Option<Vec<i64>>,
}

impl Adjacency {
    /// Builds the lists. With `diagonal`, each node is one of its own destinations, at any time. With `undirected`, so are
    /// the sources of its in-edges. `times` are the times of the edges, by id.
    pub(crate) fn new(
        r: &Relation,
        diagonal: bool,
        undirected: bool,
        times: Option<&[i64]>,
    ) -> Self {
        let layouts = std::iter::once(r.csr()).chain(undirected.then(|| r.csc()));
        let layouts: Vec<_> = layouts.collect();
        let row = |u: usize| match times {
            None => {
                let mut row = vec![];
                layouts.iter().for_each(|of| row.extend_from_slice(&of.indices()[of.row(u)]));
                row.extend(diagonal.then_some(u as u32));
                row.sort_unstable();
                row.dedup();
                (row, vec![])
            }
            Some(times) => {
                let mut row: Vec<(u32, i64)> =
                    diagonal.then_some((u as u32, i64::MIN)).into_iter().collect();
                for of in &layouts {
                    let edge = |p: usize| (of.indices()[p], times[of.edge_id(p) as usize]);
                    row.extend(of.row(u).map(edge));
                }
                row.sort_unstable();
                row.dedup_by_key(|edge| edge.0);
                row.into_iter().unzip()
            }
        };
        // 1024 rows per task share their vectors: one allocation per row would dominate for short rows.
        let ranges: Vec<usize> = (0..r.num_src()).step_by(1024).collect();
        let parts: Vec<(Vec<u32>, Vec<u32>, Vec<i64>)> = ranges
            .into_par_iter()
            .map(|from| {
                let (mut lengths, mut all, mut first) = (vec![], vec![], vec![]);
                for u in from..(from + 1024).min(r.num_src()) {
                    let (row, of_row) = row(u);
                    lengths.push(row.len() as u32);
                    all.extend(row);
                    first.extend(of_row);
                }
                (lengths, all, first)
            })
            .collect();
        let mut indptr = Vec::with_capacity(r.num_src() + 1);
        let (mut indices, mut sum) = (Vec::with_capacity(parts.iter().map(|p| p.1.len()).sum()), 0);
        let mut first = times.map(|_| Vec::with_capacity(indices.capacity()));
        indptr.push(0);
        for (lengths, all, of_part) in parts {
            indptr.extend(lengths.iter().map(|n| {
                sum += n;
                sum
            }));
            indices.extend(all);
            first.iter_mut().for_each(|first| first.extend_from_slice(&of_part));
        }
        Self { indptr, indices, first }
    }

    /// Destinations of `u`; with times, of edges up to `time`.
    #[inline]
    pub(crate) fn row(&self, u: u32, time: Option<i64>) -> Cow<'_, [u32]> {
        let range = self.indptr[u as usize] as usize..self.indptr[u as usize + 1] as usize;
        let row = &self.indices[range.clone()];
        match (&self.first, time) {
            (Some(first), Some(time)) => {
                row.iter().zip(&first[range]).filter(|x| *x.1 <= time).map(|x| *x.0).collect()
            }
            _ => Cow::Borrowed(row),
        }
    }
    /// Offsets and destinations of all sources, regardless of time.
    pub(crate) fn rows(&self) -> (&[u32], &[u32]) {
        (&self.indptr, &self.indices)
    }
    /// Whether edges have times.
    pub(crate) fn is_timed(&self) -> bool {
        self.first.is_some()
    }
    #[inline]
    pub(crate) fn contains(&self, u: u32, v: u32, time: Option<i64>) -> bool {
        let from = self.indptr[u as usize] as usize;
        let at = self.indices[from..self.indptr[u as usize + 1] as usize].binary_search(&v);
        at.is_ok_and(|at| {
            self.first.as_ref().zip(time).is_none_or(|(first, time)| first[from + at] <= time)
        })
    }
}

/// Returns the `rank`-th node from `first` on that is not in `row`. `row` is ascending, and its entries are at least
/// `first`.
pub(crate) fn outside(row: &[u32], first: u32, rank: u32) -> u32 {
    // `row[j] - first - j` nodes below `row[j]` are not in `row`: binary search for the rank among these counts.
    let (mut low, mut high) = (0, row.len());
    while low < high {
        let j = low.midpoint(high);
        if row[j] - first - j as u32 <= rank { low = j + 1 } else { high = j }
    }
    first + rank + low as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_outside_enumerate_the_rest() {
        let r = Relation::from_coo(
            4,
            6,
            vec![0, 0, 0, 0, 2, 2, 2, 2, 2, 2],
            vec![5, 1, 1, 0, 0, 1, 2, 3, 4, 5],
        )
        .unwrap();
        let a = Adjacency::new(&r, false, false, None);
        let row = |u| a.row(u, None);
        assert_eq!((&*row(0), &*row(1), row(2).len()), (&[0, 1, 5][..], &[][..], 6));
        let rest = |u, first, n| (0..n).map(|i| outside(&row(u), first, i)).collect::<Vec<_>>();
        assert_eq!(rest(0, 0, 3), [2, 3, 4]);
        assert_eq!(rest(1, 0, 6), [0, 1, 2, 3, 4, 5]);
        assert_eq!((0..2).map(|i| outside(&[3, 5], 2, i)).collect::<Vec<_>>(), [2, 4]);
        assert!(a.contains(0, 5, None) && !a.contains(0, 4, None));
        assert_eq!(*Adjacency::new(&r, true, false, None).row(3, None), [3]);
    }

    #[test]
    fn a_pair_is_an_edge_from_its_first_time_on() {
        let r = Relation::from_coo(2, 3, vec![0, 0, 0, 1], vec![2, 1, 2, 0]).unwrap();
        let a = Adjacency::new(&r, true, false, Some(&[9, 4, 5, 7]));
        assert_eq!(
            (&*a.row(0, None), &*a.row(0, Some(5)), &*a.row(0, Some(4))),
            (&[0, 1, 2][..], &[0, 1, 2][..], &[0, 1][..])
        );
        assert_eq!(*a.row(1, Some(6)), [1], "a self loop has no time");
        assert!(a.contains(0, 2, Some(5)) && !a.contains(0, 2, Some(4)) && a.contains(0, 2, None));
    }

    #[test]
    fn without_direction_both_endpoints_have_the_pair() {
        let r = Relation::from_coo(4, 4, vec![0, 2, 0, 3], vec![1, 0, 1, 3]).unwrap();
        let a = Adjacency::new(&r, false, true, None);
        let rows: Vec<Vec<u32>> = (0..4).map(|u| a.row(u, None).to_vec()).collect();
        assert_eq!(rows, [vec![1, 2], vec![0], vec![0], vec![3]]);
        let a = Adjacency::new(&r, false, true, Some(&[5, 6, 4, 7]));
        assert_eq!((&*a.row(1, Some(4)), &*a.row(0, Some(5))), (&[0][..], &[1][..]));
    }
}
