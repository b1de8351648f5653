//! Prefetches memory before it is read.

/// Asks for the cache lines of `data[at..at + len]`; a hint, so places outside of `data` do no harm.
///
/// Rows of neighbours lie anywhere; asked for some rows ahead, they arrive while earlier ones are read.
#[inline(always)]
#[doc(hidden)]
pub fn prefetch<T>(data: &[T], at: usize, len: usize) {
    prefetch_at(data.as_ptr().wrapping_add(at), len);
}

/// [`prefetch`] of `len` entries from an address.
#[allow(unsafe_code, reason = "an instruction of the processor, on x86-64 alone")]
#[inline(always)]
#[doc(hidden)]
pub fn prefetch_at<T>(start: *const T, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let (start, bytes) = (start.cast::<i8>(), len * size_of::<T>());
        // SAFETY: a prefetch never faults, whatever the address, and reads nothing.
        let ask = |at: usize| unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(at)) };
        for line in (0..bytes).step_by(64) {
            ask(line);
        }
        // Memory from the allocator does not start on a line, so a row of whole lines lies on one more.
        if len > 1 {
            ask(bytes - 1);
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (start, len);
}
