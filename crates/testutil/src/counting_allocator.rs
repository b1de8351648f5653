//! Counts allocations, for tests of memory. The counters are global, so each test needs a separate
//! binary, or tests must run sequentially.
#![allow(unsafe_code, reason = "an allocator is unsafe to write")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator with counters: `#[global_allocator] static ALLOCATOR: CountingAllocator =
/// CountingAllocator;`.
#[derive(Debug)]
pub struct CountingAllocator;

static CALLS: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static START: AtomicUsize = AtomicUsize::new(0);

/// Allocations so far.
pub fn calls() -> usize {
    CALLS.load(Relaxed)
}

/// Bytes in use.
pub fn live() -> usize {
    LIVE.load(Relaxed)
}

/// Resets the peak to the bytes in use.
pub fn reset() {
    START.store(live(), Relaxed);
    MOST.store(live(), Relaxed);
}

/// Peak of the bytes in use since the last reset, minus the bytes in use at the reset.
pub fn above_reset() -> usize {
    MOST.load(Relaxed).saturating_sub(START.load(Relaxed))
}

/// Peak of the bytes in use during `run`, minus `before`.
pub fn peak(before: usize, run: impl FnOnce()) -> usize {
    reset();
    run();
    MOST.load(Relaxed) - before
}

fn add(bytes: usize) {
    CALLS.fetch_add(1, Relaxed);
    MOST.fetch_max(LIVE.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: every call is passed on unchanged to the system's allocator; counting does not allocate.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as promised to this function.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as promised to this function.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as promised to this function.
        unsafe { System.dealloc(block, layout) }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as promised to this function.
        unsafe { System.realloc(block, layout, size) }
    }
}
