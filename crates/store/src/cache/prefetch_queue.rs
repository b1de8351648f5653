//! Prefetch queue: worker threads prepare items, and the consumer pops them in order.

use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

/// The consumer's end of a prefetch queue. Dropping it closes the channel, which ends the worker threads.
#[derive(Debug)]
pub(super) struct PrefetchQueue<T> {
    receive: Option<Receiver<T>>,
    threads: Vec<JoinHandle<()>>,
}

impl<T> PrefetchQueue<T> {
    pub(super) fn new(receive: Receiver<T>, threads: Vec<JoinHandle<()>>) -> Self {
        Self { receive: Some(receive), threads }
    }

    /// Pops the next item; `None` after the last one. Propagates a panic of a worker thread.
    pub(super) fn next(&mut self) -> Option<T> {
        let next = self.receive.as_ref()?.recv().ok();
        if next.is_none() {
            self.end();
        }
        next
    }

    /// Joins the threads and propagates their panics.
    fn end(&mut self) {
        self.receive = None;
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join()
                && !std::thread::panicking()
            {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

impl<T> Drop for PrefetchQueue<T> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn panics_and_early_ends() {
        let thread = |panics: bool| {
            let (put, next) = sync_channel(0);
            let thread = std::thread::spawn(move || {
                for i in 0..3 {
                    assert!(!panics || i < 2, "the third fails");
                    if put.send(i).is_err() {
                        return;
                    }
                }
            });
            PrefetchQueue::new(next, vec![thread])
        };
        let mut all = thread(false);
        assert_eq!(
            [all.next(), all.next(), all.next(), all.next(), all.next()],
            [Some(0), Some(1), Some(2), None, None]
        );
        let mut early = thread(false);
        assert_eq!(early.next(), Some(0));
        drop(early);
        let mut failing = thread(true);
        assert_eq!([failing.next(), failing.next()], [Some(0), Some(1)]);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| failing.next()));
        assert_eq!(panic.unwrap_err().downcast_ref::<&str>(), Some(&"the third fails"));
    }
}
