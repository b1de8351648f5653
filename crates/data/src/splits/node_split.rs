//! Splits nodes into training, validation and test nodes: by ratio, per class as PyG does, or by tables of ids.

use std::collections::BTreeMap;

use burn_gnn_files::DataError;
use burn_gnn_graph::NodeIds;

use crate::dataset::Split;
use crate::files::without_remedy;
use crate::tables::schema::decoder::Decoder;
use crate::tables::table::{read_nodes, resolve};
use crate::tables::text::source::Source;

/// A number of nodes or edges, as a count or as a ratio of all of them. Arguments of type `impl Into<Share>` take an
/// integer (`3`) as a count and a float (`0.1`) as a ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Share {
    /// An absolute number.
    Count(usize),
    /// A ratio in `0.0..=1.0`; the count is rounded to the nearest integer.
    Ratio(f64),
}

impl From<usize> for Share {
    /// Converts to [`Share::Count`].
    fn from(count: usize) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Share {
    /// Converts to [`Share::Ratio`].
    fn from(ratio: f64) -> Self {
        Self::Ratio(ratio)
    }
}

impl Share {
    pub(crate) fn of(self, arg: &'static str, all: usize) -> Result<usize, DataError> {
        let count = match self {
            Self::Count(n) => n,
            Self::Ratio(r) if (0.0..=1.0).contains(&r) => (all as f64 * r).round() as usize,
            Self::Ratio(r) => return Err(wrong(arg, format!("a ratio in 0.0..=1.0, got {r}"))),
        };
        if count <= all {
            Ok(count)
        } else {
            Err(wrong(arg, format!("at most {all}, got {count}")))
        }
    }
}

/// Rules for [`Split::random`], as in PyG's `RandomNodeSplit`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RandomNodeSplit {
    /// Draws `val` and `test` nodes; all other nodes are training nodes (PyG: `train_rest`).
    TrainRest {
        /// Validation nodes.
        val: Share,
        /// Test nodes.
        test: Share,
    },
    /// Draws `train_per_class` training nodes of each class and `val` other nodes; all remaining nodes are test nodes
    /// (PyG: `test_rest`).
    TestRest {
        /// Training nodes of each class. All nodes of a smaller class are training nodes.
        train_per_class: usize,
        /// Validation nodes.
        val: Share,
    },
    /// Draws `train_per_class` training nodes of each class, then `val` and `test` other nodes (PyG: `random`). The
    /// splits of Planetoid use 20, 500 and 1,000.
    Random {
        /// Training nodes of each class. All nodes of a smaller class are training nodes.
        train_per_class: usize,
        /// Validation nodes.
        val: Share,
        /// Test nodes.
        test: Share,
    },
}

impl RandomNodeSplit {
    /// Creates [`TrainRest`](Self::TrainRest) from counts (`500`) or ratios (`0.1`).
    pub fn train_rest(val: impl Into<Share>, test: impl Into<Share>) -> Self {
        Self::TrainRest { val: val.into(), test: test.into() }
    }
    /// Creates [`TestRest`](Self::TestRest).
    pub fn test_rest(train_per_class: usize, val: impl Into<Share>) -> Self {
        Self::TestRest { train_per_class, val: val.into() }
    }
    /// Creates [`Random`](Self::Random).
    pub fn random(train_per_class: usize, val: impl Into<Share>, test: impl Into<Share>) -> Self {
        Self::Random { train_per_class, val: val.into(), test: test.into() }
    }
}

pub(crate) fn wrong(arg: &'static str, expected: String) -> DataError {
    DataError::Split { arg, message: format!("expected {expected}") }
}

/// Sorts `ids` by a hash of (seed, id). The result does not depend on the order of the input.
pub(crate) fn shuffled(ids: impl IntoIterator<Item = u32>, seed: u64) -> Vec<u32> {
    // Two rounds of the finaliser of SplitMix64 (Steele, Lea, Flood 2014). It is a bijection, so there are no ties.
    let mix = |mut z: u64| {
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let start = mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15));
    let mut ids: Vec<u32> = ids.into_iter().collect();
    ids.sort_by_cached_key(|&v| {
        mix(start.wrapping_add((u64::from(v) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    });
    ids
}

impl Split {
    /// Splits the labelled nodes at random. A negative label marks a node without a label. Each part is sorted by node
    /// id, and the same seed returns the same split.
    ///
    /// ```
    /// use burn_gnn_data::{RandomNodeSplit, Split};
    ///
    /// fn main() -> Result<(), burn_gnn_data::DataError> {
    ///     let labels = [0, 1, 0, 1, -1, 0, 1, 0];
    ///     let split = Split::random(&labels, RandomNodeSplit::random(1, 2, 3), 7)?;
    ///     assert_eq!((split.train.len(), split.val.len(), split.test.len()), (2, 2, 3));
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`DataError::Split`] for a ratio outside `0.0..=1.0`, or for more nodes than the graph has.
    pub fn random(labels: &[i64], how: RandomNodeSplit, seed: u64) -> Result<Self, DataError> {
        let labelled = (0..labels.len() as u32).filter(|&v| labels[v as usize] >= 0);
        let all = shuffled(labelled, seed);
        let n = all.len();
        let per_class = |count: usize| -> (Vec<u32>, Vec<u32>) {
            let mut drawn: BTreeMap<i64, usize> = BTreeMap::new();
            all.iter().partition(|&&v| {
                let drawn = drawn.entry(labels[v as usize]).or_default();
                *drawn += 1;
                *drawn <= count
            })
        };
        let out = match how {
            RandomNodeSplit::TrainRest { val, test } => {
                let (val, test) = (val.of("val", n)?, test.of("test", n)?);
                Self::cut(all, [n.saturating_sub(val + test), val, test])?
            }
            RandomNodeSplit::TestRest { train_per_class, val } => {
                let (train, mut rest) = per_class(train_per_class);
                let val = val.of("val", n)?;
                if val > rest.len() {
                    return Err(wrong(
                        "val",
                        format!("at most the {} nodes outside training, got {val}", rest.len()),
                    ));
                }
                let test = rest.split_off(val);
                Self { train, val: rest, test }
            }
            RandomNodeSplit::Random { train_per_class, val, test } => {
                let (train, rest) = per_class(train_per_class);
                let (val, test) = (val.of("val", n)?, test.of("test", n)?);
                let other = Self::cut(rest, [0, val, test])?;
                Self { train, ..other }
            }
        };
        Ok(out.sorted())
    }

    /// Splits the labelled nodes at random by ratios for training, validation and test nodes. Counts are rounded to the
    /// nearest integer. If the ratios sum to 1, every labelled node is in a part; if they sum to less, the remaining
    /// nodes are in none.
    ///
    /// # Errors
    /// [`DataError::Split`] for a ratio outside `0.0..=1.0`, or for a sum above 1.
    pub fn by_ratio(
        labels: &[i64],
        [train, val, test]: [f64; 3],
        seed: u64,
    ) -> Result<Self, DataError> {
        let all = shuffled((0..labels.len() as u32).filter(|&v| labels[v as usize] >= 0), seed);
        let n = all.len();
        let sum = train + val + test;
        if sum > 1.0 + 1e-9 {
            return Err(wrong("ratios", format!("a sum of at most 1, got {sum}")));
        }
        let first = Share::Ratio(train).of("train", n)?;
        let second = Share::Ratio(val).of("val", n)?.min(n - first);
        let rest = n - first - second;
        let third =
            if sum > 1.0 - 1e-9 { rest } else { Share::Ratio(test).of("test", n)?.min(rest) };
        Ok(Self::cut(all, [first, second, third])?.sorted())
    }

    fn sorted(mut self) -> Self {
        [&mut self.train, &mut self.val, &mut self.test]
            .into_iter()
            .for_each(|part| part.sort_unstable());
        self
    }

    /// Cuts a list of nodes into parts of the given sizes, in this order.
    fn cut(mut nodes: Vec<u32>, [train, val, test]: [usize; 3]) -> Result<Self, DataError> {
        let (rest, held_out) = (nodes.len().saturating_sub(train), val.saturating_add(test));
        if held_out > rest {
            return Err(wrong(
                "val and test",
                format!("at most {rest} nodes together, got {held_out}"),
            ));
        }
        nodes.truncate(train + held_out);
        let test = nodes.split_off(train + val);
        let val = nodes.split_off(train);
        Ok(Self { train: nodes, val, test })
    }

    /// Reads a split from node tables for training, validation and test, as GraphLearn stores it. `parts` are the tables
    /// (`None`: no nodes), `decoder` describes their columns, and `nodes` maps the ids in the tables to node numbers
    /// ([`Frame::ids`](burn_gnn_graph::Frame::ids)).
    ///
    /// # Errors
    /// Those of [`read_nodes`], and [`DataError::Table`] for an unknown id.
    pub fn from_tables(
        nodes: &NodeIds,
        parts: [Option<Source>; 3],
        decoder: &Decoder,
    ) -> Result<Self, DataError> {
        let part = |source: Option<Source>| -> Result<Vec<u32>, DataError> {
            let Some(source) = source else { return Ok(vec![]) };
            let table = read_nodes(source, decoder)?;
            resolve(table.ids.ids(), nodes, &table.places, 0, "split", 1)
                .map_err(|mut e| without_remedy(e.swap_remove(0)))
        };
        let [train, val, test] = parts;
        Ok(Self { train: part(train)?, val: part(val)?, test: part(test)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(s: &Split) -> Vec<u32> {
        let mut all = [&s.train[..], &s.val, &s.test].concat();
        all.sort_unstable();
        all
    }

    proptest! {
        #[test]
        fn parts_are_disjoint_sorted_and_of_the_right_size(labels in prop::collection::vec(-1i64..4, 0..60), k in 0usize..5, v in 0usize..9, t in 0usize..9, seed: u64) {
            let labelled: Vec<u32> = (0..labels.len() as u32).filter(|&v| labels[v as usize] >= 0).collect();
            let trained: usize = (0..4).map(|c| labels.iter().filter(|&&l| l == c).count().min(k)).sum();
            let (val, test) = (Share::Count(v), Share::Count(t));
            let n = labelled.len();
            let ways = [
                (RandomNodeSplit::TrainRest { val, test }, v + t <= n, [n.saturating_sub(v + t), v, t]),
                (RandomNodeSplit::TestRest { train_per_class: k, val }, trained + v <= n, [trained, v, n.saturating_sub(trained + v)]),
                (RandomNodeSplit::Random { train_per_class: k, val, test }, trained + v + t <= n, [trained, v, t]),
            ];
            for (how, possible, sizes) in ways {
                let split = Split::random(&labels, how, seed);
                prop_assert_eq!(split.is_ok(), possible, "{:?}", split);
                let Ok(s) = split else { continue };
                prop_assert_eq!([s.train.len(), s.val.len(), s.test.len()], sizes);
                let found = all(&s);
                prop_assert!(found.windows(2).all(|w| w[0] < w[1]) && found.iter().all(|v| labelled.contains(v)));
                prop_assert!([&s.train, &s.val, &s.test].iter().all(|p| p.is_sorted()));
                prop_assert_eq!(&Split::random(&labels, how, seed).unwrap(), &s);
                let masks = s.masks(labels.len());
                prop_assert_eq!(Split::from_masks([&masks[0], &masks[1], &masks[2]]), s);
            }
        }
    }

    #[test]
    fn ratios_and_seeds() {
        let labels = vec![0; 1000];
        let s = Split::by_ratio(&labels, [0.6, 0.2, 0.2], 1).unwrap();
        assert_eq!(
            (s.train.len(), s.val.len(), s.test.len(), all(&s).len()),
            (600, 200, 200, 1000)
        );
        assert_ne!(s, Split::by_ratio(&labels, [0.6, 0.2, 0.2], 2).unwrap());
        let part = Split::by_ratio(&labels, [0.5, 0.1, 0.0], 1).unwrap();
        assert_eq!((part.train.len(), part.val.len(), part.test.len()), (500, 100, 0));
        assert_eq!(all(&Split::by_ratio(&labels[..3], [1. / 3.; 3], 5).unwrap()), [0, 1, 2]);
        let how = RandomNodeSplit::TrainRest { val: Share::Ratio(0.1), test: Share::Ratio(0.25) };
        assert_eq!(Split::random(&labels, how, 0).unwrap().train.len(), 650);
        // All nodes are equally likely: over 1,000 seeds, each of 10 nodes is drawn about 500 times. The bound of 79 is
        // five standard deviations.
        let mut drawn = [0i32; 10];
        for seed in 0..1000 {
            Split::by_ratio(&labels[..10], [0.5, 0.5, 0.0], seed)
                .unwrap()
                .train
                .iter()
                .for_each(|&v| drawn[v as usize] += 1);
        }
        assert!(drawn.iter().all(|d| (d - 500).abs() < 79), "{drawn:?}");
    }

    #[test]
    fn errors_name_argument_and_bound() {
        let labels = [0; 10];
        for (e, end) in [
            (
                Split::by_ratio(&labels, [0.6, 0.6, 0.0], 0),
                "`ratios`: expected a sum of at most 1, got 1.2",
            ),
            (
                Split::by_ratio(&labels, [-0.1, 0.6, 0.0], 0),
                "`train`: expected a ratio in 0.0..=1.0, got -0.1",
            ),
            (
                Split::by_ratio(&labels, [f64::NAN, 0.6, 0.0], 0),
                "`train`: expected a ratio in 0.0..=1.0, got NaN",
            ),
            (
                Split::random(
                    &labels,
                    RandomNodeSplit::TrainRest { val: Share::Count(6), test: Share::Count(5) },
                    0,
                ),
                "at most 10 nodes together, got 11",
            ),
            (
                Split::random(
                    &labels,
                    RandomNodeSplit::TestRest { train_per_class: 8, val: Share::Count(3) },
                    0,
                ),
                "the 2 nodes outside training, got 3",
            ),
            (
                Split::random(
                    &labels,
                    RandomNodeSplit::Random {
                        train_per_class: 8,
                        val: Share::Count(1),
                        test: Share::Ratio(0.5),
                    },
                    0,
                ),
                "at most 2 nodes together, got 6",
            ),
        ] {
            let e = e.unwrap_err();
            assert!(
                matches!(e, DataError::Split { .. }) && e.to_string().ends_with(end),
                "expected {end:?} at the end of {e}"
            );
        }
    }

    #[test]
    fn parts_from_tables() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            std::fs::write(dir.path().join(name), text).unwrap();
            Some(Source::from(dir.path().join(name)))
        };
        let nodes = NodeIds::new(burn_gnn_graph::Ids::Int(vec![50, 60, 70]));
        let decoder = Decoder::new().weighted();
        let train = put("train", "id:int64\tweight:float\n70\t1\n50\t1\n");
        let s = Split::from_tables(
            &nodes,
            [train.clone(), None, put("test", "id:int64\tweight:float\n60\t1\n")],
            &decoder,
        )
        .unwrap();
        assert_eq!(s, Split { train: vec![2, 0], val: vec![], test: vec![1] });
        let e = Split::from_tables(
            &nodes,
            [train, None, put("test", "id:int64\tweight:float\n61\t1\n")],
            &decoder,
        )
        .unwrap_err();
        assert!(
            e.to_string().contains("test:2:1: expected the id of a `split` node, got \"61\""),
            "{e}"
        );
    }
}
