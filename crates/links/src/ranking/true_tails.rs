//! Defines `TrueTails`, the true answers of queries (head, relation).

use burn_gnn_data::Triple;
use rayon::prelude::*;

/// All true tails of every query (head, relation), each once and ascending.
///
/// Built from the triples of all parts, it is the filter of a ranking; built from training triples, it lists the positives
/// of each query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrueTails {
    /// Ascending.
    queries: Vec<[u32; 2]>,
    /// Tails of query `q`: `tails[starts[q]..starts[q + 1]]`.
    starts: Vec<usize>,
    tails: Vec<u32>,
}

impl TrueTails {
    /// Of triples in any order; repeated ones count once.
    ///
    /// # Cost
    /// Sorts the triples; 12 bytes per triple while it does, then 4, and 16 per query.
    pub fn new(triples: impl IntoIterator<Item = Triple>) -> Self {
        let mut triples: Vec<Triple> = triples.into_iter().collect();
        triples.par_sort_unstable();
        triples.dedup();
        let mut out = Self { starts: vec![0], ..Self::default() };
        for group in triples.chunk_by(|a, b| (a.head, a.relation) == (b.head, b.relation)) {
            out.queries.push([group[0].head, group[0].relation]);
            out.tails.extend(group.iter().map(|t| t.tail));
            out.starts.push(out.tails.len());
        }
        out
    }
    /// Number of queries with a true tail.
    pub fn len(&self) -> usize {
        self.queries.len()
    }
    /// Whether there was no triple.
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }
    /// Head, relation and true tails of query `q`, in `0..len()`; queries ascend.
    ///
    /// # Panics
    /// `q` is not below [`len`](Self::len).
    #[track_caller]
    pub fn query(&self, q: usize) -> (u32, u32, &[u32]) {
        let Some(&[head, relation]) = self.queries.get(q) else {
            panic!(
                "true_tails: `q` must lie in 0..{} (queries with a true tail), got {q}",
                self.len()
            )
        };
        (head, relation, &self.tails[self.starts[q]..self.starts[q + 1]])
    }
    /// True tails of (head, relation), none where it is no query.
    pub fn of(&self, head: u32, relation: u32) -> &[u32] {
        self.queries.binary_search(&[head, relation]).map_or(&[], |q| self.query(q).2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triple(head: u32, relation: u32, tail: u32) -> Triple {
        Triple { head, relation, tail }
    }

    #[test]
    fn queries_and_their_tails() {
        let known =
            TrueTails::new([triple(2, 0, 5), triple(0, 1, 4), triple(2, 0, 3), triple(2, 0, 5)]);
        assert_eq!((known.len(), known.is_empty(), TrueTails::new([]).len()), (2, false, 0));
        assert_eq!((known.query(0), known.query(1)), ((0, 1, &[4][..]), (2, 0, &[3, 5][..])));
        assert_eq!((known.of(2, 0), known.of(2, 1)), (&[3, 5][..], &[][..]));
        assert!(TrueTails::default().of(0, 0).is_empty() && TrueTails::default().is_empty());
    }
}
