//! Collects the gradients of several results of one operation until all of them have been computed.
//!
//! An operation of Burn's autodiff has a single result, and the gradients that several operations pass to one input are
//! added. An operation with several results is therefore split: backward of each result stores its gradient here and
//! passes on a tensor of one entry, whose only purpose is that backward of the input runs afterwards.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The gradients stored so far, of a type that the backend chooses.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingGradients(Arc<Mutex<Option<Box<dyn Any + Send>>>>);

impl PendingGradients {
    /// Applies `add` to the stored value, which `new` creates at first.
    ///
    /// No lock is held while `add` runs, because it may use the thread pool: a thread that waits there may run another
    /// task of the pool, and that task may call this function too. No other thread calls it for the same gradients,
    /// since Burn locks a graph during its backward.
    pub(crate) fn with<T: Send + 'static>(
        &self,
        new: impl FnOnce() -> T,
        add: impl FnOnce(&mut T),
    ) {
        // Backward of all results and of the input runs on one backend, so the stored value is a `T`.
        let mut gradients = self.take().unwrap_or_else(new);
        add(&mut gradients);
        *self.lock() = Some(Box::new(gradients));
    }
    /// Takes the stored value.
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
    fn a_value_is_taken_once() {
        let pending = PendingGradients::default();
        pending.with(Vec::new, |all| all.push(1));
        pending.clone().with(Vec::new, |all| all.push(2));
        assert_eq!(pending.take(), Some(vec![1, 2]));
        assert_eq!(pending.take::<Vec<i32>>(), None);
    }

    /// A thread that waits in one call may run another call.
    #[test]
    fn nested_calls_do_not_deadlock() {
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
        // After a timeout the hanging thread is abandoned.
        match wait.recv_timeout(Duration::from_secs(60)) {
            Ok(both) => assert!(both),
            Err(RecvTimeoutError::Timeout) => panic!("deadlock"),
            Err(RecvTimeoutError::Disconnected) => panic!("a call panicked"),
        }
    }
}
