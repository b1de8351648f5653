//! Prefetches cache lines before kernels read them.

/// Prefetches the cache lines of `data[at..at + len]`. It is a hint: the range may exceed `data`.
///
/// The rows of neighbours are at random addresses, so the processor's own prefetcher does not find them. A kernel
/// prefetches rows that it will read some edges later; they are loaded while the kernel processes earlier rows.
///
/// The processor keeps few requests to the first cache level in flight, and more to the second. So rows that come from
/// main memory are prefetched twice: far ahead into the second level, then near ahead into the first.
#[inline(always)]
pub fn prefetch<T>(data: &[T], at: usize, len: usize) {
    prefetch_at(Cache::First, data.as_ptr().wrapping_add(at), len);
}

/// Prefetches like [`prefetch`], into a given level of the cache.
#[inline(always)]
pub fn prefetch_to<T>(to: Cache, data: &[T], at: usize, len: usize) {
    prefetch_at(to, data.as_ptr().wrapping_add(at), len);
}

/// The cache level that a prefetch loads into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// The first level.
    First,
    /// The second level.
    Second,
}

/// Prefetches `len` entries from an address.
#[allow(unsafe_code, reason = "prefetch intrinsics, on x86-64 only")]
#[inline(always)]
pub fn prefetch_at<T>(to: Cache, start: *const T, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        let (start, bytes) = (start.cast::<i8>(), len * size_of::<T>());
        let prefetch_line = |at: usize| {
            let line = start.wrapping_add(at);
            // SAFETY: a prefetch instruction never faults, whatever the address, and has no visible effect.
            unsafe {
                match to {
                    Cache::First => _mm_prefetch::<_MM_HINT_T0>(line),
                    Cache::Second => _mm_prefetch::<_MM_HINT_T1>(line),
                }
            }
        };
        offsets(bytes, len > 1).for_each(prefetch_line);
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (to, start, len);
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Byte offsets, one in every cache line that `bytes` bytes touch, whatever the alignment of their address. A row of `n`
/// lines touches `n + 1` lines if it is not aligned. A single entry (`several` is false) touches one line.
#[inline(always)]
#[cfg_attr(not(all(target_arch = "x86_64", not(miri))), allow(dead_code))]
fn offsets(bytes: usize, several: bool) -> impl Iterator<Item = usize> {
    (0..bytes).step_by(LINE).chain(several.then(|| bytes - 1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Offsets hit all cache lines of a row and no others, whatever the alignment of the row.
    #[test]
    fn offsets_hit_every_line_of_a_row() {
        for bytes in (4..=520).step_by(4) {
            for start in (0..LINE).step_by(4) {
                let needed: BTreeSet<usize> =
                    (start..start + bytes).map(|byte| byte / LINE).collect();
                let prefetched: BTreeSet<usize> =
                    offsets(bytes, bytes > 4).map(|at| (start + at) / LINE).collect();
                assert_eq!(prefetched, needed, "{bytes} bytes from byte {start} of a line");
            }
        }
        assert_eq!(offsets(0, false).count(), 0);
    }

    #[test]
    fn prefetch_outside_of_the_data_has_no_effect() {
        for to in [Cache::First, Cache::Second] {
            prefetch_to(to, &[1.0f32; 3], usize::MAX / 8, 100);
            prefetch_to(to, &[0u8; 0], 0, 0);
        }
    }
}
