//! Converts bytes of 16-bit floats to f32.

use half::f16;
use half::slice::HalfFloatSliceExt;

/// Numbers per conversion.
const STEP: usize = 64;

/// Converts little-endian f16 `bytes` to f32 and calls `put` with each chunk and the position of its first number.
///
/// Chunks let `half` use the vector instruction of the processor. Converting each number by itself takes three times as
/// long as reading the bytes.
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

    /// All 65,536 numbers, bit for bit, in inputs of every length around a chunk.
    #[test]
    fn chunks_equal_single_conversions() {
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
