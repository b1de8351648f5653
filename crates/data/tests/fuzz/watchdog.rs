//! Measures readers of damaged files, and aborts where one does not end. The fuzzer of `burn-gnn-store` takes this file
//! too.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use burn_gnn_testutil::counting_allocator;

/// Stops watching when it is dropped.
pub(crate) struct Watch {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// CPU time of the calling thread in seconds, which other programs do not change; where the system does not
/// report it, time itself.
pub(crate) fn thread_seconds() -> f64 {
    #[cfg(unix)]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the call writes one `timespec`, which `time` is.
        if unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) } == 0 {
            return time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9;
        }
    }
    std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0.0, |time| time.as_secs_f64())
}

/// Seconds that a reader may take for files of so many bytes, several times what the slowest one does: time that grows
/// with the square of a file is beyond it in some hundred kilobytes.
pub(crate) fn seconds(bytes: usize) -> f64 {
    1.0 + 3.0 * bytes as f64 / 1e6
}

/// Aborts the process if the result is not dropped after half a minute and, for large files, as long for each megabyte:
/// a reader that does not end takes longer, one on a busy machine does not. How long one takes that ends is compared
/// with [`seconds`].
pub(crate) fn watch(what: String, bytes: usize) -> Watch {
    let patience = Duration::from_secs(30) * (1 + bytes as u32 / (1 << 20));
    let (done, begin) = (Arc::new(AtomicBool::new(false)), Instant::now());
    let stop = done.clone();
    let thread = std::thread::spawn(move || {
        while !stop.load(Ordering::Acquire) {
            if begin.elapsed() > patience {
                eprintln!("{what}: still reading {bytes} bytes after {patience:?}");
                std::process::abort();
            }
            std::thread::park_timeout(Duration::from_millis(500));
        }
    });
    Watch { done, thread: Some(thread) }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// What a reader was seen to need.
#[derive(Default)]
pub(crate) struct Worst {
    pub(crate) cases: u64,
    pub(crate) accepted: u64,
    pub(crate) bytes: u64,
    /// Bytes of memory beyond what any file may take, for each byte.
    pub(crate) memory: f64,
    pub(crate) most: usize,
    /// Seconds of CPU time for a megabyte, of files long enough to measure.
    pub(crate) time: f64,
}

impl Worst {
    /// Reads files of `looked_at` bytes, in at most `limit` bytes of memory: for any file, and for each byte of it.
    pub(crate) fn read(
        &mut self,
        name: &str,
        case: u64,
        looked_at: usize,
        limit: (usize, usize),
        read: impl Fn() -> bool,
    ) {
        /// Shorter files say nothing about what a byte costs.
        const LONG: usize = 1 << 16;
        let _watch = watch(format!("{name}, case {case}"), looked_at);
        counting_allocator::reset();
        let begin = thread_seconds();
        let accepted = catch_unwind(AssertUnwindSafe(read))
            .unwrap_or_else(|_| panic!("{name}, case {case}: panicked"));
        let (spent, used) = (thread_seconds() - begin, counting_allocator::above_reset());
        let (fixed, per_byte) = limit;
        let longest = seconds(looked_at);
        assert!(
            spent <= longest,
            "{name}, case {case}: {spent} s for {looked_at} bytes of files, at most {longest}"
        );
        assert!(
            used <= fixed + per_byte * looked_at,
            "{name}, case {case}: {used} bytes of memory for {looked_at} bytes of files"
        );
        self.cases += 1;
        self.accepted += u64::from(accepted);
        self.most = self.most.max(used);
        if looked_at >= LONG {
            self.memory = self.memory.max(used as f64 / looked_at as f64);
            self.time = self.time.max(spent / (looked_at as f64 / 1e6));
        }
    }
}
