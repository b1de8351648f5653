//! Defines `Traversal`: the order of seeds in an epoch.

use rayon::prelude::*;

use crate::random::generator::Draws;
use burn_gnn_graph::Stream;

/// The order in which an epoch visits its seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Traversal {
    /// The given order.
    ByOrder,
    /// A random permutation of the whole list (not of a buffer), different for each epoch.
    #[default]
    Shuffled,
    /// As many draws with replacement as there are seeds.
    Random,
}

impl Traversal {
    /// Positions in a list of `n` seeds, in the order of an epoch.
    ///
    /// ```
    /// use burn_gnn_sampling::Traversal;
    /// let epoch = Traversal::Shuffled.positions(5, 7, 0);
    /// let mut sorted = epoch.clone();
    /// sorted.sort();
    /// assert_eq!(sorted, [0, 1, 2, 3, 4]);
    /// assert_eq!(epoch, Traversal::Shuffled.positions(5, 7, 0));
    /// ```
    pub fn positions(self, n: usize, seed: u64, epoch: u64) -> Vec<u32> {
        match self {
            Self::ByOrder => (0..n as u32).collect(),
            Self::Shuffled => shuffled(n, "seeds", seed, epoch),
            Self::Random => {
                let stream = Stream::new(seed, "random seeds", epoch);
                (0..n as u64)
                    .into_par_iter()
                    .map(|i| Draws::new(&stream, i).below(n as u32))
                    .collect()
            }
        }
    }
}

/// Shuffles `0..n` by sorting random keys of 64 bits; equal keys keep their order.
pub(crate) fn shuffled(n: usize, purpose: &str, seed: u64, epoch: u64) -> Vec<u32> {
    let stream = Stream::new(seed, &format!("shuffle/{purpose}"), epoch);
    let key = |i: u32| {
        let [a, b, ..] = stream.words(u64::from(i), 0);
        (u64::from(a) << 32 | u64::from(b), i)
    };
    let mut keys: Vec<(u64, u32)> = (0..n as u32).into_par_iter().map(key).collect();
    keys.par_sort_unstable();
    keys.into_iter().map(|(_, i)| i).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_as_likely_for_every_seed() {
        let mut counts = [[0.0f64; 6]; 6];
        for epoch in 0..6_000 {
            let order = Traversal::Shuffled.positions(6, 3, epoch);
            order.iter().enumerate().for_each(|(place, &i)| counts[place][i as usize] += 1.0);
        }
        let chi: f64 = counts.as_flattened().iter().map(|c| (c - 1e3).powi(2) / 1e3).sum();
        assert!(chi < 62.0, "{chi}"); // 25 degrees of freedom, 99.99 % point 61.1
        assert_eq!(Traversal::ByOrder.positions(3, 1, 1), [0, 1, 2]);
        let random = Traversal::Random.positions(1_000, 1, 1);
        let mut once = random.clone();
        once.sort_unstable();
        once.dedup();
        assert!(
            (580..690).contains(&once.len()),
            "{} of 1000 were drawn, about 632 expected",
            once.len()
        );
        assert_ne!(random, Traversal::Random.positions(1_000, 1, 2));
    }
}
