//! Aborts tests whose reader does not end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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
