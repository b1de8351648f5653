//! Converts between element types in one pass.

use crate::number::Elem;
use crate::parallel::collect::collect_rows;
use crate::parallel::output_buffer::Sink;
use crate::parallel::runs::evenly;
use crate::simd::instruction_sets::{Vectorised, vectorised};

/// Converts `x` to another element type, in parallel.
pub fn convert<A: Elem, B: Elem<Acc = A::Acc>>(x: &[A]) -> Vec<B> {
    collect_rows(&evenly(x.len(), 1), 1, &|run, out| vectorised(Convert { x: &x[run], out }))
}

struct Convert<'a, 'b, 'c, A, B> {
    x: &'a [A],
    out: &'b mut Sink<'c, B>,
}

impl<A: Elem, B: Elem<Acc = A::Acc>> Vectorised for Convert<'_, '_, '_, A, B> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let x = self.x;
        self.out.put_from(x.len(), |j| B::of(x[j].acc()));
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    /// Several runs, and a length that is not a multiple of a vector.
    #[test]
    fn converts_any_length() {
        // Fewer entries for Miri, which would take minutes.
        let lengths: &[usize] =
            if cfg!(miri) { &[0, 1, 15, 1_000] } else { &[0, 1, 15, 1_000, 600_001] };
        for &n in lengths {
            let x: Vec<f32> = (0..n).map(|i| (i as f32 * 0.37).sin() * 1e3).collect();
            let (h, b): (Vec<f16>, Vec<bf16>) = (convert(&x), convert(&x));
            assert_eq!(h, x.iter().map(|&v| f16::from_f32(v)).collect::<Vec<_>>());
            assert_eq!(b, x.iter().map(|&v| bf16::from_f32(v)).collect::<Vec<_>>());
            assert_eq!(convert::<_, f32>(&h), h.iter().map(|v| v.to_f32()).collect::<Vec<_>>());
            assert_eq!(convert::<_, f32>(&b), b.iter().map(|v| v.to_f32()).collect::<Vec<_>>());
        }
    }
}
