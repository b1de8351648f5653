//! Allocates memory that is read at random on huge pages.

/// Bytes from which a huge page can pay.
pub const HUGE: usize = 4 << 20;

/// Room for `n` entries; large room lies on huge pages where the system has them. An access at random then misses the
/// cache alone, not the page table as well.
#[allow(unsafe_code, reason = "advice to the system about memory that was just taken")]
#[doc(hidden)]
pub fn huge_room<T>(n: usize) -> Vec<T> {
    let out: Vec<T> = Vec::with_capacity(n);
    #[cfg(all(target_os = "linux", not(miri)))]
    if n * size_of::<T>() >= HUGE {
        const PAGE: usize = 2 << 20;
        let (start, end) = (out.as_ptr() as usize, out.as_ptr() as usize + n * size_of::<T>());
        let (start, end) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
        if start < end {
            // SAFETY: the range lies inside the allocation just made, and the advice changes no contents.
            // Failure (a system without huge pages) leaves everything as it was.
            unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
        }
    }
    out
}
