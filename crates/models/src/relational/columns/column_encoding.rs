//! Statistics of the columns of a table, and how a value becomes numbers and vocabulary entries.
//!
//! A column becomes numbers of a row (`features`), numbers of a row for a seed (`ages`), and entries of the vocabulary of
//! its table:
//!
//! ```text
//! number     (x - mean) / deviation, rank among the quantiles, missing
//! boolean    +1 or -1, missing
//! time       sine and cosine of the phase in year, week and day, missing; for a seed: log of the age at its time and at
//!            the time that it sees, standardised age, e^(-age / h) for h = 30, 120, 365 and 1500 days
//! category   one entry: missing, unseen, rare, or the class
//! text       one entry per character n-gram and word, by hash; missing
//! list       one entry per element, by hash; log of the length, missing
//! vector     its numbers, missing
//! ```

use burn::serde::{Deserialize, Serialize};
use burn_gnn_data::{ColumnValues, DatabaseColumn, TextHash};

use crate::error::ModelError;

/// Settings of the statistics that [`TableEncoderConfig::fit`](crate::TableEncoderConfig::fit) computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(crate = "burn::serde")]
pub struct EncoderOptions {
    /// Rows that a category must have for a class of its own; the others share the class of rare categories. 3 by
    /// default.
    pub min_count: usize,
    /// Most classes of a column of categories; the most frequent ones are kept. 1000 by default.
    pub max_classes: usize,
    /// Intervals of the quantiles of numbers. 32 by default.
    pub quantiles: usize,
    /// Vocabulary entries of a column of texts or lists. 256 by default.
    pub buckets: u32,
    /// Characters of an n-gram. 3 by default.
    pub ngram: usize,
    /// How columns of texts are encoded; by n-grams by default.
    pub texts: TextEncoding,
}

/// How columns of texts are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "burn::serde")]
pub enum TextEncoding {
    /// By hashed n-grams and words.
    Ngrams,
    /// As categories: only texts that many rows share are distinguished. A model that sees names by n-grams can learn the
    /// rows by heart.
    Categories,
}

impl Default for EncoderOptions {
    fn default() -> Self {
        Self {
            min_count: 3,
            max_classes: 1000,
            quantiles: 32,
            buckets: 256,
            ngram: 3,
            texts: TextEncoding::Ngrams,
        }
    }
}

impl EncoderOptions {
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        let sizes = [
            ("min_count", self.min_count),
            ("max_classes", self.max_classes),
            ("quantiles", self.quantiles),
            ("buckets", self.buckets as usize),
            ("ngram", self.ngram),
        ];
        ModelError::check_sizes(&sizes, 0.0)
    }
}

/// The categories of a column that occur in the rows of the statistics, ascending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "burn::serde")]
pub enum Categories {
    /// Integers.
    Ints(Vec<i64>),
    /// Texts.
    Texts(Vec<String>),
}

/// How a column is encoded, with the statistics that this needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(crate = "burn::serde")]
pub enum ColumnEncoding {
    /// Integers and floats. NaN and infinities count as missing.
    Number {
        /// Mean.
        mean: f64,
        /// Standard deviation; 0 of a column of one value.
        deviation: f64,
        /// Bounds of intervals with equal numbers of rows, ascending and distinct.
        quantiles: Vec<f64>,
    },
    /// Categories.
    Category {
        /// Categories that have occurred.
        values: Categories,
        /// Class of each of `values`, from 1; 0 of rare categories.
        classes: Vec<u32>,
        /// Number of classes without missing, unseen and rare.
        count: u32,
    },
    /// Times, in microseconds.
    Time {
        /// Mean age, relative to the time of the statistics.
        mean_age: f64,
        /// Standard deviation.
        deviation: f64,
    },
    /// Booleans.
    Boolean,
    /// Texts.
    Text {
        /// Vocabulary entries.
        buckets: u32,
        /// Characters of an n-gram.
        ngram: usize,
    },
    /// Lists of integers or texts.
    List {
        /// Vocabulary entries.
        buckets: u32,
    },
    /// Vectors.
    Vector {
        /// Numbers of a vector.
        width: usize,
    },
}

/// Vocabulary entry of a category that is missing.
const MISSING: u32 = 0;
/// Vocabulary entry of a category that the rows of the statistics do not have.
pub(crate) const UNSEEN: u32 = 1;
/// Vocabulary entry of rare categories.
const RARE: u32 = 2;
/// Classes follow.
const FIRST_CLASS: u32 = 3;

/// Largest magnitude of a standardised number: a single outlier must not dominate a gradient.
const MOST: f64 = 10.0;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;
/// Microseconds of the mean year of the Gregorian calendar.
const YEAR: i64 = 31_556_952_000_000;
/// Days of the decays of an age.
const DECAYS: [f64; 4] = [30.0, 120.0, 365.0, 1500.0];
/// Numbers that [`age`] writes.
pub(crate) const AGE: usize = 3 + DECAYS.len();
/// Numbers that [`phases`] writes.
pub(crate) const PHASES: usize = 6;

/// Most n-grams of a text: the rest of a long text is not read.
const MOST_NGRAMS: usize = 512;

impl ColumnEncoding {
    /// Name in messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Number { .. } => "numbers",
            Self::Category { values: Categories::Ints(_), .. } => "categories as integers",
            Self::Category { values: Categories::Texts(_), .. } => "categories as texts",
            Self::Time { .. } => "times",
            Self::Boolean => "booleans",
            Self::Text { .. } => "texts",
            Self::List { .. } => "lists",
            Self::Vector { .. } => "vectors",
        }
    }

    /// Numbers of a row.
    pub fn features(&self) -> usize {
        match self {
            Self::Number { .. } => 3,
            Self::Category { .. } => 0,
            Self::Time { .. } => PHASES + 1,
            Self::Boolean | Self::List { .. } => 2,
            Self::Text { .. } => 1,
            Self::Vector { width } => width + 1,
        }
    }

    /// Numbers of a row for a seed.
    pub fn ages(&self) -> usize {
        if matches!(self, Self::Time { .. }) { AGE } else { 0 }
    }

    /// Vocabulary entries.
    pub fn vocabulary(&self) -> u32 {
        match self {
            Self::Category { count, .. } => FIRST_CLASS + count,
            Self::Text { buckets, .. } | Self::List { buckets } => *buckets,
            _ => 0,
        }
    }

    /// Entry of unseen categories, which no row of the statistics has.
    pub(crate) fn unseen(&self) -> Option<u32> {
        matches!(self, Self::Category { .. }).then_some(UNSEEN)
    }
}

/// Computes mean and standard deviation of ascending values, so that the order of rows does not change a bit.
fn moments(sorted: &[f64]) -> (f64, f64) {
    let n = sorted.len().max(1) as f64;
    let mut mean = sorted.iter().sum::<f64>() / n;
    if !mean.is_finite() {
        mean = sorted.iter().map(|x| x / n).sum();
    }
    let variance = sorted.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    // Squares of large numbers overflow; a description in JSON contains finite numbers only.
    (mean, variance.sqrt().min(f64::MAX))
}

/// Encoding of a column of numbers, of finite values in any order.
pub(crate) fn fit_numbers(mut values: Vec<f64>, intervals: usize) -> ColumnEncoding {
    values.sort_by(f64::total_cmp);
    let (mean, deviation) = moments(&values);
    let mut quantiles: Vec<f64> = match values.len().checked_sub(1) {
        Some(last) => (0..=intervals).map(|i| values[i * last / intervals]).collect(),
        None => vec![],
    };
    quantiles.dedup();
    ColumnEncoding::Number { mean, deviation, quantiles }
}

/// Encoding of a column of times, of ages in any order.
pub(crate) fn fit_times(mut ages: Vec<f64>) -> ColumnEncoding {
    ages.sort_by(f64::total_cmp);
    let (mean_age, deviation) = moments(&ages);
    ColumnEncoding::Time { mean_age, deviation }
}

/// Classes of categories by their counts, ascending by category: the most frequent ones, of equal counts the smaller
/// category.
fn classes(counts: &[usize], options: &EncoderOptions) -> (Vec<u32>, u32) {
    let mut frequent: Vec<usize> =
        (0..counts.len()).filter(|&i| counts[i] >= options.min_count).collect();
    frequent.sort_by_key(|&i| (std::cmp::Reverse(counts[i]), i));
    frequent.truncate(options.max_classes);
    let mut classes = vec![0; counts.len()];
    for (class, &i) in (1..).zip(&frequent) {
        classes[i] = class;
    }
    (classes, frequent.len() as u32)
}

/// Distinct values, ascending, with their counts.
fn counted<T: Ord>(mut values: Vec<T>) -> (Vec<T>, Vec<usize>) {
    values.sort_unstable();
    let counts = values.chunk_by(|a, b| a == b).map(<[T]>::len).collect();
    values.dedup();
    (values, counts)
}

/// Encoding of a column of categories that are integers.
pub(crate) fn fit_ints(values: Vec<i64>, options: &EncoderOptions) -> ColumnEncoding {
    let (values, counts) = counted(values);
    let (classes, count) = classes(&counts, options);
    ColumnEncoding::Category { values: Categories::Ints(values), classes, count }
}

/// Encoding of a column of categories that are texts.
pub(crate) fn fit_texts(values: Vec<&str>, options: &EncoderOptions) -> ColumnEncoding {
    let (values, counts) = counted(values);
    let (classes, count) = classes(&counts, options);
    let values = Categories::Texts(values.into_iter().map(str::to_owned).collect());
    ColumnEncoding::Category { values, classes, count }
}

/// Vocabulary entry of a category; `None`: missing.
fn entry<T: Ord + ?Sized, S: std::borrow::Borrow<T>>(
    value: Option<&T>,
    values: &[S],
    classes: &[u32],
) -> u32 {
    let Some(value) = value else { return MISSING };
    match values.binary_search_by(|v| v.borrow().cmp(value)) {
        Err(_) => UNSEEN,
        Ok(i) if classes[i] == 0 => RARE,
        Ok(i) => FIRST_CLASS + classes[i] - 1,
    }
}

/// Vocabulary entries of all rows of a column of categories.
pub(crate) fn category_entries(
    column: &DatabaseColumn,
    values: &Categories,
    classes: &[u32],
) -> Option<Vec<u32>> {
    Some(match (column.values(), values) {
        (ColumnValues::Ints(all), Categories::Ints(values)) => (0..all.len())
            .map(|row| entry((!column.is_missing(row)).then_some(&all[row]), values, classes))
            .collect(),
        (ColumnValues::Texts(all), Categories::Texts(values)) => (0..all.len())
            .map(|row| {
                entry::<str, String>(
                    (!column.is_missing(row)).then(|| all.get(row)),
                    values,
                    classes,
                )
            })
            .collect(),
        // A column without a value in the rows of the statistics has no type there.
        (_, Categories::Ints(known)) if known.is_empty() => (0..column.len())
            .map(|row| if column.is_missing(row) { MISSING } else { UNSEEN })
            .collect(),
        (_, Categories::Texts(known)) if known.is_empty() => (0..column.len())
            .map(|row| if column.is_missing(row) { MISSING } else { UNSEEN })
            .collect(),
        _ => return None,
    })
}

/// Standardised value and rank in `-1.0..=1.0`; zeros where the value is missing or not finite.
pub(crate) fn number(x: f64, mean: f64, deviation: f64, quantiles: &[f64]) -> [f32; 3] {
    if !x.is_finite() {
        return [0.0, 0.0, 1.0];
    }
    let scaled = if deviation > 0.0 { (x - mean) / deviation } else { x - mean };
    let rank = match quantiles {
        [] | [_] => 0.0,
        [first, .., last] if x <= *first || x >= *last => {
            if x <= *first {
                -1.0
            } else {
                1.0
            }
        }
        _ => {
            let above = quantiles.partition_point(|q| *q <= x);
            let (low, high) = (quantiles[above - 1], quantiles[above]);
            let steps = (quantiles.len() - 1) as f64;
            // Halves, so that the difference of large numbers is finite.
            let part = (x / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
            2.0 * ((above - 1) as f64 + part) / steps - 1.0
        }
    };
    [scaled.clamp(-MOST, MOST) as f32, rank as f32, 0.0]
}

/// Signed logarithm of a number of days, about 2 after ten years.
pub(crate) fn log_days(microseconds: f64) -> f64 {
    let days = microseconds / DAY as f64;
    days.signum() * days.abs().ln_1p() / 4.0
}

/// Ages of a time, for a seed at `now` that sees rows up to `seen`.
pub(crate) fn age(time: i64, now: i64, seen: i64, mean_age: f64, deviation: f64) -> [f32; AGE] {
    let age = now as f64 - time as f64;
    let linear = if deviation > 0.0 { (age - mean_age) / deviation } else { 0.0 };
    let mut out = [0.0; AGE];
    out[0] = log_days(age) as f32;
    out[1] = log_days(seen as f64 - time as f64) as f32;
    out[2] = linear.clamp(-MOST, MOST) as f32;
    for (out, days) in out[3..].iter_mut().zip(DECAYS) {
        *out = (-age.max(0.0) / (days * DAY as f64)).exp() as f32;
    }
    out
}

/// Sine and cosine of the phase of a time in year, week and day.
pub(crate) fn phases(time: i64) -> [f32; PHASES] {
    let mut out = [0.0; PHASES];
    for (out, period) in out.chunks_exact_mut(2).zip([YEAR, 7 * DAY, DAY]) {
        let angle = std::f64::consts::TAU * time.rem_euclid(period) as f64 / period as f64;
        (out[0], out[1]) = (angle.sin() as f32, angle.cos() as f32);
    }
    out
}

/// Bucket of a text.
pub(crate) fn bucket(text: &str, buckets: u32) -> u32 {
    (TextHash::FarmFingerprint64.hash(text) % u64::from(buckets.max(1))) as u32
}

/// Buckets of the words of a text and of the n-grams of its characters, lower-case; `^` and `$` mark both ends.
pub(crate) fn text_buckets(text: &str, buckets: u32, ngram: usize, out: &mut Vec<u32>) {
    let text = format!("^{}$", text.trim().to_lowercase());
    let starts: Vec<usize> =
        text.char_indices().map(|(i, _)| i).chain([text.len()]).take(MOST_NGRAMS).collect();
    for ends in starts.windows(ngram + 1) {
        out.push(bucket(&text[ends[0]..ends[ngram]], buckets));
    }
    let words = text[1..text.len() - 1].split_whitespace().take(MOST_NGRAMS);
    out.extend(words.map(|word| bucket(word, buckets)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_standardised_and_ranked() {
        let ColumnEncoding::Number { mean, deviation, quantiles } =
            fit_numbers(vec![4.0, 2.0, 2.0, 8.0], 3)
        else {
            unreachable!()
        };
        assert_eq!((mean, deviation, &quantiles[..]), (4.0, 6f64.sqrt(), &[2.0, 4.0, 8.0][..]));
        let at = |x| number(x, mean, deviation, &quantiles);
        assert_eq!(at(4.0), [0.0, 0.0, 0.0]);
        assert_eq!(at(6.0)[1], 0.5);
        assert_eq!(
            (at(-1e9)[..2].to_vec(), at(1e9)[..2].to_vec()),
            (vec![-10.0, -1.0], vec![10.0, 1.0])
        );
        assert_eq!(at(f64::NAN), [0.0, 0.0, 1.0]);
        // One value, and none.
        assert_eq!(number(3.0, 3.0, 0.0, &[3.0]), [0.0, 0.0, 0.0]);
        let none = fit_numbers(vec![], 3);
        assert_eq!(none, ColumnEncoding::Number { mean: 0.0, deviation: 0.0, quantiles: vec![] });
        // Sums and squares overflow.
        let ColumnEncoding::Number { mean, deviation, quantiles } =
            fit_numbers(vec![-1.6e308, 1.2e308, 1.4e308, 1.7e308], 1)
        else {
            unreachable!()
        };
        assert!(mean.is_finite() && deviation.is_finite(), "{mean} {deviation}");
        let [scaled, rank, missing] = number(1e308, mean, deviation, &quantiles);
        assert!(scaled.is_finite() && rank > 0.5 && rank < 0.6 && missing == 0.0, "{rank}");
    }

    #[test]
    fn statistics_do_not_depend_on_the_order_of_rows() {
        let values: Vec<f64> = (0..100).map(|i| f64::from(i * 37 % 101) * 0.1).collect();
        let reversed = values.iter().rev().copied().collect();
        assert_eq!(fit_numbers(values, 8), fit_numbers(reversed, 8));
    }

    #[test]
    fn categories_have_classes_for_rare_unseen_and_missing() {
        let options = EncoderOptions { min_count: 2, max_classes: 2, ..Default::default() };
        let ColumnEncoding::Category { values: Categories::Texts(values), classes, count } =
            fit_texts(vec!["b", "c", "c", "a", "b", "c", "d", "d"], &options)
        else {
            unreachable!()
        };
        assert_eq!((classes.clone(), count), (vec![0, 2, 1, 0], 2));
        let of = |text: Option<&str>| entry::<str, String>(text, &values, &classes);
        assert_eq!([of(Some("c")), of(Some("b")), of(Some("a")), of(Some("d"))], [3, 4, 2, 2]);
        assert_eq!([of(Some("e")), of(None)], [UNSEEN, MISSING]);
    }

    #[test]
    fn ages_are_relative_to_the_time_of_the_seed() {
        let year = age(0, 365 * DAY, 0, 0.0, YEAR as f64);
        assert!((year[0] - 366f32.ln() / 4.0).abs() < 1e-6);
        assert_eq!(year[1], 0.0);
        assert!((year[2] - 0.99934).abs() < 1e-4, "{year:?}");
        assert!((year[5] - (-1f32).exp()).abs() < 1e-6, "{year:?}");
        // A time after the seed.
        assert!(age(DAY, 0, 0, 0.0, 1.0)[0] < 0.0);
        assert_eq!(phases(0), [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
        assert_eq!(phases(-7 * DAY)[2..], [0.0, 1.0, 0.0, 1.0]);
    }

    #[test]
    fn texts_of_one_stem_share_entries() {
        let of = |text: &str| {
            let mut out = vec![];
            text_buckets(text, 1 << 20, 3, &mut out);
            out
        };
        let (a, b) = (of("Monza Circuit"), of("monza"));
        assert!(b.iter().filter(|x| a.contains(x)).count() >= 4, "{a:?} {b:?}");
        assert_eq!(of("é").len(), 2, "one trigram and the word");
        assert_eq!(of(""), Vec::<u32>::new());
    }
}
