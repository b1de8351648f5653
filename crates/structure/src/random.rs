//! Counter-based random numbers: every draw is a pure function of a key and a counter.

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
///
/// ```
/// // Known-answer vector of the Random123 distribution.
/// let out = burn_gnn_structure::philox4x32([0; 4], [0; 2]);
/// assert_eq!(out, [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
/// ```
pub fn philox4x32(mut c: [u32; 4], mut k: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let a = u64::from(c[0]) * 0xD251_1F53;
        let b = u64::from(c[2]) * 0xCD9E_8D57;
        c = [(b >> 32) as u32 ^ c[1] ^ k[0], b as u32, (a >> 32) as u32 ^ c[3] ^ k[1], a as u32];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

/// A stream of random numbers, identified by a seed, a purpose and a step.
///
/// A draw is addressed by an original id (row) and a column. So it does not depend on the number of threads or ranks, on
/// the partition, or on the order in which rows are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    key: [u32; 2],
}

impl Stream {
    /// The stream of `seed` for `purpose` (for example the name of a layer) at `step` (0 for draws without steps).
    pub fn new(seed: u64, purpose: &str, step: u64) -> Self {
        // FNV-1a of the name; then one Philox call mixes seed, purpose and step.
        let name = purpose.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
        });
        let out = philox4x32(
            [name as u32, (name >> 32) as u32, step as u32, (step >> 32) as u32],
            [seed as u32, (seed >> 32) as u32],
        );
        Self { key: [out[0], out[1]] }
    }

    /// The Philox key, for kernels that compute [`words`](Self::words) of many rows at once.
    pub fn key(&self) -> [u32; 2] {
        self.key
    }

    /// Four words for columns `4 * block .. 4 * block + 4` of row `id`.
    #[inline]
    pub fn words(&self, id: u64, block: u64) -> [u32; 4] {
        philox4x32([id as u32, (id >> 32) as u32, block as u32, (block >> 32) as u32], self.key)
    }

    /// Uniform in `[0, 1)` for (row, column), with 32 random bits.
    #[inline]
    pub fn uniform(&self, id: u64, column: u64) -> f64 {
        f64::from(self.words(id, column / 4)[(column % 4) as usize]) / 4_294_967_296.0
    }

    /// Standard normal for (row, column), by the Box–Muller transform.
    pub fn normal(&self, id: u64, column: u64) -> f64 {
        let w = self.words(id, column / 2);
        let at = 2 * (column % 2) as usize;
        let (u, v) =
            ((f64::from(w[at]) + 1.0) / 4_294_967_296.0, f64::from(w[at + 1]) / 4_294_967_296.0);
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_known_answers() {
        assert_eq!(
            philox4x32([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        let pi = philox4x32(
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0],
        );
        assert_eq!(pi, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    #[test]
    fn moments_of_uniform_and_normal_draws() {
        let s = Stream::new(7, "test", 3);
        let n = 40_000u64;
        let at = |i: u64| (i / 8, i % 8);
        let mean = (0..n).map(|i| s.uniform(at(i).0, at(i).1)).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 0.006, "{mean}");
        let z: Vec<f64> = (0..n).map(|i| s.normal(at(i).0, at(i).1)).collect();
        let (m, v) =
            (z.iter().sum::<f64>() / n as f64, z.iter().map(|z| z * z).sum::<f64>() / n as f64);
        assert!(m.abs() < 0.02 && (v - 1.0).abs() < 0.03, "{m} {v}");
        assert_ne!(s, Stream::new(7, "test", 4));
        assert_ne!(s, Stream::new(7, "tesu", 3));
    }
}
