//! Parses lines of an edge list.

use burn_gnn_graph::{Ids, Texts};

use crate::columns::data_column::NamedColumns;
use crate::columns::narrow::rounded;
use crate::files::{Cut, Expected};
use crate::formats::edge_list::format::EdgeListFormat;
use crate::formats::edge_list::python_dict;
use crate::tables::rows::columns::append_ids;
use crate::tables::text::blocks::lines;
use crate::tables::text::format::is_graph6;
use crate::tables::text::parse_number::{parse_f32, parse_i64};

/// Edges of one block of lines.
pub(super) struct Edges {
    /// Number of lines, including comments.
    pub(super) lines: u64,
    pub(super) src: Ids,
    pub(super) dst: Ids,
    pub(super) weights: Vec<f32>,
    /// Columns of the attribute dictionaries.
    pub(super) attributes: NamedColumns,
    /// The first line with an edge, counted from 1; 0 if there is none.
    first: u64,
    /// The first error: line of the block (from 1), field (from 1; 0 for the whole line), expected content, found text.
    pub(super) problem: Option<(u64, usize, Expected, Cut)>,
}

/// Remedy if an id is not an integer.
const TEXT_IDS: &str =
    "use `EdgeListFormat::with_text_ids` for text ids, or `with_header_lines` to skip a header";

/// Expected attributes of an edge.
const DICTIONARY: &str =
    "a dictionary of booleans, numbers, texts and lists of numbers, as in {'weight': 3}";

/// Remedy if f32 cannot represent a weight.
const ROUND: &str = "use `EdgeListFormat::round_weights` to round to the nearest f32";

/// An error in a line: field (from 1; 0 for the whole line), expected content, found text.
type Wrong<'a> = (usize, Expected, &'a [u8]);

impl Edges {
    pub(super) fn empty(format: &EdgeListFormat) -> Self {
        let ids = || if format.text_ids { Ids::Text(Texts::new()) } else { Ids::Int(vec![]) };
        Self {
            lines: 0,
            src: ids(),
            dst: ids(),
            weights: vec![],
            attributes: NamedColumns::with_rounding(
                format.round_weights.then(|| format.rounded.clone()),
            ),
            first: 0,
            problem: None,
        }
    }

    pub(super) fn parse(block: &[u8], skip: u64, format: &EdgeListFormat) -> Self {
        let mut out = Self::empty(format);
        for line in lines(block) {
            out.lines += 1;
            let text = line.trim_ascii_start();
            if out.lines <= skip
                || text.is_empty()
                || format.comments.iter().any(|c| text.starts_with(c.as_bytes()))
            {
                continue;
            }
            if out.first == 0 {
                out.first = out.lines;
            }
            // If the delimiter is a tab, a leading tab is an empty field.
            let text = if format.delimiter.is_some() { line } else { text };
            if let Err((field, expected, found)) = out.edge(text, format) {
                let expected = with_remedy(expected, field, line, format);
                out.problem = Some((out.lines, field, expected, found.into()));
                return out;
            }
        }
        out
    }

    fn edge<'l>(&mut self, line: &'l [u8], format: &EdgeListFormat) -> Result<(), Wrong<'l>> {
        let mut fields =
            Fields { rest: Some(line), delimiter: format.delimiter.as_ref().map(String::as_bytes) };
        for (k, ids) in [&mut self.src, &mut self.dst].into_iter().enumerate() {
            let field = fields.next().ok_or_else(|| (0, format.expected(), line))?;
            match ids {
                Ids::Text(_) if field.is_empty() => {
                    return Err((k + 1, "non-empty text".into(), field));
                }
                Ids::Text(ids) => ids.push(
                    std::str::from_utf8(field).map_err(|_| (k + 1, "UTF-8 text".into(), field))?,
                ),
                Ids::Int(ids) => {
                    let bound = format.num_nodes.map_or(i64::MAX, |n| n as i64);
                    let wrong = || match format.num_nodes {
                        Some(n) => (k + 1, format!("a node number in 0..{n}").into(), field),
                        None => {
                            let remedy = if field.is_empty() { "" } else { TEXT_IDS };
                            (k + 1, Expected::from("an int64").or(remedy), field)
                        }
                    };
                    let id = parse_i64(field).ok_or_else(wrong)?;
                    if format.num_nodes.is_some() && !(0..bound).contains(&id) {
                        return Err(wrong());
                    }
                    ids.push(id);
                }
            }
        }
        if format.weighted {
            let field = fields.next().ok_or_else(|| (0, format.expected(), line))?;
            let count = format.round_weights.then_some(&format.rounded);
            let weight = rounded(parse_f32(field), count);
            self.weights.push(weight.map_err(|e| {
                let expected = e.expected("a float".into(), ROUND);
                (3, Expected { what: format!("{} (weight)", expected.what), ..expected }, field)
            })?);
        }
        if format.attributes {
            let found = fields.rest.unwrap_or_default().trim_ascii();
            let entries = std::str::from_utf8(found).ok().and_then(python_dict::parse);
            let entries = entries.ok_or_else(|| (3, DICTIONARY.into(), found))?;
            let columns = &mut self.attributes;
            let row = entries.into_iter().try_for_each(|(name, cell)| columns.set(&name, cell));
            return row
                .and_then(|()| columns.end_row())
                .map_err(|expected| (3, Expected::from(expected), found));
        }
        if !format.extra_fields && fields.next().is_some() {
            Err((0, format.expected(), line))
        } else {
            Ok(())
        }
    }

    /// Appends the edges of the next block. `Err`: the line of its first edge, and the expected attributes.
    pub(super) fn append(&mut self, other: Self) -> Result<(), (u64, String)> {
        let line = self.lines + other.first;
        append_ids(&mut self.src, &other.src);
        append_ids(&mut self.dst, &other.dst);
        self.weights.extend(other.weights);
        self.lines += other.lines;
        self.attributes.append(other.attributes).map_err(|expected| (line, expected))
    }
}

/// Replaces the remedy if the line shows which program wrote it.
fn with_remedy(expected: Expected, field: usize, line: &[u8], format: &EdgeListFormat) -> Expected {
    let line = line.trim_ascii();
    if !format.attributes && line.ends_with(b"}") && memchr::memchr(b'{', line).is_some() {
        return expected.or(
            "use `EdgeListFormat::networkx` for the dictionaries of `networkx.write_edgelist`",
        );
    }
    if field < 2 && is_graph6(line) {
        return expected
            .or("this may be graph6, which is not supported; write a list of edges, one per line");
    }
    expected
}

/// Iterator over the fields of a line. Fields separated by white space are never empty.
struct Fields<'l, 'd> {
    rest: Option<&'l [u8]>,
    delimiter: Option<&'d [u8]>,
}

impl<'l> Iterator for Fields<'l, '_> {
    type Item = &'l [u8];

    fn next(&mut self) -> Option<&'l [u8]> {
        let rest = self.rest?;
        let Some(delimiter) = self.delimiter else {
            let rest = rest.trim_ascii_start();
            let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
            let (field, after) = rest.split_at(end);
            self.rest = Some(after);
            return (!field.is_empty()).then_some(field);
        };
        match memchr::memmem::find(rest, delimiter) {
            Some(at) => {
                self.rest = Some(&rest[at + delimiter.len()..]);
                Some(&rest[..at])
            }
            None => self.rest.take(),
        }
    }
}
