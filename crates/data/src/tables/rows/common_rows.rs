//! Parses rows of a CSV file in their most common form.

use burn_gnn_graph::Ids;

use super::columns::Columns;
use super::header::Header;
use crate::tables::schema::attr_type::AttrType;
use crate::tables::schema::csv_options::Csv;
use crate::tables::schema::decoder::{Decoder, Slot};
use crate::tables::text::dialect::Dialect;
use crate::tables::text::parse_number::{leading_f32, leading_i64};

/// The column that a field is appended to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// The `k`-th column of ids.
    Id(usize),
    Weight,
    Label,
    Time,
    /// The `k`-th number of its kind in the attributes.
    Float(usize),
    Int(usize),
    Text(usize),
}

/// Parses rows whose numbers have their shortest form and whose texts have no quotes, while they are split into fields.
/// Most rows have this form, and a pass over the bytes is saved. The reader parses all other rows field by field, with the
/// same values.
pub(super) struct CommonRows {
    /// Ascending columns.
    targets: Vec<(usize, Target)>,
    delimiter: u8,
    quote: Option<u8>,
    width: usize,
    floats: usize,
    ints: usize,
}

impl CommonRows {
    pub(super) fn new(
        csv: &Csv,
        header: &Header,
        decoder: &Decoder,
        wanted: &[usize],
        [lead, attributes]: [&[usize]; 2],
        width: usize,
    ) -> Option<Self> {
        let &[delimiter] = csv.delimiter.as_bytes() else { return None };
        let texts = decoder.text_labels || decoder.attr_types.contains(&AttrType::Text);
        // A marker of missing values may be a number or a text.
        let is_number = |m: &String| m.bytes().all(|b| b"0123456789.+-eE".contains(&b));
        let marked = csv.missing.iter().any(is_number) || texts && !csv.missing.is_empty();
        let twice = wanted.len() < lead.len() + attributes.len();
        let other = decoder.text_labels || header.text_ids.contains(&true) || csv.decimal != '.';
        if marked || twice || other || decoder.timestamped && csv.time_unit.is_some() {
            return None;
        }
        let ids = (0..header.text_ids.len()).map(Target::Id);
        let optional = [
            (decoder.weighted, Target::Weight),
            (decoder.labeled, Target::Label),
            (decoder.timestamped, Target::Time),
        ];
        let first = ids.chain(optional.into_iter().filter(|o| o.0).map(|o| o.1));
        let mut targets: Vec<(usize, Target)> =
            lead.iter().map(|&place| wanted[place]).zip(first).collect();
        for ((t, slot), &place) in decoder.attr_types.iter().zip(decoder.slots()).zip(attributes) {
            let target = match (t, slot) {
                (AttrType::Float, Slot::Float(k)) => Target::Float(k),
                (AttrType::Int, Slot::Int(k)) => Target::Int(k),
                (AttrType::Text, Slot::Text(k)) => Target::Text(k),
                _ => return None,
            };
            targets.push((wanted[place], target));
        }
        targets.sort_unstable_by_key(|t| t.0);
        let [floats, ints, ..] = decoder.widths();
        let quote = csv.quote.map(|q| q as u8);
        Some(Self { targets, delimiter, quote, width, floats, ints })
    }

    /// Parses the row at `start`, appends it to the columns and returns the start of the next row. `None`: the row has
    /// another form, and the columns are unchanged.
    #[inline]
    pub(super) fn parse<'t>(
        &self,
        text: &'t [u8],
        start: usize,
        dialect: &Dialect,
        texts: &mut Vec<(usize, &'t str)>,
        out: &mut Columns,
    ) -> Option<usize> {
        texts.clear();
        let attributes = &mut out.table.attributes;
        let (floats, ints) = (attributes.floats.len(), attributes.ints.len());
        attributes.floats.resize(floats + self.floats, 0.0);
        attributes.ints.resize(ints + self.ints, 0);
        let end = self.fields(text, start, dialect, texts, out, [floats, ints]);
        if end.is_none() {
            out.truncate(self.floats, self.ints);
        } else {
            texts.iter().for_each(|&(k, text)| out.table.attributes.texts[k].push(text));
            out.rows += 1;
        }
        end
    }

    #[inline]
    fn fields<'t>(
        &self,
        text: &'t [u8],
        start: usize,
        dialect: &Dialect,
        texts: &mut Vec<(usize, &'t str)>,
        out: &mut Columns,
        [floats, ints]: [usize; 2],
    ) -> Option<usize> {
        let (mut at, mut targets) = (start, self.targets.iter());
        let mut next = targets.next();
        for column in 0..self.width {
            let target = next.filter(|t| t.0 == column).map(|t| t.1);
            if target.is_some() {
                next = targets.next();
            }
            let rest = &text[at..];
            let length = match target {
                Some(Target::Float(_) | Target::Weight) => {
                    let (value, length) = leading_f32(rest)?;
                    match target {
                        Some(Target::Float(k)) => {
                            out.table.attributes.floats[floats + k] = value;
                        }
                        _ => out.table.weights.as_mut()?.push(value),
                    }
                    length
                }
                None | Some(Target::Text(_)) => {
                    if !rest.is_empty() && rest.first() == self.quote.as_ref() {
                        return None;
                    }
                    let length = dialect.plain_length(rest)?;
                    if let Some(Target::Text(k)) = target {
                        texts.push((k, std::str::from_utf8(&rest[..length]).ok()?));
                    }
                    length
                }
                Some(number) => {
                    let (value, length) = leading_i64(rest)?;
                    match number {
                        Target::Id(k) => match &mut out.ids[k] {
                            Ids::Int(ids) => ids.push(value),
                            Ids::Text(_) => return None,
                        },
                        Target::Label => out.table.labels.as_mut()?.push(value),
                        Target::Time => out.table.timestamps.as_mut()?.push(value),
                        Target::Int(k) => out.table.attributes.ints[ints + k] = value,
                        _ => return None,
                    }
                    length
                }
            };
            at += length;
            let last = column + 1 == self.width;
            match *text.get(at)? {
                b if b == self.delimiter && !last => at += 1,
                b'\n' if last => at += 1,
                b'\r' if last && text.get(at + 1) == Some(&b'\n') => at += 2,
                _ => return None,
            }
        }
        Some(at)
    }
}
