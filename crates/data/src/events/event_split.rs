//! Splits a stream of events by time.

use std::ops::Range;

use burn_gnn_files::DataError;

use super::event_stream::EventStream;
use crate::files::setting;

/// Ranges of events for training, validation and test, in the order of time. Events of one time are in one part.
///
/// ```
/// use burn_gnn_data::{EventSplit, EventStream};
/// let mail = EventStream::new(2, vec![0; 10], vec![1; 10], vec![0, 1, 2, 3, 4, 5, 6, 6, 8, 9])?;
/// let split = EventSplit::by_time(&mail, 0.15, 0.15)?;
/// assert_eq!((split.train, split.val, split.test), (0..8, 8..8, 8..10));
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSplit {
    /// Events of the training part.
    pub train: Range<usize>,
    /// Events of the validation part.
    pub val: Range<usize>,
    /// Events of the test part.
    pub test: Range<usize>,
}

impl EventSplit {
    /// Splits at quantiles of time, as DyGLib does: training events are those up to the quantile `1 - val - test` of the
    /// times, validation events those after it up to the quantile `1 - test`, test events the rest.
    ///
    /// Quantile `q` of `n` times is the time number `⌊q (n - 1)⌋` from 0. NumPy interpolates between this time and the next
    /// one, which changes no part.
    ///
    /// # Errors
    /// Shares that are negative or not a number, or whose sum is not below 1.
    pub fn by_time(events: &EventStream, val: f64, test: f64) -> Result<Self, DataError> {
        for (arg, share) in [("val", val), ("test", test)] {
            if !(0.0..1.0).contains(&share) {
                return Err(setting(arg, "a share in 0..1", &share.to_string()));
            }
        }
        // DyGLib's order of operations: `1 - (val + test)` may be rounded to another quantile.
        let train = 1.0 - val - test;
        if train <= 0.0 {
            let found = (val + test).to_string();
            return Err(setting("val", "shares whose sum with `test` is below 1", &found));
        }
        let time = events.time();
        let end = |q: f64| match time.len() {
            0 => 0,
            n => {
                let at = ((q * (n - 1) as f64).floor() as usize).min(n - 1);
                time.partition_point(|&t| t <= time[at])
            }
        };
        let (first, second) = (end(train), end(1.0 - test));
        Ok(Self { train: 0..first, val: first..second, test: second..time.len() })
    }

    /// Checks given ranges.
    ///
    /// # Errors
    /// Ranges that are not consecutive from event 0 to the last event, or that separate events of one time.
    pub fn from_ranges(
        events: &EventStream,
        train: Range<usize>,
        val: Range<usize>,
        test: Range<usize>,
    ) -> Result<Self, DataError> {
        let parts = [("train", 0, &train), ("val", train.end, &val), ("test", val.end, &test)];
        for (arg, start, part) in parts {
            if part.start != start || part.end < part.start || part.end > events.len() {
                let expected = format!("events from {start} up to at most {}", events.len());
                return Err(setting(arg, &expected, &format!("{part:?}")));
            }
        }
        if test.end != events.len() {
            let expected = format!("events up to {}, the number of events", events.len());
            return Err(setting("test", &expected, &format!("{test:?}")));
        }
        let time = events.time();
        for (arg, at) in [("train", train.end), ("val", val.end)] {
            if at > 0 && at < time.len() && time[at - 1] == time[at] {
                let expected = "a part that ends between two times";
                let found = format!("events {} and {at}, both at time {}", at - 1, time[at]);
                return Err(setting(arg, expected, &found));
            }
        }
        Ok(Self { train, val, test })
    }
}
