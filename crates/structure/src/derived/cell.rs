//! Caches a value that is computed on first use, without holding a lock during the computation.

use std::convert::Infallible;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::memory::bytes::{Bytes, CountBytes};

/// How long a thread waits for another thread that computes the same value, before it computes the value itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// A cell whose value is computed on first use and then kept, for example the CSC layout of a relation.
///
/// Every cache of this library is a `Derived` or a [`DerivedMap`](crate::DerivedMap), a table of `Derived` cells.
/// `OnceLock::get_or_init`, or a `Mutex` held during the computation, can deadlock if the computation uses rayon: a
/// worker that waits in `join` runs other tasks of the pool, and one of these may read the cell that the same worker is
/// computing. The worker would wait for itself.
///
/// # How it is filled
/// [`get_or_compute`](Self::get_or_compute) returns the value if there is one. Otherwise it computes the value without
/// holding a lock, and publishes it. If several threads compute at once, the value that is published first is kept, and
/// the other values are dropped. So a computation must be a pure function: all results must be equal.
///
/// # Which threads wait
/// The cell avoids computing a value twice where it can. If there is no value yet,
///
/// * a worker of a rayon pool computes at once, and no thread waits for it. A worker may be in the middle of another
///   computation, and during its own computation it may run a task that waits for other threads;
/// * any other thread waits if such a thread already computes, until that thread ends, but at most ten seconds. Then it
///   computes the value itself. If several threads wait, one of them does so, and the others wait another ten seconds.
///
/// So one thread computes, in addition to the workers that read the cell at the same time. Parallel code should read a
/// cell before it spawns the tasks that need the value.
///
/// # Why it cannot deadlock
/// Every wait ends after ten seconds, whatever other threads do. The mutex of a cell is held for a few instructions,
/// which do not compute, wait, allocate, or drop a value. So a cell can delay a thread, but it is never part of a
/// deadlock:
///
/// * A worker never waits, so the tasks of all pools make progress.
/// * A thread outside of the pools may wait for workers, but workers never wait for it. There is one exception: a worker
///   that runs a part of the computation may run an unrelated task that blocks on a thread that waits for this cell, by
///   a channel or a lock. That thread stops waiting after ten seconds and computes the value itself. Tasks of a pool
///   should not block on threads that use the pool, as rayon recommends; then this delay does not occur.
/// * A computation may read other cells, whose waits end as well. It must not read its own cell: that would recurse
///   without end.
/// * A computation that panics or returns an error wakes the waiting threads, and one of them computes.
///
/// ```
/// use burn_gnn_structure::Derived;
/// let squares = Derived::new();
/// assert_eq!(squares.get(), None);
/// assert_eq!(squares.get_or_compute(|| vec![0, 1, 4]), &[0, 1, 4]);
/// assert_eq!(squares.get_or_compute(Vec::new), &[0, 1, 4]);
/// ```
pub struct Derived<T> {
    value: OnceLock<T>,
    turn: Mutex<Turn>,
    ended: Condvar,
}

/// The computation that other threads wait for.
#[derive(Debug)]
struct Turn {
    taken: bool,
    /// Distinguishes this computation from earlier ones.
    number: u64,
}

/// Ends the turn of the computing thread on drop, so also when it unwinds, and wakes the waiting threads.
struct Computing<'a, T> {
    cell: &'a Derived<T>,
    /// Number of the turn; `None` for a worker of a pool, for which no thread waits.
    number: Option<u64>,
}

impl<T> Drop for Computing<'_, T> {
    fn drop(&mut self) {
        let mut turn = self.cell.lock();
        if self.number == Some(turn.number) {
            turn.taken = false;
        }
        drop(turn);
        self.cell.ended.notify_all();
    }
}

impl<T> Derived<T> {
    /// An empty cell.
    pub const fn new() -> Self {
        Self {
            value: OnceLock::new(),
            turn: Mutex::new(Turn { taken: false, number: 0 }),
            ended: Condvar::new(),
        }
    }

    /// The value, if it has been computed.
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// Returns the value, and computes it with `compute` if there is none. [`Derived`] describes what happens if several
    /// threads call this at once.
    pub fn get_or_compute(&self, compute: impl FnOnce() -> T) -> &T {
        match self.try_get_or_compute(|| Ok::<T, Infallible>(compute())) {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// [`get_or_compute`](Self::get_or_compute) for a computation that may fail.
    ///
    /// # Errors
    /// The error of `compute`. The cell stays empty, and the next call computes again.
    pub fn try_get_or_compute<E>(&self, compute: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        self.fill(PATIENCE, compute)
    }

    /// [`try_get_or_compute`](Self::try_get_or_compute) with a given limit on every wait.
    fn fill<E>(&self, patience: Duration, compute: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        if let Some(computing) = self.begin(patience) {
            let value = compute()?;
            // If another thread published first, this value is dropped, outside of all locks.
            let second = self.value.set(value);
            drop(computing);
            drop(second);
        }
        Ok(self.value.get().unwrap_or_else(|| {
            unreachable!("published by this thread or the one that it waited for")
        }))
    }

    /// Starts a turn of this thread; `None` if another thread has published the value by now.
    fn begin(&self, patience: Duration) -> Option<Computing<'_, T>> {
        if rayon::current_thread_index().is_some() {
            return Some(Computing { cell: self, number: None });
        }
        let mut turn = self.lock();
        while turn.taken && self.value.get().is_none() {
            let number = turn.number;
            let goes_on =
                |turn: &mut Turn| turn.taken && turn.number == number && self.value.get().is_none();
            let (woken, wait) = self
                .ended
                .wait_timeout_while(turn, patience, goes_on)
                .unwrap_or_else(PoisonError::into_inner);
            turn = woken;
            if wait.timed_out() {
                turn.taken = false;
            }
        }
        if self.value.get().is_some() {
            return None;
        }
        turn.taken = true;
        turn.number += 1;
        Some(Computing { cell: self, number: Some(turn.number) })
    }

    fn lock(&self) -> MutexGuard<'_, Turn> {
        // The code that runs with the lock held cannot panic, so a poisoned lock has valid data.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Derived<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for Derived<T> {
    /// A filled cell.
    fn from(value: T) -> Self {
        Self { value: value.into(), ..Self::new() }
    }
}

/// Counts the computed value.
impl<T: CountBytes> CountBytes for Derived<T> {
    fn bytes(&self) -> Bytes {
        self.get().map_or_else(Bytes::default, T::bytes)
    }
}

impl<T: Clone> Clone for Derived<T> {
    /// A cell with a copy of the value, if it is computed.
    fn clone(&self) -> Self {
        self.get().cloned().map_or_else(Self::new, Self::from)
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Derived<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.get() {
            Some(value) => write!(f, "Derived({value:?})"),
            None => f.write_str("Derived(not computed)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Barrier};
    use std::time::Instant;

    use rayon::prelude::*;

    use super::*;

    #[test]
    fn computed_once_and_published() {
        let cell = Derived::new();
        assert_eq!((cell.get(), format!("{cell:?}").as_str()), (None, "Derived(not computed)"));
        assert_eq!(cell.try_get_or_compute(|| Err("no")), Err("no"));
        assert_eq!(cell.try_get_or_compute(|| Ok::<_, ()>(7)), Ok(&7));
        assert_eq!(cell.get_or_compute(|| unreachable!("there is a value")), &7);
        assert_eq!((cell.clone().get(), Derived::from(3).get()), (Some(&7), Some(&3)));
    }

    /// Longer than any test runs.
    const FOR_EVER: Duration = Duration::from_secs(3600);

    /// Threads outside of the pools wait for the computing thread: of eight threads one computes.
    #[test]
    fn threads_outside_of_pools_share_one_computation() {
        let (cell, count) = (Derived::new(), AtomicUsize::new(0));
        let (begun, started, released) = (Barrier::new(2), Barrier::new(8), Barrier::new(2));
        let compute = |wait: &dyn Fn()| {
            count.fetch_add(1, Ordering::SeqCst);
            wait();
            Ok::<_, Infallible>((0..1 << 16).into_par_iter().map(|i: u64| i * i).sum::<u64>())
        };
        let first = || {
            *cell
                .fill(FOR_EVER, || {
                    compute(&|| {
                        begun.wait();
                        released.wait();
                    })
                })
                .unwrap()
        };
        let other = || {
            started.wait();
            *cell.fill(FOR_EVER, || compute(&|| ())).unwrap()
        };
        let values: Vec<u64> = std::thread::scope(|s| {
            let mut threads = vec![s.spawn(first)];
            begun.wait();
            threads.extend((0..7).map(|_| s.spawn(other)));
            started.wait();
            // Gives threads that do not wait the time to compute.
            std::thread::sleep(Duration::from_millis(100));
            let computing = count.load(Ordering::SeqCst);
            released.wait();
            assert_eq!(computing, 1);
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(values.iter().all(|v| *v == values[0]));
        assert_eq!(count.into_inner(), 1);
    }

    /// A computation that fails after another thread has started a turn does not end that turn: threads that wait for the
    /// second computation keep waiting.
    #[test]
    fn a_late_failure_does_not_end_another_turn() {
        let cell = Derived::new();
        let [a_begun, a_released, b_begun, b_released] = [(); 4].map(|()| Barrier::new(2));
        let (c_computes, c_asks) = (AtomicUsize::new(0), Barrier::new(2));
        std::thread::scope(|s| {
            // The first turn.
            let a = s.spawn(|| {
                cell.fill(FOR_EVER, || {
                    a_begun.wait();
                    a_released.wait();
                    Err("late")
                })
                .copied()
            });
            a_begun.wait();
            // The second turn, which starts after a wait has timed out.
            let b = s.spawn(|| {
                cell.fill(Duration::from_millis(10), || {
                    b_begun.wait();
                    b_released.wait();
                    Ok::<_, &str>(2)
                })
                .copied()
            });
            b_begun.wait();
            let c = s.spawn(|| {
                c_asks.wait();
                cell.fill(FOR_EVER, || {
                    c_computes.fetch_add(1, Ordering::SeqCst);
                    Ok::<_, &str>(3)
                })
                .copied()
            });
            c_asks.wait();
            // Gives `c` the time to start waiting and, after the failure of `a`, to compute if it does not wait for `b`.
            std::thread::sleep(Duration::from_millis(50));
            a_released.wait();
            let a = a.join().unwrap();
            std::thread::sleep(Duration::from_millis(100));
            let computed = c_computes.load(Ordering::SeqCst);
            b_released.wait();
            assert_eq!((a, computed), (Err("late"), 0));
            assert_eq!((b.join().unwrap(), c.join().unwrap()), (Ok(2), Ok(2)));
        });
    }

    /// A worker waits in `join` and runs a task that reads the cell that the worker fills. With `OnceLock` this
    /// deadlocked.
    #[test]
    fn workers_that_steal_do_not_wait_for_themselves() {
        for threads in [1, 2, 4] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let cell = Derived::new();
            let ask = || {
                *cell.get_or_compute(|| {
                    (0..1 << 12).into_par_iter().with_max_len(1).map(|i: u32| i % 7).sum::<u32>()
                })
            };
            let want: u32 = (0..1 << 12).map(|i| i % 7).sum();
            assert!(
                pool.install(|| (0..64).into_par_iter().with_max_len(1).all(|_| ask() == want))
            );
        }
    }

    /// Two threads wait for each other, one of them through another lock: the wait for the cell times out.
    #[test]
    fn a_cycle_through_another_lock_times_out() {
        let (cell, begun, released) = (Derived::new(), Barrier::new(2), Barrier::new(2));
        std::thread::scope(|s| {
            s.spawn(|| {
                cell.get_or_compute(|| {
                    begun.wait();
                    released.wait();
                    1
                })
            });
            begun.wait();
            let asked = Instant::now();
            assert_eq!(cell.fill(Duration::from_millis(20), || Ok::<_, Infallible>(1)), Ok(&1));
            let waited = asked.elapsed();
            released.wait();
            assert!(
                waited >= Duration::from_millis(20),
                "computed after {waited:?}, without waiting"
            );
        });
    }

    /// If a computation panics or returns an error, a waiting thread is woken and computes.
    #[test]
    fn a_failed_computation_wakes_waiting_threads() {
        for panics in [false, true] {
            let (cell, begun, done) =
                (Arc::new(Derived::new()), Arc::new(Barrier::new(2)), std::sync::mpsc::channel());
            let failing = std::thread::spawn({
                let (cell, begun) = (cell.clone(), begun.clone());
                move || {
                    let fail = || {
                        begun.wait();
                        // By now the other thread most likely waits. If it does not yet, no turn is taken.
                        std::thread::sleep(Duration::from_millis(20));
                        if panics {
                            panic!("the first one fails")
                        } else {
                            Err("the first one fails")
                        }
                    };
                    catch_unwind(AssertUnwindSafe(|| cell.fill(FOR_EVER, fail).is_err()))
                        .unwrap_or(true)
                }
            });
            std::thread::spawn(move || {
                begun.wait();
                done.0.send(cell.fill(FOR_EVER, || Ok::<_, Infallible>(2)).copied())
            });
            assert_eq!(
                done.1.recv_timeout(Duration::from_secs(60)),
                Ok(Ok(2)),
                "the waiting thread was not woken"
            );
            assert!(failing.join().unwrap());
        }
    }
}
