//! Sums the time of the library's `tracing` spans: where an epoch spends its time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Interest, SetGlobalDefaultError, Subscriber, set_global_default};
use tracing::{Event, Metadata};

/// Time that the program has spent in each span of the library, summed over threads.
///
/// Sampling, feature gathering, disk reads, halo exchanges, operators, forward, backward and epochs
/// are `tracing` spans. Without a subscriber, a span costs a comparison. This subscriber sums the
/// time of each span; other subscribers (`tracing-subscriber`, `tracing-chrome`) receive the same
/// spans.
///
/// The book: [Why is my epoch slow?](https://github.com/burn-gnn/burn-gnn/blob/main/docs/slow-epochs.md).
///
/// ```
/// use burn_gnn::SpanTimes;
/// use burn_gnn::prelude::*;
///
/// let times = SpanTimes::install()?;
/// let g = Graph::homogeneous(3, vec![0, 1], vec![1, 2])?;
/// for batch in Loader::new(NeighborSampler::new(&g, [5])?, Seeds::nodes(&g, [("_N", [1, 2])])?, 1)?.epoch(0) {
///     batch?;
/// }
/// assert_eq!(times.calls("sample"), 2);
/// println!("{times}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Threads and GPUs
///
/// Spans of worker threads count in full, so the sum may exceed the wall time. Calls to a GPU return
/// before the GPU has finished: the span contains only the time of the call, and the waiting time is
/// in the span that reads a result.
#[derive(Clone, Debug, Default)]
pub struct SpanTimes(Arc<Mutex<Sums>>);

#[derive(Debug, Default)]
struct Sums {
    /// Ids are positions in `spans`, plus 1.
    ids: HashMap<(&'static str, String), u64>,
    spans: Vec<SpanTime>,
}

/// Time in the spans of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanTime {
    /// Name of the span; spans of operators include the operator: `operator gspmm`.
    pub name: String,
    /// Number of entered spans.
    pub calls: u64,
    /// Time in these spans.
    pub total: Duration,
    /// `total` without nested spans on the same thread.
    pub own: Duration,
}

thread_local! {
    /// Entered spans of this thread: id, begin, time in nested spans.
    static ENTERED: RefCell<Vec<(u64, Instant, Duration)>> = const { RefCell::new(Vec::new()) };
}

impl SpanTimes {
    /// Installs a new `SpanTimes` as the global subscriber of the program.
    ///
    /// # Errors
    /// The program already has a global subscriber.
    pub fn install() -> Result<Self, SetGlobalDefaultError> {
        let times = Self::default();
        set_global_default(Summing(times.clone()))?;
        Ok(times)
    }

    /// Returns the time per span, sorted by descending own time.
    #[must_use]
    pub fn spans(&self) -> Vec<SpanTime> {
        let mut spans = self.lock().spans.clone();
        spans.sort_by(|a, b| b.own.cmp(&a.own).then_with(|| a.name.cmp(&b.name)));
        spans
    }

    /// Returns the number of entered spans with this name.
    #[must_use]
    pub fn calls(&self, name: &str) -> u64 {
        self.lock().spans.iter().find(|s| s.name == name).map_or(0, |s| s.calls)
    }

    /// Sets all times to 0, for example after a warm-up epoch.
    pub fn reset(&self) {
        for span in &mut self.lock().spans {
            (span.calls, span.total, span.own) = (0, Duration::ZERO, Duration::ZERO);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Sums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Formats a table of names, calls, and total and own time in milliseconds.
impl fmt::Display for SpanTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<28} {:>9} {:>12} {:>12}", "span", "calls", "total ms", "own ms")?;
        for SpanTime { name, calls, total, own } in self.spans().iter().filter(|s| s.calls > 0) {
            let [total, own] = [total, own].map(|t| t.as_secs_f64() * 1e3);
            write!(f, "\n{name:<28} {calls:>9} {total:>12.1} {own:>12.1}")?;
        }
        Ok(())
    }
}

/// Implementation of the subscriber; programs do not call it.
struct Summing(SpanTimes);

/// Operator in the fields of a span.
#[derive(Default)]
struct Operator(Option<String>);

impl Visit for Operator {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "op" {
            self.0 = Some(value.to_owned());
        }
    }
    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

impl Subscriber for Summing {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("burn_gnn")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut operator = Operator::default();
        span.record(&mut operator);
        let name = span.metadata().name();
        let operator = operator.0.unwrap_or_default();
        let mut sums = self.0.lock();
        let next = sums.spans.len() as u64 + 1;
        let id = *sums.ids.entry((name, operator.clone())).or_insert(next);
        if id == next {
            let name = [name, &operator].join(" ").trim_end().to_owned();
            let (total, own) = (Duration::ZERO, Duration::ZERO);
            sums.spans.push(SpanTime { name, calls: 0, total, own });
        }
        Id::from_u64(id)
    }

    fn enter(&self, span: &Id) {
        let entered = (span.into_u64(), Instant::now(), Duration::ZERO);
        ENTERED.with_borrow_mut(|all| all.push(entered));
    }

    fn exit(&self, span: &Id) {
        let now = Instant::now();
        let left = ENTERED.with_borrow_mut(|all| {
            // Guards may be dropped in a different order than they were created.
            let at = all.iter().rposition(|(id, ..)| *id == span.into_u64())?;
            let (_, begin, inside) = all.remove(at);
            let total = now - begin;
            if let Some((.., inside_of_parent)) = at.checked_sub(1).map(|parent| &mut all[parent]) {
                *inside_of_parent += total;
            }
            Some((total, total.saturating_sub(inside)))
        });
        if let Some((total, own)) = left {
            let sum = &mut self.0.lock().spans[span.into_u64() as usize - 1];
            sum.calls += 1;
            sum.total += total;
            sum.own += own;
        }
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nested spans count in the total of both spans, but only in their own time; spans of other
    /// targets are ignored.
    #[test]
    fn time_inside_of_spans() {
        let times = SpanTimes::default();
        tracing::subscriber::with_default(Summing(times.clone()), || {
            for _ in 0..3 {
                let outer = tracing::debug_span!("epoch").entered();
                for op in ["gspmm", "gsddmm"] {
                    tracing::trace_span!("operator", op)
                        .in_scope(|| std::thread::sleep(Duration::from_millis(2)));
                }
                tracing::debug_span!(target: "other", "sample").in_scope(|| ());
                drop(outer);
            }
        });
        let calls =
            ["epoch", "operator gspmm", "operator gsddmm", "sample"].map(|n| times.calls(n));
        assert_eq!(calls, [3, 3, 3, 0]);
        let by_name = |name: &str| times.spans().into_iter().find(|s| s.name == name).unwrap();
        let (epoch, gspmm, gsddmm) =
            (by_name("epoch"), by_name("operator gspmm"), by_name("operator gsddmm"));
        assert!(gspmm.total >= Duration::from_millis(6) && gspmm.total == gspmm.own);
        assert_eq!(epoch.total - epoch.own, gspmm.total + gsddmm.total);
        let table = times.to_string();
        assert!(table.lines().nth(1).unwrap().starts_with("operator"), "{table}");
        times.reset();
        assert_eq!((times.calls("epoch"), times.to_string().lines().count()), (0, 1));
    }
}
