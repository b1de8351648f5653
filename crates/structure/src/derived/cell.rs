//! Caches what is computed on first use, without a lock around the computation.

use std::convert::Infallible;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::memory::bytes::{Bytes, CountBytes};

/// How long a thread waits for another one that computes what both want, before it computes too.
const PATIENCE: Duration = Duration::from_secs(10);

/// A value that is computed from others when it is first needed, and kept: the layouts of a
/// relation, for example.
///
/// Every cache of this library is made of this type (or of [`DerivedMap`](crate::DerivedMap), a table of them).
/// `OnceLock::get_or_init` and a `Mutex` around the computation are not for computations that may
/// run in parallel: a worker of rayon's pool that waits in `join` takes other tasks meanwhile, and
/// one of them may ask for the cell that this worker is about to fill. It would wait for itself.
///
/// # How it is filled
/// [`get_or_compute`](Self::get_or_compute) looks; where there is nothing it computes while it
/// holds nothing, publishes, and returns what is published. Where several threads compute, the
/// value that is published first stays and the others are dropped: computations must be functions
/// of what they are derived from, so that all values are equal.
///
/// # Who waits for whom
/// Work is not done twice where that can be helped. Where there is no value yet,
///
/// * a worker of a rayon pool computes at once, and nobody waits for it: it may hold a part of
///   another computation further down its stack, and while it computes it may take a task that
///   waits for other threads;
/// * another thread waits where such a thread computes already, until that one ends, at most ten
///   seconds, and then computes as well. Of several waiting threads one does so, the others wait
///   ten seconds more for that one.
///
/// So one thread computes, and beside it the workers that ask in the same moment. Parallel code
/// asks for what its tasks need before it starts them.
///
/// # Why nothing hangs
/// No thread stays in a cell: it looks, it computes, or it waits, and every wait has an end of its
/// own, whatever other threads do. The mutex of a cell is held for a few instructions that neither
/// compute, wait, allocate, nor drop a value. So a cell delays a thread, but is never part of a
/// cycle of threads that wait for each other forever:
///
/// * A worker never waits, so tasks of a pool go on, whichever they are and however many pools
///   there are.
/// * A thread outside of the pools that computes waits for workers, never the other way round. A
///   worker that has a part of this computation may meanwhile take a task that waits for a thread
///   that waits here: on a channel, or for a lock that the waiting thread holds. That thread stops
///   waiting after its ten seconds and computes for itself. The pause is avoided by not blocking in
///   tasks of the pool on threads that compute in it, which rayon asks for anyway.
/// * A computation may ask for other cells, whose waits end too. (It must not ask for its own: that
///   is an endless recursion.)
/// * A computation that panics or errs ends its turn and wakes those who wait; one of them
///   computes.
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

/// The computation that others wait for.
#[derive(Debug)]
struct Turn {
    taken: bool,
    /// Tells one turn from the next.
    number: u64,
}

/// Ends the turn of the thread that computes, also where it unwinds, and wakes those who wait.
struct Computing<'a, T> {
    cell: &'a Derived<T>,
    /// The turn; `None` for a worker, which computes beside it.
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
    /// Nothing yet.
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

    /// The value; `compute` computes it where there is none. See [`Derived`] for what happens where
    /// several threads ask.
    pub fn get_or_compute(&self, compute: impl FnOnce() -> T) -> &T {
        match self.try_get_or_compute(|| Ok::<T, Infallible>(compute())) {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// [`get_or_compute`](Self::get_or_compute) for a computation that may fail.
    ///
    /// # Errors
    /// That of `compute`; nothing is kept then, and the next call computes again.
    pub fn try_get_or_compute<E>(&self, compute: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        self.fill(PATIENCE, compute)
    }

    /// [`try_get_or_compute`](Self::try_get_or_compute) with a limit of its own on every wait.
    fn fill<E>(&self, patience: Duration, compute: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        if let Some(computing) = self.begin(patience) {
            let value = compute()?;
            // Of two values that were computed at the same time one stays, and the other one goes
            // outside of all locks.
            let second = self.value.set(value);
            drop(computing);
            drop(second);
        }
        Ok(self.value.get().unwrap_or_else(|| {
            unreachable!("published by this thread or the one that it waited for")
        }))
    }

    /// Leave to compute, or `None` where the value was published meanwhile.
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
        // Nothing that panics runs under it.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Derived<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for Derived<T> {
    /// A value that was known before anybody asked.
    fn from(value: T) -> Self {
        Self { value: value.into(), ..Self::new() }
    }
}

/// What has been computed.
impl<T: CountBytes> CountBytes for Derived<T> {
    fn bytes(&self) -> Bytes {
        self.get().map_or_else(Bytes::default, T::bytes)
    }
}

impl<T: Clone> Clone for Derived<T> {
    /// With a copy of the value, if it has been computed.
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

    /// Longer than any test.
    const FOR_EVER: Duration = Duration::from_secs(3600);

    /// Threads outside of the pools wait for the one that computes: seven that ask meanwhile do not compute.
    #[test]
    fn one_computation_for_threads_that_may_wait() {
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
            // Time for those that would not wait.
            std::thread::sleep(Duration::from_millis(100));
            let computing = count.load(Ordering::SeqCst);
            released.wait();
            assert_eq!(computing, 1);
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(values.iter().all(|v| *v == values[0]));
        assert_eq!(count.into_inner(), 1);
    }

    /// A computation that ends late, after another one took its turn, does not end the turn of that one: who waits for
    /// it goes on waiting.
    #[test]
    fn a_late_failure_ends_no_other_turn() {
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
            // The second one, after a wait that was in vain.
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
            // Time to begin to wait, and after the failure of the first one to compute where nothing holds it back.
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

    /// What hung with `OnceLock`: a worker waits in `join` and takes a task that asks for the cell
    /// that it fills.
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

    /// The computing thread waits for the one that waits for it: after a while that one computes.
    #[test]
    fn a_cycle_through_another_lock_ends() {
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

    /// A thread that waits is woken where the computation that it waits for panics or errs, and computes.
    #[test]
    fn a_failed_computation_ends_its_turn() {
        for panics in [false, true] {
            let (cell, begun, done) =
                (Arc::new(Derived::new()), Arc::new(Barrier::new(2)), std::sync::mpsc::channel());
            let failing = std::thread::spawn({
                let (cell, begun) = (cell.clone(), begun.clone());
                move || {
                    let fail = || {
                        begun.wait();
                        // The other thread is most likely waiting then; where it is not, it finds the turn free.
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
                "nobody woke the thread that waits"
            );
            assert!(failing.join().unwrap());
        }
    }
}
