//! Sorts the edges of all relations into the order in which kernels visit them.
//!
//! ```text
//! blocks: up to BLOCK_ROWS consecutive rows
//!   groups: the relations with edges in the block, ascending
//!     pairs: the rows of the block with edges of the relation, ascending
//!       edges: ascending edge id
//! ```
//! The result rows of a block and the weights of a relation stay in the first-level caches while they are used. The sum
//! of a row runs by relation, then by edge id, independent of where blocks start.

use std::ops::Range;
use std::sync::Arc;

use burn_gnn_structure::{Bytes, Compressed, CountBytes};
use rayon::prelude::*;

use burn_gnn_plan::{Permutation, RelationalIndex};

/// Largest number of rows of a block: with 16 columns of f32 they take 64 KiB.
const BLOCK_ROWS: usize = 1024;
/// Number of edges after which a block ends, so that blocks have similar cost.
const BLOCK_EDGES: usize = 1 << 15;

/// The edges of one relation in one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    relation: u32,
    /// First pair; the pairs of the group end at the first pair of the next group.
    first_pair: u32,
}

/// Edges grouped by one endpoint, the "row"; kernels gather the other endpoint. Every edge has exactly one position.
#[derive(Debug)]
pub(crate) struct GroupedEdges {
    /// First row of each block, and the number of rows.
    block_rows: Vec<u32>,
    /// First group of each block, and the number of groups.
    block_groups: Vec<u32>,
    /// Groups of all blocks, and a last entry whose `first_pair` is the number of pairs.
    groups: Vec<Group>,
    /// Row of each pair.
    pair_rows: Vec<u32>,
    /// First edge position of each pair, and the number of edges.
    pair_starts: Vec<u32>,
    /// Pair of the edge at each position.
    pairs: Vec<u32>,
    /// The other endpoint of the edge at each position.
    others: Vec<u32>,
    /// The id of the edge at each position.
    edges: Permutation,
}

impl CountBytes for GroupedEdges {
    fn bytes(&self) -> Bytes {
        let arrays = [
            &self.block_rows,
            &self.block_groups,
            &self.pair_rows,
            &self.pair_starts,
            &self.pairs,
            &self.others,
        ];
        arrays.into_iter().map(CountBytes::bytes).sum::<Bytes>()
            + self.groups.bytes()
            + self.edges.bytes()
    }
}

/// The edges of `index` grouped by destination, cached with it.
pub(crate) fn by_dst(index: &RelationalIndex) -> Arc<GroupedEdges> {
    index.attached().get_or_insert("by destination", || {
        GroupedEdges::new(index.relation().csc(), index.types(), index.num_relations())
    })
}

/// The edges of `index` grouped by source, cached with it.
pub(crate) fn by_src(index: &RelationalIndex) -> Arc<GroupedEdges> {
    index.attached().get_or_insert("by source", || {
        GroupedEdges::new(index.relation().csr(), index.types(), index.num_relations())
    })
}

/// The pair of [`by_src`] that holds the edge at each position of [`by_dst`].
pub(crate) fn src_pairs(index: &RelationalIndex) -> Arc<Vec<u32>> {
    index.attached().get_or_insert("pairs of sources", || {
        let by_edge = by_src(index).pairs_by_edge();
        by_dst(index).edges().par_iter().map(|&e| by_edge[e as usize]).collect()
    })
}

/// The grouped edges of one block.
#[derive(Default)]
struct Part {
    /// Groups, with pairs numbered inside of the block.
    groups: Vec<Group>,
    pair_rows: Vec<u32>,
    /// First edge position of each pair, among all edges.
    pair_starts: Vec<u32>,
    others: Vec<u32>,
    edges: Vec<u32>,
}

impl GroupedEdges {
    /// `types[e] < num_relations` for every edge id `e` of `rows`.
    pub(crate) fn new(rows: &Compressed, types: &[u32], num_relations: usize) -> Self {
        let blocks = cut(rows.indptr());
        let parts: Vec<Part> = blocks
            .par_iter()
            .map(|block| part(rows, block.clone(), types, num_relations))
            .collect();
        let total = |f: fn(&Part) -> usize| parts.iter().map(f).sum::<usize>();
        let (num_groups, num_pairs, num_edges) =
            (total(|p| p.groups.len()), total(|p| p.pair_rows.len()), rows.indices().len());
        let mut edges = Vec::with_capacity(num_edges);
        let mut grouped = Self {
            block_rows: blocks
                .iter()
                .map(|b| b.start as u32)
                .chain([rows.num_rows() as u32])
                .collect(),
            block_groups: Vec::with_capacity(blocks.len() + 1),
            groups: Vec::with_capacity(num_groups + 1),
            pair_rows: Vec::with_capacity(num_pairs),
            pair_starts: Vec::with_capacity(num_pairs + 1),
            pairs: Vec::with_capacity(num_edges),
            others: Vec::with_capacity(num_edges),
            edges: Permutation::new(vec![]),
        };
        for part in parts {
            grouped.block_groups.push(grouped.groups.len() as u32);
            let pairs = grouped.pair_rows.len() as u32;
            grouped.groups.extend(
                part.groups.iter().map(|g| Group { first_pair: g.first_pair + pairs, ..*g }),
            );
            grouped.pair_rows.extend(part.pair_rows);
            grouped.pair_starts.extend(part.pair_starts);
            grouped.others.extend(part.others);
            edges.extend(part.edges);
        }
        grouped.edges = Permutation::new(edges);
        grouped.block_groups.push(grouped.groups.len() as u32);
        grouped
            .groups
            .push(Group { relation: u32::MAX, first_pair: grouped.pair_rows.len() as u32 });
        grouped.pair_starts.push(num_edges as u32);
        for pair in 0..grouped.num_pairs() {
            let edges = grouped.edges_of(pair).len();
            grouped.pairs.extend(std::iter::repeat_n(pair as u32, edges));
        }
        grouped
    }

    pub(crate) fn num_blocks(&self) -> usize {
        self.block_rows.len() - 1
    }
    /// Number of (relation, row) pairs that have edges.
    pub(crate) fn num_pairs(&self) -> usize {
        self.pair_rows.len()
    }
    pub(crate) fn rows_of(&self, block: usize) -> Range<usize> {
        self.block_rows[block] as usize..self.block_rows[block + 1] as usize
    }
    /// Relation and pairs of each group of a block.
    pub(crate) fn groups_of(
        &self,
        block: usize,
    ) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
        let groups = self.block_groups[block] as usize..self.block_groups[block + 1] as usize;
        self.groups[groups.start..groups.end + 1]
            .windows(2)
            .map(|g| (g[0].relation as usize, g[0].first_pair as usize..g[1].first_pair as usize))
    }
    /// Edge positions of a pair.
    #[inline(always)]
    pub(crate) fn edges_of(&self, pair: usize) -> Range<usize> {
        self.edges_between(&(pair..pair + 1))
    }
    /// Edge positions of consecutive pairs.
    #[inline(always)]
    pub(crate) fn edges_between(&self, pairs: &Range<usize>) -> Range<usize> {
        self.pair_starts[pairs.start] as usize..self.pair_starts[pairs.end] as usize
    }
    pub(crate) fn num_edges(&self) -> usize {
        self.edges.len()
    }
    /// The id of the edge at each position.
    #[inline(always)]
    pub(crate) fn edges(&self) -> &Permutation {
        &self.edges
    }
    /// The other endpoint of the edge at each position.
    pub(crate) fn others(&self) -> &[u32] {
        &self.others
    }
    /// The pair of the edge at each position.
    #[inline(always)]
    pub(crate) fn pairs(&self) -> &[u32] {
        &self.pairs
    }
    /// The row of each pair.
    #[inline(always)]
    pub(crate) fn pair_rows(&self) -> &[u32] {
        &self.pair_rows
    }
    /// Number of rows before a block; `block` may be the number of blocks.
    pub(crate) fn first_row(&self, block: usize) -> usize {
        self.block_rows[block] as usize
    }
    /// Number of pairs before a block; `block` may be the number of blocks.
    pub(crate) fn first_pair(&self, block: usize) -> usize {
        self.groups[self.block_groups[block] as usize].first_pair as usize
    }

    /// Number of edges before a block; `block` may be the number of blocks.
    pub(crate) fn edges_before(&self, block: usize) -> usize {
        self.pair_starts[self.first_pair(block)] as usize
    }

    /// Splits the blocks into at most `n` runs with about equal numbers of edges and rows.
    pub(crate) fn runs(&self, n: usize) -> Vec<Range<usize>> {
        let cost = |block: usize| self.edges_before(block) + self.block_rows[block] as usize;
        let (blocks, n) = (self.num_blocks(), n.max(1));
        let total = cost(blocks);
        let mut out = Vec::with_capacity(n);
        let mut at = 0;
        for k in 1..=n {
            let goal = (total as u128 * k as u128 / n as u128) as usize;
            let mut end = at;
            while end < blocks && cost(end) < goal {
                end += 1;
            }
            let end = if k == n { blocks } else { end };
            if end > at {
                out.push(at..end);
                at = end;
            }
        }
        out
    }

    /// The pair of each edge, by edge id.
    pub(crate) fn pairs_by_edge(&self) -> Vec<u32> {
        let mut out = vec![0; self.edges.len()];
        self.edges.iter().zip(&self.pairs).for_each(|(&e, &pair)| out[e as usize] = pair);
        out
    }
}

/// Splits rows into blocks.
fn cut(indptr: &[u32]) -> Vec<Range<usize>> {
    let rows = indptr.len() - 1;
    let mut blocks = Vec::with_capacity(rows / BLOCK_ROWS + 1);
    let mut at = 0;
    while at < rows {
        let full = indptr[at] as usize + BLOCK_EDGES;
        let mut end = at + 1;
        while end < rows && end - at < BLOCK_ROWS && (indptr[end] as usize) < full {
            end += 1;
        }
        blocks.push(at..end);
        at = end;
    }
    blocks
}

/// Sorts the edges of one block by relation, then row, then edge id.
fn part(rows: &Compressed, block: Range<usize>, types: &[u32], num_relations: usize) -> Part {
    let from = rows.indptr()[block.start] as usize..rows.indptr()[block.end] as usize;
    if from.is_empty() {
        return Part::default();
    }
    let type_at = |p: usize| types[rows.edge_id(p) as usize];
    // Positions are sorted by row and edge id already, so a stable sort by relation is sufficient.
    let order: Vec<u32> = if num_relations <= from.len() + 1024 {
        let mut next = vec![0u32; num_relations + 1];
        from.clone().for_each(|p| next[type_at(p) as usize + 1] += 1);
        for r in 0..num_relations {
            next[r + 1] += next[r];
        }
        let mut order = vec![0u32; from.len()];
        for p in from.clone() {
            let at = &mut next[type_at(p) as usize];
            order[*at as usize] = p as u32;
            *at += 1;
        }
        order
    } else {
        let mut order: Vec<u32> = from.clone().map(|p| p as u32).collect();
        order.sort_by_key(|&p| type_at(p as usize));
        order
    };
    let row_of = {
        let mut row_of = Vec::with_capacity(from.len());
        block.clone().for_each(|r| row_of.extend(rows.row(r).map(|_| r as u32)));
        row_of
    };
    let mut part = Part {
        others: Vec::with_capacity(order.len()),
        edges: Vec::with_capacity(order.len()),
        ..Part::default()
    };
    let mut last = (u32::MAX, u32::MAX);
    for (i, &p) in order.iter().enumerate() {
        let pair = (type_at(p as usize), row_of[p as usize - from.start]);
        if pair.0 != last.0 {
            part.groups.push(Group { relation: pair.0, first_pair: part.pair_rows.len() as u32 });
        }
        if pair != last {
            part.pair_rows.push(pair.1);
            part.pair_starts.push((from.start + i) as u32);
            last = pair;
        }
        part.others.push(rows.indices()[p as usize]);
        part.edges.push(rows.edge_id(p as usize));
    }
    part
}

#[cfg(test)]
mod tests {
    use burn_gnn_structure::Relation;

    use super::*;

    fn edges(rows: usize, n: usize) -> (Relation, Vec<u32>) {
        let end = |i: usize, k: usize, m: usize| ((i * k + i * i % 7) % m) as u32;
        let src = (0..n).map(|i| end(i, 31, 50)).collect();
        let dst = (0..n).map(|i| if i % 3 == 0 { 7 } else { end(i, 13, rows) }).collect();
        (Relation::from_coo(50, rows, src, dst).unwrap(), (0..n).map(|i| end(i, 5, 9)).collect())
    }

    /// Every edge occurs once, in the documented order, and blocks and runs cover all rows.
    #[test]
    fn edges_are_sorted_and_complete() {
        // Smaller sizes for Miri, which would take an hour.
        let sizes: &[(usize, usize)] = if cfg!(miri) {
            &[(1, 0), (9, 40), (300, 500)]
        } else {
            &[(1, 0), (9, 40), (3000, 5000), (2000, 120_000)]
        };
        for &(rows, n) in sizes {
            let (relation, types) = edges(rows.max(8), n);
            // Few relations use the counting sort, many the comparison sort.
            for num_relations in [9, 200_000] {
                let grouped = GroupedEdges::new(relation.csc(), &types, num_relations);
                let mut seen = vec![false; n];
                let mut at = 0;
                for block in 0..grouped.num_blocks() {
                    let mut last = (0, 0, 0);
                    for (r, pairs) in grouped.groups_of(block) {
                        assert_eq!(pairs.start, at);
                        at = pairs.end;
                        for pair in pairs {
                            let row = grouped.pair_rows[pair];
                            assert!(
                                grouped.rows_of(block).contains(&(row as usize))
                                    && !grouped.edges_of(pair).is_empty()
                            );
                            for p in grouped.edges_of(pair) {
                                let e = grouped.edges[p];
                                assert!(!std::mem::replace(&mut seen[e as usize], true));
                                assert_eq!(
                                    (types[e as usize] as usize, relation.dst()[e as usize]),
                                    (r, row)
                                );
                                assert_eq!(
                                    (relation.src()[e as usize], pair as u32),
                                    (grouped.others[p], grouped.pairs[p])
                                );
                                let key = (r, row, e + 1);
                                assert!(key > last);
                                last = key;
                            }
                        }
                    }
                }
                assert!(seen.into_iter().all(|s| s) && at == grouped.num_pairs());
                assert_eq!(grouped.block_rows.last().copied(), Some(relation.num_dst() as u32));
                for n in [1, 2, 7, 1000] {
                    let all: Vec<usize> = grouped.runs(n).into_iter().flatten().collect();
                    assert_eq!(all, (0..grouped.num_blocks()).collect::<Vec<_>>());
                }
            }
        }
    }
}
