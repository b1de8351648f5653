//! Computes many Philox blocks at once, one per SIMD lane.
//!
//! Loops over lanes are written with indices, because the compiler vectorises this form.
#![allow(clippy::needless_range_loop)]

/// Number of blocks that [`philox_lanes`] computes at once.
pub(crate) const LANES: usize = 16;

/// Number of blocks that [`draw_rows`] computes at once.
const WIDE: usize = 32;

/// Block numbers of [`WIDE`] lanes.
const ASCENDING: [u64; WIDE] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
    26, 27, 28, 29, 30, 31,
];

/// The round keys, computed once for all blocks.
#[inline(always)]
fn schedule(key: [u32; 2]) -> [[u64; 2]; 10] {
    let mut all = [[0; 2]; 10];
    let mut k = key.map(u64::from);
    for r in &mut all {
        *r = k;
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    all
}

/// Ten rounds on `N` counters. Each 64-bit lane has a word in its low half; the high half is garbage.
///
/// A lane holds a product of two words. The next round reads its high half by a shift and its low half directly, so no
/// lane is narrowed or moved between rounds. The rounds of one block depend on each other; several blocks hide this
/// latency.
#[inline(always)]
fn rounds<const N: usize>(mut c: [[u64; N]; 4], key: [u32; 2]) -> [[u64; N]; 4] {
    const WORD: u64 = 0xffff_ffff;
    for [k, l] in schedule(key) {
        let mut next = [[0; N]; 4];
        for i in 0..N {
            let (a, b) = ((c[0][i] & WORD) * 0xD251_1F53, (c[2][i] & WORD) * 0xCD9E_8D57);
            next[0][i] = (b >> 32) ^ c[1][i] ^ k;
            next[1][i] = b;
            next[2][i] = (a >> 32) ^ c[3][i] ^ l;
            next[3][i] = a;
        }
        c = next;
    }
    c
}

/// `philox4x32` of [`LANES`] counters with one key: word `w` of block `i` is `out[w][i]`.
#[inline(always)]
pub(crate) fn philox_lanes(c: [[u32; LANES]; 4], key: [u32; 2]) -> [[u32; LANES]; 4] {
    let (mut wide, mut out) = ([[0; LANES]; 4], [[0; LANES]; 4]);
    for w in 0..4 {
        for i in 0..LANES {
            wide[w][i] = u64::from(c[w][i]);
        }
    }
    let wide = rounds(wide, key);
    for w in 0..4 {
        for i in 0..LANES {
            out[w][i] = wide[w][i] as u32;
        }
    }
    out
}

/// Tests whether a random word keeps an entry under dropout: words of at least a threshold do. The threshold may be
/// `u32::MAX + 1`, which drops all entries.
#[derive(Clone, Copy)]
pub(crate) struct Keep {
    from: u32,
    none: bool,
}

impl Keep {
    /// Keeps words of at least `threshold`.
    pub(crate) fn new(threshold: u64) -> Self {
        Self {
            from: threshold.min(u64::from(u32::MAX)) as u32,
            none: threshold > u64::from(u32::MAX),
        }
    }
    /// Whether `word` keeps its entry.
    // `&` instead of `&&`, so that loops have no branch.
    #[inline(always)]
    pub(crate) fn keeps(self, word: u32) -> bool {
        (word >= self.from) & !self.none
    }
}

/// The words of [`WIDE`] counters, transposed to one entry per block.
#[inline(always)]
fn draw(c: [[u64; WIDE]; 4], key: [u32; 2], to: &mut [[u32; 4]; WIDE]) {
    let [w, x, y, z] = rounds(c, key);
    for i in 0..WIDE {
        to[i] = [w[i] as u32, x[i] as u32, y[i] as u32, z[i] as u32];
    }
}

/// Draws the words of whole rows: entry `r · blocks + b` has the words of block `b` of row `r`, whose counter is
/// `(id(r), b)`.
#[inline(always)]
pub(crate) fn draw_rows(
    key: [u32; 2],
    rows: usize,
    blocks: usize,
    id: impl Fn(usize) -> u64,
    words: &mut Vec<[u32; 4]>,
) {
    words.resize(rows * blocks, [0; 4]);
    if words.is_empty() {
        return;
    }
    // The remaining blocks of several rows are drawn together, below.
    let whole = blocks / WIDE * WIDE;
    for (r, row) in
        words.chunks_exact_mut(blocks).enumerate().take(if whole > 0 { rows } else { 0 })
    {
        let id = id(r);
        for (to, first) in row.as_chunks_mut().0.iter_mut().zip((0u64..).step_by(WIDE)) {
            let mut block = ASCENDING;
            for i in 0..WIDE {
                block[i] += first;
            }
            // The last word of the counter is 0, because no row has 2^34 columns.
            draw([[id; WIDE], [id >> 32; WIDE], block, [0; WIDE]], key, to);
        }
    }
    let rest = blocks - whole;
    let total = rest * rows;
    let (mut r, mut b) = (0, whole);
    for from in (0..total).step_by(WIDE) {
        let (mut c, mut at, mut drawn) = ([[0; WIDE]; 4], [0; WIDE], [[0; 4]; WIDE]);
        let lanes = WIDE.min(total - from);
        for i in 0..lanes {
            let (id, block) = (id(r), b as u64);
            (c[0][i], c[1][i], c[2][i], c[3][i]) = (id, id >> 32, block, block >> 32);
            at[i] = r * blocks + b;
            b += 1;
            if b == blocks {
                (r, b) = (r + 1, whole);
            }
        }
        draw(c, key, &mut drawn);
        for (at, drawn) in at.into_iter().zip(drawn).take(lanes) {
            words[at] = drawn;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_gnn_structure::philox4x32;

    #[test]
    fn lanes_equal_single_blocks() {
        let c: [[u32; LANES]; 4] = std::array::from_fn(|w| {
            std::array::from_fn(|i| (i as u32 + 1).wrapping_mul(0x9E37_79B9 << w))
        });
        let k = [0x1234_5678, 0x9abc_def0];
        let out = philox_lanes(c, k);
        for i in 0..LANES {
            let one = philox4x32([c[0][i], c[1][i], c[2][i], c[3][i]], k);
            assert_eq!([out[0][i], out[1][i], out[2][i], out[3][i]], one);
        }
    }

    #[test]
    fn rows_equal_single_blocks() {
        let key = [7, 8];
        for (rows, blocks) in [(1, 1), (5, 3), (16, 1), (2, 40), (3, 8), (3, 75), (0, 4), (4, 0)] {
            let id = |r: usize| (1u64 << 40) + 3 * r as u64;
            let mut words = vec![[1; 4]; 3];
            draw_rows(key, rows, blocks, id, &mut words);
            assert_eq!(words.len(), rows * blocks);
            for r in 0..rows {
                for b in 0..blocks {
                    let one = philox4x32([id(r) as u32, (id(r) >> 32) as u32, b as u32, 0], key);
                    assert_eq!(words[r * blocks + b], one);
                }
            }
        }
    }

    #[test]
    fn keep_compares_with_the_threshold() {
        for (threshold, words) in [
            (0, [true, true, true]),
            (5, [false, true, true]),
            (u64::from(u32::MAX), [false, false, true]),
            (1 << 32, [false; 3]),
        ] {
            assert_eq!(
                [0, 5, u32::MAX].map(|w| Keep::new(threshold).keeps(w)),
                words,
                "{threshold}"
            );
        }
    }
}
