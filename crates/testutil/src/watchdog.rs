//! Ends a process whose threads hang, and prints the current step of each thread.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time limit of a step. Every step of a test takes less than a tenth of it.
const LIMIT: Duration = Duration::from_secs(120);

type Steps = Arc<Mutex<BTreeMap<u64, (String, String, Instant)>>>;

/// Monitors its [`Task`]s on a separate thread until it is dropped.
#[derive(Debug)]
pub struct Watchdog {
    steps: Steps,
    next: std::sync::atomic::AtomicU64,
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

/// The current step of one thread; dropping it ends the task.
#[derive(Debug)]
pub struct Task {
    steps: Steps,
    number: u64,
    name: String,
}

impl Watchdog {
    /// Starts the monitoring thread.
    pub fn new() -> Self {
        let steps = Steps::default();
        let (stop, stopped) = channel();
        let watched = steps.clone();
        let watch = move || {
            while stopped.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                let steps = watched.lock().unwrap_or_else(PoisonError::into_inner);
                if steps.values().any(|(_, _, since)| since.elapsed() > LIMIT) {
                    let lines = steps.values().map(|(name, step, since)| {
                        format!("  {name}: {step}, for {:?}\n", since.elapsed())
                    });
                    let text = format!(
                        "\nthreads of this test do not make progress:\n{}",
                        lines.collect::<String>()
                    );
                    // Bypasses the capture of output, which an abort would lose.
                    _ = std::io::stderr().write_all(text.as_bytes());
                    std::process::abort();
                }
            }
        };
        Self { steps, next: 0.into(), thread: Some((stop, std::thread::spawn(watch))) }
    }

    /// Begins a task of the calling thread with its first `step`.
    pub fn task(&self, name: impl Into<String>, step: impl Into<String>) -> Task {
        let number = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let task = Task { steps: self.steps.clone(), number, name: name.into() };
        task.step(step);
        task
    }
}

impl Default for Watchdog {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            drop(stop);
            _ = thread.join();
        }
    }
}

impl Task {
    /// Begins the next step.
    pub fn step(&self, step: impl Into<String>) {
        let entry = (self.name.clone(), step.into(), Instant::now());
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).insert(self.number, entry);
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}
