//! Many Philox blocks at once, in lanes, so that the rounds vectorise.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::philox4x32;

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
}
