//! Seed times of window tasks.

use std::time::Duration;

use burn_gnn_files::DataError;

use super::declaration::WindowTask;
use super::time_span;
use crate::database::database::Database;
use crate::database::table::NEVER;
use crate::database::task::Part;
use crate::files::setting;

/// Largest number of seed times of a part.
const MOST_TIMES: i64 = 1 << 20;

impl WindowTask {
    /// The seed times of training, validation and test, ascending.
    ///
    /// # Errors
    /// `GraphError::Setting` for a window or step of length 0, for more than 2²⁰ seed times in a part, for a database without
    /// validation time, and if the window of the first validation or test seed ends after the data of the part.
    pub fn seed_times(&self, db: &Database) -> Result<[Vec<i64>; 3], DataError> {
        let (window, step) = (micros("window", self.window)?, micros("step", self.step())?);
        let Some(val) = db.val_timestamp() else {
            let expected = "a database with a validation time (`Database::with_timestamps`), or seed times (`WindowTask::rows`)";
            return Err(setting("val_timestamp", expected, "none"));
        };
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        for table in db.tables().iter().filter(|table| table.time_column().is_some()) {
            for time in table.row_times().into_iter().filter(|&time| time != NEVER) {
                (first, last) = (first.min(time), last.max(time));
            }
        }
        // The number of times `from, from + step, …` up to `to`; 0 if `to` is earlier.
        let count = |from: i64, to: i64| match to.checked_sub(from) {
            Some(span) if span >= 0 => (span / step).saturating_add(1),
            None if from < to => i64::MAX,
            _ => 0,
        };
        let begin = val.saturating_sub(window);
        let train = count(first, begin);
        if train > MOST_TIMES {
            let expected = format!("a step with at most {MOST_TIMES} training seed times");
            let found = format!("{} with {train}", time_span::to_text(&self.step()));
            return Err(setting("step", &expected, &found));
        }
        let train = (0..train).rev().map(|i| begin - i * step).collect();
        let eval = |part: Part, from: i64, end: i64| {
            let found = count(from, end.saturating_sub(window));
            if found == 0 {
                let window = time_span::to_text(&self.window);
                let expected = format!(
                    "a window that ends by the {} after the {part} time",
                    if part == Part::Val { "test time" } else { "last time of the database" }
                );
                return Err(setting(
                    "window",
                    &expected,
                    &format!("{window}, which ends later; shorten it or move the time"),
                ));
            }
            let found = found.min(self.num_eval_timestamps.try_into().unwrap_or(i64::MAX));
            if found > MOST_TIMES {
                let expected = format!("at most {MOST_TIMES}");
                return Err(setting("num_eval_timestamps", &expected, &found.to_string()));
            }
            Ok((0..found).map(|i| from + i * step).collect())
        };
        let test = match db.test_timestamp() {
            Some(test) => eval(Part::Test, test, last)?,
            None => vec![],
        };
        Ok([train, eval(Part::Val, val, db.test_timestamp().unwrap_or(last))?, test])
    }

    fn step(&self) -> Duration {
        self.step.unwrap_or(self.window)
    }
}

/// A length of time of the setting `name` in microseconds.
pub(super) fn micros(name: &'static str, span: Duration) -> Result<i64, DataError> {
    let micros = i64::try_from(span.as_micros()).ok().filter(|&micros| micros > 0);
    micros.ok_or_else(|| {
        let expected = "a length of at least one microsecond and at most 292,000 years";
        setting(name, expected, &format!("{span:?}"))
    })
}
