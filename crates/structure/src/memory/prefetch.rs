//! Prefetches memory before it is read.

/// Asks for the cache lines of `data[at..at + len]`; a hint, so places outside of `data` do no harm.
///
/// Rows of neighbours lie anywhere; asked for some rows ahead, they arrive while earlier ones are read.
///
/// Few lines can be on their way to the first level of the cache at a time, more to the second. So rows that come from
/// memory are prefetched twice: far ahead into the second level, then near into the first.
#[inline(always)]
#[doc(hidden)]
pub fn prefetch<T>(data: &[T], at: usize, len: usize) {
    prefetch_at(Cache::First, data.as_ptr().wrapping_add(at), len);
}

/// [`prefetch`] into a level of the cache.
#[inline(always)]
#[doc(hidden)]
pub fn prefetch_to<T>(to: Cache, data: &[T], at: usize, len: usize) {
    prefetch_at(to, data.as_ptr().wrapping_add(at), len);
}

/// Where a row is to wait until it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Cache {
    /// The first level.
    First,
    /// The second level.
    Second,
}

/// [`prefetch`] of `len` entries from an address.
#[allow(unsafe_code, reason = "an instruction of the processor, on x86-64 alone")]
#[inline(always)]
#[doc(hidden)]
pub fn prefetch_at<T>(to: Cache, start: *const T, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        let (start, bytes) = (start.cast::<i8>(), len * size_of::<T>());
        let ask = |at: usize| {
            let line = start.wrapping_add(at);
            // SAFETY: a prefetch never faults, whatever the address, and reads nothing.
            unsafe {
                match to {
                    Cache::First => _mm_prefetch::<_MM_HINT_T0>(line),
                    Cache::Second => _mm_prefetch::<_MM_HINT_T1>(line),
                }
            }
        };
        offsets(bytes, len > 1).for_each(ask);
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (to, start, len);
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Offsets of which the lines are those of `bytes` bytes from any address. Memory from the allocator does not start on a
/// line, so a row of whole lines lies on one more; one entry (not `several`) lies on one line.
#[inline(always)]
#[cfg_attr(not(all(target_arch = "x86_64", not(miri))), allow(dead_code))]
fn offsets(bytes: usize, several: bool) -> impl Iterator<Item = usize> {
    (0..bytes).step_by(LINE).chain(several.then(|| bytes - 1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The lines of all bytes of a row, wherever it starts, and no others.
    #[test]
    fn the_lines_of_a_row() {
        for bytes in (4..=520).step_by(4) {
            for start in (0..LINE).step_by(4) {
                let needed: BTreeSet<usize> =
                    (start..start + bytes).map(|byte| byte / LINE).collect();
                let asked: BTreeSet<usize> =
                    offsets(bytes, bytes > 4).map(|at| (start + at) / LINE).collect();
                assert_eq!(asked, needed, "{bytes} bytes from byte {start} of a line");
            }
        }
        assert_eq!(offsets(0, false).count(), 0);
    }

    /// Whatever is asked for, nothing is read.
    #[test]
    fn places_outside_do_no_harm() {
        for to in [Cache::First, Cache::Second] {
            prefetch_to(to, &[1.0f32; 3], usize::MAX / 8, 100);
            prefetch_to(to, &[0u8; 0], 0, 0);
        }
    }
}
