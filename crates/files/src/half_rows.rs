//! Widens 16-bit floats out of bytes.

use half::f16;
use half::slice::HalfFloatSliceExt;

/// Numbers that are converted at a time.
const STEP: usize = 64;

/// Calls `put` with the numbers of little-endian f16 `bytes` and the place of the first of them, some at a time:
/// with the processor's instruction for many, where one call per number takes three times as long as reading them.
#[inline]
pub fn widen_f16(bytes: &[u8], mut put: impl FnMut(usize, &[f32])) {
    let (mut halves, mut wide) = ([f16::ZERO; STEP], [0.0; STEP]);
    for (i, some) in bytes.as_chunks::<2>().0.chunks(STEP).enumerate() {
        let (halves, wide) = (&mut halves[..some.len()], &mut wide[..some.len()]);
        halves.iter_mut().zip(some).for_each(|(h, &b)| *h = f16::from_le_bytes(b));
        halves.convert_to_f32_slice(wide);
        put(i * STEP, wide);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of them, bit for bit, at every length around a step.
    #[test]
    fn every_number_as_one_by_one() {
        let all: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        for n in (0..200).chain([all.len()]) {
            let bytes: Vec<u8> = all[..n].iter().flat_map(|x| x.to_le_bytes()).collect();
            let mut out = vec![f32::NAN; n];
            widen_f16(&bytes, |at, some| out[at..at + some.len()].copy_from_slice(some));
            for (x, y) in all.iter().zip(&out) {
                let want = x.to_f32();
                assert!(
                    want.to_bits() == y.to_bits() || want.is_nan() && y.is_nan(),
                    "{x}: expected {want}, found {y}"
                );
            }
        }
    }
}
