//! Prefetches memory before it is read.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Asks for the cache lines of `data[at..at + len]`; a hint, so places outside of `data` do no harm.
///
/// Rows of neighbours lie anywhere; asked for some rows ahead, they arrive while earlier ones are read.
///
/// Few lines can be on their way to the first level of the cache at a time, more to the second. So rows that come from
/// memory ([`from_memory`]) are prefetched twice: far ahead into the second level, then near into the first.
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

/// Whether rows of so many bytes of data come from memory: they do not fit in half of the last-level cache, as Linux
/// reports its size (32 MiB elsewhere; `BURN_GNN_CACHE` sets another, in bytes). Asked once for a kernel, not for a row.
#[doc(hidden)]
pub fn from_memory(bytes: usize) -> bool {
    /// 0 until it is known.
    static LAST_LEVEL: AtomicUsize = AtomicUsize::new(0);
    if !cfg!(all(target_arch = "x86_64", not(miri))) {
        return false;
    }
    let mut last = LAST_LEVEL.load(Ordering::Relaxed);
    if last == 0 {
        let given = std::env::var("BURN_GNN_CACHE").ok().and_then(|size| size.parse().ok());
        last = given.or_else(|| (0..8).find_map(last_level)).unwrap_or(32 << 20).max(1);
        LAST_LEVEL.store(last, Ordering::Relaxed);
    }
    bytes > last / 2
}

/// The size of a cache of the first processor, if it is of the third level or beyond.
fn last_level(index: usize) -> Option<usize> {
    let read = |what: &str| {
        std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}"))
    };
    let level: u32 = read("level").ok()?.trim().parse().ok()?;
    if level < 3 { None } else { bytes_of(&read("size").ok()?) }
}

/// `32768K` in bytes.
fn bytes_of(size: &str) -> Option<usize> {
    let size = size.trim();
    let digits = size.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &size[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
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
        for line in (0..bytes).step_by(64) {
            ask(line);
        }
        // Memory from the allocator does not start on a line, so a row of whole lines lies on one more.
        if len > 1 {
            ask(bytes - 1);
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (to, start, len);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_caches() {
        assert_eq!(
            ["32768K\n", "300M", "512"].map(bytes_of),
            [Some(32 << 20), Some(300 << 20), Some(512)]
        );
        assert_eq!(["", "K", "a lot", "1G"].map(bytes_of), [None; 4]);
        if cfg!(all(target_arch = "x86_64", not(miri))) {
            assert!(from_memory(1 << 40) && !from_memory(0));
        }
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
