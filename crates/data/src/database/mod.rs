//! Databases: tables with keys and times, and tasks on them.
//!
//! A [`Database`] has tables; a [`DatabaseTable`] has columns of equal length, a primary key, foreign keys and a time
//! column, each of them optional. A [`DatabaseTask`] is a label table: rows of an entity table, a seed time and a target
//! for each.
//!
//! # Times
//! Every time is a number of microseconds since 1970-01-01T00:00:00 UTC. A date without a time of day is its midnight, a
//! time without a time zone is in UTC, a time with one is converted to UTC; nanoseconds are rounded down.
//! [`DatabaseTable::row_times`] returns the time at which a row appears:
//!
//! * its value in the time column;
//! * [`ALWAYS`] (`i64::MIN`) in a table without a time column: the row is always visible;
//! * [`NEVER`] (`i64::MAX`) if the value is missing: the row is never visible. [`Database::inspect`] counts these rows.
//!
//! A row is visible for a seed at time `t` if its time is at most `t`.
//!
//! # Missing values
//! A column has a flag per row if a value is missing ([`DatabaseColumn::is_missing`]). The value of such a row is the
//! default of its type (0, `false`, an empty text or list, a vector of zeros), so that columns can be compared. NaN is a
//! missing number. An empty field of a CSV file and a null of a Parquet file are missing; an empty text of a Parquet file
//! is a text. A column in which all values are missing, and a column of one value, are allowed.
//!
//! # Kinds
//! A column's [`ColumnKind`] determines how models encode it. A kind that is declared ([`DatabaseOptions::with_kind`], a
//! `schema.json` with kinds) is used. Otherwise, in this order:
//!
//! 1. Columns of primary and foreign keys are `Key`; they are no features.
//! 2. Values with a type of their own: booleans are `Boolean`, times and dates are `Time`, floats are `Number`, lists
//!    are `List`, or `Vector` if they are lists of numbers, all of one length of at least 2.
//! 3. Whole numbers are `Category` if there are at most 20 distinct values, of which each occurs 20 times on average, and
//!    the difference between the largest and the smallest value is at least twice the number of distinct values (codes
//!    such as 200, 404, 500; counts and ratings have few gaps). Otherwise they are `Number`.
//! 4. Texts are `Category` if there are at most 1,000 distinct values, of which each occurs twice on average. Otherwise
//!    they are `Text`.
//!
//! Fields of CSV files have no type. A column is the first of these that accepts all of its fields: whole numbers,
//! numbers, booleans (`true`, `false` in any case), times of ISO 8601 (`2014-01-31`, `2014-01-31 12:00:00`), texts. A
//! column of mixed types is therefore a column of texts; declare its kind to get an error at the first field of another
//! type.
//!
//! # Keys
//! A primary key is one column or several. Its values are unique and not missing; [`DatabaseOptions::with_lenient_keys`]
//! accepts rows that violate this, and no foreign key refers to them. Whole numbers that are stored as floats (pandas
//! does so when a value is missing) become whole numbers. A foreign key has as many columns as the primary key of the table
//! to which it refers, which may be its own table. A foreign key with a missing part, or a value that is not in that
//! table, refers to no row; [`Database::references`] counts both.

pub(crate) mod column;
pub(crate) mod database;
pub(crate) mod inspect;
pub(crate) mod manifest;
pub(crate) mod options;
pub(crate) mod protocol;
mod read;
pub(crate) mod references;
pub(crate) mod table;
pub(crate) mod task;
#[cfg(test)]
mod tests;
mod write;
