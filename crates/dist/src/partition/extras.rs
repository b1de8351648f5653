//! Splits lists, texts and file ids of nodes and edges by part.

use std::collections::BTreeMap;

use burn_gnn_graph::{Frame, GlobalIds, HomoId, Ids, NodeIds, Ragged, Schema, Texts};
use safetensors::Dtype;

use super::load::Reader;
use super::tensors::Entry;
use super::{Partition, PartitionedGraph};
use crate::DistError;
use crate::partition_book::Numbering;

/// Lists, texts and ids of the nodes or edges of one type, row by row: those that the part owns, then the others, as
/// [`Partition::to_graph`] has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Extras {
    lists: BTreeMap<String, Ragged>,
    texts: BTreeMap<String, Texts>,
    ids: Option<Ids>,
    global_ids: Option<GlobalIds>,
}

/// Of node types and of edge types.
pub(crate) type ExtrasByType = [Vec<Extras>; 2];

const KINDS: [&str; 2] = ["node", "edge"];

impl Extras {
    /// Those of a frame at `rows`.
    pub(crate) fn of(frame: &Frame, rows: &[u32]) -> Result<Self, DistError> {
        let global_ids = frame.global_ids().map(|ids| {
            let ids = ids.as_slice();
            GlobalIds::new(rows.iter().map(|&r| ids[r as usize]).collect())
        });
        Ok(Self {
            lists: frame.lists().map(|(name, list)| (name.to_owned(), list.select(rows))).collect(),
            texts: frame
                .texts()
                .map(|(name, texts)| {
                    (name.to_owned(), texts.select(rows.iter().map(|&r| r as usize)))
                })
                .collect(),
            ids: frame.ids().map(|ids| ids.ids().select(rows)),
            global_ids: global_ids.transpose()?,
        })
    }
    /// Gives them to a frame of as many rows.
    pub(crate) fn insert(&self, frame: &mut Frame) -> Result<(), DistError> {
        for (name, list) in &self.lists {
            frame.insert_list(name, list.clone())?;
        }
        for (name, texts) in &self.texts {
            frame.insert_text(name, texts.clone())?;
        }
        if let Some(ids) = &self.ids {
            frame.set_ids(NodeIds::new(ids.clone()))?;
        }
        if let Some(ids) = &self.global_ids {
            frame.set_global_ids(ids.clone())?;
        }
        Ok(())
    }
    /// The tensors that they are in a file; `of` is `node/<type>` or `edge/<type>`.
    fn entries<'a>(&'a self, of: &str, out: &mut Vec<Entry<'a>>) {
        for (name, list) in &self.lists {
            let key = format!("list/{of}/{name}");
            out.push(Entry::numbers(format!("{key}/indptr"), Dtype::U64, list.indptr()));
            out.push(Entry::numbers(format!("{key}/values"), Dtype::I64, list.values()));
        }
        for (name, texts) in &self.texts {
            put_texts(&format!("text/{of}/{name}"), texts, out);
        }
        match &self.ids {
            None => {}
            Some(Ids::Int(ids)) => {
                out.push(Entry::numbers(format!("ids/{of}"), Dtype::I64, &ids[..]))
            }
            Some(Ids::Text(texts)) => put_texts(&format!("ids/{of}"), texts, out),
        }
        if let Some(ids) = &self.global_ids {
            out.push(Entry::numbers(format!("global_ids/{of}"), Dtype::U64, ids.as_slice()));
        }
    }
}

fn put_texts<'a>(key: &str, texts: &'a Texts, out: &mut Vec<Entry<'a>>) {
    /// Bytes that are written at a time.
    const CHUNK: usize = 1 << 16;
    let bytes = texts.iter().map(str::len).sum();
    out.push(Entry::new(format!("{key}/bytes"), Dtype::U8, vec![bytes], move |w| {
        let mut buffer = String::new();
        for text in texts.iter() {
            buffer.push_str(text);
            if buffer.len() >= CHUNK {
                w.write_all(buffer.as_bytes())?;
                buffer.clear();
            }
        }
        w.write_all(buffer.as_bytes())
    }));
    let ends = texts.iter().scan(0u64, |end, text| {
        *end += text.len() as u64;
        Some(*end)
    });
    out.push(Entry::numbers(format!("{key}/ends"), Dtype::U64, ends.collect::<Vec<u64>>()));
}

/// The tensors of all types, whose names are given for nodes and for edges.
pub(crate) fn entries<'a>(extras: &'a ExtrasByType, names: [&[String]; 2]) -> Vec<Entry<'a>> {
    let mut out = vec![];
    for ((kind, of), names) in KINDS.iter().zip(extras).zip(names) {
        of.iter()
            .zip(names)
            .for_each(|(extras, name)| extras.entries(&format!("{kind}/{name}"), &mut out));
    }
    out
}

/// No lists, texts or ids of any type.
pub(crate) fn no_extras(schema: &Schema) -> ExtrasByType {
    [schema.ntypes().len(), schema.etypes().len()].map(|types| vec![Extras::default(); types])
}

impl PartitionedGraph {
    /// Those of a part, of which the structure is there.
    pub(crate) fn extras(&self, part: &Partition) -> Result<ExtrasByType, DistError> {
        let frames = [self.graph.node_frames(), self.graph.edge_frames()];
        let has_none = |f: &Frame| {
            f.lists().next().is_none()
                && f.texts().next().is_none()
                && f.ids().is_none()
                && f.global_ids().is_none()
        };
        if frames.iter().all(|f| f.iter().all(has_none)) {
            return Ok(no_extras(self.book.schema()));
        }
        let rows = part.original_rows()?;
        let of = |i: usize| {
            frames[i]
                .iter()
                .zip(&rows[i])
                .map(|(frame, rows)| Extras::of(frame, rows))
                .collect::<Result<_, _>>()
        };
        Ok([of(0)?, of(1)?])
    }
}

impl Partition {
    /// Ids in the input graph of local nodes and of local edges, per type in local order.
    pub(crate) fn original_rows(&self) -> Result<[Vec<Vec<u32>>; 2], DistError> {
        let rows = |of: &Numbering, global: &[u64], originals: &[u64]| {
            let mut rows = vec![vec![]; of.num_types()];
            for (&global, &original) in global.iter().zip(originals) {
                rows[of.locate(HomoId(global))?.1.ty].push(original as u32);
            }
            Ok::<_, DistError>(rows)
        };
        Ok([
            rows(&self.book.nodes, &self.nid, &self.orig_nid)?,
            rows(&self.book.edges, &self.eid, &self.orig_eid)?,
        ])
    }
}

impl Reader<'_> {
    /// Lists, texts and ids of a part's local nodes and edges; `names` are those of node types and of edge types.
    pub(super) fn extras(
        &self,
        part: &Partition,
        names: [&[String]; 2],
    ) -> Result<ExtrasByType, DistError> {
        let mut extras = no_extras(part.book.schema());
        let rows = part.original_rows()?.map(|rows| rows.iter().map(Vec::len).collect::<Vec<_>>());
        let (all, mut read) = (self.tensors.names(), 0);
        for key in &all {
            let parsed = key.split_once('/').and_then(|(what, rest)| {
                let (kind, rest) = rest.split_once('/')?;
                let kind = KINDS.iter().position(|k| *k == kind)?;
                let (ty, rest) =
                    rest.split_once('/').map_or((rest, None), |(ty, rest)| (ty, Some(rest)));
                let ty = names[kind].iter().position(|name| name == ty)?;
                let ends = |end: &str| rest.and_then(|r| r.strip_suffix(end)).map(str::to_owned);
                Some((what, kind, ty, rest, ends("/indptr"), ends("/ends")))
            });
            let Some((what, kind, ty, rest, list, text)) = parsed else {
                let expected = "`list`, `text`, `ids` or `global_ids`, `node` or `edge`, and a type of the graph";
                return Err(DistError::format(
                    self.path,
                    format!("tensor `{key}`: expected a name of {expected}"),
                ));
            };
            let (len, of) = (rows[kind][ty], &mut extras[kind][ty]);
            match (what, rest, list, text) {
                ("list", _, Some(name), _) => {
                    of.lists.insert(name, self.ragged(key.trim_end_matches("indptr"), len)?);
                    read += 2;
                }
                ("text", _, _, Some(name)) => {
                    of.texts.insert(name, self.texts(key.trim_end_matches("ends"), len)?);
                    read += 2;
                }
                ("ids", None, ..) => {
                    of.ids = Some(Ids::Int(self.list(key, Dtype::I64, Some(len))?));
                    read += 1;
                }
                ("ids", Some("ends"), ..) => {
                    of.ids = Some(Ids::Text(self.texts(key.trim_end_matches("ends"), len)?));
                    read += 2;
                }
                ("global_ids", None, ..) => {
                    let ids = GlobalIds::new(self.list(key, Dtype::U64, Some(len))?);
                    of.global_ids = Some(
                        ids.map_err(|e| DistError::format(self.path, format!("`{key}`: {e}")))?,
                    );
                    read += 1;
                }
                // The other half of a pair.
                _ => {}
            }
        }
        if read == all.len() {
            return Ok(extras);
        }
        Err(DistError::format(
            self.path,
            format!("expected {read} tensors of lists, texts and ids, found {}", all.len()),
        ))
    }

    fn ragged(&self, key: &str, rows: usize) -> Result<Ragged, DistError> {
        let indptr = self.list(&format!("{key}indptr"), Dtype::U64, rows.checked_add(1))?;
        let values = self.list(&format!("{key}values"), Dtype::I64, None)?;
        Ragged::new(indptr, values)
            .map_err(|e| DistError::format(self.path, format!("`{key}indptr`: {e}")))
    }
    fn texts(&self, key: &str, rows: usize) -> Result<Texts, DistError> {
        let bad = |why: String| DistError::format(self.path, format!("`{key}ends`: {why}"));
        let ends: Vec<u64> = self.list(&format!("{key}ends"), Dtype::U64, Some(rows))?;
        let bytes: Vec<u8> = self.list(&format!("{key}bytes"), Dtype::U8, None)?;
        let all = std::str::from_utf8(&bytes)
            .map_err(|e| bad(format!("expected texts in UTF-8: {e}")))?;
        let (mut texts, mut from) = (Texts::new(), 0);
        for (i, end) in ends.into_iter().enumerate() {
            let text = usize::try_from(end).ok().and_then(|end| all.get(from..end));
            let text = text.ok_or_else(|| {
                bad(format!(
                    "position {i}: expected the end of a text that begins at byte {from}, got {end}"
                ))
            })?;
            texts.push(text);
            from += text.len();
        }
        if from == all.len() {
            Ok(texts)
        } else {
            Err(bad(format!("expected texts of {} bytes, found {from}", all.len())))
        }
    }
}
