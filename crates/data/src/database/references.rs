//! Resolves foreign keys to rows.

use std::hash::{BuildHasher, Hash, Hasher};

use burn_gnn_files::DataError;
use burn_gnn_graph::Texts;
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use rayon::prelude::*;

use super::column::{ColumnValues, DatabaseColumn};
use super::table::{DatabaseTable, ForeignKey};

/// The rows to which a foreign key refers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// A row of the parent table for each row of the child table; [`NONE`](Self::NONE) for none.
    pub rows: Vec<u32>,
    /// Number of rows in which a part of the key is missing.
    pub missing: usize,
    /// Number of rows whose key is not in the parent table.
    pub unknown: usize,
    /// The first of them.
    pub first_unknown: Option<usize>,
}

/// Rows per task of a thread.
const PART: usize = 1 << 16;

impl References {
    /// Refers to no row.
    pub const NONE: u32 = u32::MAX;

    /// Resolves a foreign key of `child` in `parent`.
    pub(crate) fn new(
        child: &DatabaseTable,
        key: &ForeignKey,
        parent: &DatabaseTable,
    ) -> Result<Self, DataError> {
        Self::check(child, key, parent)?;
        if parent.rows() == 0 || child.rows() == 0 {
            let key = Key::new(child, &key.columns)?;
            let missing = (0..child.rows()).filter(|&row| key.is_missing(row)).count();
            let unknown = child.rows() - missing;
            let first_unknown = (0..child.rows()).find(|&row| !key.is_missing(row));
            return Ok(Self {
                rows: vec![Self::NONE; child.rows()],
                missing,
                unknown,
                first_unknown,
            });
        }
        let index = KeyIndex::new(parent)?;
        let key = Key::new(child, &key.columns)?;
        let mut rows = vec![Self::NONE; child.rows()];
        let counts = rows.par_chunks_mut(PART).enumerate().map(|(part, rows)| {
            let (mut missing, mut unknown, mut first) = (0, 0, None);
            for (i, to) in rows.iter_mut().enumerate() {
                let row = part * PART + i;
                if key.is_missing(row) {
                    missing += 1;
                } else if let Some(found) = index.find(&key, row) {
                    *to = found;
                } else {
                    unknown += 1;
                    first = first.or(Some(row));
                }
            }
            (missing, unknown, first)
        });
        let counts: Vec<(usize, usize, Option<usize>)> = counts.collect();
        Ok(Self {
            missing: counts.iter().map(|c| c.0).sum(),
            unknown: counts.iter().map(|c| c.1).sum(),
            first_unknown: counts.iter().find_map(|c| c.2),
            rows,
        })
    }

    /// Returns an error if values of the key cannot be values of the primary key of `parent`.
    pub(crate) fn check(
        child: &DatabaseTable,
        key: &ForeignKey,
        parent: &DatabaseTable,
    ) -> Result<(), DataError> {
        let name = key.name();
        if parent.primary_key().is_empty() {
            let why = format!(
                "foreign key: expected a table with a primary key, found `{}` without one; declare its primary key, or remove the foreign key",
                parent.name()
            );
            return Err(child.error(&name, None, why));
        }
        if parent.primary_key().len() != key.columns.len() {
            let why = format!(
                "foreign key: expected {} columns as in the primary key `{}` of `{}`, found {}; name as many columns",
                parent.primary_key().len(),
                parent.primary_key().join("+"),
                parent.name(),
                key.columns.len()
            );
            return Err(child.error(&name, None, why));
        }
        for (own, other) in key.columns.iter().zip(parent.primary_key()) {
            let (own, other) = (child.column(own)?, parent.column(other)?);
            let same =
                std::mem::discriminant(own.values()) == std::mem::discriminant(other.values());
            let empty = |c: &DatabaseColumn| c.missing_count() == c.len();
            if !same && !empty(own) && !empty(other) {
                let why = format!(
                    "foreign key: expected {} as in `{}` of `{}`, found {}; convert one of the columns",
                    other.values().type_name(),
                    other.name(),
                    parent.name(),
                    own.values().type_name()
                );
                return Err(child.error(own.name(), None, why));
            }
        }
        Ok(())
    }
}

impl DatabaseTable {
    /// Finds rows by their primary key: the columns of `keys` that have the names of its columns. An entry of the result
    /// belongs to a row of `keys`.
    ///
    /// ```
    /// use burn_gnn_data::{ColumnKind, ColumnValues, DatabaseColumn, DatabaseTable, References};
    /// let ids = |ids| DatabaseColumn::new("id", ColumnKind::Key, ColumnValues::Ints(ids));
    /// let users = DatabaseTable::new("users", [ids(vec![7, 3])?])?.with_primary_key(["id"])?;
    /// let found = users.find_rows(&DatabaseTable::new("keys", [ids(vec![3, 9])?])?)?;
    /// assert_eq!((found.rows, found.unknown), (vec![1, References::NONE], 1));
    /// # Ok::<(), burn_gnn_data::DataError>(())
    /// ```
    ///
    /// # Errors
    /// [`DataError::Database`] for a table without primary key, missing columns, and columns of another type.
    pub fn find_rows(&self, keys: &DatabaseTable) -> Result<References, DataError> {
        if self.primary_key().is_empty() {
            let why = "expected a table with a primary key, found none; declare its primary key";
            return Err(self.error("", None, why));
        }
        let keys = keys.clone().with_foreign_key(self.primary_key().to_vec(), self.name())?;
        let key = ForeignKey { columns: self.primary_key().to_vec(), table: self.name().into() };
        References::new(&keys, &key, self)
    }
}

/// The columns of a key.
pub(crate) struct Key<'a> {
    columns: Vec<(KeyValues<'a>, Option<&'a [bool]>)>,
}

#[derive(Clone, Copy)]
enum KeyValues<'a> {
    Ints(&'a [i64]),
    Texts(&'a Texts),
}

/// The value of a column in a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum KeyValue<'a> {
    Int(i64),
    Text(&'a str),
}

impl<'a> KeyValues<'a> {
    fn get(self, row: usize) -> KeyValue<'a> {
        match self {
            Self::Ints(v) => KeyValue::Int(v[row]),
            Self::Texts(v) => KeyValue::Text(v.get(row)),
        }
    }
}

impl<'a> Key<'a> {
    pub(crate) fn new(table: &'a DatabaseTable, columns: &[String]) -> Result<Self, DataError> {
        let column = |name: &String| {
            let column = table.column(name)?;
            let values = match column.values() {
                ColumnValues::Ints(v) | ColumnValues::Times(v) => KeyValues::Ints(v),
                ColumnValues::Texts(v) => KeyValues::Texts(v),
                other => {
                    let why = format!(
                        "key: expected whole numbers, texts or times, found {}",
                        other.type_name()
                    );
                    return Err(table.error(name, None, why));
                }
            };
            Ok((values, column.missing()))
        };
        Ok(Self { columns: columns.iter().map(column).collect::<Result<_, _>>()? })
    }
    /// Whether a part of the key is missing.
    pub(crate) fn is_missing(&self, row: usize) -> bool {
        self.columns.iter().any(|(_, missing)| missing.is_some_and(|m| m[row]))
    }
    fn values(&self, row: usize) -> impl Iterator<Item = KeyValue<'a>> {
        self.columns.iter().map(move |c| c.0.get(row))
    }
    /// The values of a row in a message.
    fn text(&self, row: usize) -> String {
        let text = |value| match value {
            KeyValue::Int(v) => v.to_string(),
            KeyValue::Text(v) => format!("{v:?}"),
        };
        self.values(row).map(text).collect::<Vec<_>>().join(", ")
    }
    fn hash(&self, hasher: &DefaultHashBuilder, row: usize) -> u64 {
        let mut hash = hasher.build_hasher();
        self.values(row).for_each(|v| v.hash(&mut hash));
        hash.finish()
    }
}

/// Finds the row of a primary key. The first row of several with one key is found.
pub(crate) struct KeyIndex<'a> {
    key: Key<'a>,
    rows: KeyRows,
    /// Rows whose key is missing.
    pub(crate) missing: usize,
    /// Rows whose key is that of an earlier row.
    pub(crate) repeated: usize,
    /// The first row whose key is missing.
    first_missing: Option<usize>,
    /// The first row whose key is that of an earlier row, and that row.
    first_repeated: Option<(usize, usize)>,
}

enum KeyRows {
    /// Whole numbers `first, first + 1, …`.
    Ascending { first: i64, count: usize },
    /// Row of each whole number from `first`; `u32::MAX` for none.
    Dense { first: i64, rows: Vec<u32> },
    /// Rows by the hash of their key.
    Hashed { hasher: DefaultHashBuilder, rows: HashTable<u32> },
}

impl<'a> KeyIndex<'a> {
    /// Indexes the primary key of a table.
    pub(crate) fn new(table: &'a DatabaseTable) -> Result<Self, DataError> {
        let key = Key::new(table, table.primary_key())?;
        let count = table.rows();
        let rows = KeyRows::Ascending { first: 0, count: 0 };
        let mut index =
            Self { key, rows, missing: 0, repeated: 0, first_missing: None, first_repeated: None };
        if let &[(KeyValues::Ints(ints), missing)] = index.key.columns.as_slice() {
            let first = ints.first().copied().unwrap_or(0);
            let ascending = |(i, &v): (usize, &i64)| v.checked_sub(first) == Some(i as i64);
            if missing.is_none() && ints.par_iter().enumerate().all(ascending) {
                index.rows = KeyRows::Ascending { first, count };
                return Ok(index);
            }
            let present = || (0..count).into_par_iter().filter(|&i| missing.is_none_or(|m| !m[i]));
            let first = present().map(|i| ints[i]).min().unwrap_or(0);
            let last = present().map(|i| ints[i]).max().unwrap_or(0);
            let span = last.checked_sub(first).and_then(|s| usize::try_from(s).ok());
            if let Some(span) = span.filter(|&s| s < 4 * count + 1024) {
                let mut rows = vec![u32::MAX; span + 1];
                for row in 0..count {
                    if index.skip_missing(row) {
                        continue;
                    }
                    let at = &mut rows[(ints[row] - first) as usize];
                    if *at == u32::MAX { *at = row as u32 } else { index.repeat(row, *at as usize) }
                }
                index.rows = KeyRows::Dense { first, rows };
                return Ok(index);
            }
        }
        let hasher = DefaultHashBuilder::default();
        let mut rows = HashTable::with_capacity(count);
        for row in 0..count {
            if index.skip_missing(row) {
                continue;
            }
            let key = &index.key;
            let same = |&other: &u32| key.values(other as usize).eq(key.values(row));
            let hash = |&other: &u32| key.hash(&hasher, other as usize);
            let found = match rows.entry(key.hash(&hasher, row), same, hash) {
                Entry::Occupied(first) => Some(*first.get() as usize),
                Entry::Vacant(new) => {
                    new.insert(row as u32);
                    None
                }
            };
            if let Some(first) = found {
                index.repeat(row, first);
            }
        }
        index.rows = KeyRows::Hashed { hasher, rows };
        Ok(index)
    }

    /// Counts a row whose key is missing.
    fn skip_missing(&mut self, row: usize) -> bool {
        let missing = self.key.is_missing(row);
        if missing {
            self.missing += 1;
            self.first_missing = self.first_missing.or(Some(row));
        }
        missing
    }
    fn repeat(&mut self, row: usize, first: usize) {
        self.repeated += 1;
        self.first_repeated = self.first_repeated.or(Some((row, first)));
    }

    /// The row whose primary key is `key` in its row `row`.
    pub(crate) fn find(&self, key: &Key<'_>, row: usize) -> Option<u32> {
        let int = || match key.columns.first()?.0 {
            KeyValues::Ints(v) => Some(v[row]),
            KeyValues::Texts(_) => None,
        };
        match &self.rows {
            KeyRows::Ascending { first, count } => {
                let at = usize::try_from(int()?.checked_sub(*first)?).ok()?;
                (at < *count).then_some(at as u32)
            }
            KeyRows::Dense { first, rows } => {
                let at = usize::try_from(int()?.checked_sub(*first)?).ok()?;
                rows.get(at).copied().filter(|&row| row != u32::MAX)
            }
            KeyRows::Hashed { hasher, rows } => {
                let same = |&other: &u32| self.key.values(other as usize).eq(key.values(row));
                rows.find(key.hash(hasher, row), same).copied()
            }
        }
    }

    /// Returns an error if a primary key is missing or not unique, unless the table accepts it.
    pub(crate) fn check(table: &DatabaseTable) -> Result<(), DataError> {
        /// How to read the table all the same.
        const LENIENT: &str =
            "correct the file, or accept such rows with `DatabaseOptions::with_lenient_keys`";
        if table.primary_key().is_empty() || table.has_lenient_key() {
            return Ok(());
        }
        let index = KeyIndex::new(table)?;
        let name = table.primary_key().join("+");
        let error = |row: usize, why: String| Err(table.error(&name, Some(row as u64 + 1), why));
        if let Some(row) = index.first_missing {
            let why = format!(
                "primary key: expected a value in each row, found none in {} rows; {LENIENT}",
                index.missing
            );
            return error(row, why);
        }
        if let Some((row, first)) = index.first_repeated {
            let why = format!(
                "primary key: expected unique values, found {} in row {} as well, and {} repeated rows in total; {LENIENT}",
                index.key.text(row),
                first + 1,
                index.repeated
            );
            return error(row, why);
        }
        Ok(())
    }
}

/// Finds rows of a table by values of its primary key, or by their numbers.
pub(crate) struct RowFinder<'a> {
    /// `None`: values are numbers of rows.
    index: Option<KeyIndex<'a>>,
    rows: usize,
}

impl<'a> RowFinder<'a> {
    /// Finds rows by their primary key of one column; rows of a table without primary key by their numbers from 0, as in
    /// RelBench.
    ///
    /// # Errors
    /// A table whose primary key has several columns.
    pub(crate) fn new(table: &'a DatabaseTable) -> Result<Self, DataError> {
        if table.primary_key().is_empty() {
            return Ok(Self::by_number(table));
        }
        if let found @ 2.. = table.primary_key().len() {
            let why = format!(
                "entity table: expected a primary key of one column, found {found} columns; add a column that numbers the rows"
            );
            return Err(table.error(&table.primary_key().join("+"), None, why));
        }
        Ok(Self { index: Some(KeyIndex::new(table)?), rows: table.rows() })
    }
    /// Finds rows by their numbers from 0.
    pub(crate) fn by_number(table: &DatabaseTable) -> Self {
        Self { index: None, rows: table.rows() }
    }
    /// The row of each value; `None` if there is none. The error is the expected type.
    pub(crate) fn rows(&self, values: &ColumnValues) -> Result<Vec<Option<u32>>, &'static str> {
        let Some(index) = &self.index else {
            let ColumnValues::Ints(v) = values else { return Err("whole numbers") };
            let row = |&v: &i64| u32::try_from(v).ok().filter(|&v| (v as usize) < self.rows);
            return Ok(v.iter().map(row).collect());
        };
        let texts: Texts;
        let values = match (&index.key.columns[0].0, values) {
            (KeyValues::Ints(_), ColumnValues::Ints(v) | ColumnValues::Times(v)) => {
                KeyValues::Ints(v)
            }
            (KeyValues::Texts(_), ColumnValues::Texts(v)) => KeyValues::Texts(v),
            // A CSV file has no types: texts such as `x1` in another part of the column made it a column of texts.
            (KeyValues::Texts(_), ColumnValues::Ints(v)) => {
                texts = v.iter().map(i64::to_string).collect();
                KeyValues::Texts(&texts)
            }
            (KeyValues::Ints(_), _) => return Err("whole numbers"),
            (KeyValues::Texts(_), _) => return Err("texts"),
        };
        let count = match values {
            KeyValues::Ints(v) => v.len(),
            KeyValues::Texts(v) => v.len(),
        };
        let key = Key { columns: vec![(values, None)] };
        Ok((0..count).map(|row| index.find(&key, row)).collect())
    }
}
