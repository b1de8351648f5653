//! Ends the tests where a reader does not end, which nothing else would tell.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Stops watching when it is dropped.
pub(crate) struct Watch {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Aborts the process if the result is not dropped after half a minute and, for large files, as long for each megabyte: a reader whose
/// time grows with the square of a file takes longer, one on a busy machine does not.
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
