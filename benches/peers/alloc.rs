//! Chooses the allocator of the benchmark when it starts.
//!
//! Every operator's output is a fresh block, and how its pages are obtained can cost more than the operator.
//!
//! `BENCH_ALLOCATOR` is `mimalloc` (the default; it keeps freed blocks for the next output, forever where cargo starts
//! the benchmark: `MIMALLOC_PURGE_DELAY=-1` in `.cargo/config.toml`), `system` (the C library's, which maps a large
//! block again each time), `huge` (the same, on huge pages) or `counted` (the same, counting the bytes in use).

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use mimalloc::MiMalloc;

pub(crate) struct Chosen;

const UNKNOWN: u8 = 0;
const SYSTEM: u8 = 1;
const MIMALLOC: u8 = 2;
const HUGE: u8 = 3;
const COUNTED: u8 = 4;

/// Bytes in use of a counted run, and the most there were.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// Counts from here on: the most bytes in use later, less those of now.
pub(crate) fn begin() -> usize {
    let live = LIVE.load(Ordering::SeqCst);
    MOST.store(live, Ordering::SeqCst);
    live
}

/// The most bytes in use since [`begin`]; 0 where they are not counted.
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

/// The same answer on every call, so that a block goes back where it came from.
#[inline]
fn choice() -> u8 {
    match CHOICE.load(Ordering::Relaxed) {
        UNKNOWN => {
            // `std::env` allocates. SAFETY: the name ends in 0; nothing sets variables while the first blocks
            // are asked for, before `main`; the answer is a string that ends in 0, read at once.
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

/// Asks for huge pages under a large block; a hint.
fn advise(block: *mut u8, size: usize) -> *mut u8 {
    const PAGE: usize = 2 << 20;
    let (start, end) =
        ((block as usize).next_multiple_of(PAGE), (block as usize + size) / PAGE * PAGE);
    if choice() == HUGE && !block.is_null() && start < end {
        // SAFETY: the range lies inside the block just made; the advice changes no contents.
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
