//! Prefetch distances, and the size of the last-level cache.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Whether rows out of `bytes` bytes of data come from main memory: the data exceed half of the last-level cache. Linux
/// reports its size; elsewhere it is assumed to be 32 MiB. `BURN_GNN_CACHE` overrides it, in bytes. Call it once per
/// kernel, not per row.
pub(crate) fn from_memory(bytes: usize) -> bool {
    /// Size of the cache; 0 until it is read.
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

/// The size of cache `index` of the first processor, if its level is 3 or higher.
fn last_level(index: usize) -> Option<usize> {
    let read = |what: &str| {
        std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}"))
    };
    let level: u32 = read("level").ok()?.trim().parse().ok()?;
    if level < 3 { None } else { bytes_of(&read("size").ok()?) }
}

/// Parses a size such as `32768K`.
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

/// Factor of the prefetch distance for rows that come from main memory, which are prefetched into the second cache level.
pub(crate) const FAR: usize = 3;

/// Prefetch distance, in edges, of rows of `width` entries. It keeps about 4 KiB in flight, which saturates main memory,
/// but at least 16 and at most 64 rows.
#[inline(always)]
pub(crate) fn ahead<T>(width: usize) -> usize {
    (4096 / (width * size_of::<T>()).max(1)).clamp(16, 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_sizes_are_parsed() {
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
