//! Chooses some of the numbers `0..n`, in ascending order.

use crate::random::generator::Draws;

/// Buffers for choices, reused from node to node.
#[derive(Default)]
pub(crate) struct Chooser {
    bits: Vec<u64>,
    /// Key, position in the list of candidates, candidate.
    keyed: Vec<(u64, u32, u32)>,
    few: Vec<u32>,
}

/// From this number of draws on, membership is tested in a bit set instead of a list.
const MANY: usize = 64;

impl Chooser {
    /// Chooses `k` of `0..n` without replacement, every subset equally likely; all of them if `k >= n`.
    ///
    /// Floyd's algorithm (Bentley and Floyd, "A sample of brilliance", CACM 1987): `k` draws for any `n`.
    #[inline]
    pub(crate) fn distinct(
        &mut self,
        draws: &mut Draws<'_>,
        n: u32,
        k: u32,
        mut take: impl FnMut(u32),
    ) {
        if k >= n {
            (0..n).for_each(take);
        } else if n <= 64 {
            let mut bits = 0u64;
            for top in n - k..n {
                let bit = 1u64 << draws.below(top + 1);
                bits |= if bits & bit == 0 { bit } else { 1 << top };
            }
            while bits != 0 {
                take(bits.trailing_zeros());
                bits &= bits - 1;
            }
        } else if (k as usize) < MANY {
            self.few.clear();
            for top in n - k..n {
                let x = draws.below(top + 1);
                let x = if self.few.contains(&x) { top } else { x };
                self.few.push(x);
            }
            self.few.sort_unstable();
            self.few.iter().copied().for_each(take);
        } else {
            self.bits.clear();
            self.bits.resize(n.div_ceil(64) as usize, 0);
            for top in n - k..n {
                let x = draws.below(top + 1);
                let x = if self.bits[(x / 64) as usize] >> (x % 64) & 1 == 0 { x } else { top };
                self.bits[(x / 64) as usize] |= 1 << (x % 64);
            }
            for (i, &word) in self.bits.iter().enumerate() {
                let mut bits = word;
                while bits != 0 {
                    take(i as u32 * 64 + bits.trailing_zeros());
                    bits &= bits - 1;
                }
            }
        }
    }

    /// Takes the results of `k` calls of `draw`, in ascending order.
    #[inline]
    pub(crate) fn repeated(
        &mut self,
        k: u32,
        mut draw: impl FnMut() -> u32,
        take: impl FnMut(u32),
    ) {
        self.few.clear();
        (0..k).for_each(|_| self.few.push(draw()));
        self.few.sort_unstable();
        self.few.iter().copied().for_each(take);
    }

    /// Chooses the `k` candidates of the smallest keys, the smaller candidate among equal keys. Candidates without a key
    /// are never taken.
    pub(crate) fn smallest(
        &mut self,
        n: u32,
        k: u32,
        key: impl Fn(u32) -> Option<u64>,
        take: impl FnMut(u32),
    ) {
        self.smallest_of(0..n, k, key, take);
    }

    /// As [`smallest`](Self::smallest), but equal keys are decided by the position in `candidates`. The chosen ones are
    /// taken in ascending order.
    pub(crate) fn smallest_of(
        &mut self,
        candidates: impl Iterator<Item = u32>,
        k: u32,
        key: impl Fn(u32) -> Option<u64>,
        take: impl FnMut(u32),
    ) {
        self.keyed.clear();
        let keyed = (0u32..).zip(candidates).filter_map(|(place, i)| Some((key(i)?, place, i)));
        self.keyed.extend(keyed);
        let k = k as usize;
        if k < self.keyed.len() {
            if k > 0 {
                self.keyed.select_nth_unstable(k - 1);
            }
            self.keyed.truncate(k);
        }
        self.keyed.sort_unstable_by_key(|x| x.2);
        self.keyed.iter().map(|x| x.2).for_each(take);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::key::SampleKey;

    /// Every subset of 2 of 5, and each element of long rows, by all three ways of remembering.
    #[test]
    fn subsets_are_equally_likely() {
        let stream = SampleKey::new(5).stream("test");
        let mut chooser = Chooser::default();
        let mut pairs = [0u32; 25];
        for id in 0..20_000 {
            let mut got = vec![];
            chooser.distinct(&mut Draws::new(&stream, id), 5, 2, |x| got.push(x));
            assert!(got.len() == 2 && got[0] < got[1] && got[1] < 5);
            pairs[(got[0] * 5 + got[1]) as usize] += 1;
        }
        let chi: f64 =
            pairs.iter().filter(|&&c| c > 0).map(|&c| (f64::from(c) - 2e3).powi(2) / 2e3).sum();
        assert!(pairs.iter().filter(|&&c| c > 0).count() == 10 && chi < 33.7, "{pairs:?} {chi}"); // 99.99 % point, 9 degrees
        for (n, k) in [(100u32, 10u32), (100, 80)] {
            let mut counts = vec![0u32; n as usize];
            for id in 0..20_000 {
                let (mut last, mut len) = (None, 0);
                chooser.distinct(&mut Draws::new(&stream, id), n, k, |x| {
                    assert!(last < Some(x));
                    (last, len) = (Some(x), len + 1);
                    counts[x as usize] += 1;
                });
                assert_eq!(len, k);
            }
            let share = f64::from(k) / f64::from(n);
            let mean = 20_000.0 * share;
            // Counts of a sample without replacement vary less than Poisson ones by 1 - k / n.
            let chi: f64 = counts
                .iter()
                .map(|&c| (f64::from(c) - mean).powi(2) / (mean * (1.0 - share)))
                .sum();
            assert!((45.0..161.0).contains(&chi), "n {n}, k {k}: {chi}"); // 0.01 % and 99.99 % points, 99 degrees
        }
    }

    #[test]
    fn corners() {
        let stream = SampleKey::new(5).stream("test");
        let mut chooser = Chooser::default();
        let mut all = |n, k| {
            let mut got = vec![];
            chooser.distinct(&mut Draws::new(&stream, 1), n, k, |x| got.push(x));
            got
        };
        assert_eq!(all(0, 3), [0; 0]);
        assert_eq!(all(3, 0), [0; 0]);
        assert_eq!(all(3, 3), [0, 1, 2]);
        assert_eq!(all(64, 63).len(), 63);
        let mut got = vec![];
        chooser.smallest(
            5,
            2,
            |i| (i != 1).then_some([30, 0, 10, 10, 5][i as usize]),
            |x| got.push(x),
        );
        assert_eq!(got, [2, 4], "ties go to the first candidate");
        chooser.smallest(5, 0, |_| Some(0), |_| panic!("k is 0"));
        for (k, want) in
            [(1, vec![3]), (2, vec![2, 3]), (3, vec![2, 3, 4]), (9, vec![0, 1, 2, 3, 4])]
        {
            let mut got = vec![];
            let key = |i| Some([30, 20, 5, 5, 10][i as usize]);
            chooser.smallest_of((0..5).rev(), k, key, |x| got.push(x));
            assert_eq!(got, want, "ties go to the last candidate");
        }
    }
}
