//! Finds the columns of a CSV or Parquet file by their names.

use std::borrow::Cow;
use std::path::Path;

use burn_gnn_files::DataError;
use hashbrown::HashMap;

use super::header::Header;
use crate::files::{Expected, decoder_error, table_error};
use crate::tables::schema::csv_options::Csv;
use crate::tables::schema::decoder::Decoder;
use crate::tables::text::csv_records::{line_of, quote_error};
use crate::tables::text::dialect::{Dialect, Records, line_ends};

/// Most names of columns in an error.
const SHOWN: usize = 100;

/// The header in the first block of a file.
pub(super) struct Head {
    /// Positions of the header and of the first row.
    from: usize,
    pub(super) rows: usize,
    /// Line of the names.
    pub(super) line: u64,
    /// Fields of each row.
    pub(super) width: usize,
}

impl Head {
    pub(super) fn read(
        path: &Path,
        csv: &Csv,
        dialect: &Dialect,
        block: &[u8],
    ) -> Result<Self, DataError> {
        let mut records = Records { text: block, at: 0, dialect };
        let named = csv.columns.as_ref().map(Vec::len);
        let Some(from) = records.start() else {
            let line = csv.skipped_lines + 1;
            return Ok(Self {
                from: block.len(),
                rows: block.len(),
                line,
                width: named.unwrap_or(0),
            });
        };
        let line = csv.skipped_lines + 1 + line_ends(&block[..from]);
        let mut width = 0;
        loop {
            width += 1;
            match records.field() {
                Ok((_, true)) => break,
                Ok(_) => {}
                Err(bad) => {
                    let line = line + line_ends(&block[from..bad.from]);
                    return Err(table_error(path, line, width, quote_error(bad), bad.found(block)));
                }
            }
        }
        if let Some(named) = named.filter(|&named| named > width) {
            let remedy = "name as many columns as there are by `Csv::with_columns`; `Csv::with_delimiter` says what is \
                          between them";
            let expected =
                Expected::from(format!("{named} fields or more, not {width}")).or(remedy);
            let found = line_of(&block[from..records.at]);
            return Err(table_error(path, line, 0, expected, found));
        }
        let rows = if named.is_some() { from } else { records.at };
        Ok(Self { from, rows, line, width })
    }

    pub(super) fn names<'n>(
        &self,
        csv: &'n Csv,
        dialect: &'n Dialect,
        block: &'n [u8],
    ) -> impl Iterator<Item = Cow<'n, [u8]>> + Clone {
        let records = Records { text: block, at: self.from, dialect };
        let read = csv.columns.is_none() && self.from < block.len();
        let of_file = read.then(|| {
            records.fields().map(move |field| {
                if !field.escaped {
                    return Cow::Borrowed(&block[field.from..field.to]);
                }
                let mut name = vec![];
                records.unescape(field, &mut name);
                Cow::Owned(name)
            })
        });
        let given = csv.columns.iter().flatten().map(|name| Cow::Borrowed(name.as_bytes()));
        given.chain(of_file.into_iter().flatten())
    }
}

impl Csv {
    /// Positions of the columns, in the order in which rows are parsed, and positions of the attributes. `line` is the
    /// line of the names.
    pub(super) fn header<'h>(
        &self,
        path: &Path,
        line: u64,
        head: impl Iterator<Item = Cow<'h, [u8]>> + Clone,
        ids: &[&'static str],
        decoder: &Decoder,
    ) -> Result<(Header, Vec<usize>), DataError> {
        if self.attributes.len() != decoder.attr_types.len() {
            let message = format!(
                "expected one name for each of {} attributes, got {}",
                decoder.attr_types.len(),
                self.attributes.len()
            );
            return Err(decoder_error("csv.attributes", message));
        }
        let or = |name: &'static str, own: &'_ Option<String>| own.clone().unwrap_or(name.into());
        let optional = [
            (decoder.weighted, "weight", or("weight", &self.weight)),
            (decoder.labeled, "label", or("label", &self.label)),
            (decoder.timestamped, "timestamp", or("timestamp", &self.timestamp)),
        ];
        // The first two positions of each name; a name that occurs twice is an error.
        let mut places: HashMap<&[u8], [Option<usize>; 2]> = HashMap::new();
        let asked =
            [&self.id, &self.src, &self.dst].into_iter().chain(optional.iter().map(|o| &o.2));
        places.extend(asked.chain(&self.attributes).map(|name| (name.as_bytes(), [None; 2])));
        for (i, name) in head.clone().enumerate() {
            if let Some(free) = places
                .get_mut(&*name)
                .and_then(|found| found.iter_mut().find(|place| place.is_none()))
            {
                *free = Some(i);
            }
        }
        let find = |name: &str| match places[name.as_bytes()] {
            [Some(i), None] => Ok(i),
            [None, _] => {
                let first = head.clone().next().unwrap_or_default();
                if head.clone().count() <= 1 && first.is_empty() {
                    let expected = Expected::from(format!("a header with a column `{name}`"));
                    return Err(table_error(path, line, 0, expected, "an empty file"));
                }
                let utf16 = first.starts_with(&[0xff, 0xfe]) || first.starts_with(&[0xfe, 0xff]);
                let other = head.clone().count() == 1 && first.iter().any(|b| b";\t|,".contains(b));
                let remedy = match (utf16, other) {
                    (true, _) => "the file is in UTF-16: write it as UTF-8",
                    (_, true) => "`Csv::with_delimiter` reads another character between fields",
                    _ => {
                        "the methods of `Csv` name the columns; names are compared with their spaces"
                    }
                };
                let found: Vec<String> = head
                    .clone()
                    .take(SHOWN)
                    .map(|name| format!("`{}`", String::from_utf8_lossy(&name)))
                    .collect();
                let expected = Expected::from(format!("a column `{name}`")).or(remedy);
                Err(table_error(path, line, 0, expected, &found.join(", ")))
            }
            [_, Some(i)] => {
                Err(table_error(path, line, i + 1, format!("one column `{name}`"), name))
            }
        };
        let (mut names, mut positions) = (vec![], vec![]);
        for &id in ids {
            names.push(id);
            positions.push(find(match id {
                "id" => &self.id,
                "src_id" => &self.src,
                _ => &self.dst,
            })?);
        }
        for (_, name, column) in optional.iter().filter(|o| o.0) {
            names.push(name);
            positions.push(find(column)?);
        }
        let attributes = self.attributes.iter().map(|n| find(n)).collect::<Result<_, _>>()?;
        let narrow = vec![false; names.len()];
        let is_text = |&id: &&str| {
            self.text_ids
                || match id {
                    "src_id" => self.text_src_ids,
                    "dst_id" => self.text_dst_ids,
                    _ => false,
                }
        };
        let text_ids = ids.iter().map(is_text).collect();
        Ok((Header { names, narrow, positions, text_ids }, attributes))
    }
}
