//! Allocates large buffers on huge pages.

/// Size in bytes from which a buffer is allocated on huge pages.
pub const HUGE: usize = 4 << 20;

/// An empty vector with capacity for `n` entries, on huge pages if it is large and the system supports them. With huge
/// pages, a random access that misses the cache rarely misses the TLB, too.
#[allow(unsafe_code, reason = "`madvise` on memory that was just allocated")]
pub fn huge_room<T>(n: usize) -> Vec<T> {
    let out: Vec<T> = Vec::with_capacity(n);
    #[cfg(all(target_os = "linux", not(miri)))]
    if n * size_of::<T>() >= HUGE {
        const PAGE: usize = 2 << 20;
        let (start, end) = (out.as_ptr() as usize, out.as_ptr() as usize + n * size_of::<T>());
        let (start, end) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
        if start < end {
            // SAFETY: the range is part of the allocation above, and `MADV_HUGEPAGE` does not change its contents.
            // On a system without huge pages the call fails and has no effect.
            unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
        }
    }
    out
}
