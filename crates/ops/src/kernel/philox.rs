//! Many Philox blocks at once, in lanes, so that the rounds vectorise.
//!
//! Loops over lanes are written with indices: those are what the compiler turns into vector code.
#![allow(clippy::needless_range_loop)]

/// Blocks drawn together.
pub(crate) const LANES: usize = 16;

/// `philox4x32` of [`LANES`] counters under one key: word `w` of block `i` is `out[w][i]`, the bits that
/// one call per block gives.
///
/// A block is ten rounds of two multiplications that wait for one another; drawn one at a time the
/// processor mostly waits.
#[inline(always)]
pub(crate) fn philox_lanes(mut c: [[u32; LANES]; 4], mut k: [u32; 2]) -> [[u32; LANES]; 4] {
    for _ in 0..10 {
        let (mut a, mut b) = ([0u64; LANES], [0u64; LANES]);
        for i in 0..LANES {
            a[i] = u64::from(c[0][i]) * 0xD251_1F53;
            b[i] = u64::from(c[2][i]) * 0xCD9E_8D57;
        }
        let [_, c1, _, c3] = c;
        for i in 0..LANES {
            c[0][i] = (b[i] >> 32) as u32 ^ c1[i] ^ k[0];
            c[1][i] = b[i] as u32;
            c[2][i] = (a[i] >> 32) as u32 ^ c3[i] ^ k[1];
            c[3][i] = a[i] as u32;
        }
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

/// Which draws of a dropout keep their entry: at least a threshold that may lie one above the largest word.
#[derive(Clone, Copy)]
pub(crate) struct Keep {
    from: u32,
    none: bool,
}

impl Keep {
    /// Words of at least `threshold`.
    pub(crate) fn new(threshold: u64) -> Self {
        Self { from: threshold.min(u64::from(u32::MAX)) as u32, none: threshold > u64::from(u32::MAX) }
    }
    /// Whether `word` keeps its entry.
    #[inline(always)]
    pub(crate) fn keeps(self, word: u32) -> bool {
        (word >= self.from) & !self.none
    }
}

/// The words of whole rows: those of block `b` of row `r` (counter `(id(r), b)`) stand from
/// `4 · (r · blocks + b)` in `words`, which holds a whole number of lanes.
#[inline(always)]
pub(crate) fn draw_rows(key: [u32; 2], rows: usize, blocks: usize, id: impl Fn(usize) -> u64, words: &mut Vec<u32>) {
    let total = rows * blocks;
    words.resize(4 * total.next_multiple_of(LANES), 0);
    let (mut r, mut b) = (0, 0);
    for (part, from) in words.chunks_exact_mut(4 * LANES).zip((0..total).step_by(LANES)) {
        let mut c = [[0u32; LANES]; 4];
        for lane in 0..LANES.min(total - from) {
            let id = id(r);
            (c[0][lane], c[1][lane], c[2][lane], c[3][lane]) = (id as u32, (id >> 32) as u32, b as u32, (b as u64 >> 32) as u32);
            b += 1;
            if b == blocks {
                (r, b) = (r + 1, 0);
            }
        }
        let [w, x, y, z] = philox_lanes(c, key);
        for (lane, to) in part.chunks_exact_mut(4).enumerate() {
            (to[0], to[1], to[2], to[3]) = (w[lane], x[lane], y[lane], z[lane]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::philox4x32;

    #[test]
    fn lanes_are_single_blocks() {
        let c: [[u32; LANES]; 4] = std::array::from_fn(|w| std::array::from_fn(|i| (i as u32 + 1).wrapping_mul(0x9E37_79B9 << w)));
        let k = [0x1234_5678, 0x9abc_def0];
        let out = philox_lanes(c, k);
        for i in 0..LANES {
            let one = philox4x32([c[0][i], c[1][i], c[2][i], c[3][i]], k);
            assert_eq!([out[0][i], out[1][i], out[2][i], out[3][i]], one);
        }
    }

    #[test]
    fn rows_are_single_blocks() {
        let key = [7, 8];
        for (rows, blocks) in [(1, 1), (5, 3), (16, 1), (2, 40), (0, 4)] {
            let id = |r: usize| (1u64 << 40) + 3 * r as u64;
            let mut words = vec![1, 2, 3];
            draw_rows(key, rows, blocks, id, &mut words);
            for r in 0..rows {
                for b in 0..blocks {
                    let one = philox4x32([id(r) as u32, (id(r) >> 32) as u32, b as u32, 0], key);
                    assert_eq!(words[4 * (r * blocks + b)..][..4], one);
                }
            }
        }
    }

    #[test]
    fn thresholds() {
        for (threshold, words) in
            [(0, [true, true, true]), (5, [false, true, true]), (u64::from(u32::MAX), [false, false, true]), (1 << 32, [false; 3])]
        {
            assert_eq!([0, 5, u32::MAX].map(|w| Keep::new(threshold).keeps(w)), words, "{threshold}");
        }
    }
}
