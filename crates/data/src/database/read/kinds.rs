//! Infers the kinds of columns from their values.

use hashbrown::HashSet;

use crate::database::column::{ColumnKind, ColumnValues};

/// Most distinct whole numbers of a category.
const MOST_INTS: usize = 20;
/// Rows per distinct whole number of a category.
const ROWS_PER_INT: usize = 20;
/// Most distinct texts of a category.
const MOST_TEXTS: usize = 1000;
/// Rows per distinct text of a category.
const ROWS_PER_TEXT: usize = 2;

/// The kind of a column, from its values in the rows for which `seen` is true. `Database` documents the
/// rule.
pub(super) fn inferred_kind(values: &ColumnValues, seen: impl Fn(usize) -> bool) -> ColumnKind {
    match values {
        ColumnValues::Floats(_) => ColumnKind::Number,
        ColumnValues::Times(_) => ColumnKind::Time,
        ColumnValues::Bools(_) => ColumnKind::Boolean,
        ColumnValues::Lists(_) => ColumnKind::List,
        ColumnValues::Vectors { .. } => ColumnKind::Vector,
        ColumnValues::Ints(v) => {
            let seen = v.iter().enumerate().filter(|(row, _)| seen(*row)).map(|(_, v)| *v);
            let (mut distinct, mut rows) = (HashSet::new(), 0);
            for value in seen {
                rows += 1;
                if distinct.insert(value) && distinct.len() > MOST_INTS {
                    return ColumnKind::Number;
                }
            }
            let ends = distinct.iter().min().zip(distinct.iter().max());
            let span = ends.map_or(0, |(min, max)| max.abs_diff(*min));
            let gaps = span >= 2 * distinct.len() as u64;
            if gaps && rows > 0 && rows >= ROWS_PER_INT * distinct.len() {
                ColumnKind::Category
            } else {
                ColumnKind::Number
            }
        }
        ColumnValues::Texts(v) => {
            let (mut distinct, mut rows) = (HashSet::new(), 0);
            for row in (0..v.len()).filter(|&row| seen(row)) {
                rows += 1;
                if distinct.insert(v.get(row)) && distinct.len() > MOST_TEXTS {
                    return ColumnKind::Text;
                }
            }
            if rows > 0 && rows >= ROWS_PER_TEXT * distinct.len() {
                ColumnKind::Category
            } else {
                ColumnKind::Text
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_categories_and_counts_are_numbers() {
        let kind = |v: Vec<i64>| inferred_kind(&ColumnValues::Ints(v), |_| true);
        let times = |of: &[i64], n: usize| of.iter().copied().cycle().take(n * of.len()).collect();
        assert_eq!(kind(times(&[200, 404, 500], 20)), ColumnKind::Category);
        assert_eq!(kind(times(&[200, 404, 500], 19)), ColumnKind::Number);
        assert_eq!(kind(times(&[1, 2, 3, 4, 5], 100)), ColumnKind::Number, "ratings");
        assert_eq!(kind(times(&[0, 1], 100)), ColumnKind::Number);
        assert_eq!(kind(times(&[7], 100)), ColumnKind::Number, "one value");
        assert_eq!(kind((0..2100).map(|i| 1000 * (i % 21)).collect()), ColumnKind::Number);
        assert_eq!(kind(times(&[i64::MIN, i64::MAX], 20)), ColumnKind::Category);
        assert_eq!(kind(vec![]), ColumnKind::Number);
    }

    #[test]
    fn repeated_texts_are_categories() {
        let kind = |n: usize, distinct: usize| {
            let texts = (0..n).map(|i| (i % distinct).to_string()).collect();
            inferred_kind(&ColumnValues::Texts(texts), |_| true)
        };
        assert_eq!(kind(4, 2), ColumnKind::Category);
        assert_eq!(kind(3, 2), ColumnKind::Text);
        assert_eq!(kind(2000, 1000), ColumnKind::Category);
        assert_eq!(kind(4000, 1001), ColumnKind::Text);
        let later = ColumnValues::Texts(["a", "a", "b", "c"].into_iter().collect());
        assert_eq!(inferred_kind(&later, |row| row < 2), ColumnKind::Category, "later rows");
        assert_eq!(inferred_kind(&later, |_| true), ColumnKind::Text);
        assert_eq!(inferred_kind(&later, |_| false), ColumnKind::Text);
    }
}
