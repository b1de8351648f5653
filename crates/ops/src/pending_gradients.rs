//! Collects the gradients of an operation's results until all of them are there.
//!
//! Autodiff knows operations of one result, and adds up what several of them pass to one input. So
//! each result leaves its gradient here and passes on a tensor of one entry, which says only
//! that backward of the input is due.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Gradients so far, in a form that the backend chooses.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingGradients(Arc<Mutex<Option<Box<dyn Any + Send>>>>);

impl PendingGradients {
    /// Adds to what is there so far, which `new` begins. `add` may use the thread pool: no lock is held meanwhile, for
    /// a thread that waits for its part of the work takes other tasks of the pool, and those may come here. Nobody else
    /// asks for the same gradients meanwhile, as Burn locks a graph during its backward, whichever thread runs that.
    pub(crate) fn with<T: Send + 'static>(
        &self,
        new: impl FnOnce() -> T,
        add: impl FnOnce(&mut T),
    ) {
        // Backward of all results and of the input runs on one backend, so what is there is a `T`.
        let mut gradients = self.take().unwrap_or_else(new);
        add(&mut gradients);
        *self.lock() = Some(Box::new(gradients));
    }
    /// What is there, once.
    pub(crate) fn take<T: 'static>(&self) -> Option<T> {
        let gradients = self.lock().take()?;
        gradients.downcast::<T>().ok().map(|gradients| *gradients)
    }
    fn lock(&self) -> MutexGuard<'_, Option<Box<dyn Any + Send>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;

    use rayon::prelude::*;

    use super::*;

    #[test]
    fn what_was_added_is_taken_once() {
        let pending = PendingGradients::default();
        pending.with(Vec::new, |all| all.push(1));
        pending.clone().with(Vec::new, |all| all.push(2));
        assert_eq!(pending.take(), Some(vec![1, 2]));
        assert_eq!(pending.take::<Vec<i32>>(), None);
    }

    /// A thread that waits for its part of the work in one call takes another call.
    #[test]
    fn calls_inside_of_calls_do_not_wait_for_each_other() {
        let (done, wait) = channel();
        std::thread::spawn(move || {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
            let (outer, inner) = (PendingGradients::default(), PendingGradients::default());
            let sum =
                |n: &mut u64| *n += (0..1 << 12).into_par_iter().map(|i: u64| i % 7).sum::<u64>();
            pool.install(|| {
                (0..64).into_par_iter().with_max_len(1).for_each(|i| {
                    let [first, second] =
                        if i % 2 == 0 { [&outer, &inner] } else { [&inner, &outer] };
                    first.with(
                        || 0,
                        |n| {
                            sum(n);
                            second.with(|| 0, sum);
                        },
                    );
                });
            });
            let _ = done.send(outer.take::<u64>().is_some() && inner.take::<u64>().is_some());
        });
        // A thread that hangs is left behind.
        match wait.recv_timeout(Duration::from_secs(60)) {
            Ok(both) => assert!(both),
            Err(RecvTimeoutError::Timeout) => panic!("calls wait for each other"),
            Err(RecvTimeoutError::Disconnected) => panic!("a call panicked"),
        }
    }
}
