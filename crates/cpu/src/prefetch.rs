//! Says which data come from memory, by the size of the last-level cache.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Whether rows of so many bytes of data come from memory: they do not fit in half of the last-level cache, as Linux
/// reports its size (32 MiB elsewhere; `BURN_GNN_CACHE` sets another, in bytes). Asked once for a kernel, not for a row.
pub(crate) fn from_memory(bytes: usize) -> bool {
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

/// How many times as far ahead rows that come from memory are prefetched, into the second level of the cache.
pub(crate) const FAR: usize = 3;

/// How many edges ahead a row of `width` entries is prefetched: about 4 KiB of rows are in flight, as
/// many as memory can serve at once, but not fewer than 16 and not more than 64.
#[inline(always)]
pub(crate) fn ahead<T>(width: usize) -> usize {
    (4096 / (width * size_of::<T>()).max(1)).clamp(16, 64)
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
}
