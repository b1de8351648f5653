//! The allocator of the benchmark, chosen when it starts: every operator's output is a fresh block, and how
//! its pages are obtained can cost more than the operator.
//!
//! `BENCH_ALLOCATOR=system` is the C library's, `mimalloc` (the default) keeps freed blocks for the next
//! output. What mimalloc does with freed memory is set by its own variables (`MIMALLOC_PURGE_DELAY=-1`: keep
//! it all).

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU8, Ordering};

use mimalloc::MiMalloc;

pub(crate) struct Chosen;

const UNKNOWN: u8 = 0;
const SYSTEM: u8 = 1;
const MIMALLOC: u8 = 2;

static CHOICE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The same answer on every call, so that a block goes back where it came from.
#[inline]
fn system() -> bool {
    match CHOICE.load(Ordering::Relaxed) {
        UNKNOWN => {
            // `std::env` allocates. SAFETY: the name ends in 0; nothing sets variables while the first blocks
            // are asked for, before `main`; the answer is a string that ends in 0, read at once.
            let asked = unsafe {
                let value = libc::getenv(c"BENCH_ALLOCATOR".as_ptr());
                !value.is_null() && std::ffi::CStr::from_ptr(value).to_bytes() == b"system"
            };
            CHOICE.store(if asked { SYSTEM } else { MIMALLOC }, Ordering::Relaxed);
            asked
        }
        choice => choice == SYSTEM,
    }
}

/// Name of the allocator in use.
pub(crate) fn name() -> &'static str {
    if system() { "system" } else { "mimalloc" }
}

// SAFETY: every call is passed on unchanged to one of two allocators, the same one for all calls.
unsafe impl GlobalAlloc for Chosen {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised to this function.
        unsafe { if system() { System.alloc(layout) } else { MiMalloc.alloc(layout) } }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised to this function.
        unsafe { if system() { System.alloc_zeroed(layout) } else { MiMalloc.alloc_zeroed(layout) } }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as promised to this function; the block came from the same allocator.
        unsafe { if system() { System.dealloc(block, layout) } else { MiMalloc.dealloc(block, layout) } }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as promised to this function; the block came from the same allocator.
        unsafe { if system() { System.realloc(block, layout, size) } else { MiMalloc.realloc(block, layout, size) } }
    }
}
