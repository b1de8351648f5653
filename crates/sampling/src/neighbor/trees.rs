//! Keeps the disjoint trees of seeds apart.

use crate::batch::block::Source;

/// Root of a tree of all seeds: no node has this id.
const ONE_TREE: u32 = u32::MAX;

/// Disjoint trees: which one each seed is in, and what is the same in all of a tree.
#[derive(Debug)]
pub(crate) struct Trees {
    /// Of the seeds.
    pub(super) known: SeedTrees,
    /// Per node type, the tree of each row; filled as rows are found.
    pub(super) roots: Vec<Vec<u32>>,
}

impl Trees {
    /// One tree per seed, numbered over all types.
    pub(crate) fn new(source: &Source, seeds: &[Vec<u32>], times: Option<&[Vec<i64>]>) -> Self {
        let mut tree = 0..;
        let of_seeds = seeds.iter().map(|ids| tree.by_ref().take(ids.len()).collect()).collect();
        let original = seeds
            .iter()
            .zip(&source.node_ids)
            .flat_map(|(ids, of)| ids.iter().map(|&v| of.get(v as usize)));
        let (root_ids, times) = (original.collect(), times.map(<[_]>::concat));
        SeedTrees { of_seeds, root_ids, times }.into()
    }

    /// What keys the draws of a row of node type `ntype` with id `id`, and its time. Trees draw apart from one another.
    #[inline]
    pub(super) fn draw_id(&self, ntype: usize, row: usize, id: u64) -> (u64, Option<i64>) {
        let (root, SeedTrees { root_ids, times, .. }) =
            (self.roots[ntype][row] as usize, &self.known);
        let of_tree = match root_ids[root] {
            ONE_TREE => 0,
            root => (u64::from(root) + 1) << 32,
        };
        (id | of_tree, times.as_ref().map(|t| t[root]))
    }

    /// One tree of all seeds over edges before a time, whose draws are those without trees.
    pub(crate) fn one(seeds: &[Vec<u32>], time: i64) -> Self {
        let of_seeds = seeds.iter().map(|ids| vec![0; ids.len()]).collect();
        SeedTrees { of_seeds, root_ids: vec![ONE_TREE], times: Some(vec![time]) }.into()
    }
}

impl From<SeedTrees> for Trees {
    /// Of trees that are known, some of whose rows are the seeds.
    fn from(known: SeedTrees) -> Self {
        Self { roots: vec![vec![]; known.of_seeds.len()], known }
    }
}

/// Trees of seeds: which one each is in, and what is the same in all of a tree.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct SeedTrees {
    /// Per node type, the tree of each seed.
    pub of_seeds: Vec<Vec<u32>>,
    /// Original id of the root of each tree: part of the draws of its tree.
    pub root_ids: Vec<u32>,
    /// Time of each tree.
    pub times: Option<Vec<i64>>,
}
