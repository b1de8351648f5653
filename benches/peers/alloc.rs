//! Chooses the allocator of the benchmark when it starts.
//!
//! Every operator allocates its output, and obtaining the pages can cost more than the operator.
//!
//! `BENCH_ALLOCATOR` is `mimalloc` (the default; it keeps freed blocks for the next output; if
//! cargo starts the benchmark, it never returns them: `MIMALLOC_PURGE_DELAY=-1` in
//! `.cargo/config.toml`), `system` (the C library's, which maps large blocks on each allocation),
//! `huge` (the same with huge pages) or `counted` (the same with a counter of the bytes in use).

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use mimalloc::MiMalloc;

pub(crate) struct Chosen;

const UNKNOWN: u8 = 0;
const SYSTEM: u8 = 1;
const MIMALLOC: u8 = 2;
const HUGE: u8 = 3;
const COUNTED: u8 = 4;

/// Bytes in use of a counted run, and their peak.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// Starts counting: the peak of the bytes in use, minus the bytes in use now.
pub(crate) fn begin() -> usize {
    let live = LIVE.load(Ordering::SeqCst);
    MOST.store(live, Ordering::SeqCst);
    live
}

/// Returns the peak of the bytes in use since [`begin`]; 0 without counting.
pub(crate) fn most() -> usize {
    MOST.load(Ordering::SeqCst)
}

fn count(new: usize, old: usize) {
    if choice() == COUNTED {
        let live = LIVE.fetch_add(new, Ordering::SeqCst) + new - old;
        LIVE.fetch_sub(old, Ordering::SeqCst);
        MOST.fetch_max(live, Ordering::SeqCst);
    }
}

static CHOICE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Returns the same allocator on every call, so that a block is freed by the allocator that created
/// it.
#[inline]
fn choice() -> u8 {
    match CHOICE.load(Ordering::Relaxed) {
        UNKNOWN => {
            // `std::env` allocates. SAFETY: the name ends in 0; no variables are set during the
            // first allocations, before `main`; the result is a string that ends in 0 and is read
            // immediately.
            let asked = unsafe {
                let value = libc::getenv(c"BENCH_ALLOCATOR".as_ptr());
                if value.is_null() { c"mimalloc" } else { std::ffi::CStr::from_ptr(value) }
            };
            let choice = match asked.to_bytes() {
                b"system" => SYSTEM,
                b"huge" => HUGE,
                b"counted" => COUNTED,
                _ => MIMALLOC,
            };
            CHOICE.store(choice, Ordering::Relaxed);
            choice
        }
        choice => choice,
    }
}

/// Name of the allocator in use.
pub(crate) fn name() -> &'static str {
    match choice() {
        SYSTEM => "system",
        HUGE => "huge",
        COUNTED => "counted",
        _ => "mimalloc",
    }
}

/// Advises the kernel to use huge pages for a large block.
fn advise(block: *mut u8, size: usize) -> *mut u8 {
    const PAGE: usize = 2 << 20;
    let (start, end) =
        ((block as usize).next_multiple_of(PAGE), (block as usize + size) / PAGE * PAGE);
    if choice() == HUGE && !block.is_null() && start < end {
        // SAFETY: the range is inside the new block; the advice does not change its contents.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
    block
}

// SAFETY: every call is passed on unchanged to one of two allocators, the same one for all calls.
unsafe impl GlobalAlloc for Chosen {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as promised to this function.
        unsafe {
            if choice() == MIMALLOC {
                MiMalloc.alloc(layout)
            } else {
                advise(System.alloc(layout), layout.size())
            }
        }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as promised to this function.
        unsafe {
            if choice() == MIMALLOC {
                MiMalloc.alloc_zeroed(layout)
            } else {
                advise(System.alloc_zeroed(layout), layout.size())
            }
        }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as promised to this function; the block came from the same allocator.
        unsafe {
            if choice() == MIMALLOC {
                MiMalloc.dealloc(block, layout)
            } else {
                System.dealloc(block, layout)
            }
        }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: as promised to this function; the block came from the same allocator.
        unsafe {
            if choice() == MIMALLOC {
                MiMalloc.realloc(block, layout, size)
            } else {
                System.realloc(block, layout, size)
            }
        }
    }
}
