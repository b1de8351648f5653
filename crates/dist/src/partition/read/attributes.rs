//! Reads lists, texts and file ids of the nodes and edges of a part.

use burn_gnn_graph::{GlobalIds, Ids, Ragged, Texts};
use safetensors::Dtype;

use super::tensors::TensorReader;
use crate::error::DistError;
use crate::partition::part::attributes::{AttributesByType, KINDS, no_attributes};
use crate::partition::part::partition::Partition;

impl TensorReader<'_> {
    /// Reads lists, texts and ids of the local nodes and edges of a part. `names` lists the node types and the edge
    /// types.
    pub(super) fn attributes(
        &self,
        part: &Partition,
        names: [&[String]; 2],
    ) -> Result<AttributesByType, DistError> {
        let mut attributes = no_attributes(part.book.schema());
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
            let (len, of) = (rows[kind][ty], &mut attributes[kind][ty]);
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
                // The second tensor of a pair is read with the first.
                _ => {}
            }
        }
        if read == all.len() {
            return Ok(attributes);
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
