//! Maps rows of a batch to the trees of their seeds.

use crate::batch::block::Source;

/// Root id of a tree that contains all seeds. No node has this id.
const ONE_TREE: u32 = u32::MAX;

/// The disjoint trees of a batch, and the tree of each row found so far.
#[derive(Debug)]
pub(crate) struct Trees {
    /// Trees of the seeds.
    pub(super) known: SeedTrees,
    /// Tree of each row, per node type; grows with each hop.
    pub(super) roots: Vec<Vec<u32>>,
}

impl Trees {
    /// Makes one tree per seed, numbered over all node types.
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

    /// Returns the id that keys the draws of row `row`, and its time. The root is part of the id, so that different trees
    /// draw independently.
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

    /// Makes one tree of all seeds, with edges before `time`. Its draws equal those without trees.
    pub(crate) fn one(seeds: &[Vec<u32>], time: i64) -> Self {
        let of_seeds = seeds.iter().map(|ids| vec![0; ids.len()]).collect();
        SeedTrees { of_seeds, root_ids: vec![ONE_TREE], times: Some(vec![time]) }.into()
    }
}

impl From<SeedTrees> for Trees {
    /// Starts from trees that exist already; the seeds are some of their rows.
    fn from(known: SeedTrees) -> Self {
        Self { roots: vec![vec![]; known.of_seeds.len()], known }
    }
}

/// The tree of each seed, and the root and time of each tree.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct SeedTrees {
    /// Tree of each seed, per node type.
    pub of_seeds: Vec<Vec<u32>>,
    /// Original id of the root of each tree; it keys the draws of the tree.
    pub root_ids: Vec<u32>,
    /// Time of each tree.
    pub times: Option<Vec<i64>>,
}
