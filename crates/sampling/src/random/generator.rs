//! Generates the sequence of random numbers that belongs to one id of a stream.

use burn_gnn_graph::Stream;

/// The sequence of random numbers of one id of a stream: a counter-based generator (Philox).
#[derive(Debug)]
pub struct Draws<'a> {
    stream: &'a Stream,
    id: u64,
    block: u64,
    words: [u32; 4],
    at: usize,
}

impl<'a> Draws<'a> {
    /// Starts at the first number of `id`.
    #[inline]
    pub fn new(stream: &'a Stream, id: u64) -> Self {
        Self { stream, id, block: 0, words: [0; 4], at: 4 }
    }

    #[inline]
    pub(crate) fn word(&mut self) -> u32 {
        if self.at == 4 {
            self.words = self.stream.words(self.id, self.block);
            self.block += 1;
            self.at = 0;
        }
        self.at += 1;
        self.words[self.at - 1]
    }

    /// Uniform in `0..n`, exactly (Lemire, "Fast random integer generation in an interval", TOMACS 2019).
    #[inline]
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        debug_assert!(n > 0);
        loop {
            let m = u64::from(self.word()) * u64::from(n);
            let low = m as u32;
            if low >= n || low >= n.wrapping_neg() % n {
                return (m >> 32) as u32;
            }
        }
    }

    /// Uniform in `0..n`, exactly, for `n` beyond 32 bits.
    pub fn below_wide(&mut self, n: u64) -> u64 {
        loop {
            let word = u64::from(self.word()) << 32 | u64::from(self.word());
            let m = u128::from(word) * u128::from(n);
            let low = m as u64;
            if low >= n || low >= n.wrapping_neg() % n {
                return (m >> 64) as u64;
            }
        }
    }

    /// A uniform pair of a source below `n` and a destination below `m`.
    pub fn pair(&mut self, n: u64, m: u64) -> (u32, u32) {
        let rank = self.below_wide(n * m);
        ((rank / m) as u32, (rank % m) as u32)
    }

    /// Uniform in `[0, 1)` with 53 bits.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        unit([self.word(), self.word()])
    }
}

/// Uniform in `[0, 1)` with 53 bits.
#[inline]
fn unit([a, b]: [u32; 2]) -> f64 {
    let bits = (u64::from(a) << 32) | u64::from(b);
    (bits >> 11) as f64 / 9_007_199_254_740_992.0
}

/// Standard exponential variable of `(id, place)`, in `[0, 37]`.
#[inline]
pub(crate) fn exponential(stream: &Stream, id: u64, place: u64) -> f64 {
    let w = stream.words(id, place / 2);
    let at = 2 * (place % 2) as usize;
    -(-unit([w[at], w[at + 1]])).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::key::SampleKey;

    #[test]
    fn below_is_uniform_also_where_words_are_rejected() {
        // 2^32 mod 3 · 2^30 is 2^30: a quarter of all words is rejected, and a biased draw would show.
        let stream = SampleKey::new(3).stream("test");
        let n = 3u32 << 30;
        let mut thirds = [0u32; 3];
        (0..30_000).for_each(|id| thirds[(Draws::new(&stream, id).below(n) >> 30) as usize] += 1);
        let chi: f64 = thirds.iter().map(|&c| (f64::from(c) - 1e4).powi(2) / 1e4).sum();
        assert!(
            chi < 18.4,
            "{thirds:?}: chi-square {chi} exceeds its 99.99 % point at 2 degrees of freedom"
        );
        assert!((0..1000).all(|id| Draws::new(&stream, id).below(1) == 0));
    }

    #[test]
    fn keys_differ_by_every_part() {
        let key = SampleKey::new(1);
        let first = |k: SampleKey, purpose: &str, id| Draws::new(&k.stream(purpose), id).word();
        let base = first(key, "a", 0);
        for other in [
            first(SampleKey::new(2), "a", 0),
            first(key.at(1, 0), "a", 0),
            first(key.at(0, 1), "a", 0),
        ] {
            assert_ne!(base, other);
        }
        assert_ne!(base, first(key, "b", 0));
        assert_ne!(base, first(key, "a", 1));
        assert_eq!(base, first(key, "a", 0));
    }

    #[test]
    fn exponentials_have_mean_and_variance_one() {
        let stream = SampleKey::new(9).stream("test");
        let n = 40_000u64;
        let x: Vec<f64> = (0..n).map(|i| exponential(&stream, i / 5, i % 5)).collect();
        let mean = x.iter().sum::<f64>() / n as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        assert!(
            (mean - 1.0).abs() < 0.02
                && (variance - 1.0).abs() < 0.06
                && x.iter().all(|&x| (0.0..38.0).contains(&x)),
            "{mean} {variance}"
        );
    }
}
