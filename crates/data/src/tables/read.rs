//! Reads all rows of a source in parallel.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn_gnn_files::DataError;
use rayon::prelude::*;

use super::rows::columns::Columns;
use super::rows::csv::{csv_line, read_csv};
use super::rows::header::Header;
use super::schema::csv_options::Csv;
use super::schema::decoder::Decoder;
use super::schema::read_options::ReadOptions;
use super::text::blocks::{Blocks, lines_before, parse_blocks};
use super::text::decompress::is_parquet;
use super::text::format::{Format, explained};
use super::text::source::{Piece, Source, no_files};
use crate::files::{Expected, Progress, decoder_error, reading, table_error, within_limit};

/// The file and line of each row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// Each file with the number of its first row in the table and the positions of its id columns.
    files: Vec<(Piece, usize, Vec<usize>)>,
    /// The dialect of CSV files, whose rows are not lines.
    csv: Option<Csv>,
}

impl Places {
    /// An error at the `id`-th id of a row.
    pub(crate) fn error(
        &self,
        row: usize,
        id: usize,
        expected: impl Into<Expected>,
        found: &str,
    ) -> DataError {
        let (path, line) = self.line(row);
        let field = self.file(row).and_then(|f| f.2.get(id)).map_or(0, |at| at + 1);
        table_error(&path, line, field, expected, found)
    }
    fn file(&self, row: usize) -> Option<&(Piece, usize, Vec<usize>)> {
        self.files.get(self.files.partition_point(|f| f.1 <= row).saturating_sub(1))
    }
    /// File and line of a row.
    pub(crate) fn line(&self, row: usize) -> (PathBuf, u64) {
        let Some((piece, first, _)) = self.file(row) else { return (PathBuf::new(), 0) };
        if let Some(csv) = &self.csv {
            if is_parquet(&piece.path).is_ok_and(|yes| yes) {
                return (piece.path.clone(), (row - first) as u64 + 1);
            }
            return (piece.path.clone(), csv_line(&piece.path, csv, row - first));
        }
        let before = piece.range.as_ref().map_or(1, |r| lines_before(&piece.path, r.start));
        (piece.path.clone(), before + (row - first) as u64 + 1)
    }
}

/// Returns one problem as an error, and several as [`DataError::Problems`].
pub(crate) fn join_problems(mut problems: Vec<DataError>) -> Result<(), DataError> {
    match problems.len() {
        0 => Ok(()),
        1 => Err(problems.swap_remove(0)),
        _ => Err(DataError::Problems { problems }),
    }
}

/// Reads all rows of a source, in order. `ids` are the roles of the id columns.
pub(crate) fn read(
    source: &Source,
    ids: &[&'static str],
    decoder: &Decoder,
    options: &ReadOptions,
) -> Result<(Columns, Places), DataError> {
    decoder.check()?;
    if decoder.text_labels && source.is_shard() {
        let message = "expected a whole table, whose class names are all known, got a shard of one; number the labels first";
        return Err(decoder_error("text_labels", message));
    }
    let pieces = source.pieces()?;
    let bar = progress(&pieces, options);
    let file = |piece: &Piece| {
        let read = read_file(piece, ids, decoder, options, &bar);
        // A table inside the program has no file.
        read.map_err(|e| match piece.built_in {
            Some(_) => e,
            None => explained(e, &piece.path, "a table with a header", &[Format::Parquet]),
        })
    };
    let files: Vec<Result<(Header, Vec<Columns>), DataError>> =
        pieces.par_iter().map(file).collect();
    drop(bar);
    let (mut all, mut problems) = (None::<(Header, Columns)>, vec![]);
    let mut without_rows = None;
    let mut places = Places { files: vec![], csv: decoder.csv.clone() };
    for (piece, file) in pieces.into_iter().zip(files) {
        let (header, blocks) = match file {
            Ok(file) => file,
            Err(e) => {
                problems.push(e);
                continue;
            }
        };
        let more: usize = blocks.iter().map(|b| b.rows).sum();
        if more == 0 {
            // Its columns may have any type: writers of Parquet do not know the types of empty columns.
            without_rows.get_or_insert(header);
            continue;
        }
        let (first, table) =
            all.get_or_insert_with(|| (header.clone(), Columns::empty(&header, decoder)));
        if first.text_ids != header.text_ids {
            let kind = |h: &Header| {
                let mut kinds: Vec<&str> =
                    h.text_ids.iter().map(|&text| if text { "string" } else { "int64" }).collect();
                // One word if both endpoints have the same kind.
                kinds.dedup();
                kinds.join(" and ")
            };
            let other =
                places.files.first().map_or(String::new(), |f| f.0.path.display().to_string());
            problems.push(table_error(
                &piece.path,
                1,
                1,
                format!("{} ids as in {other}", kind(first)),
                &*kind(&header),
            ));
            continue;
        }
        let start = table.rows;
        places.files.push((piece, start, header.positions[..ids.len()].to_vec()));
        within_limit(source.label().display(), "ids", (start + more) as u64)?;
        if start == 0 {
            table.reserve(more, decoder);
        }
        for block in blocks {
            let before = table.rows;
            for p in &block.problems {
                if problems.len() < options.max_problems {
                    let (path, line) = match p.line {
                        Some(line) => {
                            (places.files.last().map_or(PathBuf::new(), |f| f.0.path.clone()), line)
                        }
                        None => places.line(before + p.row),
                    };
                    problems.push(table_error(
                        &path,
                        line,
                        p.field,
                        p.expected.clone(),
                        p.found.clone(),
                    ));
                }
            }
            // After an invalid row, columns differ in length and are not returned.
            if problems.is_empty() { table.append(&block) } else { table.rows += block.rows }
        }
    }
    problems.truncate(options.max_problems);
    join_problems(problems)?;
    let none = || without_rows.map(|header| Columns::empty(&header, decoder));
    match all.map(|(_, table)| table).or_else(none) {
        Some(table) => Ok((table, places)),
        // `pieces` is empty for a shard without files.
        None => Err(no_files()),
    }
}

fn progress(pieces: &[Piece], options: &ReadOptions) -> Progress {
    let size = |p: &Piece| match &p.range {
        Some(range) => range.end - range.start,
        None => std::fs::metadata(&p.path).map_or(0, |m| m.len()),
    };
    let bytes = pieces.iter().map(size).sum();
    pieces.first().map_or_else(Progress::hidden, |p| reading(options.progress, &p.path, bytes))
}

/// Reads a file. Blocks are read sequentially and parsed in parallel, until a block has `max_problems` invalid rows.
fn read_file(
    piece: &Piece,
    ids: &[&'static str],
    decoder: &Decoder,
    options: &ReadOptions,
    bar: &Progress,
) -> Result<(Header, Vec<Columns>), DataError> {
    if piece.built_in.is_none() && is_parquet(&piece.path)? {
        #[cfg(feature = "parquet")]
        return super::rows::parquet::read_parquet(piece, ids, decoder, options, bar);
        #[cfg(not(feature = "parquet"))]
        return Err(crate::files::format_error(
            &piece.path,
            "expected text, found a Parquet file; build with the feature `parquet`",
        ));
    }
    if let Some(csv) = &decoder.csv {
        return read_csv(piece, ids, decoder, csv, options, bar);
    }
    let (blocks, header) = Blocks::open(piece, options.max_expansion, bar)?;
    let header = Header::parse(&piece.path, header.as_deref(), ids, decoder)?;
    let stop = AtomicUsize::new(usize::MAX);
    let blocks = blocks.enumerate().take_while(|(i, _)| *i <= stop.load(Ordering::Relaxed));
    let columns = parse_blocks(blocks.map(|(_, block)| block), |i, block| {
        let mut columns = Columns::parse(&block?, &header, decoder, options.max_problems);
        columns.shrink();
        if columns.problems.len() >= options.max_problems {
            stop.fetch_min(i, Ordering::Relaxed);
        }
        Ok(columns)
    })?;
    Ok((header, columns))
}
