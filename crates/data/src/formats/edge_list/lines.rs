//! Parses the lines of an edge list.

use burn_gnn_graph::{Ids, Texts};

use super::{EdgeListFormat, python_dict};
use crate::columns::data_column::NamedColumns;
use crate::columns::narrow::rounded;
use crate::files::{Cut, Expected};
use crate::tables::rows::columns::append_ids;
use crate::tables::text::blocks::lines;
use crate::tables::text::format::is_graph6;
use crate::tables::text::parse_number::{parse_f32, parse_i64};

/// Edges of one block.
pub(super) struct Edges {
    /// Lines of the block, comments included.
    pub(super) lines: u64,
    pub(super) src: Ids,
    pub(super) dst: Ids,
    pub(super) weights: Vec<f32>,
    /// Of the dictionaries behind the edges.
    pub(super) attributes: NamedColumns,
    /// The first line with an edge.
    first: u64,
    /// Line of the block from 1, field from 1 (0 for the whole line), what was expected, what was found.
    pub(super) problem: Option<(u64, usize, Expected, Cut)>,
}

/// What to do about texts where numbers are expected as ids.
const TEXT_IDS: &str = "`EdgeListFormat::with_text_ids` reads ids that are texts, `with_header_lines` passes over a header";

/// What NetworkX writes behind an edge.
const DICTIONARY: &str =
    "a dictionary of booleans, numbers, texts and lists of numbers, as in {'weight': 3}";

/// What to do about a weight that f32 cannot represent.
const ROUND: &str = "`EdgeListFormat::round_weights` takes the nearest f32";

/// Field (from 1, 0 for all), what was expected, what was found.
type Wrong<'a> = (usize, Expected, &'a [u8]);

impl Edges {
    pub(super) fn empty(format: &EdgeListFormat) -> Self {
        let ids = || if format.text_ids { Ids::Text(Texts::new()) } else { Ids::Int(vec![]) };
        Self {
            lines: 0,
            src: ids(),
            dst: ids(),
            weights: vec![],
            attributes: NamedColumns::default(),
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
            // A delimiter may be a tab in front of an empty field.
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
                    return Err((k + 1, "a text that is not empty".into(), field));
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

    /// The edges of another block behind these; `Err` with its first line, and what was expected there.
    pub(super) fn append(&mut self, other: Self) -> Result<(), (u64, String)> {
        let line = self.lines + other.first;
        append_ids(&mut self.src, &other.src);
        append_ids(&mut self.dst, &other.dst);
        self.weights.extend(other.weights);
        self.lines += other.lines;
        self.attributes.append(other.attributes).map_err(|expected| (line, expected))
    }
}

/// Another remedy, where the line shows which program wrote it.
fn with_remedy(expected: Expected, field: usize, line: &[u8], format: &EdgeListFormat) -> Expected {
    let line = line.trim_ascii();
    if !format.attributes && line.ends_with(b"}") && memchr::memchr(b'{', line).is_some() {
        return expected
            .or("`EdgeListFormat::networkx` reads the dictionaries that `networkx.write_edgelist` writes");
    }
    if field < 2 && is_graph6(line) {
        return expected.or(
            "this may be graph6, which is not supported; write a list of edges, one on a line",
        );
    }
    expected
}

/// The fields of a line; with white space between them none is empty.
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
